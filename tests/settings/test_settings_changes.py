"""What differs between two files, how much may change at once, and which file is meant."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.settings import judge, load
from fencepost.settings.changes import changes, too_much
from fencepost.settings.lookup import find_config
from fencepost.settings.schema import Region

SAMPLE = Path(__file__).parents[2] / "src/fencepost/dev/sample.toml"


def sample(*edits: tuple[str, str]) -> Region:
    text = SAMPLE.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    found = judge(text, str(SAMPLE), {})
    assert found.mistakes == ()
    assert found.region is not None
    return found.region


def without(*addresses: str) -> Region:
    """Give the sample without some of its targets, as a later file would have it."""
    region = load(SAMPLE, {})
    pools = [
        msgspec.structs.replace(pool, targets=tuple(t for t in pool.targets if t.address not in addresses))
        for pool in region.pools
    ]
    return msgspec.structs.replace(region, pools=tuple(pools))


def test_lines_and_comments_are_no_difference() -> None:
    """Moving a file's parts about changes nothing that runs."""
    assert changes(sample(), sample(("[region]", "# more\n\n[region]"))).nothing
    assert changes(sample(), sample(('"127.0.1.1", "127.0.1.2"', '"127.0.1.2", "127.0.1.1"'))).nothing


def test_targets_that_come_go_and_change_have_their_lines() -> None:
    """So that a plan can say "new, region.toml:31"."""
    line = next(target.line for target in sample().pools[0].targets if target.address == "127.0.2.1")
    found = changes(sample(), sample(('"127.0.2.1", "127.0.2.2"', '"127.0.2.1",\n"127.0.2.9"'), ("[[", "\n[[")))
    assert [
        (c.pool, c.before and c.before.address, c.after and (c.after.address, c.after.line)) for c in found.targets
    ] == [
        ("web", "127.0.2.2", None),
        ("web", None, ("127.0.2.9", line + 1)),
    ]
    assert [change.before.address for change in found.removed if change.before] == ["127.0.2.2"]
    heavier = changes(sample(), sample(('"127.0.2.1"', '{ addr = "127.0.2.1", weight = 3 }')))
    assert [(c.before and c.before.weight, c.after and c.after.weight) for c in heavier.targets] == [(None, 3)]
    moved = changes(sample(), sample((', "127.0.2.2"', ""), ('"127.0.1.2"', '"127.0.1.2", "127.0.2.2"')))
    assert [(c.before and c.before.zone, c.after and c.after.zone) for c in moved.targets] == [("b", "a")]
    assert not moved.removed


def test_an_endpoint_gone_from_the_file_is_an_orphan() -> None:
    """It goes away by `withdraw` only."""
    found = changes(sample(), sample(('[[endpoint]]\nname = "www.example.test"\npool = "web"\n', "")))
    assert [change.name for change in found.orphans] == ["www.example.test"]
    renamed = changes(sample(), sample(('"www.', '"web.')))
    assert [(c.name, c.before is None, c.after is None) for c in renamed.endpoints] == [
        ("web.example.test", True, False),
        ("www.example.test", False, True),
    ]


def test_settings_that_changed_have_their_path_and_both_values() -> None:
    """And those that a reload can't change are marked."""
    found = changes(
        sample(),
        sample(
            ('max_out   = "20%"', 'max_out   = "30%"'),
            ('"127.0.0.1:5300"      #', '"127.0.0.1:5399"      #'),
            ("5300", "5310"),
        ),
    )
    assert [(c.path, c.before, c.after, c.needs_restart) for c in found.settings] == [
        ("checkers.canary", ["tcp://127.0.0.1:5300"], ["tcp://127.0.0.1:5310"], True),
        ("dns.listen.port", 5300, 5399, True),
        ("pool.web.safety.max_out_ppm", 200_000, 300_000, False),
        ("safety.max_out_ppm", 200_000, 300_000, False),
    ]


def test_a_changed_setting_is_said_as_the_file_says_it() -> None:
    """It printed ('svc.test',) -> ('svc2.test',), and durations as nanoseconds."""
    edits = (('"example.test"', '"example.net"'), ("api.example.test", "api.example.net"), ('"30s"', '"1m"'))
    found = changes(sample(), sample(*edits, ("www.example.test", "www.example.net"), ('"20%"', '"30%"')))
    said = {each.path: each.said for each in found.settings}
    assert said["dns.domains"] == "dns.domain: example.test -> example.net"
    assert said["dns.gather_ns"] == "dns.gather: 30s -> 1m"
    assert said["safety.max_out_ppm"] == "safety.max_out: 20% -> 30%"


