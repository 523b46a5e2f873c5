"""A manager's copy of its hosts' rows, packed: a million of them take some 400 MB, and as objects a gigabyte.

Each host has a number, its place in the table, which is what the decider knows it by. Numbers are never given anew
while the table lasts.
"""

from array import array
from collections.abc import Iterable, Sequence
from socket import inet_aton, inet_ntoa
from typing import Any

import msgspec
import numpy as np

from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.lease_calls import Facts, Lease
from fencepost.core.capacity.messages import InstanceSet
from fencepost.core.capacity.rows import HostRow
from fencepost.ports import Unavailable

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HostRow).decode
LEASES = {"held": Lease.HELD, "lapsed": Lease.LAPSED, "none": Lease.UNKNOWN}
Place = tuple[str, int]
"""Where an agent answers: address and port."""


class HostTable:
    """Rows by number. ``told`` are sets as hosts last told them whole, ``down`` what they said doesn't run."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.revisions = array("q")
        self.told: dict[int, InstanceSet] = {}
        self.down: dict[int, tuple[int, tuple[str, ...]]] = {}
        self._rows: list[bytes] = []
        self._places = array("Q")
        self._others: dict[int, Place] = {}

    def __len__(self) -> int:
        return len(self.names)

    def row(self, number: int) -> HostRow:
        """A host's row."""
        return _decode(self._rows[number])

    def name(self, host: str) -> str | None:
        """The very text of a name that the table keeps."""
        number = self.numbers.get(host)
        return self.names[number] if number is not None else None

    def packed(self, host: str, revision: int) -> bytes | None:
        """A host's row of this revision, packed, if that is what the table has."""
        number = self.numbers.get(host)
        return self._rows[number] if number is not None and self.revisions[number] == revision else None

    def place(self, number: int) -> Place:
        """Where a host's agent answers."""
        packed = self._places[number]
        return (inet_ntoa((packed >> 16).to_bytes(4, "big")), packed & 0xFFFF) if packed else self._others[number]

    def put(self, versioned: Versioned) -> int:
        """A row as it stands; its number. An older one than the table has is passed over."""
        row, revision = versioned
        if not isinstance(row, HostRow):
            raise Unavailable(f"row {row.key} is no host's", hint="this is a defect of the store's adapter")
        number = self.numbers.get(row.host)
        if number is None:
            # A copy: the row's own lies among what was read with it, and would keep all that from being freed.
            name = row.host.encode().decode()
            number = self.numbers[name] = len(self.names)
            self.names.append(name)
            self.revisions.append(revision)
            self._rows.append(_encode(row))
            self._places.append(0)
            self._put_place(number, row.at)
        elif revision > self.revisions[number]:
            self.revisions[number] = revision
            self._rows[number] = _encode(row)
            self._put_place(number, row.at)
        return number

    def _put_place(self, number: int, at: str) -> None:
        address, _, port = at.rpartition(":")
        if ":" in address:
            self._places[number] = 0
            self._others[number] = (address.strip("[]"), int(port))
        else:
            self._places[number] = int.from_bytes(inet_aton(address), "big") << 16 | int(port)

    def take(self, rows: Sequence[Versioned], life: str) -> Facts:
        """Put rows in; what the decider decides by, of their hosts. Unpacks only what the table had newer."""
        numbers = [self.put(each) for each in rows]
        newest = [
            at.row if self.revisions[number] == at.revision and isinstance(at.row, HostRow) else self.row(number)
            for number, at in zip(numbers, rows, strict=True)
        ]
        return facts_of(numbers, newest, life)

    def facts(self, numbers: Sequence[int], life: str) -> Facts:
        """What the decider decides by, of these hosts."""
        return facts_of(numbers, [_decode(self._rows[number]) for number in numbers], life)


def facts_of(numbers: Sequence[int], rows: Sequence[HostRow], life: str) -> Facts:
    """What the decider decides by, of hosts with these numbers and rows."""
    count = len(rows)

    def column(values: Iterable[object], kind: Any) -> Any:
        return np.fromiter(values, kind, count)

    mine = [row.life == life for row in rows]
    leases = (LEASES[row.lease] if same else Lease.UNKNOWN for row, same in zip(rows, mine, strict=True))
    return Facts(
        np.array(numbers, np.int64),
        column((row.number for row in rows), np.int64),
        column((row.nonce for row in rows), np.uint64),
        column(leases, np.int8),
        column((row.incarnation for row in rows), np.uint64),
        column((row.boot for row in rows), np.uint64),
        column((row.left for row in rows), np.int64),
        column((row.reported and same for row, same in zip(rows, mine, strict=True)), np.bool_),
        column((row.set.version for row in rows), np.int64),
        column((row.word == "gone" for row in rows), np.bool_),
    )
