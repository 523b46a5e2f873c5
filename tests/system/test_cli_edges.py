"""Where commands meet what isn't as they expect: a deleted file, names that left it, plans that never were."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from regions import FENCEPOST, RunningRegion
from terminals import Typed

from fencepost.roles.status.document import decode
from fencepost.roles.status.processes import alive

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
        for command in ("reload", "plan", "check"):
            refused = error_of(region, command, code=2)
            assert refused["what"] == "the file is gone; region edges keeps running on what it loaded"
            assert refused["hint"].startswith("put it back")
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
    waits = error_of(region, "resume", OLD, "--timeout", "1s", code=3)
    assert "nothing is wanted for this name" in waits["what"]
    assert waits["hint"].startswith("put it back into region.toml")
    region.config.write_text(f'{good}[[endpoint]]\nname = "{OLD}"\npool = "web"\n')
    region.fencepost("reload")
    region.until(lambda: region.addresses(OLD), 10, "it is published again")
    region.config.write_text(good)
    region.fencepost("reload")
    region.fencepost("withdraw", OLD, "--confirm", OLD, *WHY)


def orphans(region: RunningRegion) -> set[str]:
    """The names that status calls orphans."""
    status = decode(region.fencepost("status", "--json", ok=(0, 1)).encode())
    return {each.on for each in status.problems if each.id == "orphan-endpoint"}


def test_a_region_of_ones_own_is_not_begun_afresh(tmp_path: Path) -> None:
    """`up --fresh` was passed over there, and whoever typed it thought that all was new."""
    (tmp_path / "region.toml").write_text("[region]\nname = 'own'\n")
    for words in (("--fresh",), ("--fresh", "--sample")):
        done = subprocess.run(
            [str(FENCEPOST), "up", *words, "--for", "0s"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "--fresh is for the sample" in done.stderr


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

    def beyond(name: str) -> bool:
        marker = region.marker(name)
        return marker is not None and marker.generation > before.generation

    region.until(lambda: beyond(API) and beyond(WWW), 10, "both")
    said = region.fencepost("rollback", str(before.generation.number), *WHY, "--yes")
    assert f"back     fencepost resume {API} {WWW}" in said
    region.fencepost("resume", API, WWW, "127.0.2.1")


def test_a_repair_wants_a_reason_and_status_names_who_and_why(region: RunningRegion) -> None:
    """Every change has an author and a reason, also the one that needs no store; nobody there to ask is a refusal."""
    refused = error_of(region, "repair", API, "--address", "127.0.1.1", "--yes", code=2)
    assert "--reason" in refused["hint"]
    before = region.marker(API)
    assert before is not None
    assert before.hold is None
    region.fencepost("repair", API, "--address", "127.0.1.1", "--yes", *WHY)
    region.until(lambda: reasons(region) == {(API, "repair", "a test")}, 10, "status names it")
    assert "held by a repair by " in region.fencepost("explain", API)
    region.fencepost("resume", API)


def reasons(region: RunningRegion) -> set[tuple[str, str, str | None]]:
    """What persons placed, and why; the API's document may be a second old."""
    status = decode(region.fencepost("status", "--json", ok=(0, 1)).encode())
    return {(each.on, each.what, each.reason) for each in status.overrides if each.by and each.on != OLD}


def test_what_is_withdrawn_is_explained_so_and_repair_names_the_way_back(region: RunningRegion) -> None:
    """Its targets are well, and callers get none of them."""
    region.fencepost("withdraw", WWW, "--confirm", WWW, *WHY)
    said = region.fencepost("explain", WWW)
    assert "withdrawn by " in said
    assert f"fencepost resume {WWW}" in said
    assert "127.0.1.1" not in said
    assert f"fencepost resume {WWW}" in said_on_stderr(region, "repair", WWW, "--address", "127.0.1.1", code=2)
    region.fencepost("resume", WWW)


