"""What a person does with a running region, command by command, against real processes."""

import json
from collections.abc import Iterator

import pytest
from regions import RunningRegion

from fencepost.roles.status.document import decode

API, WWW = "api.example.test", "www.example.test"
WHY = ("--reason", "a test")


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegion]:
    """One region for the whole file; each test leaves it as it found it."""
    with RunningRegion(tmp_path_factory.mktemp("flows"), name="flows") as running:
        running.until(lambda: "ready in" in (running.folder / "up.log").read_text(), 10, "up says that it is ready")
        yield running


def standing(region: RunningRegion, name: str) -> list[str]:
    """The addresses that stand: while one ramps up, an answer is a draw by weight and the marker carries them all."""
    marker = region.marker(name)
    if marker is not None and marker.content is not None:
        return list(marker.content.a)
    return region.addresses(name)


def all_in(region: RunningRegion) -> None:
    """Wait until both endpoints answer all six."""
    region.until(lambda: [len(standing(region, name)) for name in (API, WWW)] == [6, 6], 15, "six addresses each")


@pytest.fixture(autouse=True)
def as_found(region: RunningRegion) -> Iterator[None]:
    """What a test placed and left is ended, so that one failure stays one."""
    good = region.config.read_text()
    yield
    if region.config.read_text() != good:
        region.config.write_text(good)
        region.fencepost("reload", "--yes", ok=(0, 1, 2, 3))
    region.fencepost("resume", "--all", "--yes", ok=(0, 1, 3))


def document(text: str) -> dict[str, object]:
    """A command's one JSON document."""
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def error_of(region: RunningRegion, *words: str, code: int) -> dict[str, str]:
    """The refusal's document."""
    found = document(region.fencepost(*words, "--json", ok=(code,)))["error"]
    assert isinstance(found, dict)
    return found


def test_up_says_when_it_is_ready_and_what_happens_since(region: RunningRegion) -> None:
    """Without a terminal: one line an event, no table."""
    said = (region.folder / "up.log").read_text()
    assert f"dns 127.0.0.1:{region.dns_port} · api http://127.0.0.1:{region.api_port} · 3 checkers" in said
    assert "plan 1" in said
    assert "ENDPOINT" not in said
    assert "\x1b" not in said


def test_status_is_quiet_when_all_is_well_and_a_document_when_asked(region: RunningRegion) -> None:
    """fencepost.status/1, from the API; the words name each endpoint, pool and zone."""
    all_in(region)

    def shown() -> list[int]:
        status = decode(region.fencepost("status", "--json").encode())
        assert (status.source, status.region) == ("api", "flows")
        return [len(endpoint.addresses or ()) for endpoint in status.endpoints]

    region.until(lambda: shown() == [6, 6], 10, "the API's document, a second old at most, has all six")
    words = (API, WWW, "POOL web", "6 of 6", "file", "promises held")
    region.until(lambda: [each for each in words if each not in region.fencepost("status", "-v")] == [], 10, "words")
    assert '"$id": "fencepost.status/1"' in region.fencepost("status", "--schema")


def test_a_drain_leaves_dns_and_resume_brings_it_back(region: RunningRegion) -> None:
    """However well it is; and the planner doesn't undo it."""
    region.fencepost("drain", "127.0.1.1", *WHY)
    assert "127.0.1.1" not in standing(region, API) + standing(region, WWW)
    status = decode(region.fencepost("status", "--json").encode())
    assert [(word.what, word.on, word.reason) for word in status.overrides] == [("drain", "127.0.1.1", "a test")]
    assert "drained" in region.fencepost("explain", "127.0.1.1")
    region.fencepost("resume", "127.0.1.1")
    all_in(region)
    assert "operator" in region.fencepost("history", "--only", "operator", "--json")


def test_a_drain_under_min_in_needs_the_pools_name_and_never_takes_the_last(region: RunningRegion) -> None:
    """RULES of removal: min_in holds unless a person names the pool; an endpoint goes away by withdraw only."""
    four = ("127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2")
    assert error_of(region, "drain", *four, *WHY, code=2)["hint"] == "add --confirm web"
    refused = error_of(region, "drain", *four, "127.0.3.1", "127.0.3.2", *WHY, "--confirm", "web", code=1)
    assert "withdraw" in refused["hint"]
    assert len(standing(region, API)) == 6
    region.fencepost("drain", *four, *WHY, "--confirm", "web")
    assert standing(region, API) == ["127.0.3.1", "127.0.3.2"]
    region.fencepost("resume", "--all", "--yes")
    all_in(region)


def test_a_zone_is_drained_and_resumed_as_one(region: RunningRegion) -> None:
    """--zone b: both its targets, in one word."""
    region.fencepost("drain", "--zone", "b", *WHY)
    assert standing(region, API) == ["127.0.1.1", "127.0.1.2", "127.0.3.1", "127.0.3.2"]
    region.fencepost("resume", "--zone", "b")
    all_in(region)


