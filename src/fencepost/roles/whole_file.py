"""A small file written whole: who reads it finds the old one or the new one, never half of either.

A full disk lets a file be made and nothing be written into it. So what isn't to be drawn again (keys, tokens, a
region's first file) is written aside, forced to disk, and linked to its name, which replaces nothing that is there.
Where an empty file counts as none, it is replaced under a lock on that file itself: of two that find it empty, one
draws, and the other finds what that one drew.

Awkward truth: a process killed between the two steps leaves what it wrote aside (``NAME.….new``, of the same mode).
"""

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

BLANK_MOST = 4096
"""Bytes; a longer file is never looked through for being blank."""


def replace_whole(path: Path, body: bytes, *, synced: bool = False) -> None:
    """Put ``body`` in the file's place. Raises ``OSError``, the old one kept and nothing of the new.

    With ``synced`` it outlives a power failure once this returns; of an error in the very last step, the folder's own
    sync, it isn't known which of the two stands.
    """
    new = path.with_suffix(".new")
    try:
        with new.open("wb") as file:
            file.write(body)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    if synced:
        _sync(path.parent)


def make_whole(path: Path, body: bytes, *, mode: int = 0o600, over_empty: bool = False) -> bool:
    """Put ``body`` where no file is, on disk when this returns; False, nothing changed, where there is one.

    With ``over_empty`` an ordinary file that holds nothing but white space counts as none. Raises ``OSError`` with the
    path as its ``filename``, and then leaves nothing.
    """
    try:
        while True:
            if not os.path.lexists(path):
                with _aside(path, body, mode) as new, contextlib.suppress(FileExistsError):
                    os.link(new, path)
                    _sync(path.parent)
                    return True
            if not over_empty or not is_blank(path):
                return False
            if _replaced_blank(path, body, mode):
                return True
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def is_blank(path: Path) -> bool:
    """Whether an ordinary file, no link to one, holds nothing but white space. False where that can't be told."""
    try:
        found = path.lstat()
        return stat.S_ISREG(found.st_mode) and found.st_size < BLANK_MOST and not path.read_bytes().strip()
    except OSError:
        return False


def why_unwritten(error: OSError, path: str, otherwise: str) -> tuple[str, str]:
    """What the system says of a file that can't be written, in words, and what to do: ``otherwise`` but for want of
    room."""
    room = f"make room, then do the same again: df -h {os.path.dirname(path) or '.'}"
    if error.errno == errno.ENOSPC:
        return "the disk is full", room
    if error.errno == errno.EDQUOT:
        return "the quota of disk space is used up", room
    said = error.strerror or type(error).__name__
    return said[:1].lower() + said[1:], otherwise


def _replaced_blank(path: Path, body: bytes, mode: int) -> bool:
    """Replace a blank file, keeping its owner; False if it isn't that any more by the time we hold its lock."""
    held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        locked = os.fstat(held)
        if not os.path.lexists(path) or path.lstat().st_ino != locked.st_ino or not is_blank(path):
            return False
        with _aside(path, body, mode) as new:
            with contextlib.suppress(PermissionError):
                os.chown(new, locked.st_uid, locked.st_gid)
            new.replace(path)
        _sync(path.parent)
        return True
    finally:
        os.close(held)


@contextlib.contextmanager
def _aside(path: Path, body: bytes, mode: int) -> Iterator[Path]:
    """A file beside the path that holds ``body``, on disk; its name is gone afterwards."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    made = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(made, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        yield new
    finally:
        new.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """The names in a folder are on disk, not only the files."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
