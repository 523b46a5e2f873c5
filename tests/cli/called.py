"""Calling the command line as a person does, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

FENCEPOST = Path(sys.executable).with_name("fencepost")


def call(*words: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command's output and exit code, away from any region of this machine and from a terminal."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FENCEPOST_", "XDG_RUNTIME"))}
    return subprocess.run(
        [str(FENCEPOST), *words],
        cwd=cwd,
        env={**clean, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
