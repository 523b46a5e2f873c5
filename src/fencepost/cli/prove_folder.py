"""Where a run of ``fencepost prove`` keeps its ports' files, and what killed runs left there.

A run that is killed (signal 9, a machine that stops) can take nothing away: neither its folder nor what it wrote in
DNS. The folder holds a file that is locked for as long as the run lives, so the next run knows the dead ones: it
removes their folders and names what may still stand. The kernel lets go of the lock however a run ends.

The scratch names come into that file just before the first write to DNS: what has none there wrote nothing. And a dead
run's names are told where they can be removed, by a run in a region of their domain; until then its folder stays.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

PREFIX = "fencepost-prove-"
_LOCK = "run"


class RunFolder:
    """A run's own folder, for as long as it is open."""

    def __init__(self) -> None:
        """Make it. Raises ``OSError``."""
        self.path, self._lock = _made()

    def writes_at(self, names: tuple[str, ...]) -> None:
        """Say in it at which scratch names records may stand from now on. Raises ``OSError``."""
        os.write(self._lock, f"{os.getpid()} {' '.join(names)}\n".encode())

    def cleanup(self) -> None:
        """Take it away."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def _made() -> tuple[Path, int]:
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
                return path, lock
        os.close(lock)


def clear_dead(ours: Callable[[str], bool] = lambda _: True) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Remove what dead runs of this user left; of each that may have written its pid and its scratch names.

    What is left of one whose names aren't all ``ours`` stays for who can remove them.
    """
    with contextlib.suppress(OSError):
        for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
            with contextlib.suppress(OSError):
                found = path.lstat()
                if found.st_uid == os.getuid() and path.is_dir() and not path.is_symlink():
                    yield from _cleared(path, ours)


def _cleared(path: Path, ours: Callable[[str], bool]) -> Iterator[tuple[str, tuple[str, ...]]]:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        path.rmdir()  # only if it is empty: killed before it was locked, or no run's at all
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        pid, *names = os.read(lock, 4096).decode(errors="replace").split() or [""]
        if not all(ours(name) for name in names):
            return
        shutil.rmtree(path)
    finally:
        os.close(lock)
    if names:
        yield pid, tuple(names)


__all__ = ["PREFIX", "RunFolder", "clear_dead"]
