"""Who holds the write lock, and for how long.

SQLite's write lock in WAL mode is a POSIX lock on one byte of the ``-shm`` file (sqlite.org/walformat.html, section
2.3.1, WAL_WRITE_LOCK), and the kernel tells whose it is. So nothing has to be written down by the writer, a writer that
is stopped at any point whatever is still named, and one that dies is forgotten at once.

How long is observed, not stamped: the same process at each look, and not one transaction committed in between (the
counter in the header of the same file). So no clock but the watcher's own counts.

Awkward truth: POSIX drops all of a process's locks on a file as soon as it closes *any* descriptor of that file. The
descriptor used for looking is therefore never closed; it is opened only when somebody asks, so there is one for each
store file ever asked about.
"""

import fcntl
import os
import struct
import time
from pathlib import Path

from fencepost.core.instant import SECOND, Duration

_LOCK_BYTE = 120
_HEADER_BYTES = 48
_FLOCK = "hhqqi"  # struct flock of 64-bit Linux: type, whence, start, length, pid
LOOKS_LEAST = 4
"""So many looks make a stuck writer: a pause of the whole machine between two of them proves nothing."""

STUCK_AFTER: Duration = 10 * SECOND
"""By then even a slow disk has committed something."""

_descriptors: dict[tuple[int, int], int] = {}


class WriteLock:
    """The write lock of one store file, as seen by a process that needn't have the file open."""

    def __init__(self, path: Path) -> None:
        self._shm = path.with_name(path.name + "-shm")
        self._seen: tuple[int, bytes] | None = None
        self._held_for = 0
        self._last_look = 0

    def holder(self) -> int | None:
        """The other process that holds the lock now; None if no other does, or it can't be told. Never blocks."""
        descriptor = self._descriptor()
        if descriptor is None:
            return None
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _LOCK_BYTE, 1, 0)
        try:
            kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        except (OSError, struct.error):
            return None
        return int(pid) if kind != fcntl.F_UNLCK and pid > 0 else None

    def taken(self) -> bool:
        """Whether another process holds the lock now. Never blocks."""
        descriptor = self._descriptor()
        if descriptor is None:
            return False
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _LOCK_BYTE, 1, 0)
        try:
            return bool(struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK)
        except (OSError, struct.error):
            return False

    def header(self) -> bytes | None:
        """The header of the log's index, which each commit changes; None if it can't be read."""
        descriptor = self._descriptor()
        try:
            return os.pread(descriptor, _HEADER_BYTES, 0) if descriptor is not None else None
        except OSError:
            return None

    def stuck(self, longer_than: int, now: int) -> int | None:
        """The process that has held the lock for longer than that at each look, committing nothing.

        ``now`` is the caller's monotonic clock; both in nanoseconds. To be called again and again, about each second.
        """
        pid = self.holder()
        descriptor = self._descriptor()
        if pid is None or descriptor is None:
            self._seen = None
            return None
        seen = (pid, os.pread(descriptor, _HEADER_BYTES, 0))
        if seen == self._seen:
            self._held_for += min(now - self._last_look, longer_than // (LOOKS_LEAST - 1) + 1)
        else:
            self._seen, self._held_for = seen, 0
        self._last_look = now
        return pid if self._held_for > longer_than else None

    def look(self) -> tuple[int, float] | None:
        """Which process holds the lock and hasn't moved, and for how many seconds; to be called about each second."""
        self.stuck(STUCK_AFTER, time.monotonic_ns())
        pid = self.holder() if self._held_for else None
        return (pid, self._held_for / 1e9) if pid is not None else None

    def _descriptor(self) -> int | None:
        try:
            found = os.stat(self._shm)
            known = _descriptors.get((found.st_dev, found.st_ino))
            if known is not None:
                return known
            descriptor = os.open(self._shm, os.O_RDONLY | os.O_CLOEXEC)
            opened = os.fstat(descriptor)
        except OSError:
            return None
        # If it was replaced between the two looks and that one is known too, this descriptor is left open all the same.
        return _descriptors.setdefault((opened.st_dev, opened.st_ino), descriptor)
