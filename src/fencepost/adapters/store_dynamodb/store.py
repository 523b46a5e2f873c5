"""The store port over one DynamoDB table.

Every read is strongly consistent, and every decision is one conditional write of one item (:mod:`.root`). A cancelled
call may still take effect. Nothing is sent before the first call, so a store may be opened anywhere; it is then used
from one event loop.
"""

import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Self, TypeVar

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.blobs import Blobs, GoneError
from fencepost.adapters.store_dynamodb.chain import Chain
from fencepost.adapters.store_dynamodb.client import Client
from fencepost.adapters.store_dynamodb.history import History
from fencepost.adapters.store_dynamodb.inputs import ROUNDS_MOST, InputTables
from fencepost.adapters.store_dynamodb.plans import Plans
from fencepost.adapters.store_dynamodb.root import Roots
from fencepost.adapters.store_dynamodb.spent import SpentRows
from fencepost.adapters.store_dynamodb.table import Table
from fencepost.adapters.store_dynamodb.telemetry import Telemetry
from fencepost.adapters.store_dynamodb.watch import Watch
from fencepost.adapters.store_waiting import Waiter
from fencepost.core.fence import Generation
from fencepost.core.instant import Instant
from fencepost.core.record_set import Content
from fencepost.core.store import Head, Order, Plan, Row
from fencepost.ports import Beat, Enacted, HistoryRow, Inputs, Overrides, PortError, PutBack
from fencepost.world.reference_store import refuse_unlawful

T = TypeVar("T")


