"""A manager's copy of its hosts' rows, by number: what its role keeps packed."""

from collections.abc import Sequence

import numpy as np

from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.lease_calls import Facts, Lease
from fencepost.core.capacity.messages import InstanceSet
from fencepost.core.capacity.rows import HostRow

LEASES = {"held": Lease.HELD, "lapsed": Lease.LAPSED, "none": Lease.UNKNOWN}


class Table:
    """Rows by number. ``told`` are sets as hosts last told them whole, ``down`` what they said doesn't run."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.at: list[Versioned] = []
        self.told: dict[int, InstanceSet] = {}
        self.down: dict[int, tuple[int, tuple[str, ...]]] = {}

    def row(self, number: int) -> HostRow:
        """A host's row."""
        row = self.at[number].row
        assert isinstance(row, HostRow)  # noqa: S101  only such are put
        return row

    def put(self, versioned: Versioned) -> int:
        """A row as it stands; its number. An older one than the table has is passed over."""
        key = versioned.row.key
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.names)
            self.names.append(key)
            self.at.append(versioned)
        elif versioned.revision > self.at[number].revision:
            self.at[number] = versioned
        return number

    def facts(self, numbers: Sequence[int], life: str) -> Facts:
        """What the decider decides by, of these hosts."""
        rows = [self.row(number) for number in numbers]
        leases = [LEASES[row.lease] if row.life == life else Lease.UNKNOWN for row in rows]
        return Facts(
            np.array(numbers, np.int64),
            np.array([row.number for row in rows], np.int64),
            np.array([row.nonce for row in rows], np.uint64),
            np.array(leases, np.int8),
            np.array([row.incarnation for row in rows], np.uint64),
            np.array([row.boot for row in rows], np.uint64),
            np.array([row.left for row in rows], np.int64),
            np.array([row.reported and row.life == life for row in rows], np.bool_),
            np.array([row.set.version for row in rows], np.int64),
            np.array([row.word == "gone" for row in rows], np.bool_),
        )
