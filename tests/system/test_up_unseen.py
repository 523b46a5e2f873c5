"""A region whose `up` can show nothing: stdout on a full disk, and a row in the history that makes no line."""

import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

from patience import patient
from regions import FENCEPOST, RunningRegion

AWAY_S = 2.5
"""Longer than a role's first waits until it is started again."""


def its_folder_is_away(region: RunningRegion, folder: Path) -> None:
    """The folder with the store is moved, and roles are killed: none makes it anew, and all goes on once it is back."""
    store = Path(region.region.store.path)
    inode = store.stat().st_ino
    old = {role: region.pid(role) for role in ("enactor/a", "planner", "api")}
    (folder / ".fencepost").rename(folder / "gone")
    for pid in old.values():
        os.kill(pid, signal.SIGKILL)
    time.sleep(AWAY_S)
    assert not (folder / ".fencepost").exists()
    (folder / "gone").rename(folder / ".fencepost")
    for role, pid in old.items():
        region.until(lambda role=role, pid=pid: region.pid(role) != pid, 10, f"{role} is back")  # type: ignore[misc]
    region.newer_plan(35)
    assert store.stat().st_ino == inode


def test_what_cannot_be_shown_ends_no_role(tmp_path: Path) -> None:
    """full(4): each write gives ENOSPC. Roles still start again, and Ctrl-C still ends it all with code 0."""
    region = RunningRegion(tmp_path, edit=lambda text: text.replace('path = "', 'path = ".fencepost/demo/'))
    with open("/dev/full", "w") as full, (tmp_path / "up.log").open("wb") as log:
        region.process = subprocess.Popen(
            [str(FENCEPOST), "up", "--config", str(region.config), "--sample"],
            cwd=tmp_path,
            stdout=full,
            stderr=log,
            start_new_session=True,
        )
    try:
        region.until(lambda: all(region.addresses(each.name) for each in region.region.endpoints), 20, "ready")
        store = sqlite3.connect(region.region.store.path, timeout=10, isolation_level=None)
        store.execute("insert into history(at,kind,subject,role,text) values('abc','k','s','r',x'00ff')")
        store.close()
        old = region.signal("planner", signal.SIGKILL)
        region.until(lambda: region.processes()["planner"]["pid"] not in (None, old), 10, "the planner is back")
        region.newer_plan(33)
        assert region.process.poll() is None
        assert os.path.exists(f"/proc/{region.pid('dns')}")
        its_folder_is_away(region, tmp_path)
        region.process.send_signal(signal.SIGINT)
        assert region.process.wait(patient(20)) == 0, region.log()
    finally:
        region.stop()
    assert "No space left on device" in (tmp_path / "up.log").read_text()
