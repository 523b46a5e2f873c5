"""Debian's Spin, driven: a Promela model becomes C, that a program, and what the program counted is read."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

BUILD_S = 120
RUN_S = 600
DEEPEST = 1_000_000
"""Steps of a way at most; with fewer, Spin says that it was cut off."""


def need_tools() -> None:
    """Skip, and say what is missing: Spin turns the model into C, gcc makes that a program."""
    missing = [name for name in ("spin", "gcc") if shutil.which(name) is None]
    missing += [] if Path("/usr/include/stdio.h").exists() else ["stdio.h"]
    if missing:
        pytest.skip(
            f"MISSING {' and '.join(missing)} (Debian: spin, gcc, libc6-dev): no second opinion on the explorer"
        )


def verify(model: Path, place: Path, defined: Iterable[str], *flags: str) -> str:
    """What the verifier of a model prints, built in ``place`` with these names defined ("A" or "A=1") and C flags."""
    need_tools()
    for command in (
        ["spin", "-a", "-o2", *(f"-D{name}" for name in defined), str(model)],
        ["gcc", "-w", "-DNOREDUCE", "-DSAFETY", *flags, "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=BUILD_S)
    command = [str(place / "pan"), "-E", "-n", f"-m{DEEPEST}"]
    return subprocess.run(command, cwd=place, check=True, capture_output=True, text=True, timeout=RUN_S).stdout


def stored(told: str) -> int:
    """How many states it stored, having found no error."""
    found = re.search(r"(\d+) states, stored", told)
    assert found is not None, told
    assert "errors: 0" in told, told
    return int(found[1])


def broken_at(told: str) -> int:
    """After how many steps an assertion failed; Spin counts from 0, and the step that breaks it is taken there."""
    found = re.search(r"assertion violated .*\(at depth (\d+)\)", told)
    assert found is not None, told
    return int(found[1]) + 1