def test_keep_and_pause_are_placed_listed_and_ended(region: RunningRegion) -> None:
    """A later word on the same scope replaces the earlier one."""
    region.fencepost("drain", "127.0.1.2", *WHY)
    region.fencepost("keep", "127.0.1.2", *WHY)
    region.fencepost("pause", "web", *WHY)
    region.fencepost("pause", "--zone", "b", "--observe", *WHY)

    def placed() -> set[tuple[str, str]]:
        status = decode(region.fencepost("status", "--json").encode())
        return {(word.what, word.on) for word in status.overrides}

    expected = {("keep", "127.0.1.2"), ("observe", "zone b"), ("pause", "pool web")}
    region.until(lambda: placed() == expected, 10, "the API's document, a second old at most, has all three")
    assert error_of(region, "pause", "--region", *WHY, code=2)["hint"] == "add --confirm flows"
    region.fencepost("resume", "--all", "--yes")
    region.until(lambda: not placed(), 10, "none is left")
    all_in(region)


def test_withdraw_asks_for_the_name_leaves_no_address_and_can_be_undone(region: RunningRegion) -> None:
    """Nothing else takes an endpoint away, so this one is asked about by name."""
    assert error_of(region, "withdraw", API, *WHY, code=2)["hint"] == f"add --confirm {API}"
    assert error_of(region, "withdraw", API, *WHY, "--confirm", WWW, code=2)["hint"] == f"--confirm {API}"
    region.fencepost("withdraw", API, *WHY, "--confirm", API)
    assert standing(region, API) == []
    assert len(standing(region, WWW)) == 6
    region.until(lambda: "withdrawn" in region.fencepost("status"), 10, "status says so, a moment later at most")
    assert "withdrawn already" in region.fencepost("withdraw", API, *WHY, "--confirm", API), "asked twice, done once"
    twice = error_of(region, "withdraw", API, *WHY, "--confirm", API, "--for", "1h", code=1)
    assert "withdrawn already" in twice["what"], "another end than asked for is not passed over"
    region.fencepost("resume", API)
    all_in(region)


def test_a_rollback_goes_back_to_what_a_plan_gave_and_stands(region: RunningRegion) -> None:
    """October 2025's opposite: going back is a hold that outranks the planner, not a race with it."""
    region.fencepost("drain", "127.0.2.1", *WHY)
    marker = region.marker(API)
    assert marker is not None
    five = standing(region, API)
    region.fencepost("resume", "127.0.2.1")
    all_in(region)
    refused = error_of(region, "rollback", str(marker.generation.number), API, *WHY, code=2)
    assert refused["hint"] == "add --yes"
    region.fencepost("rollback", str(marker.generation.number), API, *WHY, "--yes")
    assert standing(region, API) == five
    assert len(standing(region, WWW)) == 6
    assert "no longer kept" in error_of(region, "rollback", "0", API, *WHY, "--yes", code=1)["what"]
    region.fencepost("resume", API)
    all_in(region)


def test_resume_of_nothing_is_refused(region: RunningRegion) -> None:
    """A typo mustn't look like success."""
    assert "nobody placed anything" in error_of(region, "resume", "web", code=1)["what"]
    assert "no endpoint is called" in error_of(region, "withdraw", "apj.example.test", *WHY, code=1)["what"]


@pytest.mark.parametrize("flags", [(), ("--marker",), ("--both",)])
def test_what_a_careless_writer_wipes_heals(region: RunningRegion, flags: tuple[str, ...]) -> None:
    """The enactors read, compare and write the difference; nobody asks a person."""
    before = region.marker(API)
    region.fencepost("dev", "wipe", API, *flags)
    all_in(region)
    region.until(lambda: region.marker(API) is not None, 10, "the marker is back")
    after = region.marker(API)
    assert before is not None
    assert after is not None
    assert after.generation >= before.generation


@pytest.mark.parametrize("spoil", ["", "[region]\nname = \n", None])
def test_a_wrong_or_empty_file_changes_nothing_and_status_says_so(region: RunningRegion, spoil: str | None) -> None:
    """A bad reload keeps the old and says so; the commands one needs meanwhile work by what runs."""
    good, before = region.config.read_text(), standing(region, API)
    region.config.write_text(good.replace("interval =", "intervall =") if spoil is None else spoil)
    try:
        assert "keeps what it loaded at" in error_of(region, "reload", code=2)["hint"]
        assert "keeps what it loaded at" in json_less(region, "check")
        region.until(lambda: rejected(region), 10, "status says so")
        assert standing(region, API) == before
        region.fencepost("drain", "127.0.3.1", *WHY)
        region.fencepost("resume", "127.0.3.1")
    finally:
        region.config.write_text(good)
        region.fencepost("reload")
    region.until(lambda: not rejected(region), 10, "status says that it is over")


