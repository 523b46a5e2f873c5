"""Where commands meet what isn't as they expect: a deleted file, names that left it, plans that never were."""

import json
from collections.abc import Iterator

import pytest
from regions import RunningRegion

from fencepost.roles.status.document import decode

API, WWW, OLD = "api.example.test", "www.example.test", "old.example.test"
WHY = ("--reason", "a test")


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegion]:
    """One region for the whole file; each test leaves it as it found it."""
    with RunningRegion(tmp_path_factory.mktemp("edges"), name="edges") as running:
        yield running


def error_of(region: RunningRegion, *words: str, code: int) -> dict[str, str]:
    """The refusal's document."""
    found = json.loads(region.fencepost(*words, "--json", ok=(code,)))["error"]
    assert isinstance(found, dict)
    return found


def test_a_deleted_file_stops_no_command_that_one_needs_meanwhile(region: RunningRegion) -> None:
    """What the region loaded serves, and reload says what keeps running."""
    good = region.config.read_text()
    region.until(lambda: (region.state / "running.json").exists(), 10, "the planner keeps its copy")
    region.config.unlink()
    try:
        assert decode(region.fencepost("status", "--json", ok=(0, 1)).encode()).region == "edges"
        region.fencepost("drain", "127.0.3.1", *WHY)
        region.fencepost("resume", "127.0.3.1")
        for command in ("reload", "plan"):
            refused = error_of(region, command, code=2)
            assert "is gone" in refused["what"]
            assert "region edges keeps running on what it loaded" in refused["hint"]
    finally:
        region.config.write_text(good)
    region.fencepost("reload")


def test_a_name_that_left_the_file_is_withdrawn_and_resumed_by_name(region: RunningRegion) -> None:
    """Only so does it go: leaving the file takes no record away."""
    good = region.config.read_text()
    region.config.write_text(f'{good}[[endpoint]]\nname = "{OLD}"\npool = "web"\n')
    region.fencepost("reload")
    region.until(lambda: region.addresses(OLD), 10, "it is published")
    region.config.write_text(good)
    region.fencepost("reload")
    region.until(lambda: OLD in orphans(region), 10, "status names it")
    region.fencepost("withdraw", OLD, "--confirm", OLD, *WHY)
    assert region.addresses(OLD) == []
    region.until(lambda: OLD not in orphans(region), 10, "it is no more said to be answered")


def orphans(region: RunningRegion) -> set[str]:
    """The names that status calls orphans."""
    status = decode(region.fencepost("status", "--json", ok=(0, 1)).encode())
    return {each.on for each in status.problems if each.id == "orphan-endpoint"}


def test_a_command_that_takes_away_suggests_no_other_name(region: RunningRegion) -> None:
    """`withdraw ns1` was once answered with "did you mean api?"."""
    for name in ("ns1.example.test", "apj.example.test"):
        refused = error_of(region, "withdraw", name, *WHY, "--confirm", name, code=1)
        assert refused["hint"] == "fencepost status    lists them"


def test_a_plan_that_never_was_is_refused_and_the_way_back_names_what_was_rolled_back(region: RunningRegion) -> None:
    """`resume --all` would also end what others placed."""
    refused = error_of(region, "rollback", "99", *WHY, "--yes", code=1)
    assert "there is no plan 99; the newest is " in refused["what"]
    before = region.marker(API)
    assert before is not None
    region.fencepost("drain", "127.0.2.1", *WHY)
    region.until(lambda: (m := region.marker(WWW)) is not None and m.generation > before.generation, 10, "both")
    said = region.fencepost("rollback", str(before.generation.number), *WHY, "--yes")
    assert f"back     fencepost resume {API} {WWW}" in said
    region.fencepost("resume", API, WWW, "127.0.2.1")
