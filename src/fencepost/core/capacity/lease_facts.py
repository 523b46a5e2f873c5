"""What a lease's write makes of many hosts' rows at once, for a driver that keeps no rows but columns.

The same as :mod:`~fencepost.core.capacity.lease_rows` says of one row, of all that a lease manager decides by: a test
holds the two against each other. Facts are of one life of the store; where a new life begins, ``of_another_life`` is
what its rows say until they are written in it.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fencepost.core.capacity.lease_calls import Facts, Ids, Lease, Op, Some, Words, Write


def of(rows: Facts, ids: Ids) -> Facts:
    """Of some hosts, out of the facts of all (in the order of their numbers)."""
    return Facts._make(column[ids] for column in rows)


def keep(rows: Facts, facts: Facts) -> None:
    """Put what is so now of some hosts into the facts of all."""
    columns: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(rows, facts, strict=True)
    for column, values in columns:
        column[facts.ids] = values


def of_another_life(rows: Facts) -> Facts:
    """The same rows in a store whose identity has changed: no lease is known, and nobody has reported."""
    lease = np.full(len(rows.ids), Lease.UNKNOWN, np.int8)
    return rows._replace(lease=lease, reported=np.zeros(len(rows.ids), np.bool_))


def written(
    write: Write, before: Facts, nonce: Words, *, version: NDArray[np.int64] | None = None, same: ArrayLike = True
) -> Facts:
    """The rows after a write, ``before`` being what they said of these very hosts, in this order.

    ``nonce`` is drawn for each (a grant's). ``version`` is that of each host's own set, and ``same`` whether it is as
    the row's: they are needed where a host's word is adopted. Raises ``TypeError`` for an operation that writes
    nothing, ``ValueError`` for an adoption without versions.
    """
    held = before.lease == Lease.HELD
    match write.op:
        case Op.GRANT:
            return _granted(write, before, nonce)
        case Op.LAPSE:
            new = before.lease != Lease.LAPSED
            lease = np.where(new, Lease.LAPSED, before.lease).astype(np.int8)
            return before._replace(lease=lease, left=np.where(new, 0, before.left))
        case Op.MARK:
            return before._replace(left=np.where(held, np.maximum(1, write.left), before.left))
        case Op.CLEAR:
            return before._replace(left=np.where(held, 0, before.left))
        case Op.BOOT:
            return before._replace(boot=np.where(held, write.boot, before.boot))
        case Op.ADOPT if version is not None:
            return _adopted(before, held, version, np.asarray(same, np.bool_))
        case Op.ADOPT:
            raise ValueError("whose set is adopted, its version is given")
    raise TypeError(f"nothing is written for {write.op.name}")


def _granted(write: Write, before: Facts, nonce: Words) -> Facts:
    return before._replace(
        number=before.number + 1,
        nonce=np.asarray(nonce, np.uint64),
        lease=np.full(len(before.ids), Lease.HELD, np.int8),
        incarnation=write.incarnation,
        boot=write.boot,
        left=np.zeros(len(before.ids), np.int64),
        reported=before.reported & (before.incarnation == write.incarnation),
    )


def _adopted(before: Facts, held: Some, version: NDArray[np.int64], same: Some) -> Facts:
    stands = before.reported & (before.version >= version)
    theirs = before.reported | (version > before.version)
    adopted = np.where(theirs, version, before.version + ~same)
    changed = held & ~stands
    return before._replace(
        version=np.where(changed, adopted, before.version), reported=np.asarray(before.reported | changed)
    )