def said_on_stderr(region: RunningRegion, *words: str, code: int = 0) -> str:
    """A command's notes."""
    command = [str(FENCEPOST), *words, "--config", str(region.config)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr


def test_history_of_a_name_that_nothing_is_known_of_is_refused(region: RunningRegion) -> None:
    """A slip mustn't look like a quiet hour; and what isn't shown counts for what callers saw."""
    refused = error_of(region, "history", "nope.example.test", code=1)
    assert "no endpoint, pool, target or role" in refused["what"]
    assert "did you mean api.example.test?" in error_of(region, "history", "apj.example.test", code=1)["hint"]
    for known in ("web", "127.0.1.1", "enactor/a", "b"):
        region.fencepost("history", known)
    region.until(lambda: " enactor " in region.fencepost("history", "api"), 10, "what was enacted is written down")
    for words in ((), ("api",), (API,)):
        said = region.fencepost("history", *words, "--only", "operator")
        assert "callers saw no change" not in said, "what isn't shown counts too"


def test_a_drain_says_what_it_replaces_and_resume_what_remains(region: RunningRegion) -> None:
    """A keep of the same target is gone then; a drain of its zone is not."""
    region.fencepost("keep", "127.0.2.1", *WHY)
    assert "The keep of 127.0.2.1 stays in force" in said_on_stderr(region, "drain", "--zone", "b", *WHY)
    assert "This replaces the keep of 127.0.2.1" in said_on_stderr(region, "drain", "127.0.2.1", *WHY)
    assert "remains  drain of zone b" in region.fencepost("resume", "127.0.2.1")
    assert "remains" not in region.fencepost("resume", "--zone", "b")


CTRL_C, CTRL_D = "\x03", "\x04"


@pytest.mark.parametrize(
    ("words", "question"),
    [
        (("drain", "127.0.2.1"), "reason: "),
        (("drain", "127.0.2.1", *WHY), "Do it? [y/N] "),
        (("withdraw", WWW, *WHY), f"Type {WWW} to go on: "),
        (("repair", API, "--address", "127.0.1.1", *WHY), "Write it? [y/N] "),
    ],
)
def test_one_ctrl_c_at_a_question_ends_the_command(
    region: RunningRegion, words: tuple[str, ...], question: str
) -> None:
    """An event loop takes the first for a wish to cancel what waits at the terminal and can't hear it.

    Linux' terminal sends the signal first, then drops what waits to be shown, then shows ^C (``isig`` in n_tty.c): a
    command that is quick on another core may have finished the line before, or in vain.
    """
    with Typed(region.folder, *words, "--config", str(region.config)) as typed:
        typed.until(question)
        typed.type(CTRL_C)
        code, shown = typed.ended()
    assert code == 130
    assert shown in ("^C\r\n", "\r\n^C", "^C"), "nothing but the end of the question's line follows"
    assert not reasons(region)


def test_the_end_of_input_at_a_question_begins_a_line(region: RunningRegion) -> None:
    """Ctrl-D: "reason: error: …" stood there, in one line."""
    with Typed(region.folder, "drain", "127.0.2.1", "--config", str(region.config)) as typed:
        typed.until("reason: ")
        typed.type(CTRL_D)
        code, shown = typed.ended()
    assert code == 2
    assert shown.startswith("\r\nerror: a change needs a reason")


def test_a_region_that_was_killed_needs_a_person_at_once(tmp_path: Path) -> None:
    """Its last signs of life are seconds old, its store says that all is in: status said "working" and exit 0."""
    gone = RunningRegion(tmp_path, name="gone")
    with gone:
        assert gone.process is not None
        held = json.loads((gone.state / "processes.json").read_text())
        pids = [gone.process.pid, held["supervisor"], *(each["pid"] for each in held["processes"].values())]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # the kernel ends children of the dead, too
                os.kill(pid, signal.SIGKILL)
        gone.until(lambda: not any(alive(pid) for pid in pids[1:]), 10, "all are dead")
        status = decode(gone.fencepost("status", "--json", ok=(1,)).encode())
        assert status.verdict == "attention"
        assert {role.state for role in status.roles} == {"down"}
        assert {"region-down", "dns-unavailable"} <= {each.id for each in status.problems if each.needs_person}
        for path in tmp_path.glob("gone.db*"):
            path.unlink()
        refused = error_of(gone, "status", code=3)
        assert "neither its API, its store nor its DNS can be read (" in refused["what"]