def rejected(region: RunningRegion) -> bool:
    """Whether status says that the file was refused; the API's document may be a second old."""
    document = decode(region.fencepost("status", "--json", ok=(0, 1)).encode())
    return document.config.rejected_at is not None


def json_less(region: RunningRegion, word: str) -> str:
    """What a refused command says on stderr."""
    import subprocess

    from regions import FENCEPOST

    command = [str(FENCEPOST), word, "--config", str(region.config)]
    done = subprocess.run(command, cwd=region.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    return done.stderr


def test_a_file_that_takes_half_a_pool_away_asks_for_a_yes(region: RunningRegion) -> None:
    """An empty list rendered by a template is a slip far more often than an order."""
    good, before = region.config.read_text(), standing(region, API)
    gone = 'b = ["127.0.2.1", "127.0.2.2"]\nc = ["127.0.3.1", "127.0.3.2"]\n'
    region.config.write_text(good.replace(gone, "").replace("[region]", '[region]\nzones = ["a", "b", "c"]'))
    try:
        assert error_of(region, "reload", code=1)["hint"].endswith("fencepost reload --yes")
        assert standing(region, API) == before
    finally:
        region.config.write_text(good)
        region.fencepost("reload")


def test_sighup_to_the_supervisor_reloads(region: RunningRegion) -> None:
    """Reload is a command or SIGHUP, never a save."""
    import os
    import signal

    good = region.config.read_text()
    supervisor = json.loads((region.state / "processes.json").read_text())["supervisor"]
    region.config.write_text(good.replace('ttl = "5s"', 'ttl = "7s"'))
    assert region.ttl(API) == 5
    os.kill(supervisor, signal.SIGHUP)
    region.until(lambda: region.ttl(API) == 7, 10, "the new ttl is live")
    region.config.write_text(good.replace("interval =", "intervall ="))
    os.kill(supervisor, signal.SIGHUP)
    region.until(lambda: "refused: " in (region.folder / "up.log").read_text(), 10, "it says what is wrong")
    region.config.write_text(good)
    region.fencepost("reload")


def test_plan_previews_exactly_what_a_reload_then_does(region: RunningRegion) -> None:
    """Preview and real run are one code path.

    Nearly the last test of this file: the target that comes back may join again at any moment after half a minute.
    """
    good = region.config.read_text()
    all_in(region)
    region.until(lambda: "nothing would change" in region.fencepost("plan"), 10, "what was loaded last is planned")
    region.config.write_text(good.replace('a = ["127.0.1.1", "127.0.1.2"]', 'a = ["127.0.1.1"]'))
    said = region.fencepost("plan", "--exit-code", ok=(1,))
    assert "left the file: your act" in said
    assert "was region.toml:" in said
    changes = json.loads(region.fencepost("plan", "--json"))["changes"]
    promised = {change["name"]: sorted(change["addresses"]) for change in changes}
    assert "127.0.1.2" in standing(region, API), "a preview does nothing"
    region.fencepost("reload")
    region.until(lambda: len(standing(region, API)) == len(standing(region, WWW)) == 5, 10, "reloaded")
    assert {name: sorted(standing(region, name)) for name in (API, WWW)} == promised
    region.config.write_text(good)
    region.fencepost("reload")
    new = "what comes back is new: it has to show that it is ready"
    region.until(lambda: "waits: " in region.fencepost("plan"), 10, new)
    assert "127.0.1.2" not in standing(region, API)


def test_history_tells_kinds_apart_and_suggests_them(region: RunningRegion) -> None:
    """--only takes kinds; a wrong one is answered with the nearest."""
    rows = json.loads(region.fencepost("history", API, "--json", "--only", "enacted,healed"))["history"]
    assert rows
    assert {row["kind"] for row in rows} <= {"enacted", "healed"}
    assert {row["on"] for row in rows} == {API}
    assert "did you mean fenced?" in error_of(region, "history", "--only", "fencd", code=2)["hint"]


def test_a_dead_target_leaves_and_explain_says_why(region: RunningRegion) -> None:
    """The last test of this file: the target comes back only after a minute."""
    import signal

    region.signal("target/127.0.2.2", signal.SIGKILL)
    region.until(lambda: "127.0.2.2" not in standing(region, API), 60, "it leaves DNS")
    words = ("127.0.2.2 (b)  dead since", "connection refused")
    region.until(lambda: all(each in region.fencepost("explain", API) for each in words), 10, "explain says why")
    found = json.loads(region.fencepost("explain", "127.0.2.2", "--json"))
    assert found["kind"] == "target"
    exited = "exited (signal 9); the sample starts it again in 60 s"
    region.until(lambda: exited in (region.folder / "up.log").read_text(), 10, "up says what becomes of it")
    assert json.loads(region.fencepost("history", "127.0.2.2", "--only", "removed", "--json"))["history"]
