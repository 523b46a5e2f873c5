"""The store port over one PostgreSQL database.

All calls are made from one thread of the store's own, so a slow server never holds up the event loop, and calls of one
role reach it in the order they were made. A cancelled call may still take effect.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from fencepost.adapters.store_postgresql import inputs, overrides, plans, telemetry
from fencepost.adapters.store_postgresql.address import Address
from fencepost.adapters.store_postgresql.database import Database
from fencepost.adapters.store_postgresql.session import Session
from fencepost.adapters.store_postgresql.watch import Watch
from fencepost.adapters.store_waiting import Waiter
from fencepost.core.fence import Generation
from fencepost.core.instant import Instant
from fencepost.core.record_set import Content
from fencepost.core.store import Head, Order, Plan, Row, stamped
from fencepost.ports import Beat, Enacted, HistoryRow, Inputs, Overrides, PutBack
from fencepost.world.reference_store import refuse_unlawful

T = TypeVar("T")
NONCE_BYTES = 8
LARGE_ROWS = 20_000
ROWS_A_SECOND = 2_000
"""A plan of more rows than that may take longer than any other call: a tenth of the speed that was measured."""


class PostgresqlStore:
    """:class:`fencepost.ports.StorePort` on PostgreSQL. To be opened after forking, used from one event loop."""

    def __init__(self, address: Address, *, create: bool) -> None:
        self._database = Database(address, create=create)
        self._watch = Watch(address, create=create)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    @classmethod
    def open(cls, dsn: str, *, create: bool = False) -> Self:
        """The store that ``dsn`` (a libpq connection string or URI, a secret) leads to; connects at the first call.

        With ``create`` the tables are made where there are none, and brought to this version: the planner's. Raises
        nothing: a store that is away, not ours to read or none raises from the calls, until it can be used.
        """
        return cls(Address(dsn), create=create)

    def __repr__(self) -> str:
        return f"<store {self._database.address}>"

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    async def _look(self, work: Callable[..., T], *args: object) -> T:
        return await self._run(self._database.look, lambda session: work(session, *args))

    async def _read(self, work: Callable[..., T], *args: object) -> T:
        return await self._run(self._database.read, lambda session: work(session, *args))

    async def _write(self, work: Callable[..., T], *args: object) -> T:
        return await self._run(self._database.write, lambda session: work(session, *args))

    async def _tell(self, work: Callable[..., T], *args: object) -> T:
        return await self._run(self._database.tell, lambda session: work(session, *args))

    async def head(self) -> Head:
        """The head, store identity included."""
        return await self._look(plans.read_head)

    async def newest_rows(self, since: Head | None) -> tuple[Head, Sequence[Row]]:
        """The head, and each endpoint's newest row if a plan after ``since`` made it (all if that isn't ours)."""
        return await self._run(self._newest_rows, since)

    def _newest_rows(self, since: Head | None) -> tuple[Head, Sequence[Row]]:
        if since is not None and self._database.look(plans.read_head) == since:
            return since, ()
        head, found = self._database.read(lambda session: plans.newest_rows(session, since))
        return head, self._database.checked(lambda: plans.read_rows(found))

    async def inputs(self) -> Inputs:
        """One consistent snapshot of the inputs; the same object as long as nothing changes."""
        return await self._run(self._inputs)

    def _inputs(self) -> Inputs:
        database = self._database

        def unchanged(session: Session) -> bool:
            return database.known is not None and inputs.unchanged(session, database.known)

        if database.known is not None and database.look(unchanged) and database.known is not None:
            return database.known.inputs
        found = database.known = database.read(lambda session: inputs.read(session, database.known))
        return found.inputs

    async def publish(self, plan: Plan) -> Head | None:
        """Rows, spent orders and head in one compare-and-set; None if the head had moved. Draws the nonce.

        Raises ``Refused`` for a plan that could never be right
        (:func:`~fencepost.world.reference_store.refuse_unlawful`).
        """
        refuse_unlawful(plan, self._database.address.where)
        return await self._run(self._publish, plan)

    def _publish(self, plan: Plan) -> Head | None:
        # An outrun plan is mostly found out by a mere read, without encoding it or taking the lock.
        if self._database.look(plans.read_head) != plan.expected:
            return None
        head, rows = stamped(plan, secrets.token_hex(NONCE_BYTES))
        ready = plans.Encoded.of(rows)
        most_s = len(rows) / ROWS_A_SECOND if len(rows) > LARGE_ROWS else None
        return self._database.write(lambda session: plans.publish(session, plan, head, ready), most_s=most_s)

    async def kept_contents(self, name: str) -> Sequence[Content]:
        """The contents of every kept row of an endpoint, newest first."""
        return tuple(row.content for row in await self.rows_of(name))

    async def rows_of(self, name: str) -> Sequence[Row]:
        """Every kept row of an endpoint, newest first."""
        return await self._look(lambda session: plans.read_rows(plans.rows_of(session, name)))

    async def spent_rows(self, most: int, place: int = 1) -> Sequence[tuple[Row, int, Generation]]:
        """At most so many rows with ``place`` or more newer ones, oldest first: (row, place from newest, newest)."""
        return await self._look(plans.spent_rows, most, place)

    async def delete_row(self, name: str, generation: Generation, nonce: str) -> bool:
        """Delete one row if it has this nonce and isn't its endpoint's newest; whether it did."""
        return await self._write(plans.delete_row, name, generation, nonce)

    async def put_order(self, order: Order) -> None:
        """Queue an order; raises the input snapshot. The same order again, waiting or carried out, changes nothing.

        Raises ``Refused`` if another order with that id waits.
        """
        await self._write(inputs.put_order, order)

    async def put_config(self, body: bytes, expected: bytes) -> bool:
        """Compare-and-set on the loaded configuration: whether ``expected`` stood there (b"": none), and now ``body``.

        Raises the input snapshot if the two differ.
        """
        return await self._write(inputs.put_config, body, expected)

    async def membership(self, pool: str) -> tuple[int, bytes]:
        """A pool's (version, JSON); (0, b"") before the first."""
        return await self._look(inputs.membership, pool)

    async def put_membership(self, pool: str, expected: int, body: bytes) -> bool:
        """Compare-and-set on the pool's version; raises the input snapshot."""
        return await self._write(inputs.put_membership, pool, expected, body)

    async def put_override(self, name: str, body: bytes) -> None:
        """Place or replace an override (drain, keep, pause); raises the input snapshot."""
        await self._write(overrides.put, name, body)

    async def drop_override(self, name: str) -> bool:
        """End an override; raises the input snapshot; whether there was one."""
        return await self._write(overrides.drop, name)

    async def overrides(self, known: Overrides | None = None) -> Overrides:
        """The overrides alone; ``known`` itself, at the cost of reading the head, if no input changed since."""
        return await self._run(self._overrides, known)

    def _overrides(self, known: Overrides | None) -> Overrides:
        if known is not None and self._database.look(lambda session: overrides.unchanged(session, known)):
            return known
        return self._database.read(overrides.read)

    async def put_back(self, back: PutBack) -> Sequence[str] | None:
        """Place what a lost store held: the ids that changed; None if head or inputs aren't those seen any more."""
        return await self._write(overrides.put_back, back)

    async def put_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        """A checker's report, replacing its last."""
        await self._tell(telemetry.put_report, zone, pool, sequence, body)

    async def beat_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        """A checker's heartbeat (small), beside its report."""
        await self._tell(telemetry.beat_report, zone, pool, sequence, body)

    async def reports(self, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
        """Each checker's (zone, report JSON, heartbeat JSON) of a pool; b"" for what it hasn't sent yet."""
        return await self._look(telemetry.reports, pool)

    async def note_enacted(self, enacted: Sequence[Enacted]) -> None:
        """Remember who enacted what; a late note about an older generation changes nothing."""
        await self._tell(telemetry.note_enacted, enacted)

    async def enacted(self, names: Collection[str] | None = None) -> Mapping[str, Enacted]:
        """The last enactment of each endpoint (of these)."""
        return await self._look(telemetry.enacted, names)

    async def put_findings(self, by: str, found: Mapping[str, tuple[str, str]]) -> None:
        """Replace a role's findings: (verdict, why) by endpoint."""
        await self._tell(telemetry.put_findings, by, found)

    async def findings(self) -> Mapping[str, Mapping[str, tuple[str, str]]]:
        """Each role's findings; a role without any isn't named."""
        return await self._look(telemetry.findings)

    async def note(self, rows: Sequence[HistoryRow]) -> None:
        """Append to the history, of which the newest 100,000 lines are kept."""
        if rows:
            await self._write(telemetry.note, rows)

    async def history(self, *, after: int = 0, since: Instant = 0, most: int = 1000) -> Sequence[HistoryRow]:
        """The history after an id and at or after a time, oldest first; the newest ``most`` rows of it."""
        return await self._look(telemetry.history, after, since, most)

    async def beat(self, beat: Beat) -> None:
        """A role's sign of life, replacing its last."""
        await self._tell(telemetry.beat, beat)

    async def beats(self) -> Sequence[Beat]:
        """Each role's last sign of life."""
        return await self._look(telemetry.beats)

    async def at_rest(self, work: Callable[[], None]) -> None:
        """Run something while no call of this store object is under way: on the thread that makes them all."""
        await self._run(work)

    def waiter(self, *, reports: bool = False) -> Waiter:
        """For one task: waits for changes of head and inputs (by us, too), or with ``reports`` for any change.

        That the listening connection breaks or is made anew is a change.
        """
        return Waiter(self._watch, reports=reports)

    async def close(self) -> None:
        """Let go of the connections and end the threads; a call that waits for a silent server is given up."""
        await self._watch.close()
        self._database.given_up.set()
        await self._run(self._database.close)
        self._thread.shutdown(wait=False)