class DynamoDbStore:
    """:class:`fencepost.ports.StorePort` on DynamoDB. Used from one event loop."""

    def __init__(self, client: Client, *, create: bool) -> None:
        self._client = client
        self._found = False
        self._table = Table(client, create=create)
        self._roots = Roots(client, self._table)
        self._watch = Watch(self._roots)
        blobs = Blobs(client)
        self._inputs = InputTables(self._roots, blobs)
        self._plans = Plans(client, self._roots, Chain(client, blobs), self._inputs)
        self._spent = SpentRows(self._plans)
        self._telemetry = Telemetry(client)
        self._history = History(client)
        self._roots.lost = self._note_lost

    @classmethod
    def open(cls, table: str, aws_region: str, *, create: bool = False) -> Self:
        """The store in ``table``; with ``create`` it is made where there is none, now and when it is lost.

        ``aws_region`` "" leaves the region to AWS's own chain; credentials and endpoint are found by it too. Raises
        nothing: a store that is away, damaged or none raises from the calls, until it can be used.
        """
        return cls(Client(table, aws_region), create=create)

    async def _done(self, work: Callable[..., Awaitable[T]], *args: object) -> T:
        """A call's outcome; begun anew if something it was about to read was replaced meanwhile."""
        missing = ""
        for _ in range(ROUNDS_MOST):
            try:
                if not self._found:
                    await self._roots.read()  # makes it, if we may; nothing is to be written into an empty table
                    self._found = True
                return await work(*args)
            except GoneError as gone:
                missing = f"{gone} is missing"
            except faults.TableMissingError:
                self._table.forget()
                if not self._found:
                    raise faults.missing(self._client.where) from None
                self._found = False
        raise faults.damaged(self._client.where, missing)

    async def _noted(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        await self._done(work, *args)
        self._watch.wrote()

    async def _note_lost(self, old: str, new: str) -> None:
        text = f"the table was restored or copied: store {old} counts as lost"
        with contextlib.suppress(PortError, faults.TableMissingError):
            await self._history.note([HistoryRow("finding", "store", f"store {new}", text, time.time_ns())])

    async def head(self) -> Head:
        """The head, store identity included."""
        return (await self._done(self._roots.read)).head

    async def newest_rows(self, since: Head | None) -> tuple[Head, Sequence[Row]]:
        """The head, and each endpoint's newest row if a plan after ``since`` made it (all if that isn't ours)."""
        return await self._done(self._plans.newest_rows, since)

    async def inputs(self) -> Inputs:
        """One consistent snapshot of the inputs; the same object as long as nothing changes."""
        return await self._done(self._inputs.read)

    async def publish(self, plan: Plan) -> Head | None:
        """Rows, spent orders and head in one compare-and-set; None if the head had moved. Draws the nonce.

        Raises ``Refused`` for a plan that could never be right
        (:func:`~fencepost.world.reference_store.refuse_unlawful`), or a row that no item can hold.
        """
        refuse_unlawful(plan, self._client.where)
        return await self._done(self._plans.publish, plan)

    async def kept_contents(self, name: str) -> Sequence[Content]:
        """The contents of every kept row of an endpoint, newest first."""
        return tuple(row.content for row in await self.rows_of(name))

    async def rows_of(self, name: str) -> Sequence[Row]:
        """Every kept row of an endpoint, newest first."""
        return await self._done(self._plans.rows_of, name)

    async def spent_rows(self, most: int, place: int = 1) -> Sequence[tuple[Row, int, Generation]]:
        """At most so many rows with ``place`` or more newer ones, oldest first: (row, place from newest, newest)."""
        return await self._done(self._spent.spent_rows, most, place)

    async def delete_row(self, name: str, generation: Generation, nonce: str) -> bool:
        """Delete one row if it has this nonce and isn't its endpoint's newest; whether it did."""
        return await self._done(self._spent.delete_row, name, generation, nonce)

    async def put_order(self, order: Order) -> None:
        """Queue an order; raises the input snapshot. The same order again, waiting or carried out, changes nothing.

        Raises ``Refused`` if another order with that id waits.
        """
        await self._done(self._inputs.put_order, order)

    async def put_config(self, body: bytes, expected: bytes) -> bool:
        """Compare-and-set on the loaded configuration: whether ``expected`` stood there (b"": none), and now ``body``.

        Raises the input snapshot if the two differ.
        """
        return await self._done(self._inputs.put_config, body, expected)

    async def membership(self, pool: str) -> tuple[int, bytes]:
        """A pool's (version, JSON); (0, b"") before the first."""
        return await self._done(self._inputs.membership, pool)

    async def put_membership(self, pool: str, expected: int, body: bytes) -> bool:
        """Compare-and-set on the pool's version; raises the input snapshot."""
        return await self._done(self._inputs.put_membership, pool, expected, body)

    async def put_override(self, name: str, body: bytes) -> None:
        """Place or replace an override (drain, keep, pause); raises the input snapshot."""
        await self._done(self._inputs.put_override, name, body)

    async def drop_override(self, name: str) -> bool:
        """End an override; raises the input snapshot; whether there was one."""
        return await self._done(self._inputs.drop_override, name)

    async def overrides(self, known: Overrides | None = None) -> Overrides:
        """The overrides alone; ``known`` itself, at the cost of reading the head, if no input changed since."""
        return await self._done(self._inputs.overrides, known)

    async def put_back(self, back: PutBack) -> Sequence[str] | None:
        """Place what a lost store held: the ids that changed; None if head or inputs aren't those seen any more."""
        return await self._done(self._inputs.put_back, back)

    async def put_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:  # noqa: ARG002  the port's
        """A checker's report, replacing its last."""
        await self._noted(self._telemetry.put_report, zone, pool, body)

    async def beat_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:  # noqa: ARG002  the port's
        """A checker's heartbeat (small), beside its report."""
        await self._noted(self._telemetry.beat_report, zone, pool, body)

    async def reports(self, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
        """Each checker's (zone, report JSON, heartbeat JSON) of a pool; b"" for what it hasn't sent yet."""
        return await self._done(self._telemetry.reports, pool)

    async def note_enacted(self, enacted: Sequence[Enacted]) -> None:
        """Remember who enacted what; a late note about an older generation changes nothing."""
        await self._noted(self._telemetry.note_enacted, enacted)

    async def enacted(self, names: Collection[str] | None = None) -> Mapping[str, Enacted]:
        """The last enactment of each endpoint (of these)."""
        return await self._done(self._telemetry.enacted, names)

    async def put_findings(self, by: str, found: Mapping[str, tuple[str, str]]) -> None:
        """Replace a role's findings: (verdict, why) by endpoint."""
        await self._noted(self._telemetry.put_findings, by, found)

    async def findings(self) -> Mapping[str, Mapping[str, tuple[str, str]]]:
        """Each role's findings; a role without any isn't named."""
        return await self._done(self._telemetry.findings)

    async def note(self, rows: Sequence[HistoryRow]) -> None:
        """Append to the history, of which the newest 100,000 lines are kept."""
        await self._noted(self._history.note, rows)

    async def history(self, *, after: int = 0, since: Instant = 0, most: int = 1000) -> Sequence[HistoryRow]:
        """The history after an id and at or after a time, oldest first; the newest ``most`` rows of it."""
        return await self._done(self._history.history, after, since, most)

    async def beat(self, beat: Beat) -> None:
        """A role's sign of life, replacing its last."""
        await self._noted(self._telemetry.beat, beat)

    async def beats(self) -> Sequence[Beat]:
        """Each role's last sign of life."""
        return await self._done(self._telemetry.beats)

    async def at_rest(self, work: Callable[[], None]) -> None:
        """Run something while no request of this store object is under way."""
        await self._client.at_rest(work)

    def waiter(self, *, reports: bool = False) -> Waiter:
        """For one task: waits for changes of head and inputs (by us, too), or with ``reports`` for any change.

        A store that goes, comes back or is another one is a change.
        """
        return Waiter(self._watch, reports=reports)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._watch.close()
        await self._inputs.tidied()
        await self._client.close()
