"""A lease manager's memory of its hosts: one numpy column a fact, one entry a host, changed in place.

A million hosts are 100 MB this way, and what is decided about four thousand of them takes a dozen passes over arrays.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fencepost.core.capacity.lease_calls import Facts, Ids, Lease, Op
from fencepost.core.instant import Duration, Instant

LONG_AGO: Instant = -(1 << 62)
"""An instant before all others: it never happened."""


class LeaseColumns:
    """The columns. The first block is as the rows say, the second as hosts said, the third the manager's own.

    ``fresh``: it has answered under its present token. ``seen`` and ``ends``: when its last answer arrived, and from
    when on its lease may lapse. ``busy``: the operation under way. ``proof``: one was asked for, and neither
    stamp nor token has changed since. ``unsure``: a lapse or a mark was given up, and may yet be written.
    """

    ROW = ("number", "nonce", "lease", "incarnation", "row_boot", "left", "reported", "version", "gone")
    KINDS: tuple[tuple[str, Any], ...] = (
        ("number", np.int64),
        ("nonce", np.uint64),
        ("lease", np.int8),
        ("incarnation", np.uint64),
        ("row_boot", np.uint64),
        ("left", np.int64),
        ("reported", np.bool_),
        ("version", np.int64),
        ("gone", np.bool_),
        ("fresh", np.bool_),
        ("stamp", np.int64),
        ("boot", np.uint64),
        ("host_incarnation", np.uint64),
        ("host_version", np.int64),
        ("whole", np.bool_),
        ("seen", np.int64),
        ("ends", np.int64),
        ("busy", np.int8),
        ("proof", np.bool_),
        ("unsure", np.bool_),
    )
    number: NDArray[np.int64]
    nonce: NDArray[np.uint64]
    lease: NDArray[np.int8]
    incarnation: NDArray[np.uint64]
    row_boot: NDArray[np.uint64]
    left: NDArray[np.int64]
    reported: NDArray[np.bool_]
    version: NDArray[np.int64]
    gone: NDArray[np.bool_]
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
        for name, kind in self.KINDS:
            setattr(self, name, np.zeros(0, kind))

    def copy(self) -> Self:
        """Columns that change on their own."""
        other = object.__new__(type(self))
        own = self.__dict__
        other.__dict__.update({name: own[name].copy() for name, _ in self.KINDS}, size=self.size)
        return other

    def key(self) -> tuple[bytes, ...]:
        """What tells these columns from others: since each column's length is known, their bytes in a row do."""
        own = self.__dict__
        return (b"".join([own[name].tobytes() for name, _ in self.KINDS]),)

    def grow(self, size: int, ends: Instant) -> None:
        """Make room for hosts never heard of; none of them counts as lapsed before ``ends``."""
        before, more = self.size, size - self.size
        if more <= 0:
            return
        for name, kind in self.KINDS:
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros(more, kind)]))
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
