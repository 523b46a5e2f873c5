"""A manager's copy of its hosts' rows, packed: a million of them take some 400 MB, and as objects a gigabyte.

Each host has a number, its place in the table, which is what the decider knows it by. Numbers are never given anew
while the table lasts. What a host is asked and told is made of its row here: each check and order with its token.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.lease_calls import Facts, Ids, Lease, SendOrders, Words
from fencepost.core.capacity.messages import Answer, Check, InstanceSet, Order
from fencepost.core.capacity.rows import HostRow
from fencepost.core.capacity.token import Token
from fencepost.core.instant import Duration

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HostRow).decode
LEASES = {"held": Lease.HELD, "lapsed": Lease.LAPSED, "none": Lease.UNKNOWN}
OCTETS = {str(number): number for number in range(256)}
Place = tuple[str, int]
"""Where an agent answers: address and port."""


class HostTable:
    """Rows by number. ``told`` are sets as hosts last told them whole, ``down`` what they said doesn't run.

    ``causes`` says why each of ``down`` doesn't. ``unable`` are the last answers of hosts that can't write their
    memories.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.revisions = array("q")
        self.told: dict[int, InstanceSet] = {}
        self.down: dict[int, tuple[int, tuple[str, ...]]] = {}
        self.causes: dict[int, tuple[str, ...]] = {}
        self.unable: dict[int, Answer] = {}
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
        if not packed:
            return self._others[number]
        a, b, c, d = (packed >> 16).to_bytes(4, "big")
        return f"{a}.{b}.{c}.{d}", packed & 0xFFFF

    def put(self, versioned: Versioned) -> int:
        """A row as it stands; its number. An older one than the table has is passed over.

        Raises ``TypeError`` for a row that is no host's.
        """
        row, revision = versioned
        if not isinstance(row, HostRow):
            raise TypeError(f"row {row.key} is no host's")
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
        try:
            a, b, c, d = address.split(".")
            packed = OCTETS[a] << 24 | OCTETS[b] << 16 | OCTETS[c] << 8 | OCTETS[d]
            self._places[number] = packed << 16 | int(port)
        except (ValueError, KeyError):  # no IPv4 address
            self._places[number] = 0
            self._others[number] = (address.strip("[]"), int(port))

    def knows(self, versioned: Versioned) -> bool:
        """Whether the table has that row, or a newer one."""
        number = self.numbers.get(versioned.row.key)
        return number is not None and self.revisions[number] >= versioned.revision

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

    # What hosts are asked and told

    def checks(
        self, epoch: int, ids: Ids, number: NDArray[np.int64], nonce: Words, *, whole: bool
    ) -> Iterator[tuple[int, Check]]:
        """A check for each of these hosts, with its present token; ``number`` and ``nonce`` are columns of all."""
        for id_, n, drawn in zip(ids.tolist(), number[ids].tolist(), nonce[ids].tolist(), strict=True):
            yield id_, Check(self.names[id_], Token(epoch, n, drawn), whole)

    def orders(self, epoch: int, effect: SendOrders, lasts: Duration) -> Iterator[tuple[int, Order]]:
        """For each of these hosts the set of its row, as just proven, with the stamp that the proof came after.

        ``lasts`` is three renewals.
        """
        for id_, boot, stamp in zip(effect.ids.tolist(), effect.boot.tolist(), effect.stamp.tolist(), strict=True):
            row = self.row(id_)
            yield id_, Order(row.host, Token(epoch, row.number, row.nonce), boot, stamp, row.set, lasts)


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
