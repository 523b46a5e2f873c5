"""A store in memory: the port's meaning, built on :mod:`fencepost.core.store`. Tests hold every adapter against it.

Nothing is drawn or read from a clock here: nonces and the passing of time are given by whoever makes one.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from msgspec import structs

from fencepost.core import store
from fencepost.core.fence import Generation
from fencepost.core.instant import MILLISECOND, Duration, Instant
from fencepost.core.record_set import Content
from fencepost.core.store import Head, Order, Plan, Row, Tables
from fencepost.ports import Beat, Enacted, HistoryRow, Inputs, Overrides, PutBack, Refused

HISTORY_KEPT = 100_000
NUMBER_MOST = 2**63 - 1
"""The largest generation or epoch: what databases keep as an integer."""
LOOK_EACH: Duration = 50 * MILLISECOND


def refuse_unlawful(plan: Plan, where: str = "") -> None:
    """Raise ``Refused`` for a plan that no planner that follows the rules could make, whatever the head.

    Its number must be above its predecessor's, its inputs not older, each endpoint in it once, and numbers in 63 bits.
    """
    if plan.number <= plan.expected.number:
        what = f"plan {plan.number} does not come after plan {plan.expected.number}"
    elif plan.inputs < plan.expected.inputs:
        what = f"plan {plan.number} is made from older inputs than plan {plan.expected.number}"
    elif len({row.name for row in plan.rows}) < len(plan.rows):
        what = f"plan {plan.number} names an endpoint twice"
    elif max(plan.number, *(max(row.generation.epoch, row.generation.number) for row in plan.rows), 0) > NUMBER_MOST:
        what = f"plan {plan.number} holds a number that no store can keep"
    else:
        return
    raise Refused(what, where=where, hint="this is a mistake in fencepost; nothing was published")


class ReferenceStore:
    """:class:`fencepost.ports.StorePort` in memory; ``nonce`` draws a nonce, ``sleep`` lets time pass (nanoseconds)."""

    def __init__(self, identity: str, nonce: Callable[[], str], sleep: Callable[[Duration], Awaitable[object]]) -> None:
        self.tables = Tables(Head(identity))
        self._nonce = nonce
        self.sleep = sleep
        self._published: list[Head] = [self.tables.head]
        self._config = b""
        self._membership: dict[str, tuple[int, bytes]] = {}
        self._overrides: dict[str, bytes] = {}
        self._origins: dict[str, str] = {}
        self._put_back: dict[str, int] = {}
        self._carried_out: set[str] = set()
        self._reports: dict[tuple[str, str], bytes] = {}
        self._heartbeats: dict[tuple[str, str], bytes] = {}
        self._enacted: dict[str, Enacted] = {}
        self._findings: dict[str, dict[str, tuple[str, str]]] = {}
        self._history: list[HistoryRow] = []
        self._beats: dict[str, Beat] = {}
        self._changes = 1

    async def head(self) -> Head:
        """As the port says."""
        return self.tables.head

    async def newest_rows(self, since: Head | None) -> tuple[Head, Sequence[Row]]:
        """As the port says."""
        newest: dict[str, Row] = {}
        for row in self.tables.rows:
            newest.setdefault(row.name, row)
        if since in self._published:
            later = {head.nonce for head in self._published[self._published.index(since) + 1 :]}
            newest = {name: row for name, row in newest.items() if row.nonce in later}
        return self.tables.head, tuple(newest.values())

    async def inputs(self) -> Inputs:
        """As the port says."""
        tables = self.tables
        return Inputs(tables.inputs, self._config, dict(self._membership), dict(self._overrides), tables.orders)

    async def publish(self, plan: Plan) -> Head | None:
        """As the port says; ``Refused`` as :func:`refuse_unlawful` does."""
        refuse_unlawful(plan)
        after = store.publish(self.tables, plan, self._nonce())
        if after is None:
            return None
        self.tables = after
        self._published.append(after.head)
        self._carried_out.update(plan.spends)
        self._changes += 1
        return after.head

    async def kept_contents(self, name: str) -> Sequence[Content]:
        """As the port says."""
        return tuple(row.content for row in await self.rows_of(name))

    async def rows_of(self, name: str) -> Sequence[Row]:
        """As the port says."""
        return tuple(row for row in self.tables.rows if row.name == name)

    async def spent_rows(self, most: int, place: int = 1) -> Sequence[tuple[Row, int, Generation]]:
        """As the port says."""
        places: dict[str, int] = {}
        newest: dict[str, Generation] = {}
        spent: list[tuple[Row, int, Generation]] = []
        for row in self.tables.rows:
            newer = places[row.name] = places.get(row.name, -1) + 1
            top = newest.setdefault(row.name, row.generation)
            if newer >= max(1, place):
                spent.append((row, newer, top))
        return tuple(reversed(spent))[:most]

    async def delete_row(self, name: str, generation: Generation, nonce: str) -> bool:
        """As the port says."""
        newest = self.tables.newest(name)
        if newest is None or newest.nonce == nonce:
            return False
        after = store.delete_row(self.tables, name, generation, nonce)
        if after is None:
            return False
        self.tables = after
        self._changes += 1
        return True

    def _changed(self, *, orders: tuple[Order, ...] | None = None) -> None:
        tables = self.tables
        kept = tables.orders if orders is None else orders
        self.tables = structs.replace(tables, inputs=tables.inputs + 1, orders=kept)
        self._changes += 1

    async def put_order(self, order: Order) -> None:
        """As the port says; the same order again changes nothing, another one with its id is ``Refused``."""
        waiting = next((one for one in self.tables.orders if one.id == order.id), None)
        if waiting is not None and waiting != order:
            raise Refused(f"order {order.id} is another one already", hint="give each order an id of its own")
        if waiting is None and order.id not in self._carried_out:
            self._changed(orders=(*self.tables.orders, order))

    async def put_config(self, body: bytes, expected: bytes) -> bool:
        """As the port says."""
        if self._config != expected:
            return False
        if body != expected:
            self._config = body
            self._changed()
        return True

    async def membership(self, pool: str) -> tuple[int, bytes]:
        """As the port says."""
        return self._membership.get(pool, (0, b""))

    async def put_membership(self, pool: str, expected: int, body: bytes) -> bool:
        """As the port says."""
        if self._membership.get(pool, (0, b""))[0] != expected:
            return False
        self._membership[pool] = (expected + 1, body)
        self._changed()
        return True

    async def put_override(self, name: str, body: bytes) -> None:
        """As the port says."""
        self._overrides[name] = body
        self._origins[name] = ""
        self._changed()

    async def drop_override(self, name: str) -> bool:
        """As the port says."""
        if self._overrides.pop(name, None) is None:
            return False
        self._changed()
        return True

    async def overrides(self, known: Overrides | None = None) -> Overrides:
        """As the port says."""
        store, snapshot = self.tables.head.store, self.tables.inputs
        if known is not None and (known.store, known.snapshot) == (store, snapshot):
            return known
        return Overrides(store, snapshot, dict(self._overrides))

    async def put_back(self, back: PutBack) -> Sequence[str] | None:
        """As the port says."""
        if (back.into, back.seen) != (self.tables.head.store, self.tables.inputs):
            return None
        if self._put_back.get(back.lost, -1) >= back.snapshot:
            return ()
        self._put_back[back.lost] = back.snapshot
        before = dict(self._overrides)
        for name, origin in self._origins.items():
            if origin == back.lost and name in before and name not in back.words:
                del self._overrides[name]
        for name, body in back.words.items():
            if name not in self._origins or (self._origins[name] == back.lost and name in before):
                self._origins[name], self._overrides[name] = back.lost, body
        changed = {name for name, _ in before.items() ^ self._overrides.items()}
        if changed:
            self._changed()
        return sorted(changed)

    async def put_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:  # noqa: ARG002  the port's
        """As the port says."""
        self._reports[pool, zone] = body
        self._changes += 1

    async def beat_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:  # noqa: ARG002  the port's
        """As the port says."""
        self._heartbeats[pool, zone] = body
        self._changes += 1

    async def reports(self, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
        """As the port says."""
        keys = sorted(key for key in {**self._reports, **self._heartbeats} if key[0] == pool)
        return tuple((key[1], self._reports.get(key, b""), self._heartbeats.get(key, b"")) for key in keys)

    async def note_enacted(self, enacted: Sequence[Enacted]) -> None:
        """As the port says."""
        for one in enacted:
            known = self._enacted.get(one.name)
            if known is None or (one.generation, one.at) >= (known.generation, known.at):
                self._enacted[one.name] = one
        self._changes += 1

    async def enacted(self, names: Collection[str] | None = None) -> Mapping[str, Enacted]:
        """As the port says."""
        return {name: one for name, one in self._enacted.items() if names is None or name in names}

    async def put_findings(self, by: str, found: Mapping[str, tuple[str, str]]) -> None:
        """As the port says."""
        self._findings.pop(by, None)
        if found:
            self._findings[by] = dict(found)
        self._changes += 1

    async def findings(self) -> Mapping[str, Mapping[str, tuple[str, str]]]:
        """As the port says."""
        return {by: dict(found) for by, found in self._findings.items()}

    async def note(self, rows: Sequence[HistoryRow]) -> None:
        """As the port says."""
        last = self._history[-1].id if self._history else 0
        self._history += [structs.replace(row, id=last + place) for place, row in enumerate(rows, 1)]
        del self._history[:-HISTORY_KEPT]
        self._changes += 1

    async def history(self, *, after: int = 0, since: Instant = 0, most: int = 1000) -> Sequence[HistoryRow]:
        """As the port says."""
        found = [row for row in self._history if row.id > after and row.at >= since]
        return tuple(found[-most:]) if most > 0 else ()

    async def beat(self, beat: Beat) -> None:
        """As the port says."""
        self._beats[beat.role] = beat
        self._changes += 1

    async def beats(self) -> Sequence[Beat]:
        """As the port says."""
        return tuple(self._beats[role] for role in sorted(self._beats))

    async def at_rest(self, work: Callable[[], None]) -> None:
        """As the port says: no call here takes any time."""
        work()

    def waiter(self, *, reports: bool = False) -> "ReferenceWaiter":
        """As the port says."""
        return ReferenceWaiter(self, reports=reports)

    def seen(self, *, reports: bool) -> object:
        """What differs after each change that a waiter is to be told of."""
        return self._changes if reports else (self.tables.head, self.tables.inputs)

    async def close(self) -> None:
        """Nothing to let go of."""


class ReferenceWaiter:
    """One task's waiting, looking each 50 ms of whatever time is."""

    def __init__(self, store: ReferenceStore, *, reports: bool) -> None:
        self._store = store
        self._reports = reports
        self._told: object = None

    async def wait(self, most: Duration) -> None:
        """As the port says."""
        waited = 0
        while self._store.seen(reports=self._reports) == self._told and waited < most:
            pause = min(LOOK_EACH, most - waited)
            await self._store.sleep(pause)
            waited += pause
        self._told = self._store.seen(reports=self._reports)
