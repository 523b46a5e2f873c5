"""A lease manager's memory of its hosts: one numpy column a fact, one entry a host, changed in place.

A million hosts are 108 MB this way, and what is decided about four thousand of them takes two dozen passes over arrays.

Four thousand of a million lie far apart: what a decision costs is not the passes but the places in memory that they
touch first. So facts that are asked for together lie side by side, in records of an array with fields, and the columns
are views of those: six fields of one record are read in the time of two columns that lie apart. What each tick scans of
all hosts has columns of its own instead, which are short.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fencepost.core.capacity.lease_calls import Answered, Facts, Ids, Lease, Op, Some
from fencepost.core.instant import Duration, Instant
from fencepost.core.records import records

LONG_AGO: Instant = -(1 << 62)
"""An instant before all others: it never happened."""

ASKED = np.dtype(
    [
        ("number", np.int64),
        ("nonce", np.uint64),
        ("incarnation", np.uint64),
        ("row_boot", np.uint64),
        ("version", np.int64),
        ("stamp", np.int64),
        ("seen", np.int64),
        ("fresh", np.bool_),
        ("calm", np.bool_),
        ("echo", np.bool_),
        ("whole", np.bool_),
        ("proof", np.bool_),
        ("unsure", np.bool_),
        ("spare", "V2"),
    ]
)
"""What each answer is held against, and what each changes: a cache line. Each byte is a field's, so that equal columns
have equal bytes."""
SAID = np.dtype([("boot", np.uint64), ("host_incarnation", np.uint64), ("host_version", np.int64), ("left", np.int64)])
SCANNED = (("ends", np.int64), ("lease", np.int8), ("reported", np.bool_), ("gone", np.bool_), ("busy", np.int8))
BLOCKS: tuple[np.dtype[Any], ...] = (ASKED, SAID, *(np.dtype(kind) for _, kind in SCANNED))
BLOCK = {name: place for place, block in enumerate((ASKED, SAID)) for name in block.names or ()}
"""Which record each column is in; those scanned follow."""
BLOCK |= {name: place for place, (name, _) in enumerate(SCANNED, 2)}


class LeaseColumns:
    """The columns. The first lines are as the rows say, the next as hosts said, the last the manager's own.

    ``calm``: the lease is held, the host has reported and no mark stands, as those three columns say: it is asked at
    each answer. ``fresh``: it has answered under its present token. ``echo``: what it said then is what its row says,
    so that saying it again changes nothing. ``seen`` and ``ends``: when its last answer arrived, and from when on its
    lease may lapse. ``busy``: the operation under way. ``proof``: one was asked for, and neither
    stamp nor token has changed since. ``unsure``: a lapse or a mark was given up, and may yet be written.
    """

    ROW = ("number", "nonce", "lease", "incarnation", "row_boot", "left", "reported", "version", "gone")
    number: NDArray[np.int64]
    nonce: NDArray[np.uint64]
    lease: NDArray[np.int8]
    incarnation: NDArray[np.uint64]
    row_boot: NDArray[np.uint64]
    left: NDArray[np.int64]
    reported: NDArray[np.bool_]
    version: NDArray[np.int64]
    gone: NDArray[np.bool_]
    calm: NDArray[np.bool_]
    echo: NDArray[np.bool_]
    fresh: NDArray[np.bool_]
    stamp: NDArray[np.int64]
    boot: NDArray[np.uint64]
    host_incarnation: NDArray[np.uint64]
    host_version: NDArray[np.int64]
    whole: NDArray[np.bool_]
    seen: NDArray[np.int64]
    ends: NDArray[np.int64]
    busy: NDArray[np.int8]
    proof: NDArray[np.bool_]
    unsure: NDArray[np.bool_]

    def __init__(self) -> None:
        self.size = 0
        self.blocks: list[NDArray[Any]] = [np.zeros(0, block) for block in BLOCKS]

    def __getattr__(self, name: str) -> NDArray[Any]:
        """A column: a view of its block, made when it is first asked for. Raises ``AttributeError`` for no column."""
        if name not in BLOCK:
            raise AttributeError(name)
        block = self.blocks[BLOCK[name]]
        column: NDArray[Any] = block[name] if block.dtype.names else block
        self.__dict__[name] = column
        return column

    def copy(self) -> Self:
        """Columns that change on their own."""
        other = object.__new__(type(self))
        other.size, other.blocks = self.size, [block.copy() for block in self.blocks]
        return other

    def key(self) -> tuple[bytes, ...]:
        """What tells these columns from others: since each block's length is known, their bytes in a row do."""
        return (b"".join([block.tobytes() for block in self.blocks]),)

    def grow(self, size: int, ends: Instant) -> None:
        """Make room for hosts never heard of; none of them counts as lapsed before ``ends``."""
        before = self.size
        if size <= before:
            return
        for name in BLOCK:
            self.__dict__.pop(name, None)
        # One after the other, so that only one block is ever there twice.
        for place, dtype in enumerate(BLOCKS):
            block = records(size, dtype)
            block[:before] = self.blocks[place]
            self.blocks[place] = block
        self.seen[before:] = LONG_AGO
        self.ends[before:] = ends
        self.size = size

    def take(self, facts: Facts) -> None:
        """What rows say. A new token voids what was said under the one before, and every proof."""
        ids = facts.ids
        changed = ids[(self.number[ids] != facts.number) | (self.nonce[ids] != facts.nonce)]
        self.fresh[changed] = False
        self.proof[changed] = False
        for name, values in zip(self.ROW, facts[1:], strict=True):
            getattr(self, name)[ids] = values
        self.echo[ids] = (
            (self.host_incarnation[ids] == facts.incarnation)
            & (self.boot[ids] == facts.boot)
            & (self.host_version[ids] == facts.version)
        )
        self.calm[ids] = (facts.lease == Lease.HELD) & facts.reported & (facts.left == 0)

    def say(self, said: Answered, echo: Some) -> None:
        """What hosts said under their present tokens; ``echo``: which of them just what their rows say."""
        ids = said.ids
        self.fresh[ids] = True
        self.echo[ids] = echo
        self.boot[ids] = said.boot
        self.host_incarnation[ids] = said.incarnation
        self.host_version[ids] = said.version

    def asked(self, ids: Ids) -> NDArray[Any]:
        """A copy of what answers of these are held against: a record each. As plain bytes they come at once."""
        return self.blocks[0].view(f"V{ASKED.itemsize}").take(ids).view(ASKED)

    def void(self) -> None:
        """All stand under another epoch now: nothing said under the one before may be used any more."""
        self.fresh[:] = False
        self.proof[:] = False

    def lengthen(self, ends: Instant) -> None:
        """No lease ends before this. It only ever lengthens."""
        np.maximum(self.ends, ends, out=self.ends)

    def aged(self, by: Duration, oldest: Instant) -> None:
        """The same, ``by`` nanoseconds later, told from the same now; nothing is told apart beyond ``oldest``.

        For a driver that keeps now where it is, so that the states it meets are few.
        """
        for column in (self.seen, self.ends):
            past = column != LONG_AGO
            column[past] = np.maximum(column[past] - by, oldest)

    @property
    def idle(self) -> NDArray[np.bool_]:
        """Hosts with nothing under way."""
        return np.asarray(self.busy == Op.NONE)

    @property
    def held(self) -> int:
        """How many leases are held."""
        return int((self.lease == Lease.HELD).sum())

    def unread(self) -> Ids:
        """Hosts whose last write may or may not have been done."""
        return np.flatnonzero(self.busy == Op.REREAD)


def older(instant: Instant, by: Duration, oldest: Instant) -> Instant:
    """An instant told from a now that has moved on."""
    return instant if instant == LONG_AGO else max(instant - by, oldest)
