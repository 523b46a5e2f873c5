"""Where a run of ``fencepost prove`` keeps its ports' files, and what killed runs left there.

A run that is killed (signal 9, a machine that stops) can take nothing away: neither its folder nor what it wrote in
DNS. The folder holds a file with the scratch names, locked for as long as the run lives, so the next run knows the dead
ones: it removes their folders and names what may still stand. The kernel lets go of the lock however a run ends.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "fencepost-prove-"
_LOCK = "run"


class RunFolder:
    """A run's own folder, for as long as it is open."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Make it, and say in it which scratch names the run is about. Raises ``OSError``."""
        self.path, self._lock = _made(names)

    def cleanup(self) -> None:
        """Take it away."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def _made(names: tuple[str, ...]) -> tuple[Path, int]:
    """A new folder and its lock; another one where it was taken for a dead run's before it was locked."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_nlink:
                os.write(lock, f"{os.getpid()} {' '.join(names)}\n".encode())
                return path, lock
        os.close(lock)


def clear_dead() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Remove what dead runs of this user left; of each its pid and its scratch names, where it came to say them."""
    with contextlib.suppress(OSError):
        for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
            with contextlib.suppress(OSError):
                found = path.lstat()
                if found.st_uid == os.getuid() and path.is_dir() and not path.is_symlink():
                    yield from _cleared(path)


def _cleared(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        path.rmdir()  # only if it is empty: killed before it was locked, or no run's at all
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        pid, *names = os.read(lock, 4096).decode(errors="replace").split() or [""]
        shutil.rmtree(path)
    finally:
        os.close(lock)
    yield pid, tuple(names)


__all__ = ["PREFIX", "RunFolder", "clear_dead"]
