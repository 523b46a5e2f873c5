"""Calling the command line as a person does, in a process of its own."""

import functools
import os
import subprocess
import sys
from pathlib import Path

from patience import patient
from warm import Warm

FENCEPOST = Path(sys.executable).with_name("fencepost")
STARTS = ("LANG", "LC_", "PYTHON", "LD_")
"""What the interpreter itself looks at when it starts."""


@functools.cache
def warm() -> Warm:
    """This worker's process that has the program loaded."""
    return Warm()


def call(*words: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command's output and exit code, away from any region of this machine and from a terminal."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FENCEPOST_", "XDG_RUNTIME"))}
    if not any(name.startswith(STARTS) for name in environ):
        return warm().call(words, cwd, clean | environ, patient(60))
    return subprocess.run(
        [str(FENCEPOST), *words],
        cwd=cwd,
        env=clean | environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patient(60),
        check=False,
    )