def test_what_a_reload_cannot_change_is_marked() -> None:
    """A changed domain was taken up by half of the region: its endpoint became an orphan that nobody answered for."""
    region = sample()
    moved = {
        "dns.domains": msgspec.structs.replace(region, dns=msgspec.structs.replace(region.dns, domains=("a.test",))),
        "region.owner": msgspec.structs.replace(region, owner="other"),
        "store.path": msgspec.structs.replace(region, store=msgspec.structs.replace(region.store, path="/x.db")),
        "region.mode": msgspec.structs.replace(region, mode="observe"),
    }
    found = {path: [each.fixed for each in changes(region, new).settings] for path, new in moved.items()}
    assert found == {"dns.domains": [True], "region.owner": [True], "store.path": [True], "region.mode": [False]}


def test_up_to_half_a_pool_goes_without_asking() -> None:
    """Removing targets is the owner's act, free of automation's limits."""
    assert too_much(sample(), without("127.0.1.1", "127.0.1.2", "127.0.2.1")) == ()
    assert too_much(sample(), sample()) == ()


def test_more_than_half_a_pool_at_once_is_asked_again() -> None:
    """A list rendered half empty by a template looks just like this."""
    assert too_much(sample(), without("127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2")) == (
        "pool web: 4 of 6 targets leave the file at once, more than half",
    )


def test_the_last_target_is_asked_again() -> None:
    """Also when the whole pool leaves the file."""
    gone = sample(
        ("[pool.web", "[pool.other"),
        ('"web"', '"other"'),
        ("127.0.1", "127.0.7"),
        ("127.0.2", "127.0.8"),
        ("127.0.3", "127.0.9"),
    )
    assert too_much(sample(), gone) == ("pool web: all its 6 targets leave the file",)
    one = without("127.0.1.2", "127.0.2.1", "127.0.2.2", "127.0.3.1", "127.0.3.2")
    assert too_much(one, without(*[t.address for t in sample().pools[0].targets])) == (
        "pool web: its last target leaves the file",
    )


def test_going_below_min_in_is_asked_again() -> None:
    """What is out already makes the same removal too much; what was out anyway doesn't count."""
    after = without("127.0.1.1", "127.0.1.2")
    serving = {"web": frozenset({"127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2"})}
    assert too_much(sample(), after, serving) == ("pool web: 2 of 6 targets would stay in service, and min_in is 3",)
    assert too_much(sample(), after, {"web": frozenset({"127.0.2.1", "127.0.2.2"})}) == ()


@given(st.sets(st.sampled_from([t.address for t in load(SAMPLE, {}).pools[0].targets])), st.booleans())
def test_what_needs_no_asking_never_empties_a_pool(gone: set[str], known: bool) -> None:
    """For every subset of the sample's targets: silence means that half of them and min_in stay."""
    old, new = sample(), without(*gone)
    serving = {"web": frozenset(t.address for t in old.pools[0].targets)} if known else None
    if not too_much(old, new, serving):
        assert len(new.pools[0].targets) >= 3
    else:
        assert len(gone) > 3


def test_the_file_is_found_in_one_order(tmp_path: Path) -> None:
    """Flag, environment, here, a sample running here, the machine's; never a parent folder."""
    (tmp_path / "region.toml").touch()
    (tmp_path / "here").mkdir()
    here, system, runs = tmp_path / "here", tmp_path / "system.toml", tmp_path / "demo.toml"
    environ = {"FENCEPOST_CONFIG": "env.toml"}

    def found(flag: str | None, environ: dict[str, str]) -> tuple[str, str] | None:
        got = find_config(flag, environ, here, [tmp_path / "none.toml", runs], system)
        return got and (got.path.name, got.by)

    assert found(None, {}) is None
    system.touch()
    assert found(None, {}) == ("system.toml", "/etc")
    runs.touch()
    assert found(None, {}) == ("demo.toml", "sample")
    (here / "region.toml").touch()
    assert found(None, {}) == ("region.toml", "./region.toml")
    assert found(None, environ) == ("env.toml", "$FENCEPOST_CONFIG")
    assert found("flag.toml", environ) == ("flag.toml", "--config")
    absolute = find_config(str(system), environ, here)
    assert absolute is not None
    assert absolute.path == system


def test_a_setting_that_names_the_region_needs_a_restart() -> None:
    """An owner that changed under a running region would make its own records foreign."""
    found = changes(sample(), sample(('owner  = "demo"', 'owner  = "other"')))
    assert [(c.path, c.needs_restart) for c in found.settings] == [("region.owner", True)]


@pytest.mark.parametrize("field", ["name", "owner", "zones", "drills", "mode"])
def test_every_plain_setting_of_the_region_is_compared(field: str) -> None:
    """A setting left out of the comparison would never be reloaded."""
    other = msgspec.structs.replace(sample(), **{field: "x"})
    assert [c.path for c in changes(sample(), other).settings] == [f"region.{field}"]
