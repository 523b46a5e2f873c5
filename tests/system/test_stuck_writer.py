"""A role that is stopped inside a write transaction holds the store's one write lock: it is named, and ended."""

import json
import os
import signal
import time
from pathlib import Path

from regions import RunningRegion, stands_still

from fencepost.adapters.store_sqlite.writer import WriteLock


def stop_while_writing(region: RunningRegion, role: str) -> int:
    """Give a role something to write and stop it again and again until it is caught with the write lock; its pid."""
    pid, lock = region.pid(role), WriteLock(Path(region.region.store.path))
    began = time.monotonic()
    changed = 0
    while time.monotonic() < began + 60:
        if time.monotonic() > began + 0.3 * changed:
            changed += 1
            region.change_ttl(50 + changed)
        os.kill(pid, signal.SIGSTOP)
        while not stands_still(pid):  # a thread may go on for a moment, and let go of the lock
            time.sleep(0.0002)
        if lock.holder() == pid:
            return pid
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.0005)
    raise AssertionError(f"{role} was never caught writing")


def test_a_role_stopped_inside_a_write_is_named_and_ended_and_the_others_go_on(tmp_path: Path) -> None:
    """SQLite has one writer: a stopped one blocks writers, never readers; callers notice nothing."""
    with RunningRegion(tmp_path) as region:
        region.until(region.converged, 10, "converged")
        region.until(lambda: region.history("enacted"), 10, "there is something to read")
        pid = stop_while_writing(region, "planner")
        assert len(region.addresses("api.example.test")) == 6
        assert region.history("enacted"), "reading goes on"

        def named() -> bool:
            document = json.loads(region.fencepost("status", "--json", ok=(0, 1)))
            return any(str(pid) in problem["what"] for problem in document["problems"])

        region.until(named, 10, "status names the pid")
        region.until(lambda: region.pid("planner") != pid, 25, "the supervisor ends it")
        region.newer_plan(44)
        region.until(lambda: "write lock" in (tmp_path / "up.log").read_text(), 10, "up says why")
