"""The fleet's rows in the database.

*The compare-and-set.* A commit first takes the row lock of the one row of ``fleet``, and only then looks at the shard's
row and at the revisions, each by a statement of its own: at READ COMMITTED that one sees all that was committed before
the lock was given. The number it gives its rows is drawn under that lock, which is let go after the commit is visible;
so numbers become visible in their order, and who has read up to one misses nothing below it. The price: commits follow
each other, as fast as the server's disk; a thousand rows in one cost little more than one.

All rows of a kind may be many: reading those may take longer than other calls, and they can be had a page at a time.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

from msgspec import Struct

from fencepost.adapters.store_bodies import UnreadableError
from fencepost.adapters.store_fleet_rows import SHARD_IS, encode, hash_of, shard_row, shard_values, versioned
from fencepost.adapters.store_postgresql import founding
from fencepost.adapters.store_postgresql.address import Address
from fencepost.adapters.store_postgresql.database import Database
from fencepost.adapters.store_postgresql.session import Session
from fencepost.adapters.store_postgresql.watch import Watch
from fencepost.adapters.store_waiting import TaskWaiters
from fencepost.core.capacity.fleet_store import Claim, Group
from fencepost.core.capacity.rows import Kind, ShardRow
from fencepost.core.instant import Duration
from fencepost.ports.fleet import Page, Proof, Written
from fencepost.world.reference_fleet import SHARDED, refuse_unlawful_groups

T = TypeVar("T")
EVERY_ROW_S = 60.0
"""So long reading all rows of a kind may take."""
_CLOCK = "SELECT life, snapshot FROM fleet"
_STANDING = (
    "SELECT kind, key, revision, CASE WHEN kind = 'shard' THEN body END"
    " FROM unnest(%b::text[], %b::text[]) AS wanted (kind, key) JOIN fleet_row USING (kind, key)"
)
_PROOF = (
    "SELECT life, place, revision, body FROM fleet LEFT JOIN ("
    "SELECT place, revision, body FROM unnest(%b::text[], %b::text[]) WITH ORDINALITY AS wanted (kind, key, place)"
    " JOIN fleet_row USING (kind, key)"
    ") AS found ON true"
)
_PUT = (
    "put AS (INSERT INTO fleet_row (kind, key, hash, revision, body)"
    " SELECT kind, key, hash, %(snapshot)s, body"
    " FROM unnest(%(kinds)b::text[], %(keys)b::text[], %(hashes)b::bigint[], %(bodies)b::bytea[])"
    " AS given (kind, key, hash, body)"
    " ON CONFLICT (kind, key) DO UPDATE SET revision = excluded.revision, body = excluded.body)"
)
_DELETE = (
    "gone AS (DELETE FROM fleet_row USING unnest(%(gone_kinds)b::text[], %(gone_keys)b::text[]) AS given (kind, key)"
    " WHERE fleet_row.kind = given.kind AND fleet_row.key = given.key)"
)
_MOVE = "UPDATE fleet SET snapshot = %(snapshot)s RETURNING pg_notify(%(channel)s, '')"
"""With this transaction's commit, those who wait for fleet rows are woken."""
_SHARD = "SELECT body FROM fleet_row WHERE kind = 'shard' AND key = %s"
_NEWS = (
    "SELECT life, snapshot, (SELECT body FROM fleet_row WHERE kind = 'shard' AND key = %(shard)s), key, revision, body"
    " FROM fleet LEFT JOIN ("
    "SELECT key, revision, body FROM fleet_row WHERE kind = %(kind)s AND revision > %(since)s{which}"
    ") AS later ON true"
)
Place = tuple[Kind, str]
Stored = tuple[str, int, bytes]
"""Key, revision and body."""


