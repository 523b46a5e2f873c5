"""Told by the kernel that somebody writes to the store: who waits for commits needn't look ten times a second.

Each commit writes to the write-ahead log, and inotify(7) tells of that, whichever process writes. It tells early: the
commit counts only once the log's index says so, after the last write and perhaps after waiting for the disk. So who is
woken looks a moment later, and again as long as somebody holds the write lock.

Awkward truth: a user may have so many watches (fs.inotify.max_user_instances, often 128) and a filesystem may tell of
nothing. So nobody relies on it: without a watch the store is looked at as often as ever, with one each second at least.
"""

import contextlib
import ctypes
import os
import select
from pathlib import Path

_IN_MODIFY, _IN_ATTRIB, _IN_DELETE_SELF, _IN_MOVE_SELF = 0x2, 0x4, 0x400, 0x800
_GONE = _IN_ATTRIB | _IN_DELETE_SELF | _IN_MOVE_SELF
"""Unlinking a file that somebody has open only changes its count of links."""
_EVENTS_BYTES = 4096
_NOWHERE = (-1, -1)


class LogWrites:
    """Writes to one store's log, as its one waiting thread hears of them. :meth:`stop` may be called by any thread."""

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = -1
        self._stopped = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watched = (_NOWHERE, _NOWHERE)

    def watching(self) -> bool:
        """Whether writes to the files that are there now will be told; begins to watch them if need be."""
        there = self._there()
        if _NOWHERE in there:
            return False
        if there == self._watched:
            return True
        self._let_go()
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            return False
        for path, what in ((self._path, _GONE), (f"{self._path}-wal", _GONE | _IN_MODIFY)):
            if self._libc.inotify_add_watch(self._fd, os.fsencode(path), what) < 0:
                self._let_go()
                return False
        if self._there() == there:  # else what is watched may not be what was seen
            self._watched = there
        return self._watched == there

    def wait(self, most_s: float) -> bool:
        """Block until something was written, or :meth:`stop`, at most for so long. Whether anything was written."""
        poll = select.poll()
        poll.register(self._stopped, select.POLLIN)
        poll.register(self._fd, select.POLLIN)
        return any(fd == self._fd for fd, _ in poll.poll(most_s * 1000))

    def hear(self) -> None:
        """Take note of all that was written up to now: only what comes later ends the next wait."""
        with contextlib.suppress(OSError):
            while self._fd >= 0 and os.read(self._fd, _EVENTS_BYTES):
                pass

    def stop(self) -> None:
        """End a wait, now or to come."""
        with contextlib.suppress(OSError):
            os.eventfd_write(self._stopped, 1)

    def close(self) -> None:
        """Let go of everything, once no thread waits any more."""
        self._let_go()
        if self._stopped >= 0:
            os.close(self._stopped)
            self._stopped = -1

    def _there(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return _inode(self._path), _inode(f"{self._path}-wal")

    def _let_go(self) -> None:
        self._watched = (_NOWHERE, _NOWHERE)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _inode(path: str) -> tuple[int, int]:
    """Device and inode of what is at a path."""
    try:
        found = os.stat(path)
    except OSError:
        return _NOWHERE
    return found.st_dev, found.st_ino
