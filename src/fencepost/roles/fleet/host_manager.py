"""The host manager of a shard: its decider, its admission, its hands on the store and its questions to hosts, as one.

Two things decide, side by side. :class:`~fencepost.core.capacity.host_lease.HostLeases` says what an answer is worth,
what may be written and ordered; :class:`~fencepost.core.admission.Admission` says how many hosts are asked at once and
which next. All that arrived is told before time is: a manager that was stopped for ten minutes finds the answers in
its inbox before it may think of a lease as over (nomad PR #14474).
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Sequence

from msgspec import Struct, structs

from fencepost.core.admission import Admission, AdmissionSettings, first_renewal, next_renewal, phase
from fencepost.core.admission.brake import Brake
from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import (
    Due,
    Effect,
    Event,
    Forget,
    HostsRead,
    Ids,
    Lease,
    LeaseSettings,
    Op,
    Prove,
    ReadHosts,
    ReadShard,
    Recheck,
    Renew,
    Send,
    SendOrders,
    Silent,
    Tick,
    Write,
    WriteShard,
    Wrote,
)
from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.manager_hands import ManagerHands
from fencepost.roles.fleet.manager_questions import Questions
from fencepost.roles.loop import Condition

log = logging.getLogger(__name__)

RELEASE_S = 1.0
PAUSES_S = (0.002, 0.008)
"""What arrives within the first of these is decided about at once: about few hosts, deciding costs more than reading.
Within the second too, while nothing arrives but renewals."""


def now() -> Instant:
    """This machine's time since it was started, suspended time counted: what a lease is measured by."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Counts(Struct):
    """What a manager has done since it started: for people and tests."""

    checks: int = 0
    answers: int = 0
    orders: int = 0
    granted: int = 0
    lapsed: int = 0


