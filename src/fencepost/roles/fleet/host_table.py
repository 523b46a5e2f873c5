"""A manager's copy of its hosts' rows, packed: a million of them take some 300 MB, and as objects a gigabyte.

Each host has a number, its place in the table, which is what the decider knows it by. Numbers are never given anew
while the table lasts.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.lease_calls import Facts, Ids, Lease
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
        self.revisions: list[int] = []
        self.told: dict[int, InstanceSet] = {}
        self.down: dict[int, tuple[int, tuple[str, ...]]] = {}
        self._rows: list[bytes] = []
        self._places: list[Place] = []
        self._known_places: dict[str, Place] = {}

    def __len__(self) -> int:
        return len(self.names)

    def row(self, number: int) -> HostRow:
        """A host's row."""
        return _decode(self._rows[number])

    def rows(self) -> Iterable[HostRow]:
        """All rows, by number."""
        return map(_decode, self._rows)

    def place(self, number: int) -> Place:
        """Where a host's agent answers."""
        return self._places[number]

    def put(self, versioned: Versioned) -> int:
        """A row as it stands; its number. An older one than the table has is passed over."""
        row, revision = versioned
        if not isinstance(row, HostRow):
            raise Unavailable(f"row {row.key} is no host's", hint="this is a defect of the store's adapter")
        number = self.numbers.get(row.host)
        if number is None:
            number = self.numbers[row.host] = len(self.names)
            self.names.append(row.host)
            self.revisions.append(revision)
            self._rows.append(_encode(row))
            self._places.append(self._place(row.at))
        elif revision > self.revisions[number]:
            self.revisions[number] = revision
            self._rows[number] = _encode(row)
            self._places[number] = self._place(row.at)
        return number

    def _place(self, at: str) -> Place:
        known = self._known_places.get(at)
        if known is None:
            address, _, port = at.rpartition(":")
            known = self._known_places[at] = (address.strip("[]"), int(port))
        return known

    def facts(self, numbers: Sequence[int], life: str) -> Facts:
        """What the decider decides by, of these hosts."""
        rows = [_decode(self._rows[number]) for number in numbers]
        count = len(rows)

        def column(values: Iterable[object], kind: Any) -> Any:
            return np.fromiter(values, kind, count)

        ids: Ids = np.array(numbers, np.int64)
        mine = [row.life == life for row in rows]
        leases = (LEASES[row.lease] if same else Lease.UNKNOWN for row, same in zip(rows, mine, strict=True))
        return Facts(
            ids,
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
