"""Two planners: the one that was stopped between reading its inputs and publishing throws its plan away."""

import signal
import subprocess
from pathlib import Path

import pytest
from callers import Callers
from grounds import EVERYWHERE
from patience import patient
from regions import FENCEPOST, RunningRegion, state_of

NAMES = ["api.example.test", "www.example.test"]


@pytest.mark.parametrize("on", EVERYWHERE)
def test_a_planner_overtaken_between_inputs_and_publishing_throws_its_plan_away(tmp_path: Path, on: str) -> None:
    """Promise inputs_never_backward: the compare-and-set on the head refuses it, and it is never renumbered."""
    with RunningRegion(tmp_path, on=on) as region:
        region.until(region.converged, 10, "converged")
        drill = region.state / "drills" / "stop-before-Publish.planner"
        drill.parent.mkdir()
        drill.touch()
        stalled = region.pid("planner")
        region.change_ttl(40)
        region.until(lambda: state_of(stalled) == "T", 10, "the planner is stopped right before it publishes")
        with (tmp_path / "second.log").open("wb") as log:
            second = subprocess.Popen(
                [str(FENCEPOST), "run", "planner", "--config", str(region.config)], cwd=tmp_path, stdout=log, stderr=log
            )
        try:
            with Callers(region.dns_port, NAMES) as callers:
                for ttl in (60, 61, 62):
                    region.newer_plan(ttl)
                before = region.marker(NAMES[0])
                region.signal("planner", signal.SIGCONT)
                region.until(
                    lambda: "thrown away" in (region.state / "planner.log").read_text(), 10, "its plan is thrown away"
                )
                region.newer_plan(63)
                after = region.marker(NAMES[0])
            callers.fine()
            assert before is not None
            assert after is not None
            assert after.generation.number > before.generation.number
        finally:
            second.send_signal(signal.SIGTERM)
            second.wait(patient(10))