class HostManager:
    """One shard's manager. ``leases`` and ``admission`` decide; the rest carries out.

    ``listed`` are the shard's hosts where the configuration names all there are, none where it doesn't.
    """

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
        self.leases = HostLeases(settings)
        self.admission_settings = admission
        self.admission = Admission(admission)
        self.hands = ManagerHands(store, settings.shard, settings.owner, condition)
        self.counts = Counts()
        self.news = asyncio.Event()
        self.listed: frozenset[str] = frozenset()
        self.strangers = self.met = 0
        self.ticked: Instant = 0
        self.standing = 0
        self.every: Duration = min(settings.renew // 4, settings.beat // 2)
        questions.begin(self.hands)

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
        ends = self.ticked + self.every
        due = self.admission.next_at(at) if self.leases.owner.owning else None
        if due is not None:
            ends = min(ends, max(due, at + MILLISECOND))
        return max(0, ends - at) / SECOND

    def hear(self) -> None:
        """Everything that has arrived so far."""
        at = now()
        answered, refused = self.questions.heard()
        if answered is not None:
            answered = self.leases.news(answered)
            self.counts.answers += len(answered.ids)
            if self.hands.table.down or self.behind(answered.ids):
                self.news.set()
            self.admission.answered(answered.ids, at)
            self.tell(answered, at)
        for each in refused:
            self.admission.answered([each.id], at)
            self.tell(each, at)
        while self.hands.inbox:
            event = self.hands.inbox.popleft()
            if isinstance(event, HostsRead):
                self.expect()
                if event.size > self.admission.size:
                    self.admission.grow(event.size)
            elif isinstance(event, Wrote) and event.op is Op.LAPSE:
                self.counts.lapsed += int((event.facts.lease == Lease.LAPSED).sum())
            self.tell(event, at)

    def lists(self, names: frozenset[str]) -> None:
        """The configuration names all hosts there are; none of them: it takes all that come."""
        self.listed, self.strangers, self.met = names, 0, 0
        self.expect()

    def expect(self) -> None:
        """Count whom to wait for: those listed, and those known who aren't (rows from before the list).

        So there are as many as are waited for only once each of those listed is known.
        """
        names = self.hands.table.names
        if self.met > len(names):
            self.strangers = self.met = 0
        self.strangers += sum(name not in self.listed for name in names[self.met :])
        self.met = len(names)
        wanted = len(self.listed) + self.strangers if self.listed else 0
        if wanted != self.leases.settings.expect:
            self.leases.settings = structs.replace(self.leases.settings, expect=wanted)

    def recalibrate(self, settings: AdmissionSettings) -> None:
        """Go by another calibration from now on. What is in line and in flight stays."""
        self.admission_settings = self.admission.settings = settings
        self.admission.brake = Brake.of(settings)

    def behind(self, ids: Ids) -> bool:
        """Whether any of these hosts had yet to tell that it has its newest set: then somebody may wait for that."""
        hosts = self.leases.hosts
        return bool((hosts.version[ids] != hosts.host_version[ids]).any())

    def told_down(self) -> Sequence[str]:
        """Hosts that told of attempts that don't run."""
        table = self.hands.table
        return [table.names[number] for number in table.down]

    def pass_time(self) -> None:
        """Whose time it is, who has kept silent, and the tick."""
        at = now()
        silent = self.admission.overdue(at)
        if len(silent):
            self.admission.failed(silent, at)
            self.tell(Silent(silent), at)
        if self.leases.owner.owning and self.leases.loaded:
            ids, _ = self.admission.take(at)
            if len(ids):
                self.tell(Due(ids), at)
        if at - self.ticked >= self.every:
            self.ticked = at
            self.tell(Tick(), at)

    def tell(self, event: Event, at: Instant) -> None:
        """Tell the lease decider one event, and carry out what it asks for, in order."""
        effects = self.leases.on(event, at)
        owner = self.leases.owner
        self.hands.life, self.hands.epoch = owner.life, owner.epoch
        standing = owner.epoch if owner.owning else 0
        if standing != self.standing:
            whose = f"is ours, epoch {standing}" if standing else "is another's now; standing by"
            log.info("shard %d %s", self.settings.shard, whose)
            self.standing = standing
        for effect in effects:
            self.carry_out(effect, at)

    def carry_out(self, effect: Effect, at: Instant) -> None:
        """One effect."""
        match effect:
            case Renew():
                self.renew(effect, at)
            case Recheck():
                self.recheck(effect.ids, at)
            case Send(ids=ids, whole=whole):
                self.counts.checks += len(ids)
                hosts = self.leases.hosts
                self.questions.check(self.hands.table, self.hands.epoch, ids, hosts.number, hosts.nonce, whole=whole)
            case SendOrders():
                self.counts.orders += len(effect.ids)
                self.questions.order(self.hands.table, self.hands.epoch, effect, 3 * self.settings.renew)
            case Forget():
                self.hands.forget()
                self.questions.forget()
                self.admission = Admission(self.admission_settings)
            case ReadShard() | WriteShard() | ReadHosts() | Write() | Prove():
                self.hands.perform(effect)

    def renew(self, effect: Renew, at: Instant) -> None:
        """Each in its turn: the first renewal between R and 2R after a grant, the others in the host's phase."""
        period = self.settings.renew
        if effect.first:
            self.counts.granted += len(effect.ids)
            due = first_renewal(effect.ids, effect.number, at, period)
        else:
            due = next_renewal(phase(effect.ids, period), at, period)
        self.admission.renew(effect.ids, due, effect.deadline)

    def recheck(self, ids: Ids, at: Instant) -> None:
        """As soon as there is room: by the end of each one's lease if it holds one, else in line with who acquires."""
        held = self.leases.hosts.lease[ids] == 1
        if held.any():
            self.admission.renew(ids[held], at, self.leases.hosts.ends[ids[held]])
        if not held.all():
            self.admission.drop(ids[~held])
            self.admission.acquire(ids[~held], at)


def draw_owner() -> str:
    """What a manager calls itself: drawn at each start, so that no two were ever the same."""
    return secrets.token_hex(8)
