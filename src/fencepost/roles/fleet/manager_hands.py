"""The lease manager's hands on the store: the calls that its book makes, each kind by a task of its own.

What comes back is put into an inbox, for the manager to be told of in its turn. What belongs to a turn of the book that
has ended meanwhile comes to nothing there.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

from msgspec import structs

from fencepost.core.capacity.fleet_store import Change, Claim, Versioned
from fencepost.core.capacity.host_table import HostTable
from fencepost.core.capacity.lease_book import LeaseBook, Place, Reading, ShardWriting, Writing
from fencepost.core.capacity.lease_calls import Event, HostsRead, Prove, ReadHosts, ReadShard, Write, WriteShard
from fencepost.core.capacity.rows import HostRow
from fencepost.ports import PortError, Unavailable
from fencepost.ports.fleet import FleetStorePort, Page, Written
from fencepost.roles.fleet.paging import A_PAGE, pages
from fencepost.roles.loop import Condition

log = logging.getLogger(__name__)

OWNERS = ("reading hosts", "writing leases", "proving leases")
"""The calls that only a shard's owner makes."""


class ManagerHands:
    """Carries out what is asked of the store, and tells ``inbox`` what became of it. ``book`` makes the calls."""

    def __init__(self, store: FleetStorePort, book: LeaseBook, condition: Condition) -> None:
        self.store = store
        self.book = book
        self.condition = condition
        self.inbox: deque[Event] = deque()
        self.arrived = asyncio.Event()
        self._wanted = {name: asyncio.Event() for name in ("write", "prove")}
        self._reading = asyncio.Lock()
        self._calls: set[asyncio.Task[None]] = set()

    @property
    def table(self) -> HostTable:
        """The hosts' rows."""
        return self.book.table

    @property
    def life(self) -> str:
        """The store's life, as the decider last had it."""
        return self.book.life

    @property
    def since(self) -> int:
        """The snapshot up to which the table has what others wrote; 0 before the first whole reading."""
        return self.book.since

    def claim(self) -> Claim:
        """Under whose name leases are written now."""
        return self.book.claim()

    def tell(self, *events: Event | None) -> None:
        """Put something into the inbox."""
        for event in events:
            if event is not None:
                self.inbox.append(event)
                self.arrived.set()

    async def run(self) -> None:
        """Serve the queues until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._serve("write", self._write_some))
            group.create_task(self._serve("prove", self._prove_some))

    async def _serve(self, name: str, work: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        wanted = self._wanted[name]
        while True:
            await wanted.wait()
            wanted.clear()
            while await work():
                pass

    def perform(self, effect: ReadShard | WriteShard | ReadHosts | Write | Prove) -> None:
        """Begin one call."""
        match effect:
            case Write():
                self.book.queue(effect)
                self._wanted["write"].set()
            case Prove():
                self.book.queue(effect)
                self._wanted["prove"].set()
            case ReadShard():
                self._begin(self._read_shard())
            case WriteShard():
                self._begin(self._write_shard(self.book.shard_writing(effect.row)))
            case ReadHosts():
                self._begin(self._read_hosts(self.book.reading(effect)))

    def _begin(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    def _failed(self, call: str, error: PortError) -> None:
        if self.condition.failed(call, error):
            log.warning("%s: %s", call, error.in_full)

    def _well(self, call: str) -> None:
        if self.condition.succeeded(call):
            log.info("%s works again", call)

    def let_go(self) -> None:
        """The shard is another's: what failed of the work on it is his now, and no success of ours would end it."""
        for call in OWNERS:
            self.condition.succeeded(call)

    # The shard's row.

    async def _read_shard(self) -> None:
        book = self.book
        place: Place = ("shard", str(book.shard))
        try:
            proof = await self.store.prove(book.shard, [place])
        except PortError as error:
            self._failed("reading the shard", error)
            self.tell(*book.failed())
            return
        self._well("reading the shard")
        self.tell(book.shard_read(proof.life, proof.rows[0]))

    async def _write_shard(self, call: ShardWriting) -> None:
        try:
            written = await self.store.commit(call.claim, call.groups)
        except PortError as error:
            self._failed("writing the shard", error)
            self.tell(*self.book.failed(call))
            return
        self._well("writing the shard")
        self.tell(self.book.shard_wrote(call, written))

    async def release(self) -> None:
        """Write the shard's row without an owner, if it is as we wrote it. Raises a ``PortError``."""
        book = self.book
        proof = await self.store.prove(book.shard, [("shard", str(book.shard))])
        found, row = proof.rows[0], proof.shard
        if found is not None and row is not None and (row.owner, row.epoch) == (book.owner, book.epoch):
            await self.store.commit(None, [(Change(structs.replace(row, owner=""), found.revision),)])

    # The hosts' rows.

    async def _read_hosts(self, call: Reading) -> None:
        try:
            async with self._reading:  # what one puts into the table would be no news to another
                found = await self._changed(call)
        except PortError as error:
            self._failed("reading hosts", error)
            self.tell(*self.book.failed(call))
            return
        self._well("reading hosts")
        self.tell(found)

    async def _changed(self, call: Reading) -> HostsRead | None:
        """What the rows say now, of those that changed; None if meanwhile nobody wants to know."""
        book, again = self.book, tuple[Versioned | None, ...]()
        read = pages(self.store, "host", book.shard) if call.anew else self._later()
        first: Page | None = None
        async for page in read:
            if first is None:
                first = page._replace(rows=())
                # Before any is taken: what is taken is no news when it is read again because this failed.
                if call.again and call.turn == book.turn:
                    again = tuple(await self._look(book.places(call.again)))
            if page.life != first.life:
                return book.read(call, page.life, page.snapshot, again)
            if not await self._take(call, checked(page)):
                return None
        assert first is not None  # there is always a page, if an empty one  # noqa: S101
        return book.read(call, first.life, first.snapshot, again)

    async def _later(self) -> AsyncIterator[Page]:
        yield await self.store.rows("host", self.book.shard, self.book.since)

    async def _take(self, call: Reading, page: Page) -> bool:
        for at in range(0, len(page.rows), A_PAGE):
            if not self.book.take(call, page.rows[at : at + A_PAGE]):
                return False
            if len(page.rows) > A_PAGE:
                await asyncio.sleep(0)
        return True

    async def _look(self, places: Sequence[Place]) -> Sequence[Versioned | None]:
        return (await self.store.prove(self.book.shard, places)).rows

    # Writes under the claim, and proofs.

    async def _write_some(self) -> bool:
        """One commit; False if nothing waits to be written."""
        book = self.book
        call = book.writing(lambda: secrets.randbits(63))
        if call is None:
            return False
        try:
            written = await self._commit(call)
            changed = book.took(call, written)
            looked = await self._look(changed) if changed else ()
        except PortError as error:
            self._failed("writing leases", error)
            self.tell(*book.failed(call))
            return True
        self._well("writing leases")
        self.tell(*book.wrote(call, written is not None, looked))
        return True

    async def _commit(self, call: Writing) -> Written | None:
        return await self.store.commit(call.claim, call.groups) if call.groups else Written(0, ())

    async def _prove_some(self) -> bool:
        """One look; False if nothing waits to be proven."""
        book = self.book
        call = book.proving()
        if call is None:
            return False
        try:
            proof = await self.store.prove(book.shard, call.places)
        except PortError as error:
            self._failed("proving leases", error)
            self.tell(*book.failed(call))
            return True
        self._well("proving leases")
        self.tell(book.proved(call, *proof))
        return True


def checked(page: Page) -> Page:
    """The same. Raises ``Unavailable`` for a row that is no host's."""
    for each in page.rows:
        if not isinstance(each.row, HostRow):
            raise Unavailable(f"row {each.row.key} is no host's", hint="this is a defect of the store's adapter")
    return page
