"""The fleet's rows in memory: the port's meaning, built on :mod:`fencepost.core.capacity.fleet_store`.

Tests hold every adapter against it, and it is small and quick enough to simulate 100,000 hosts on: a commit costs what
it changes. Several managers share one set of rows, each through a view of its own.
"""

from collections.abc import Awaitable, Callable, Sequence

from fencepost.core.capacity.fleet_store import Claim, Fleet, Group, Versioned, fits
from fencepost.core.capacity.rows import Kind, ShardRow
from fencepost.core.capacity.shards import shard_of
from fencepost.core.instant import MILLISECOND, Duration
from fencepost.ports import Refused
from fencepost.ports.fleet import Page, Proof, Written

LOOK_EACH: Duration = 50 * MILLISECOND
SHARDED: tuple[Kind, ...] = ("host", "instance")
"""The kinds whose rows belong to a shard."""
KEY_MOST_BYTES = 900
"""What every store takes as a key (DynamoDB's sort keys have 1,024 bytes)."""


def refuse_unlawful_groups(groups: Sequence[Group], where: str = "") -> None:
    """Raise ``Refused`` for changes that no reader of the rows could mean, whatever stands in the store.

    No row is in two changes of one commit, nothing that isn't there is deleted, a shard is one of those that there are,
    and keys are text of 1 to 900 bytes.
    """
    places: set[tuple[Kind, str]] = set()
    for group in groups:
        for change in group:
            kind, key = place = change.place
            if place in places:
                what = f"one commit changes {kind} {key} twice"
            elif change.seen < 0 or (change.row is None and change.seen == 0):
                what = f"{kind} {key} is to be deleted or replaced as of no revision"
            elif "\0" in key or not 0 < len(key.encode(errors="surrogatepass")) <= KEY_MOST_BYTES:
                what = f"{kind} {key[:40]!r} has a name that no store can keep"
            elif isinstance(change.row, ShardRow) and not 1 <= change.row.shard <= change.row.of:
                what = f"there is no shard {change.row.shard} of {change.row.of}"
            else:
                places.add(place)
                continue
            raise Refused(what, where=where, hint="this is a mistake in fencepost; nothing was written")


class ReferenceRows:
    """The rows of one store, shared by every view of it."""

    def __init__(self, life: str) -> None:
        self.life = life
        self.snapshot = 0
        self.table: dict[tuple[Kind, str], Versioned] = {}
        self._order: dict[Kind, dict[str, None]] = {}

    def wipe(self, life: str, held: Fleet | None = None) -> None:
        """Another store stands here from now on: an empty one, or one restored from ``held``, an older copy."""
        self.life = life
        self.snapshot = held.snapshot if held is not None else 0
        self.table, self._order = held.table() if held is not None else {}, {}
        for kind, key in sorted(self.table, key=lambda place: (self.table[place].revision, place)):
            self._order.setdefault(kind, {})[key] = None

    def copy(self) -> Fleet:
        """All rows as one value: a backup."""
        return Fleet(self.life, self.snapshot, tuple(sorted(self.table.items(), key=lambda item: item[0])))

    def shard(self, shard: int) -> ShardRow | None:
        """A shard's row."""
        found = self.table.get(("shard", str(shard)))
        return found.row if found is not None and isinstance(found.row, ShardRow) else None

    def changed(self, kind: Kind, shard: int | None, since: int) -> tuple[Versioned, ...]:
        """The rows changed after a snapshot, in order of their keys, at a cost that grows with what changed."""
        keys = []
        for key in reversed(self._order.get(kind, {})):
            if self.table[kind, key].revision <= since:
                break
            keys.append(key)
        if shard is not None and kind in SHARDED:
            own = self.shard(shard)
            keys = [key for key in keys if own is not None and shard_of(key, own.of) == shard]
        return tuple(self.table[kind, key] for key in sorted(keys))

    def commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        """As :func:`fencepost.core.capacity.fleet_store.commit`, in place."""
        if claim is not None and not claim.stands(self.shard(claim.shard), self.life):
            return None
        applied = []
        for group in groups:
            ok = fits(self.table, group)
            applied.append(ok)
            for change in group if ok else ():
                kind, key = change.place
                order = self._order.setdefault(kind, {})
                order.pop(key, None)
                if change.row is None:
                    del self.table[kind, key]
                else:
                    order[key] = None
                    self.table[kind, key] = Versioned(change.row, self.snapshot + 1)
        self.snapshot += any(applied)
        return Written(self.snapshot, tuple(applied))


class ReferenceFleet:
    """:class:`fencepost.ports.fleet.FleetStorePort` in memory; ``sleep`` lets time pass (nanoseconds).

    One task of a view waits at a time; several tasks or managers take a view each.
    """

    def __init__(self, rows: ReferenceRows, sleep: Callable[[Duration], Awaitable[object]]) -> None:
        self.held = rows
        self._sleep = sleep
        self._told: object = None

    def view(self) -> "ReferenceFleet":
        """The same rows for another manager, or for another task that waits."""
        return ReferenceFleet(self.held, self._sleep)

    async def rows(self, kind: Kind, shard: int | None = None, since: int = 0) -> Page:
        """As the port says."""
        return Page(self.held.life, self.held.snapshot, self.held.changed(kind, shard, since))

    async def prove(self, shard: int, places: Sequence[tuple[Kind, str]]) -> Proof:
        """As the port says."""
        table = self.held.table
        return Proof(self.held.life, self.held.shard(shard), tuple(table.get(place) for place in places))

    async def commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        """As the port says; ``Refused`` as :func:`refuse_unlawful_groups` does."""
        refuse_unlawful_groups(groups)
        return self.held.commit(claim, groups)

    async def wait(self, most: Duration) -> None:
        """As the port says, looking each 50 ms of whatever time is."""
        waited = 0
        while (self.held.life, self.held.snapshot) == self._told and waited < most:
            pause = min(LOOK_EACH, most - waited)
            await self._sleep(pause)
            waited += pause
        self._told = (self.held.life, self.held.snapshot)

    async def close(self) -> None:
        """Nothing to let go of."""
