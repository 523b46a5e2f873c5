"""``up`` as a person sees it: on a terminal that gets another size, with lines to paste that are tried."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios
from pathlib import Path

import pytest
from regions import FENCEPOST, RunningRegion
from terminals import Typed

from fencepost.cli.terminal import CLEAR
from fencepost.roles.status.processes import alive


def test_the_panel_survives_another_size_and_a_kill_and_gives_the_terminal_back(tmp_path: Path) -> None:
    """Resizing left ghosts; a killed target's number stood there for 80 s; and nothing typed may stay unseen."""
    region = RunningRegion(tmp_path, name="screen")
    with Typed(tmp_path, "up", "--sample", "--config", str(region.config)) as typed:
        typed.until("TRY, IN ANOTHER TERMINAL", 40)
        assert not termios.tcgetattr(typed.ours)[3] & termios.ECHO
        found = re.search(r"\n kill (\d+) ", typed.until("sleep"))
        assert found is not None
        os.kill(int(found[1]), signal.SIGKILL)
        typed.until(" is down)")
        fcntl.ioctl(typed.ours, termios.TIOCSWINSZ, struct.pack("4H", 40, 60, 0, 0))
        typed.until(CLEAR)
        typed.until("dev wipe")
        for _ in range(10):  # one that was being drawn may still have the old width
            drawn = typed.until("dev wipe")
            if "WRITTEN BY" not in drawn:
                break
        assert f"kill {found[1]} " not in drawn
        assert "WRITTEN BY" not in drawn, "it doesn't fit any more"
        assert all(len(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", row)) <= 60 for row in drawn.split("\r\n"))
        typed.type("\x03")
        code, shown = typed.ended(20)
        assert code == 0
        assert "stopped in " in shown
        assert "\x1b[?25h" in shown, "the cursor is back"
        assert termios.tcgetattr(typed.ours)[3] & termios.ECHO


@pytest.mark.parametrize("stdout", ["", " > {folder}/up.log"])
def test_a_terminal_that_goes_away_ends_the_run(tmp_path: Path, stdout: str) -> None:
    """A closed window: the terminal is none any more when SIGHUP comes, and the run took it for a reload, for good."""
    region = RunningRegion(tmp_path, name="screen")
    words = f"exec {FENCEPOST} up --sample --config {region.config}{stdout.format(folder=tmp_path)}"
    pid, ours = pty.fork()
    if not pid:
        os.execvpe("sh", ["sh", "-c", words], {**os.environ, "TERM": "xterm"})
    try:
        region.until(lambda: bool(region.addresses(region.region.endpoints[0].name)), 40, "it runs")
        known = json.loads((region.state / "processes.json").read_text())
        pids = [known["supervisor"], *(each["pid"] for each in known["processes"].values() if each["pid"])]
        os.close(ours)
        region.until(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None, 20, "it ends")
        region.until(lambda: not any(alive(each) for each in pids), 5, "no role is left")
    finally:
        os.kill(pid, signal.SIGKILL)  # a child that ended and is not yet waited for takes it too
        os.waitpid(pid, 0)