class PostgresqlFleetStore:
    """:class:`fencepost.ports.fleet.FleetStorePort` on PostgreSQL. Opened after forking, used from one event loop."""

    def __init__(self, address: Address, *, create: bool) -> None:
        self._database = Database(address, create=create)
        self._watch = FleetWatch(address, create=create)
        self._waiters = TaskWaiters(self._watch)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fleet-store")

    @classmethod
    def open(cls, dsn: str, *, create: bool = False) -> Self:
        """The rows in the store that ``dsn`` leads to. Raises nothing, as :meth:`~.store.PostgresqlStore.open`."""
        return cls(Address(dsn), create=create)

    def __repr__(self) -> str:
        return f"<fleet rows in {self._database.address}>"

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def rows(self, kind: Kind, shard: int | None = None, since: int = 0) -> Page:
        """All rows of a kind (of a shard) changed after snapshot ``since``."""

        def work() -> Page:
            database = self._database
            seen = database.look(lambda session: news(session, kind, shard, since)) if since > 0 else None
            if seen is None:
                most_s = EVERY_ROW_S if since <= 0 else None
                seen = database.read(lambda session: changed(session, kind, shard, since), most_s=most_s)
            life, snapshot, found = seen
            return Page(life, snapshot, database.checked(lambda: tuple(versioned(kind, *each) for each in found)))

        return await self._run(work)

    async def some_rows(self, kind: Kind, shard: int | None, after: str, most: int) -> Page:
        """The first ``most`` rows of a kind (of a shard) with a key after this one, as they are now."""

        def work() -> Page:
            database = self._database
            read = database.read(lambda session: some(session, kind, shard, after, most), most_s=EVERY_ROW_S)
            life, snapshot, found = read
            return Page(life, snapshot, database.checked(lambda: tuple(versioned(kind, *each) for each in found)))

        return await self._run(work)

    async def prove(self, shard: int, places: Sequence[Place]) -> Proof:
        """One consistent look at a shard's row and these rows."""
        return await self._run(lambda: self._database.look(lambda session: proof(session, shard, places)))

    async def commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        """Groups of changes, each all or nothing, under a claim; None if that doesn't stand.

        Raises ``Refused`` as :func:`~fencepost.world.reference_fleet.refuse_unlawful_groups` does.
        """
        refuse_unlawful_groups(groups, self._database.address.where)

        def work() -> Written | None:
            bodies = [[encode(change.row) if change.row is not None else None for change in group] for group in groups]
            return self._database.write(lambda session: commit(session, claim, groups, bodies))

        return await self._run(work)

    async def restamp(self) -> str:
        """Begin a new life: every lease counts as unknown from now on. The new life."""

        def work(session: Session) -> str:
            founding.begin_new_life(session)
            return clock(session)[0]

        return await self._run(lambda: self._database.write(work))

    def wait(self, most: Duration) -> Coroutine[Any, Any, None]:
        """Return when rows may have changed since this task's last call, at the latest after ``most``."""
        return self._waiters.wait(most)

    async def close(self) -> None:
        """Let go of the connections and end the threads; a call that waits for a silent server is given up."""
        await self._watch.close()
        self._database.given_up.set()
        await self._run(self._database.close)
        self._thread.shutdown(wait=False)


class FleetWatch(Watch):
    """Wakes those who wait for fleet rows, and only for those."""

    def __init__(self, address: Address, *, create: bool) -> None:
        super().__init__(address, create=create)
        self.channels = (address.fleet,)

    def planned(self, session: Session) -> object:
        """What differs after each commit of fleet rows."""
        return clock(session)


def clock(session: Session, lock: str = "") -> tuple[str, int]:
    """Life and snapshot; with ``lock`` nobody else commits fleet rows until this transaction ends."""
    found = session.one(f"{_CLOCK} {lock}")
    if found is None:
        raise UnreadableError("fleet", 1, "there is none")
    return found[0], found[1]


def own_row(session: Session, shard: int) -> ShardRow | None:
    """A shard's row."""
    found = session.one(_SHARD, (str(shard),))
    return shard_row(found[0] if found is not None else None, shard)


def news(session: Session, kind: Kind, shard: int | None, since: int) -> tuple[str, int, Sequence[Stored]] | None:
    """As :func:`changed`, by one statement, which sees one state: a slow server is asked once or twice, not five times.

    How many shards there are must be known before; None if that changed meanwhile.
    """
    which, own = "", None
    if shard is not None and kind in SHARDED:
        own = own_row(session, shard)
        if own is None:
            return None
        which = " AND " + SHARD_IS.format_map(shard_values(own)).replace("%", "%%")
    asked = {"kind": kind, "since": since, "shard": str(shard) if own is not None else ""}
    found = session.rows(_NEWS.format(which=which), asked)
    if not found:
        raise UnreadableError("fleet", 1, "there is none")
    life, snapshot, body = found[0][:3]
    if own is not None and shard is not None:
        now = shard_row(body, shard)
        if now is None or now.of != own.of:
            return None
    return life, snapshot, sorted((key, revision, body) for _, _, _, key, revision, body in found if key is not None)


def changed(session: Session, kind: Kind, shard: int | None, since: int) -> tuple[str, int, Sequence[Stored]]:
    """Life, snapshot and the rows changed after one: by the index, unless all are wanted.

    All are put in order here: asked for in order, the server would fetch them one by one in that of its index.
    """
    life, snapshot = clock(session)
    which = of_shard(session, kind, shard)
    if which is None:
        return life, snapshot, ()
    if since > 0:
        later = session.rows(f"{which} AND revision > %(since)s ORDER BY key", {"kind": kind, "since": since})
        return life, snapshot, later
    return life, snapshot, sorted(session.rows(which, {"kind": kind}))


