"""A store's file while it is made: under another name, which is gone afterwards, whatever came of it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from fencepost.adapters.store_sqlite import life

BESIDE = ("-wal", "-shm", "-journal", life.END)
"""Ends of the names of what may lie beside a store's file."""


@contextlib.contextmanager
def drafted(draft: Path) -> Iterator[None]:
    """An empty file at a path, mode 0600; neither it nor what lies beside it stays there. Raises ``OSError``.

    A making that fails for want of room would else keep the very room that is wanted.
    """
    remove(draft, ("", *BESIDE))
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        yield
    finally:
        remove(draft, ("", *BESIDE))


def remove(path: Path, ends: tuple[str, ...]) -> None:
    """Remove the files whose names are this one's with these ends. Raises ``OSError``."""
    for end in ends:
        path.with_name(path.name + end).unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """The new name is on disk, not only the file. Raises ``OSError``."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
