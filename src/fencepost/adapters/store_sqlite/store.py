"""The store port over one SQLite file.

All SQLite calls are made from one thread of the store's own, so a slow disk never holds up the event loop, and calls of
one role reach the file in the order they were made. A cancelled call may still take effect.
"""

import asyncio
import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

from fencepost.adapters.store_sqlite import inputs, overrides, plans, telemetry
from fencepost.adapters.store_sqlite.checkpoints import Checkpoints
from fencepost.adapters.store_sqlite.database import Database
from fencepost.adapters.store_sqlite.inputs import Snapshot
from fencepost.adapters.store_sqlite.watch import Watch
from fencepost.adapters.store_waiting import Waiter
from fencepost.core.fence import Generation
from fencepost.core.instant import Instant
from fencepost.core.record_set import Content
from fencepost.core.store import Head, Order, Plan, Row, stamped
from fencepost.ports import Beat, Enacted, HistoryRow, Inputs, Overrides, PortError, PutBack
from fencepost.world.reference_store import refuse_unlawful

T = TypeVar("T")
NONCE_BYTES = 8


class SqliteStore:
    """:class:`fencepost.ports.StorePort` on SQLite. To be opened after forking, used from one event loop."""

    def __init__(self, database: Database, checkpoints: Checkpoints | None) -> None:
        self._database = database
        self._checkpoints = checkpoints
        self._watch = Watch(database.path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._snapshot: Snapshot | None = None
        self._snapshot_of = database.file

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, checkpoints: bool = False, create: bool = False) -> Self:
        """The store at ``path``; with ``create`` it is made (mode 0600) where there is none, now and when it is lost.

        Exactly one process of a region passes ``checkpoints``. Raises nothing: a store that is away, damaged or none
        raises from the calls, until it can be used. Answering and healing need no store, so it ends no role.
        """
        database = Database(Path(os.path.realpath(path)), create=create)
        with contextlib.suppress(PortError):
            database.read(plans.read_head)
        return cls(database, Checkpoints(database.path) if checkpoints else None)

    async def _read(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._database.read, lambda db: work(db, *args)
        )

    async def _write(self, work: Callable[..., T], *args: object, durable: bool = True) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: self._database.write(lambda db: work(db, *args), durable=durable)
        )

    async def head(self) -> Head:
        """The head, store identity included."""
        return await self._read(plans.read_head)

    async def newest_rows(self, since: Head | None) -> tuple[Head, Sequence[Row]]:
        """The head, and each endpoint's newest row if a plan after ``since`` made it (all if that isn't ours)."""
        return await self._read(plans.newest_rows, since)

    async def inputs(self) -> Inputs:
        """One consistent snapshot of the inputs; the same object as long as nothing changes."""
        return (await self._read(self._inputs)).inputs

    def _inputs(self, db: sqlite3.Connection) -> Snapshot:
        # A copy put back has the same identity and may count to the same snapshot: only of this very file it says all.
        known = self._snapshot if self._snapshot_of == self._database.file else None
        self._snapshot, self._snapshot_of = inputs.read(db, known), self._database.file
        return self._snapshot

    async def publish(self, plan: Plan) -> Head | None:
        """Rows, spent orders and head in one compare-and-set; None if the head had moved. Draws the nonce.

        Raises ``Refused`` for a plan that could never be right
        (:func:`~fencepost.world.reference_store.refuse_unlawful`).
        """
        refuse_unlawful(plan, str(self._database.path))
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._publish, plan)

    def _publish(self, plan: Plan) -> Head | None:
        # An outrun plan is mostly found out by a mere read, without encoding it or taking the lock.
        if self._database.read(plans.read_head) != plan.expected:
            return None
        head, rows = stamped(plan, secrets.token_hex(NONCE_BYTES))
        ready = plans.encoded(rows)
        return self._database.write(lambda db: plans.publish(db, plan, head, ready))

    async def kept_contents(self, name: str) -> Sequence[Content]:
        """The contents of every kept row of an endpoint, newest first."""
        return tuple(row.content for row in await self._read(plans.rows_of, name))

    async def rows_of(self, name: str) -> Sequence[Row]:
        """Every kept row of an endpoint, newest first."""
        return await self._read(plans.rows_of, name)

    async def spent_rows(self, most: int, place: int = 1) -> Sequence[tuple[Row, int, Generation]]:
        """At most so many rows with ``place`` or more newer ones, oldest first: (row, place from newest, newest)."""
        return await self._read(plans.spent_rows, most, place)

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
        return await self._read(inputs.membership, pool)

    async def put_membership(self, pool: str, expected: int, body: bytes) -> bool:
        """Compare-and-set on the pool's version; raises the input snapshot."""
        wrote = await self._write(inputs.put_membership, pool, expected, body)
        if wrote:
            # The planner is in the load balancers' process: a removal doesn't wait for a look.
            self._watch.wrote_inputs()
        return wrote

    async def put_override(self, name: str, body: bytes) -> None:
        """Place or replace an override (drain, keep, pause); raises the input snapshot."""
        await self._write(overrides.put, name, body)

    async def drop_override(self, name: str) -> bool:
        """End an override; raises the input snapshot; whether there was one."""
        return await self._write(overrides.drop, name)

    async def overrides(self, known: Overrides | None = None) -> Overrides:
        """The overrides alone; ``known`` itself, at the cost of reading the head, if no input changed since."""
        return await self._read(overrides.read, known)

    async def put_back(self, back: PutBack) -> Sequence[str] | None:
        """Place what a lost store held: the ids that changed; None if head or inputs aren't those seen any more."""
        return await self._write(overrides.put_back, back)

    async def put_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        """A checker's report, replacing its last."""
        await self._write(telemetry.put_report, zone, pool, sequence, body, durable=False)

    async def beat_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        """A checker's heartbeat (small), beside its report."""
        await self._write(telemetry.beat_report, zone, pool, sequence, body, durable=False)

    async def reports(self, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
        """Each checker's (zone, report JSON, heartbeat JSON) of a pool; b"" for what it hasn't sent yet."""
        return await self._read(telemetry.reports, pool)

    async def note_enacted(self, enacted: Sequence[Enacted]) -> None:
        """Remember who enacted what; a late note about an older generation changes nothing."""
        await self._write(telemetry.note_enacted, enacted, durable=False)

    async def enacted(self, names: Collection[str] | None = None) -> Mapping[str, Enacted]:
        """The last enactment of each endpoint (of these)."""
        return await self._read(telemetry.enacted, names)

    async def put_findings(self, by: str, found: Mapping[str, tuple[str, str]]) -> None:
        """Replace a role's findings: (verdict, why) by endpoint."""
        await self._write(telemetry.put_findings, by, found, durable=False)

    async def findings(self) -> Mapping[str, Mapping[str, tuple[str, str]]]:
        """Each role's findings; a role without any isn't named."""
        return await self._read(telemetry.findings)

    async def note(self, rows: Sequence[HistoryRow]) -> None:
        """Append to the history, of which the newest 100,000 lines are kept."""
        await self._write(telemetry.note, rows, durable=False)

    async def history(self, *, after: int = 0, since: Instant = 0, most: int = 1000) -> Sequence[HistoryRow]:
        """The history after an id and at or after a time, oldest first; the newest ``most`` rows of it."""
        return await self._read(telemetry.history, after, since, most)

    async def beat(self, beat: Beat) -> None:
        """A role's sign of life, replacing its last."""
        await self._write(telemetry.beat, beat, durable=False)

    async def beats(self) -> Sequence[Beat]:
        """Each role's last sign of life."""
        return await self._read(telemetry.beats)

    async def at_rest(self, work: Callable[[], None]) -> None:
        """Run something while no call of this store object is under way: on the thread that makes them all."""
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def waiter(self, *, reports: bool = False) -> Waiter:
        """For one task: waits for changes of head and inputs (by us, too), or with ``reports`` for any change.

        A store file that goes, comes back or is replaced is a change.
        """
        return Waiter(self._watch, reports=reports)

    async def close(self) -> None:
        """Let go of the file and end the threads."""
        await self._watch.close()
        if self._checkpoints is not None:
            await asyncio.to_thread(self._checkpoints.close)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.close)
        self._thread.shutdown(wait=False)
