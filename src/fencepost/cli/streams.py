"""Standard output that says by itself when it can't be written: a full disk, a reader who has gone, a closed stream.

Everything that a command prints passes one place, so no command has to think of it: a failed write raises
:class:`Unwritable`, which :mod:`fencepost.cli.errors` turns into one line and an exit code of its own. That code says
nothing about the region: 1 of ``status`` would mean that a person is needed.
"""

import contextlib
import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from typing import Any, cast

OUT = 1
"""The descriptor of standard output."""


class Unwritable(OSError):  # noqa: N818  its two kinds are no errors of the command
    """Standard output took no more. ``closed``: its reader has gone, as of ``| head -1``."""

    @property
    def closed(self) -> bool:
        """Whether nobody is there to miss it."""
        return self.errno == errno.EPIPE


class Out(io.FileIO):
    """Standard output, raw. One that doesn't block is waited for; its failures are told apart from all others."""

    def __init__(self) -> None:
        super().__init__(OUT, "wb", closefd=False)

    def write(self, data: Any, /) -> int:
        """Write some of it. Raises :class:`Unwritable`."""
        try:
            while (count := cast("int | None", super().write(data))) is None:
                select.select([], [self], [])
        except OSError as error:
            raise Unwritable(error.errno, error.strerror) from None
        return count


def take_over() -> None:
    """Have this process's standard output raise :class:`Unwritable`; streams that the caller closed are made good.

    Python leaves a closed stream as None, and the next file that is opened takes its descriptor, be it the store's.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free descriptor, so this one. An answer that nobody can read is a failure, a note isn't.
            os.open(os.devnull, os.O_RDONLY if fd == OUT else os.O_RDWR)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115  it stays open
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    old = sys.stdout
    encoding, errors = (old.encoding, old.errors) if old is not None else ("utf-8", "replace")
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(Out()), encoding, errors, line_buffering=old is not None and old.isatty()
    )


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Flush at the end, so that what can't be written is known here and not in the interpreter's last breath."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except Unwritable:
        give_up()
        raise


def give_up() -> None:
    """Let what is still to be written go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, OUT)
    os.close(nowhere)