def some(session: Session, kind: Kind, shard: int | None, after: str, most: int) -> tuple[str, int, Sequence[Stored]]:
    """Life, snapshot and rows in the order of their keys, from after one on.

    Those of the index, from there on: a server that has no figures of a table yet would rather read and sort it all.
    """
    session.execute("SET LOCAL enable_sort = off")
    life, snapshot = clock(session)
    which = of_shard(session, kind, shard)
    if which is None:
        return life, snapshot, ()
    asked = {"kind": kind, "after": after, "most": most}
    return life, snapshot, session.rows(f"{which} AND key > %(after)s ORDER BY key LIMIT %(most)s", asked)


def of_shard(session: Session, kind: Kind, shard: int | None) -> str | None:
    """SQL that selects a kind's rows of a shard, or all where it makes no difference; None if nobody has it yet."""
    which = "SELECT key, revision, body FROM fleet_row WHERE kind = %(kind)s"
    if shard is None or kind not in SHARDED:
        return which
    own = own_row(session, shard)
    return f"{which} AND " + SHARD_IS.format_map(shard_values(own)).replace("%", "%%") if own is not None else None


def proof(session: Session, shard: int, places: Sequence[Place]) -> Proof:
    """A shard's row and some others: one statement sees one state."""
    asked: list[Place] = [("shard", str(shard)), *places]
    found = session.rows(_PROOF, _columns(asked))
    if not found:
        raise UnreadableError("fleet", 1, "there is none")
    there = {place: (revision, body) for _, place, revision, body in found}
    rows = (versioned(*at, *there[place]) if place in there else None for place, at in enumerate(asked, 1))
    own, *others = rows
    row = own.row if own is not None else None
    assert row is None or isinstance(row, ShardRow)  # its kind says so  # noqa: S101
    return Proof(found[0][0], row, tuple(others))


class Puts(Struct, frozen=True):
    """What is to be written, as columns; rows in the order of their keys, as every index likes it."""

    places: list[Place]
    bodies: list[bytes]
    gone: list[Place]

    @classmethod
    def of(cls, groups: Sequence[Group], bodies: Sequence[Sequence[bytes | None]], applied: Sequence[bool]) -> Self:
        """The changes of those groups that apply."""
        fit = [
            (change.place, body)
            for group, own, ok in zip(groups, bodies, applied, strict=True)
            if ok
            for change, body in zip(group, own, strict=True)
        ]
        kept = sorted((place, body) for place, body in fit if body is not None)
        return cls([place for place, _ in kept], [body for _, body in kept], [place for place, b in fit if b is None])

    def write(self, session: Session, snapshot: int) -> None:
        """Write it all as of a snapshot, by one statement: whoever commits next waits for it, and for its way here."""
        given: dict[str, object] = {"snapshot": snapshot, "channel": session.address.fleet}
        parts: list[str] = []
        if self.places:
            parts.append(_PUT)
            kinds, keys = _columns(self.places)
            given |= {"kinds": kinds, "keys": keys, "hashes": [hash_of(key) for key in keys], "bodies": self.bodies}
        if self.gone:
            parts.append(_DELETE)
            given["gone_kinds"], given["gone_keys"] = _columns(self.gone)
        session.execute(f"WITH {', '.join(parts)} {_MOVE}" if parts else _MOVE, given)


def commit(
    session: Session, claim: Claim | None, groups: Sequence[Group], bodies: Sequence[Sequence[bytes | None]]
) -> Written | None:
    """The groups that fit, under the lock; ``bodies`` are their rows encoded."""
    life, snapshot = clock(session, "FOR UPDATE")
    places = [change.place for group in groups for change in group]
    own: list[Place] = [("shard", str(claim.shard))] if claim is not None else []
    found = session.rows(_STANDING, _columns(own + places)) if own or places else []
    stand = {(kind, key): (revision, body) for kind, key, revision, body in found}
    if claim is not None:
        row = shard_row(stand[own[0]][1] if own[0] in stand else None, claim.shard)
        if not claim.stands(row, life):
            return None
    applied = tuple(all(stand.get(change.place, (0,))[0] == change.seen for change in group) for group in groups)
    if not any(applied):
        return Written(snapshot, applied)
    Puts.of(groups, bodies, applied).write(session, snapshot + 1)
    return Written(snapshot + 1, applied)


def _columns(places: Sequence[Place]) -> tuple[list[str], list[str]]:
    """Kinds and keys."""
    return [kind for kind, _ in places], [key for _, key in places]
