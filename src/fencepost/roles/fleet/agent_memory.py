"""A host's memory on its disk: one small file, replaced whole, and on the disk before :meth:`MemoryFile.write` returns.

Three cases are told apart when it is read. No file: the host is new, or its disk is; it takes a new incarnation. A
damaged file (its digest is wrong): put aside, and then the same, since nothing in it may be trusted. A file that can't
be read: the agent doesn't run, since what it can't read may hold a token that outdates whoever asks.

A power failure between the renaming and the folder's own sync may leave the file of before. Then ``write`` hadn't
returned, and nothing had been answered.
"""

import fcntl
import logging
import os
from hashlib import blake2b
from pathlib import Path

import msgspec

from fencepost.core.capacity.host import HostMemory
from fencepost.ports import Misconfigured, Unavailable
from fencepost.roles.whole_file import replace_whole

log = logging.getLogger(__name__)

FORM = b"fencepost-host 1\n"
_DIGEST = 16


class MemoryFile:
    """``FOLDER/memory`` of one host, held by one agent at a time."""

    def __init__(self, folder: Path, host: str) -> None:
        """Makes the folder, not the one that it lies in: that may be the region's, which is only away.

        Raises ``Misconfigured`` for a folder that can't be, or that another agent has.
        """
        self.path = folder / "memory"
        self.host = host
        try:
            folder.mkdir(exist_ok=True, mode=0o700)
            self._lock = os.open(folder / "agent.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            hint = "--state DIR names another; it must be one that the agent's user can write"
            raise Misconfigured(error.strerror or str(error), where=str(folder), hint=hint) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise Misconfigured("another agent uses this folder", where=str(folder), hint="give each its own") from None

    def read(self) -> HostMemory | None:
        """What the host remembers; None if there is nothing. Raises ``Unavailable`` or ``Misconfigured``."""
        try:
            body = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"can't be read: {error.strerror}", where=str(self.path)) from None
        found = opened(body)
        if found is None:
            self._put_aside()
            return None
        host, memory = found
        if host != self.host:
            hint = "each host has a folder of its own; remove this one only if nothing of it runs any more"
            raise Misconfigured(f"is the memory of host {host}, not {self.host}", where=str(self.path), hint=hint)
        return memory

    def write(self, memory: HostMemory) -> None:
        """Put it on the disk. Raises ``OSError``: then the one before counts."""
        rest = msgspec.msgpack.encode((self.host, memory))
        replace_whole(self.path, FORM + blake2b(rest, digest_size=_DIGEST).digest() + rest, synced=True)

    def close(self) -> None:
        """Let another agent have the folder."""
        os.close(self._lock)

    def _put_aside(self) -> None:
        aside = self.path.with_suffix(".damaged")
        try:
            self.path.replace(aside)
        except OSError as error:
            raise Unavailable(f"is damaged and can't be put aside: {error.strerror}", where=str(self.path)) from None
        log.warning("%s is damaged; it is kept as %s, and this host begins anew", self.path, aside.name)


def opened(body: bytes) -> tuple[str, HostMemory] | None:
    """A host's name and memory, from a file's content; None if it is damaged."""
    digest, rest = body[len(FORM) : len(FORM) + _DIGEST], body[len(FORM) + _DIGEST :]
    if not body.startswith(FORM) or blake2b(rest, digest_size=_DIGEST).digest() != digest:
        return None
    try:
        return msgspec.msgpack.decode(rest, type=tuple[str, HostMemory])
    except (msgspec.MsgspecError, ValueError):
        return None
