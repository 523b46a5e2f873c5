"""The network manager: carries each attempt's network state to its host, and says how fast.

Passes over what changed publish rows; hosts that owe states are asked one after the other, at most as many at once as
admission allows, each in a chain of its own: look, send, record. A host that owes states is in line once, however many
states it owes and however often they changed, so a backlog is at most the number of hosts, and what is sent is the
newest. Any number of managers may run: each publishes and sends the same, by compare-and-set.

While the store is away nothing is published and nothing is sent: an order needs the host's current token, and only the
store knows that. Hosts keep what they have, and what is ready stays ready.

How much is owed, since when and how fast it drains is told in a row each second. Launches are let in by it.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence

from fencepost.core.admission import Admission, AdmissionSettings
from fencepost.core.capacity.drain import NETWORK, Meter, bound
from fencepost.core.capacity.messages import ToHost
from fencepost.core.capacity.network_manager import (
    Answered,
    Due,
    NetworkManager,
    PlacesRead,
    Prove,
    Proven,
    Publish,
    Published,
    ReadPlaces,
    ReadStates,
    Record,
    SendNetwork,
    Settled,
    Silent,
    StatesRead,
    claim_of,
)
from fencepost.core.capacity.rows import DrainRow
from fencepost.core.effects import Effect, Wake
from fencepost.core.events import Event, Woke
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND, Instant
from fencepost.core.jitter import jitter
from fencepost.ports import PortError, Refused, StorePort, Unavailable
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.configuration import Running
from fencepost.roles.fleet.asking import ask
from fencepost.roles.fleet.network_hands import Accept, NetworkHands
from fencepost.roles.fleet.wire import Wire
from fencepost.roles.loop import Condition

log = logging.getLogger(__name__)

ANSWER_S = 3.0
FIRST_RATE = 500.0
"""States a second that are taken for the drain rate before it was measured; one manager on SQLite carried 1,000."""
AGAIN_FIRST = 50 * MILLISECOND
AGAIN = SECOND
"""A host that answered and still owes something (its lease's manager has to write first) is asked again: after the
first of these, then each time after twice as long, up to the second."""
SPENT_FOR = MINUTE
"""Rows of attempts that are in no host's set for so long are deleted."""
SPENT_MOST = 500
ADMISSION = AdmissionSettings(
    limit=64,
    service=20 * MILLISECOND,
    service_p99=200 * MILLISECOND,
    service_p999=SECOND,
    attempt=int((ANSWER_S + 2) * SECOND),
)
"""A call is two of the store's and one of the host's; the brake trims what is in flight from there."""


def now() -> Instant:
    """This machine's time since it was started."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class NetworkManagerRole:
    """The running manager. ``manager`` and ``admission`` decide, ``hands`` reads and writes, this carries out."""

    def __init__(
        self,
        store: FleetStorePort,
        accept: Accept,
        wire: Wire,
        condition: Condition,
        admission: AdmissionSettings = ADMISSION,
    ) -> None:
        self.store = store
        self.wire = wire
        self.condition = condition
        self.hands = NetworkHands(store, accept)
        self.manager = NetworkManager()
        self.admission = Admission(admission)
        self.meter = Meter(min(FIRST_RATE, self.admission.rate))
        self.away = False
        self.sent = 0
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._stirred = asyncio.Event()
        self._ready = asyncio.Event()
        self._chains: set[asyncio.Task[None]] = set()
        self._owing: dict[str, int] = {}

    async def run(self) -> None:
        """Manage until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.hands.proofs.run())
                group.create_task(self.hands.records.run())
                group.create_task(self.watch())
                group.create_task(self.follow())
                group.create_task(self.serve())
                group.create_task(self.tell())
        finally:
            for chain in self._chains:
                chain.cancel()
            await asyncio.gather(*self._chains, return_exceptions=True)

    # Passes

    async def watch(self) -> None:
        """Stir whenever rows may have changed."""
        while True:
            try:
                await self.store.wait(self.manager.idle)
            except PortError:
                await asyncio.sleep(self.manager.idle / SECOND)
            self._stirred.set()

    async def follow(self) -> None:
        """A pass whenever something stirs."""
        while True:
            self._stirred.clear()
            try:
                compared = await self.look()
            except PortError as error:
                self.failed(error)
                await asyncio.sleep(1)
                continue
            if self.condition.succeeded("network manager"):
                log.info("network manager works again")
            self.away = False
            self.enlist()
            if not (compared and self.hands.table.compare):
                await self._stirred.wait()

    def failed(self, error: PortError) -> None:
        """The store is away, or can't be used: nothing goes out until a pass succeeds."""
        self.away = True
        self._stirred.set()
        if self.condition.failed("network manager", error):
            log.warning("network manager: %s", error.in_full)

    async def look(self) -> bool:
        """One pass: read, compare, publish; what is spent goes. Whether anything was compared."""
        told: deque[Event] = deque((Woke(),))
        compared = False
        while told:
            event = told.popleft()
            compared = compared or isinstance(event, PlacesRead)
            for effect in self.manager.on(event, now()):
                told.extend(await self.perform(effect))
        spent = self.hands.table.spent(now() - SPENT_FOR, SPENT_MOST)
        if spent:
            await self.hands.delete(spent)
        return compared

    async def perform(self, effect: Effect) -> Sequence[Event]:
        """One call of a pass, and what it showed: of places, what is to be compared of each shard."""
        table = self.hands.table
        match effect:
            case ReadStates():
                await self.hands.read_states()
                return (StatesRead(),)
            case ReadPlaces():
                await self.hands.read_places()
                table.compare.update(dict.fromkeys(self.manager.heard))
                compared = table.to_compare(now())
                return [PlacesRead(claim_of(shard, table.life), table.inputs, pairs) for shard, pairs in compared]
            case Publish():
                await self.hands.publish(effect)
                return (Published(),)
            case Wake():
                return ()
        raise TypeError(f"no call of a pass: {effect}")

    def enlist(self) -> None:
        """Whoever owes something joins the line, whoever doesn't leaves it."""
        at = now()
        owe, free = self.hands.table.recount(at)
        for host in (*owe, *free):
            if host not in self._numbers:
                self._numbers[host] = len(self._names)
                self._names.append(host)
        self.admission.grow(max(self.admission.size, len(self._names)))
        if free:
            self.admission.drop([self._numbers[host] for host in free])
        if owe:
            self.admission.acquire([self._numbers[host] for host in owe], at)
            self._ready.set()

    # Chains

    async def serve(self) -> None:
        """Begin a chain whenever there is room."""
        while True:
            at = now()
            silent = self.admission.overdue(at)
            if len(silent):
                self.admission.failed(silent, at)
            if not self.away:
                ids, _ = self.admission.take(at)
                for number in ids.tolist():
                    chain = asyncio.ensure_future(self.chain(number))
                    self._chains.add(chain)
                    chain.add_done_callback(self._chains.discard)
            next_at = self.admission.next_at(now())
            wait = SECOND if next_at is None or self.away else min(SECOND, max(next_at - now(), MILLISECOND))
            self._ready.clear()
            try:
                async with asyncio.timeout(wait / SECOND):
                    await self._ready.wait()
            except TimeoutError:
                continue

    async def chain(self, number: int) -> None:
        """One host, from the look to the acknowledgement."""
        host = self._names[number]
        event: Event = Due(host)
        recorded, answered = False, False
        try:
            while not isinstance(event, Woke):
                last: Event = Woke()
                for effect in self.manager.on(event, now()):
                    match effect:
                        case Prove():
                            last = Proven(host, await self.hands.proofs.ask(host))
                        case SendNetwork():
                            last = await self.send(effect)
                            answered = isinstance(last, Answered)
                        case Record():
                            await self.hands.records.ask(effect)
                            recorded = True
                        case Settled(again=again):
                            self.settle(number, host, again=again, answered=answered, recorded=recorded)
                event = last
        except PortError as error:
            self.failed(error)
            self.admission.drop([number])
            self.admission.answered([number], now(), 0)
            self.hands.table.count[host] = None
        self._ready.set()

    async def send(self, effect: SendNetwork) -> Event:
        """Send an order; its answer, or silence."""
        look = effect.look
        address, _, port = (look.host.at if look.host is not None else "").rpartition(":")
        message: ToHost = effect.order
        self.sent += 1
        place = (address.strip("[]"), int(port) if port.isascii() and port.isdigit() else 0)
        try:
            answer = await ask(self.wire, place, message, ANSWER_S)
        except (Unavailable, Refused) as error:
            log.debug("%s", error.in_full)
            return Silent(effect.order.host)
        return Answered(answer, look)

    def settle(self, number: int, host: str, *, again: bool, answered: bool, recorded: bool) -> None:
        """A chain is over: the slot is free, and who owes something still is asked again in its turn."""
        at = now()
        if again and not answered:
            self.admission.failed([number], at)
            return
        self.admission.answered([number], at)
        if self.manager.heard.keys() & set(self.hands.table.ids(host)):
            self._stirred.set()
        owing = self._owing.pop(host, 0)
        if recorded:
            self.hands.table.count[host] = None
            self._stirred.set()
        elif self.hands.table.owed(host):
            self._owing[host] = owing + 1
            wait = min(AGAIN, AGAIN_FIRST << min(owing, 10))
            wait += jitter(wait, host, self.sent)
            asyncio.get_running_loop().call_later(wait / SECOND, self.again, host)

    def again(self, host: str) -> None:
        """A host is looked at anew."""
        self.hands.table.count[host] = None
        self._stirred.set()

    # What others go by

    async def tell(self) -> None:
        """Each second, tell how much is owed and how fast it drains."""
        told: DrainRow | None = None
        done = 0
        while True:
            await asyncio.sleep(1)
            at, table = now(), self.hands.table
            self.meter.passed(self.hands.acknowledged - done, self.admission.backlog > self.admission.limit, at)
            done = self.hands.acknowledged
            row = DrainRow(NETWORK, table.depth, bound(self.meter.rate), round(self.meter.rate, 1), table.oldest(at))
            if self.away or not table.life or row == told:
                continue
            try:
                if told is None:
                    known = await self.hands.drain_row()
                    self.meter.rate = known.rate if known is not None and known.rate > 0 else self.meter.rate
                told = row if await self.hands.put_drain(row) else told or row
            except PortError as error:
                self.failed(error)


def accept_of(store: StorePort) -> Accept:
    """What the running configuration lets reach instances, read anew at each call."""
    running = Running()

    async def accept() -> tuple[str, ...] | None:
        loaded = running.take((await store.inputs()).config)
        if loaded is None or running.problem is not None or loaded.region.fleet is None:
            return None
        return tuple(str(each) for each in loaded.region.fleet.allow)

    return accept


async def run_network_manager(store: FleetStorePort, inputs: StorePort, wire: Wire, condition: Condition) -> None:
    """Be a network manager until cancelled."""
    await NetworkManagerRole(store, accept_of(inputs), wire, condition).run()
