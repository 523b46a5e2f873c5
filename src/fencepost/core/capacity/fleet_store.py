"""Rows with revisions, changed in groups, under a claim: the reference semantics of a fleet's store.

A *group* is all or nothing: each of its rows must stand at the revision at which it was read (0: must not exist).
Groups of one commit are independent, so that one host that changed meanwhile doesn't hold up a thousand others. A
*claim* names shard, owner, epoch and the store's life; if the shard's row says otherwise when the commit takes effect,
nothing of it does. That one transaction keeps a manager that slept through losing its shard from writing anything.

Revisions are the store's snapshot numbers: they only rise, and what changed since one can be asked for.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from fencepost.core.capacity.rows import FleetRow, Kind, ShardRow, kind_of


class Versioned(NamedTuple):
    """A row as it stands, and the snapshot that wrote it."""

    row: FleetRow
    revision: int


class Claim(Struct, frozen=True, gc=False):
    """Under whose name leases are written."""

    shard: int
    owner: str
    epoch: int
    life: str

    def stands(self, row: ShardRow | None, life: str) -> bool:
        """Whether the shard's row and the store's life still say so."""
        return row is not None and life == self.life and row.owner == self.owner and row.epoch == self.epoch


class Change(Struct, frozen=True, gc=False):
    """One row to write over the one read at ``seen`` (0: there was none). ``row`` None deletes the row ``gone``."""

    row: FleetRow | None
    seen: int
    gone: tuple[Kind, str] | None = None

    @property
    def place(self) -> tuple[Kind, str]:
        """Kind and key of the row it is about."""
        if self.row is not None:
            return kind_of(self.row), self.row.key
        if self.gone is None:
            raise ValueError("a change without a row names the one that goes")
        return self.gone


Group = tuple[Change, ...]
"""Changes that take effect together or not at all."""


class Fleet(Struct, frozen=True, gc=False):
    """All rows of a store with this ``life``, as of ``snapshot``."""

    life: str
    snapshot: int = 0
    rows: tuple[tuple[tuple[Kind, str], Versioned], ...] = ()

    def table(self) -> dict[tuple[Kind, str], Versioned]:
        """The rows by kind and key."""
        return dict(self.rows)

    def shard(self, shard: int) -> ShardRow | None:
        """A shard's row."""
        found = self.table().get(("shard", str(shard)))
        return found.row if found is not None and isinstance(found.row, ShardRow) else None


def fits(table: Mapping[tuple[Kind, str], Versioned], group: Group) -> bool:
    """Whether each row of the group stands as it was seen."""
    return all((table[change.place].revision if change.place in table else 0) == change.seen for change in group)


def commit(fleet: Fleet, claim: Claim | None, groups: Sequence[Group]) -> tuple[Fleet, tuple[bool, ...] | None]:
    """The fleet after a commit, and which groups applied; None (and nothing applied) if the claim doesn't stand.

    All rows written by one commit carry one new snapshot number. Two groups of one commit must not share a row.
    """
    if claim is not None and not claim.stands(fleet.shard(claim.shard), fleet.life):
        return fleet, None
    table, snapshot = fleet.table(), fleet.snapshot + 1
    applied = []
    for group in groups:
        ok = fits(table, group)
        applied.append(ok)
        for change in group if ok else ():
            if change.row is None:
                del table[change.place]
            else:
                table[change.place] = Versioned(change.row, snapshot)
    if not any(applied):
        return fleet, tuple(applied)
    return Fleet(fleet.life, snapshot, tuple(sorted(table.items(), key=lambda item: item[0]))), tuple(applied)
