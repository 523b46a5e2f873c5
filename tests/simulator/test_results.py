"""What is shown of walks: the document for programs, the lines for people, and what the command refuses."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from fencepost.core import zone
from fencepost.simulator import command, trace
from fencepost.simulator.command import narrowed, replay, simulate
from fencepost.simulator.result import document, tell


def test_the_document_has_what_programs_read() -> None:
    """``fencepost simulate --json``: seeds, promises (held, times checked), figures, CPU seconds."""
    found = json.loads(json.dumps(document(simulate([0, 1], "first-minutes"))))
    assert found["seeds"] == [0, 1]
    assert found["promises"]["never_backward"]["held"] is True
    assert found["promises"]["never_backward"]["times_checked"] > 0
    assert found["figures"]["moves"] > 10_000
    assert found["figures"]["region_s"] == 840
    assert found["cpu_s"] > 0
    assert found["violation"] is None


def test_people_are_told_how_often_each_promise_was_checked() -> None:
    """And what it would mean: of a promise that nothing spoke of, that is said."""
    text = tell(simulate([0], "first-minutes"))
    assert text.startswith("HOLDS · 1 walk · first-minutes · ")
    assert "bounded_removal" in text
    assert "removal 1" in text
    assert "nothing that it speaks of happened" in text


def test_an_unknown_scenario_is_refused_with_the_nearest() -> None:
    """A slip of the finger."""
    with pytest.raises(ValueError, match="did you mean 'race'"):
        simulate([0], "rase")


def test_an_unknown_fault_or_promise_is_refused_with_the_nearest() -> None:
    """Else a walk without the fault would hold, and say nothing."""
    with pytest.raises(ValueError, match="did you mean 'target-dies'"):
        narrowed("race", faults=("target-dys",))
    with pytest.raises(ValueError, match="did you mean 'never_torn'"):
        narrowed("race", promises=("never_torm",))


def test_faults_and_promises_can_be_chosen() -> None:
    """Scenarios × faults × promises: what isn't drawn doesn't happen, what isn't judged isn't told."""
    chosen = narrowed("first-minutes", faults=("record-emptied",), promises=("never_empty", "converges"))
    result = simulate([0], chosen)
    assert result.seen["healed"] > 0
    assert list(document(result)["promises"]) == ["never_empty", "converges"]


def test_a_promise_that_is_not_judged_does_not_end_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A team that breaks one promise on purpose still wants to know about the others."""
    monkeypatch.setattr(zone, "exact", lambda *_: True)
    assert simulate([0], narrowed("race", promises=("never_backward",)), shrinks=False).violation is not None
    assert simulate([0], narrowed("race", promises=("inputs_never_backward",)), shrinks=False).holds


def test_ctrl_c_gives_the_result_so_far() -> None:
    """An hour's walks aren't thrown away."""

    def stop(done: int, _: object) -> None:
        if done == 2:
            raise KeyboardInterrupt

    result = simulate(range(100), "first-minutes", progress=stop)
    assert (result.seeds, result.stopped, result.holds) == ((0, 1), True, True)
    assert tell(result).startswith("UNFINISHED, nothing broken so far · 2 walks, then stopped")


def test_no_walk_is_no_promise_held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Stopped in the first walk: nothing was judged, and the walk isn't walked again for its trace."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "walk", stop)
    result = simulate([3], "first-minutes", write=tmp_path / "trace")
    assert tell(result).startswith("UNFINISHED")
    found = document(result)
    assert (found["verdict"], found["seeds"]) == ("unfinished", [])
    assert {promise["held"] for promise in found["promises"].values()} == {None}
    assert not (tmp_path / "trace").exists()
    with pytest.raises(ValueError, match="no promise"):
        simulate([3], narrowed("race", promises=()))


def test_a_file_is_tried_before_any_walk(tmp_path: Path) -> None:
    """An hour's walks, and then no trace: it is said at once. What stands in a file that can be written stays."""
    with pytest.raises(FileNotFoundError):
        simulate([0], "first-minutes", write=tmp_path / "none" / "trace", progress=lambda *_: pytest.fail("walked"))
    (tmp_path / "kept").write_text("a trace")
    command.check_writable(tmp_path / "kept")
    assert (tmp_path / "kept").read_text() == "a trace"


def test_a_violation_is_told_though_its_trace_is_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A disk that fills up meanwhile hides no broken promise; and shrinking says that it was stopped."""
    real = zone.after
    monkeypatch.setattr(zone, "after", lambda live, change: structs.replace(real(live, change), a=()))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def stop(tried: int, _: int) -> None:
        if tried == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(trace, "record", full)
    result = simulate([0], "bad-hands", write=tmp_path / "trace", shrinking=stop)
    broken = result.violation
    assert broken is not None
    assert broken.story[-1].endswith("BROKEN      never_empty")
    assert "No space left" in broken.unwritten
    assert broken.upsets
    said = tell(result)
    assert "shrinking was stopped by Ctrl-C" in said
    assert "can't be written: No space left on device" in said
    assert document(result)["violation"]["trace"] is None


def test_a_violation_is_shrunk_told_and_replayed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A world whose provider forgets an address: no upset is needed, so none is left, and the trace shows the same."""
    real = zone.after
    monkeypatch.setattr(zone, "after", lambda live, change: structs.replace(real(live, change), a=()))
    path = tmp_path / "broken.jsonl"
    result = simulate(range(5), "bad-hands", write=path)
    broken = result.violation
    assert broken is not None
    assert (result.seeds, broken.promise, broken.upsets) == ((0,), "never_empty", ())
    assert broken.story[-1].endswith("BROKEN      never_empty")
    assert tell(result).startswith("VIOLATED never_empty · seed 0 · bad-hands")
    found = document(result)
    assert found["promises"]["never_empty"]["held"] is False
    assert found["violation"]["upsets_drawn"] > 0
    again = replay(path)
    assert again.violation is not None
    assert again.violation.story == broken.story
    monkeypatch.undo()
    with pytest.raises(trace.Differs, match="the walk"):
        replay(path)
