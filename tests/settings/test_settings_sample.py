"""The sample region and the file `init` writes: what they say is what is loaded."""

from pathlib import Path

import pytest

from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.limits import SafetySettings
from fencepost.settings import Mistake, SettingsError, check, closing, decode, encode, judge, load
from fencepost.settings.core_settings import health_settings, listed_targets, pool_settings, safety_settings
from fencepost.settings.initial import INITIAL
from fencepost.settings.schema import HostPort, Region

SAMPLE = Path(__file__).parents[2] / "src/fencepost/dev/sample.toml"


def sample() -> Region:
    return load(SAMPLE, {})


def test_the_sample_loads_without_mistake_or_caution() -> None:
    """The sample teaches by example, so nothing about it may be odd."""
    report = check(SAMPLE, {})
    assert report.mistakes == report.cautions == ()
    assert report.region == sample()


def test_the_sample_means_what_it_says() -> None:
    """Names, times and shares become plain values; each target keeps its line."""
    region = sample()
    assert (region.name, region.owner, region.zones, region.drills) == ("demo", "demo", ("a", "b", "c"), True)
    assert region.dns.listen == HostPort("127.0.0.1", 5300)
    assert (region.dns.ttl_s, region.dns.gather_ns) == (5, 30 * 10**9)
    web = region.pool("web")
    assert (web.probe.interval_ns, web.probe.timeout_ns, web.probe.fall, web.probe.rise) == (10**9, 5 * 10**8, 3, 5)
    assert [(endpoint.name, endpoint.records) for endpoint in region.endpoints] == [
        ("api.example.test", ("A",)),
        ("www.example.test", ("A",)),
    ]
    lines = SAMPLE.read_text().splitlines()
    for target in web.targets:
        assert f'"{target.address}"' in lines[target.line - 1]
    for endpoint in region.endpoints:
        assert f'"{endpoint.name}"' in lines[endpoint.line - 1]
    with pytest.raises(KeyError):
        region.pool("wbe")


def test_check_ends_with_what_the_file_means() -> None:
    """20 % of six targets is two, not one point two: said in targets and seconds."""
    assert check(SAMPLE, {}).meaning == (
        "pool web   6 targets, 3 zones; automation takes out at most 2 (max_out), never leaves under 3",
        "           a dead target leaves DNS after 2.0 to 3.5 s, callers' caches add up to 5 s (ttl)",
        "           removal budget 2 targets, a new one every 3 min 20 s (rate 5 %/min of 6)",
        "fleet   1 host-manager owns all hosts; hosts are asked every 10 s (renew)",
        "        a dead host's instances start elsewhere 31 s after its last answer (3 renewals and 0.6 s for clocks)",
        "        6 hosts and no others: instances are placed as soon as all have told what they run",
    )


def test_the_sample_states_the_deciders_own_defaults() -> None:
    """Safety settings of the file and of the core have one set of defaults, so neither can drift."""
    bare = judge(INITIAL, "region.toml", {}).region
    assert bare is not None
    assert safety_settings(bare.safety) == safety_settings(sample().safety) == SafetySettings()
    assert health_settings(bare.pool("api")) == HealthSettings()


def test_deciders_get_the_pool_as_listed() -> None:
    """A weight that isn't in the file stays open, so that `capacity` can give it."""
    region = sample()
    web = region.pool("web")
    assert pool_settings(region, web).health.interval_ns == 10**9
    assert {(target.key, target.zone, target.weight) for target in listed_targets(web)} >= {("127.0.1.1", "a", None)}


def test_a_region_goes_to_json_and_back() -> None:
    """The loaded region is a row of the store and planned from there; nothing may be lost on the way."""
    region = sample()
    assert decode(encode(region)) == region
    assert encode(decode(encode(region))) == encode(region)


def test_the_file_that_init_writes_loads(tmp_path: Path) -> None:
    """The first thing a user gets must pass its own check, and say what it means."""
    path = tmp_path / "region.toml"
    path.write_text(INITIAL)
    report = check(path, {})
    assert report.mistakes == report.cautions == ()
    assert report.meaning[0].startswith("pool api   6 targets, 3 zones; automation takes out at most 2")


def test_its_other_provider_loads_too(tmp_path: Path) -> None:
    """The lines of rfc2136 are there to be uncommented."""
    lines = [line for line in INITIAL.splitlines() if not line.startswith("provider")]
    text = "\n".join(
        line.removeprefix("# ") if line[2:10].strip() in ("provider", "server", "key") else line for line in lines
    )
    (tmp_path / "tsig.key").write_text('key "fencepost" {\n\talgorithm hmac-sha256;\n\tsecret "c2VjcmV0";\n};\n')
    (tmp_path / "tsig.key").chmod(0o600)
    region = judge(text, str(tmp_path / "region.toml"), {}).region
    assert region is not None
    assert region.dns.server == HostPort("192.0.2.53", 53)
    assert region.dns.key is not None
    assert region.dns.key.file == str(tmp_path / "tsig.key")


def test_files_lie_in_the_state_directory_if_there_is_one(tmp_path: Path) -> None:
    """systemd sets STATE_DIRECTORY; without it what a region writes lies beside its file."""
    text = SAMPLE.read_text()
    beside = judge(text, str(tmp_path / "region.toml"), {}).region
    inside = judge(text, str(tmp_path / "region.toml"), {"STATE_DIRECTORY": "/var/lib/fencepost:/other"}).region
    assert beside is not None
    assert inside is not None
    assert beside.store.path == str(tmp_path / "demo.db")
    assert inside.store.path == "/var/lib/fencepost/demo.db"
    assert inside.api.token.file == str(tmp_path / "api.token")  # named in the file, so relative to the file


def test_load_raises_every_mistake_at_once(tmp_path: Path) -> None:
    """A tool that stops at the first mistake is run once for each."""
    path = tmp_path / "region.toml"
    first = next(target.line for target in sample().pool("web").targets if target.address == "127.0.2.1")
    path.write_text(SAMPLE.read_text().replace("interval", "intervall").replace('"127.0.2.2"', '"127.0.2.1"'))
    with pytest.raises(SettingsError) as caught:
        load(path, {})
    assert [mistake.text for mistake in caught.value.mistakes] == [
        'unknown key "intervall" in [pool.web.probe]; did you mean "interval"?',
        f"127.0.2.1 is in pool web twice (first on line {first}); list it once, with a weight",
    ]
    assert caught.value.hint == "2 mistakes. Nothing was started."
    assert caught.value.where == str(path)


def test_the_closing_line_says_what_keeps_running() -> None:
    """A bad reload keeps the old settings and says so (gdnsd, nginx)."""
    one = (Mistake("region.toml", 14, "x"),)
    assert (
        closing(one * 4, "19:02") == "4 mistakes. Nothing was started; a running region keeps what it loaded at 19:02."
    )
    assert closing(one) == "1 mistake. Nothing was started."
    assert str(one[0]) == "region.toml:14: x"


def test_the_first_file_shows_a_fleet_that_only_wants_its_comment_signs_removed() -> None:
    """Nobody should have to find out from elsewhere that targets can be launched, or by what heading."""
    head, commented = INITIAL.split("# [fleet]")
    lines = ("# [fleet]" + commented).splitlines()
    both = judge(head + "\n".join(line.removeprefix("# ") for line in lines), "region.toml", {}).region
    assert both is not None
    assert both.fleet is not None
    assert [pool.launch is not None for pool in both.pools] == [False, True]
