"""``fencepost explore`` and ``simulate``: what they print, their documents, exit codes and refusals."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from called import FENCEPOST, call

KEYS = ["verdict", "promise", "states", "transitions", "depth", "cpu_s", "story", "sometimes", "not_covered"]
"""What each exploration's document has, whatever was explored."""


def test_explore_walks_the_deciders_and_exits_by_what_it_finds(tmp_path: Path) -> None:
    """0: every interleaving holds; 2: there is no such move."""
    done = call("explore", "--moves", "none", "--inputs", "0", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["results"][0]["verdict"] == document["verdict"] == "holds"
    assert document["promise"] is None
    assert not set(KEYS) - document.keys()
    done = call("explore", "--moves", "none,marker-deleted", "--inputs", "0", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("2 explorations: 2 hold · ")
    assert [line.split()[0] for line in lines] == [*2 * ["HOLDS", "with", "seen"], "2"]  # off a terminal none is folded


def test_explore_as_it_was_tells_the_race_and_exits_1(tmp_path: Path) -> None:
    """October 2025: eleven steps from the first plan to an endpoint without addresses, and nobody can mend it."""
    done = call("explore", "--as-was", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("VIOLATED never_empty · shortest way, 11 steps · 3 enactors, 3 plans, 2 endpoints · ")
    assert "NOERROR, no addresses" in lines[-4]
    assert lines[-4].endswith("<- here")
    assert "only a person can write this record now" in lines[-2]
    assert max(map(len, lines)) <= 100
    done = call("explore", "--as-was", "--enactors", "2", "--endpoints", "1", "--json", cwd=tmp_path)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert not set(KEYS) - document.keys()
    assert (document["verdict"], document["promise"], len(document["story"])) == ("violated", "never_empty", 10)


def test_explore_guards_prints_which_sets_are_enough(tmp_path: Path) -> None:
    """A conditional write alone isn't: on plan trees the target must exist and clean-up must spare it besides."""
    done = call("explore", "--guards", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nor backward     conditional-write + target-exists + cleanup-spares" in " ".join(done.stdout.split("\n"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explore", "--moves", "marker-goen"), "unknown move"),
        (("explore", "--as-was", "--moves", "crash"), "--moves can't be combined with --as-was"),
        (("explore", "--plans", "2", "--inputs", "1"), "--inputs can't be combined with --plans"),
        (("explore", "--enactors", "99"), "from 1 to 6"),
        (("explore", "--most", "0"), "at least one state"),
        (("explore", "--as-was", "--most", "-1"), "at least one state"),
        (("explore", "--guards", "--most", "0"), "at least one state"),
        (("explore", "--moves", ""), "name 1 of 1 is empty"),
        (("explore", "--moves", "none,"), "name 2 of 2 is empty"),
        (("explore", "--moves", "none+crash"), "none can't be joined"),
        (("explore", "--plans", "0"), "plans is 0; from 1 to 7"),
        (("simulate", "--scenario", "rase"), "did you mean 'race'?"),
        (("simulate", "--scenario", "fleet-collapse", "--variants", "bas"), "did you mean 'base'?"),
        (
            ("simulate", "--scenario", "fleet-collapse", "--faults", "crash"),
            "--faults can't be combined with --scenario",
        ),
        (("simulate", "--map", "--seeds", "3"), "--seeds can't be combined with --map"),
        (("simulate", "--map", "--picture", "no/such/folder.svg"), "no/such/folder.svg: can't be written"),
        (("simulate", "--variants", "all"), "--variants can't be combined with a walk of a region"),
        (("simulate", "--faults", "crahs"), "did you mean 'crash'?"),
        (("simulate", "--promises", "never_emty"), "did you mean 'never_empty'?"),
        (("simulate", "--seeds", "0"), "at least one walk"),
        (("simulate", "--seed", "-1"), "--seed -1 is below 0"),
        (("simulate", "--map", "--seed", "-1"), "--seed -1 is below 0"),
        (("simulate", "--seeds", "9" * 29), "at most 1,000,000 walks"),
        (("simulate", "--promises", ","), "name 1 of 2 is empty"),
        (("simulate", "--scenario", ""), "unknown scenario ''"),
        (("simulate", "--write", "no/such/folder"), "no/such/folder: can't be written"),
        (("simulate", "--trace", "nowhere.trace", "--write", "x"), "--write can't be combined with --trace"),
        (("simulate", "--seeds", "3", "--seed", "4"), "--seeds can't be combined with --seed"),
        (("simulate", "--trace", "nowhere.trace"), "nowhere.trace"),
        (("simulate", "--trace", "nowhere.trace", "--seed", "1"), "--seed can't be combined with --trace"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """Exit 2, what is wrong and where to look; no traceback."""
    done = call(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_simulate_judges_each_promise_and_writes_a_trace_that_comes_out_the_same(tmp_path: Path) -> None:
    """Exit 0; how often each promise was checked; and the file says the same in another process."""
    done = call(
        "simulate", "--scenario", "first-minutes", "--seed", "3", "--write", "walk.trace", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["seeds"] == [3]
    assert all(promise["held"] for promise in document["promises"].values())
    assert document["promises"]["never_empty"]["times_checked"] > 0
    assert {"figures", "cpu_s"} <= document.keys()
    again = call("simulate", "--trace", "walk.trace", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("HOLDS · 1 walk · first-minutes · ")
    names = [line.split()[0] for line in call("simulate", "--scenario", "list", cwd=tmp_path).stdout.splitlines()]
    assert {"swarm", "race", "first-minutes", "fleet-collapse"} <= set(names)
    told = call("simulate", "--scenario", "fleet-collapse", "--variants", "list", cwd=tmp_path)
    assert {"base", "limit-halved", "cv-2"} <= {line.split()[0] for line in told.stdout.splitlines()}


def test_a_trace_that_comes_out_otherwise_is_a_finding(tmp_path: Path) -> None:
    """Exit 1 with the line, as any other finding; 2 is for what is no trace."""
    call("simulate", "--scenario", "first-minutes", "--seed", "3", "--write", "walk.trace", cwd=tmp_path)
    path = tmp_path / "walk.trace"
    path.write_text(path.read_text().replace('"seed": 3', '"seed": 4', 1))
    done = call("simulate", "--trace", "walk.trace", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("DIFFERS · walk.trace\nline ")
    done = call("simulate", "--trace", "walk.trace", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (1, "differs")


def test_a_bound_beyond_all_memory_is_a_bound(tmp_path: Path) -> None:
    """No room is taken for states that never come."""
    done = call("explore", "--moves", "none", "--inputs", "0", "--most", "99999999999", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("HOLDS · ")


@pytest.mark.parametrize(
    "words",
    [
        ("explore", "--enactors", "6", "--endpoints", "4", "--moves", "crash,repair"),
        ("explore", "--as-was", "--enactors", "6", "--plans", "8", "--endpoints", "4"),
    ],
)
def test_ctrl_c_ends_the_command_with_what_there_is(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The first one: the result so far, called unfinished, exit 130, and no further exploration is begun."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    with subprocess.Popen(
        [str(FENCEPOST), *words], cwd=tmp_path, env=clean, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert "so far" in process.stderr.readline()  # it is at work
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.count("UNFINISHED, nothing broken so far") == 1
    assert "HOLDS" not in said
