"""A command on a terminal of its own, as a person has it: what is typed, Ctrl-C included, goes through the terminal."""

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
from pathlib import Path
from typing import Self

from patience import Patience
from regions import FENCEPOST


class Typed:
    """A command that runs on a pseudo-terminal (pty(7)) of so many columns."""

    def __init__(self, folder: Path, *words: str, columns: int = 80, lines: int = 24) -> None:
        self.ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))
        clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        path = f"{FENCEPOST.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        self.process = subprocess.Popen(
            [str(FENCEPOST), *words],
            cwd=folder,
            # On the path, so that what is shown is as wide wherever the checkout is.
            env={**clean, "PATH": path, "TERM": "xterm", "NO_COLOR": "1", "XDG_RUNTIME_DIR": ""},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self.text = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self.ours)

    def until(self, text: str, within_s: float = 20.0) -> str:
        """Read until a text is shown; what was shown since the last."""
        patience = Patience(within_s)
        while text not in self.text:
            self.read(patience.left(), text)
        seen, _, self.text = self.text.partition(text)
        return seen + text

    def read(self, most_s: float, wanted: str) -> bool:
        """Read what there is; False at the end."""
        if most_s <= 0:
            raise AssertionError(f"{wanted!r} isn't shown: {self.text!r}")
        found = b""
        poll = select.poll()
        poll.register(self.ours, select.POLLIN)
        if poll.poll(most_s * 1000):
            with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
                found = os.read(self.ours, 1 << 16)
        if not found and wanted and self.process.poll() is not None:
            raise AssertionError(f"{wanted!r} isn't shown: {self.text!r}")
        self.text += found.decode(errors="replace")
        return bool(found)

    def type(self, text: str) -> None:
        """Type it."""
        os.write(self.ours, text.encode())

    def ended(self, within_s: float = 10.0) -> tuple[int, str]:
        """The exit code, and what was shown since the last."""
        patience = Patience(within_s)
        while self.read(max(0.001, patience.left()), ""):
            pass
        return self.process.wait(max(0.1, patience.left())), self.text
