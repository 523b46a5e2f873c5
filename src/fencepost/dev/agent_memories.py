"""The memories of many hosts in one SQLite file: all that one round of questions changes is one commit.

A real host has a disk of its own and syncs it for each new token. Ten thousand on one disk can't, and needn't: no
answer leaves before the commit that it rests on, which is all that the rule asks.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fencepost.core.capacity.host import HostMemory
from fencepost.ports import Misconfigured, Unavailable


class AgentMemories:
    """``FOLDER/agents.db``. Used from one thread."""

    def __init__(self, folder: Path) -> None:
        """Raises ``Misconfigured``."""
        self.path = folder / "agents.db"
        self._encode = msgspec.msgpack.Encoder().encode
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, isolation_level=None)
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = full")
            self._connection.execute("pragma locking_mode = exclusive")
            self._connection.execute(
                "create table if not exists memory (host text primary key, body blob) without rowid"
            )
            self._connection.execute("begin exclusive")
            self._connection.execute("commit")
        except (OSError, sqlite3.Error) as error:
            hint = "--state DIR names another folder; each process needs one of its own"
            raise Misconfigured(f"the hosts' memories: {error}", where=str(self.path), hint=hint) from None

    def read(self) -> dict[str, HostMemory]:
        """All of them, by host. Raises ``Unavailable``."""
        decode = msgspec.msgpack.Decoder(HostMemory).decode
        try:
            return {host: decode(body) for host, body in self._connection.execute("select host, body from memory")}
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            raise Unavailable(f"the hosts' memories: {error}", where=str(self.path)) from None

    def write(self, memories: Mapping[str, HostMemory]) -> None:
        """Put these on the disk, all or none. Raises ``Unavailable``: then those of before count."""
        rows = [(host, self._encode(memory)) for host, memory in memories.items()]
        try:
            self._connection.execute("begin immediate")
            self._connection.executemany("insert or replace into memory values (?, ?)", rows)
            self._connection.execute("commit")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            raise Unavailable(f"the hosts' memories: {error}", where=str(self.path)) from None

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
