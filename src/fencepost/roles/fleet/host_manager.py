"""The host manager of a shard: the pure :class:`~fencepost.core.capacity.lease_manager.LeaseManager`, with its hands on
the store and its questions to hosts.

Nothing is decided here but how long to wait for what comes soon after: a manager hears all that arrived, lets time
pass, carries out what it is given, and sleeps until something arrives or is due.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Sequence

from fencepost.core.admission import Admission, AdmissionSettings
from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import (
    Event,
    Forget,
    LeaseSettings,
    Prove,
    ReadHosts,
    ReadShard,
    Send,
    SendOrders,
    Write,
    WriteShard,
)
from fencepost.core.capacity.lease_manager import Counts, Effect, LeaseManager, News
from fencepost.core.instant import SECOND, Instant
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.manager_hands import ManagerHands
from fencepost.roles.fleet.manager_questions import Questions
from fencepost.roles.heartbeat import STANDBY
from fencepost.roles.loop import Condition

log = logging.getLogger(__name__)

RELEASE_S = 1.0
PAUSES_S = (0.002, 0.008)
"""What arrives within the first of these is decided about at once: about few hosts, deciding costs more than reading.
Within the second too, while nothing arrives but renewals."""


def now() -> Instant:
    """This machine's time since it was started, suspended time counted: what a lease is measured by."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class HostManager:
    """One shard's manager. ``core`` decides; the rest carries out."""

    def __init__(
        self,
        settings: LeaseSettings,
        admission: AdmissionSettings,
        store: FleetStorePort,
        questions: Questions,
        condition: Condition,
    ) -> None:
        self.settings = settings
        self.store = store
        self.questions = questions
        self.condition = condition
        self.core = LeaseManager(settings, admission)
        self.hands = ManagerHands(store, self.core.book, condition)
        self.news = asyncio.Event()
        self.standing = 0
        questions.begin(self.hands, settings.renew)

    @property
    def leases(self) -> HostLeases:
        """What decides about leases."""
        return self.core.leases

    @property
    def admission(self) -> Admission:
        """What decides who is asked next."""
        return self.core.admission

    @property
    def admission_settings(self) -> AdmissionSettings:
        """The calibration it goes by."""
        return self.core.admission_settings

    @property
    def counts(self) -> Counts:
        """What it has done since it started."""
        return self.core.counts

    def called(self) -> str:
        """Under which name it gives signs of life: that of its shard while it has it."""
        return f"host-manager/{self.settings.shard}{'' if self.standing else STANDBY}"

    async def run(self) -> None:
        """Manage until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.hands.run())
                group.create_task(self.questions.run())
                group.create_task(self.follow())
                group.create_task(self.decide())
        finally:
            await self.release()

    async def release(self) -> None:
        """Let the next one have the shard at once, at a clean end; without it, it waits for five beats."""
        if self.leases.owner.owning:
            with contextlib.suppress(PortError, TimeoutError):
                async with asyncio.timeout(RELEASE_S):
                    await self.hands.release()

    async def follow(self) -> None:
        """Read rows that others wrote: hosts that registered, sets that instances were placed in, people's words."""
        while True:
            await self.store.wait(self.settings.renew)
            if self.leases.acting:
                self.hands.perform(ReadHosts())
                await asyncio.sleep(0.05)

    async def decide(self) -> None:
        """Tell the deciders what has happened, time last; carry out what they ask for."""
        while True:
            self.hands.arrived.clear()
            self.hear()
            self.pass_time()
            if self.hands.inbox or self.questions.pressing:
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.wait_s()):
                    await self.hands.arrived.wait()
                await self.gather()

    async def gather(self) -> None:
        """Wait for what comes soon after; longer where nobody waits for us but renewals, which have time."""
        for pause_s in PAUSES_S:
            await asyncio.sleep(pause_s)
            if self.hands.inbox or self.questions.pressing or self.admission.backlog > self.admission.in_flight:
                return

    def wait_s(self) -> float:
        """How long until there is something to do by itself."""
        at = now()
        return max(0, self.core.next_at(at) - at) / SECOND

    def hear(self) -> None:
        """Everything that has arrived so far."""
        at = now()
        answered, refused = self.questions.heard()
        if answered is not None:
            self.tell(answered, at)
        for each in refused:
            self.tell(each, at)
        while self.hands.inbox:
            self.tell(self.hands.inbox.popleft(), at)

    def lists(self, names: frozenset[str]) -> None:
        """The configuration names all hosts there are; none of them: it takes all that come."""
        self.core.lists(names)

    def recalibrate(self, settings: AdmissionSettings) -> None:
        """Go by another calibration from now on. What is in line and in flight stays."""
        self.core.recalibrate(settings)

    def told_down(self) -> Sequence[str]:
        """Hosts that told of attempts that don't run."""
        table = self.hands.table
        return [table.names[number] for number in table.down]

    def told_unable(self) -> Sequence[str]:
        """Hosts that told that they can't write their memories."""
        table = self.hands.table
        return [table.names[number] for number in table.unable]

    def pass_time(self) -> None:
        """Whose time it is, who has kept silent, and the tick."""
        self.carry_out(self.core.pass_time(now()))
        if not self.standing:
            self.hands.let_go()

    def tell(self, event: Event, at: Instant) -> None:
        """Tell what decides one event, and carry out what it asks for."""
        effects = self.core.on(event, at)
        owner = self.leases.owner
        standing = owner.epoch if owner.owning else 0
        if standing != self.standing:
            whose = f"is ours, epoch {standing}" if standing else "is another's now; standing by"
            log.info("shard %d %s", self.settings.shard, whose)
            self.standing = standing
            self.condition.changed.set()  # it is told under another name from now on
        self.carry_out(effects)

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Effects in their order."""
        hosts, book = self.leases.hosts, self.core.book
        for effect in effects:
            match effect:
                case News():
                    self.news.set()
                case Send(ids=ids, whole=whole):
                    self.questions.check(book.table, book.epoch, ids, hosts.number, hosts.nonce, whole=whole)
                case SendOrders():
                    self.questions.order(book.table, book.epoch, effect, 3 * self.settings.renew)
                case Forget():
                    self.questions.forget()
                case ReadShard() | WriteShard() | ReadHosts() | Write() | Prove():
                    self.hands.perform(effect)


def draw_owner() -> str:
    """What a manager calls itself: drawn at each start, so that no two were ever the same."""
    return secrets.token_hex(8)
