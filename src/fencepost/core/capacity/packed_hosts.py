"""Hosts' rows by name, packed: as objects a million of them take a gigabyte, for each who keeps them.

For whoever places among very many; it behaves as a dict does, and what it gives is unpacked anew each time (two
microseconds). Rows and names that somebody else has packed already are shared with him, where he says so.
"""

from array import array
from collections.abc import Iterator, MutableMapping
from typing import NoReturn, Protocol

import msgspec
from msgspec import structs

from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.rows import FleetRow, HostRow

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HostRow).decode


class Shared(Protocol):
    """Who else keeps such rows."""

    def name(self, host: str) -> str | None:
        """The very text of a host's name that he keeps."""
        ...

    def packed(self, host: str, revision: int) -> bytes | None:
        """A host's row of this revision, packed, if he has that."""
        ...


class PackedHosts(MutableMapping[str, Versioned]):
    """Rows as read. ``drafts`` are rows as they are, or would be once something is written, of the same hosts."""

    def __init__(self, shared: Shared | None = None) -> None:
        self.shared = shared
        self.numbers: dict[str, int] = {}
        self.rows: list[bytes] = []
        self.drafts = Drafts(self)
        self._revisions = array("q")

    def own(self, at: Versioned) -> Versioned:
        """The same row with the name that is kept, so that nothing of what it was read with is."""
        if not isinstance(at.row, HostRow):
            return at
        host = at.row.host
        name = self.shared.name(host) if self.shared is not None else None
        return Versioned(
            structs.replace(at.row, host=name if name is not None else host.encode().decode()), at.revision
        )

    def __getitem__(self, host: str) -> Versioned:
        number = self.numbers[host]
        return Versioned(_decode(self.rows[number]), self._revisions[number])

    def __setitem__(self, host: str, at: Versioned) -> None:
        packed = self.shared.packed(host, at.revision) if self.shared is not None else None
        packed = packed if packed is not None else _encode(at.row)
        number = self.numbers.get(host)
        if number is None:
            self.numbers[host] = len(self.rows)
            self.rows.append(packed)
            self._revisions.append(at.revision)
            self.drafts.rows.append(None)
        else:
            self.rows[number], self._revisions[number] = packed, at.revision
        self.drafts.read = (at.row, packed)

    def __delitem__(self, host: str) -> NoReturn:
        raise TypeError("hosts stay known")

    def __contains__(self, host: object) -> bool:
        return host in self.numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.rows)


class Drafts(MutableMapping[str, HostRow]):
    """Rows of the hosts that ``of`` knows, put one by one. ``read`` is the row that ``of`` was given last, packed."""

    def __init__(self, of: PackedHosts) -> None:
        self.of = of
        self.rows: list[bytes | None] = []
        self.read: tuple[FleetRow | None, bytes] = (None, b"")

    def __getitem__(self, host: str) -> HostRow:
        packed = self.rows[self.of.numbers[host]]
        if packed is None:
            raise KeyError(host)
        return _decode(packed)

    def __setitem__(self, host: str, row: HostRow) -> None:
        same, packed = self.read
        self.rows[self.of.numbers[host]] = packed if same is row else _encode(row)

    def __delitem__(self, host: str) -> NoReturn:
        raise TypeError("hosts stay known")

    def __iter__(self) -> Iterator[str]:
        return (host for host, number in self.of.numbers.items() if self.rows[number] is not None)

    def __len__(self) -> int:
        return sum(row is not None for row in self.rows)
