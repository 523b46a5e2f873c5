"""A simulated manager: lease decider, admission and placement side by side, as the role composes them.

All that arrived is told before time is. What the role does with sockets, messages do here.
"""

from collections.abc import Callable

import numpy as np

from fencepost.core.admission import Admission, AdmissionSettings, first_renewal, next_renewal, phase
from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import (
    Answered,
    Due,
    Effect,
    Event,
    Forget,
    HostsRead,
    Ids,
    LeaseSettings,
    Outdated,
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
    lease_settings,
)
from fencepost.core.capacity.messages import Answer, Check, FromHost, Newer, Order, ToHost
from fencepost.core.capacity.token import Token
from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant
from fencepost.simulator.fleet.hands import Hands
from fencepost.simulator.fleet.hosts import SimHost
from fencepost.simulator.fleet.walk import PAUSE, Process, Walk

ANSWER: Duration = 3 * SECOND
"""So long the answer to an order is waited for."""
ADMISSION = AdmissionSettings(64, 5 * MILLISECOND, 250 * MILLISECOND, 250 * MILLISECOND, SECOND)
STORM_MOST = 60
"""So many messages a host may be sent within one R; more is a storm."""


class SimManager:
    """One shard's manager. ``standing`` is what a crash takes away."""

    def __init__(
        self, walk: Walk, process: Process, hosts: dict[str, SimHost], shard: int, of: int, renew: Duration
    ) -> None:
        self.walk, self.process, self.hosts = walk, process, hosts
        self.shard, self.of, self.renew = shard, of, renew
        self.news: list[Callable[[], None]] = []
        process.alive = False

    def begin(self) -> None:
        """It starts, under a name that nobody had."""
        walk = self.walk
        self.process.life += 1
        self.process.alive = True
        self.process.well_since = walk.now
        owner = f"{self.process.name}#{self.process.life}"
        walk.judge.managers[owner] = self
        self.settings: LeaseSettings = lease_settings(owner, self.shard, self.of, self.renew)
        self.leases = HostLeases(self.settings)
        self.admission = Admission(ADMISSION)
        self.hands = Hands(walk, self.process, self.shard, owner, self.arrived)
        self.answers: list[tuple[int, Answer]] = []
        self.refusals: list[Outdated] = []
        self.sent: dict[str, tuple[Instant, int]] = {}
        self.every: Duration = min(self.renew // 4, self.settings.beat // 2)
        self.ticked: Instant = 0
        self.turn = 0
        self.wakes: Instant = 1 << 62
        self.looking = False
        self.wake_at(walk.now)

    # When

    def wake_at(self, at: Instant) -> None:
        """Decide at a time, if nothing wakes it before."""
        if at < self.wakes:
            self.wakes = at
            self.walk.to(self.process, at, self.woken)

    def arrived(self) -> None:
        """Something has come."""
        self.wake_at(self.walk.now + PAUSE)

    def woken(self) -> None:
        """Hear what arrived, then let time pass; again if that brought something."""
        if self.walk.now < self.wakes:
            return
        self.wakes = 1 << 62
        self.hear()
        self.pass_time()
        self.bounded()
        at = self.process.clock(self.walk.now)
        ends = self.ticked + self.every
        due = self.admission.next_at(at) if self.leases.owner.owning else None
        if due is not None:
            ends = min(ends, max(due, at + MILLISECOND))
        self.wake_at(self.process.when(ends) if not self.hands.inbox and not self.answers else self.walk.now)

    def follow(self) -> None:
        """Rows changed: read them soon."""
        if self.process.alive and not self.looking:
            self.looking = True
            self.walk.to(self.process, self.walk.now + 50 * MILLISECOND, self.look)

    def look(self) -> None:
        """Read rows that others wrote."""
        self.looking = False
        if self.leases.acting:
            self.hands.perform(ReadHosts())

    # What the role does

    def hear(self) -> None:
        """Everything that has arrived so far."""
        at = self.process.clock(self.walk.now)
        answered = self.heard()
        refused, self.refusals = self.refusals, []
        if answered is not None:
            answered = self.leases.news(answered)
            if self.hands.table.down or self.behind(answered.ids):
                self.tell_news()
            self.admission.answered(answered.ids, at)
            self.tell(answered, at)
        for each in refused:
            self.tell(each, at)
        while self.hands.inbox:
            event = self.hands.inbox.popleft()
            if isinstance(event, HostsRead) and event.size > self.admission.size:
                self.admission.grow(event.size)
            self.tell(event, at)

    def behind(self, ids: Ids) -> bool:
        """Whether any of these hosts had yet to tell that it has its newest set."""
        hosts = self.leases.hosts
        return bool((hosts.version[ids] != hosts.host_version[ids]).any())

    def tell_news(self) -> None:
        """Placement may have something to do."""
        for each in self.news:
            each()

    def pass_time(self) -> None:
        """Whose time it is, who has kept silent, and the tick."""
        at = self.process.clock(self.walk.now)
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
        for effect in effects:
            self.carry_out(effect, at)

    def carry_out(self, effect: Effect, at: Instant) -> None:
        """One effect."""
        match effect:
            case Renew():
                self.renew_(effect, at)
            case Recheck():
                self.recheck(effect.ids, at)
            case Send(ids=ids, whole=whole):
                for id_ in ids.tolist():
                    self.check(id_, whole)
            case SendOrders():
                for id_, boot, stamp in zip(
                    effect.ids.tolist(), effect.boot.tolist(), effect.stamp.tolist(), strict=True
                ):
                    self.order(id_, boot, stamp)
            case Forget():
                self.hands.forget()
                self.turn += 1
                self.answers.clear()
                self.refusals.clear()
                self.admission = Admission(ADMISSION)
            case ReadShard() | WriteShard() | ReadHosts() | Write() | Prove():
                self.hands.perform(effect)

    def renew_(self, effect: Renew, at: Instant) -> None:
        """Each in its turn."""
        if effect.first:
            due = first_renewal(effect.ids, effect.number, at, self.renew)
        else:
            due = next_renewal(phase(effect.ids, self.renew), at, self.renew)
        self.admission.renew(effect.ids, due, effect.deadline)

    def recheck(self, ids: Ids, at: Instant) -> None:
        """As soon as there is room."""
        held = self.leases.hosts.lease[ids] == 1
        if held.any():
            self.admission.renew(ids[held], at, self.leases.hosts.ends[ids[held]])
        if not held.all():
            self.admission.drop(ids[~held])
            self.admission.acquire(ids[~held], at)

    # Questions

    def check(self, id_: int, whole: bool) -> None:
        """Ask one host how it is."""
        hosts, name = self.leases.hosts, self.hands.table.names[id_]
        token = Token(self.hands.epoch, int(hosts.number[id_]), int(hosts.nonce[id_]))
        self.send(name, Check(name, token, whole), whole)

    def order(self, id_: int, boot: int, stamp: Instant) -> None:
        """Send one host the set of its row."""
        row = self.hands.table.row(id_)
        token = Token(self.hands.epoch, row.number, row.nonce)
        self.send(row.host, Order(row.host, token, boot, stamp, row.set, 3 * self.renew), True)

    def send(self, name: str, message: ToHost, connected: bool) -> None:
        """One question; over a connection an answer is waited for so long only, and no longer than this turn."""
        walk, host, owner, turn, life = self.walk, self.hosts[name], self.settings.owner, self.turn, self.process.life
        until = walk.now + ANSWER if connected else 1 << 62
        self.counted(name)

        def answer(reply: FromHost) -> None:
            def back() -> None:
                if self.process.life == life and not (connected and (turn != self.turn or walk.now > until)):
                    self.take(reply)

            walk.message(back, self.process, cut=lambda: host.cut)

        walk.message(lambda: host.hear(message, answer, owner), host.process, cut=lambda: host.cut)

    def counted(self, name: str) -> None:
        """No host is sent more than so much within one R."""
        since, count = self.sent.get(name, (self.walk.now, 0))
        if self.walk.now - since > self.renew:
            since, count = self.walk.now, 0
        self.sent[name] = since, count + 1
        if count > STORM_MOST:
            self.walk.judge.check("backlog_bounded", f"{self.settings.owner} sends {name} {count} messages in one R")

    def take(self, answer: FromHost) -> None:
        """An answer has come."""
        table = self.hands.table
        number = table.numbers.get(answer.host)
        if number is None:
            return
        match answer:
            case Answer():
                if answer.set is not None:
                    table.told[number] = answer.set
                if answer.down:
                    table.down[number] = (answer.version, answer.down)
                else:
                    table.down.pop(number, None)
                self.answers.append((number, answer))
            case Newer(token=token):
                self.refusals.append(Outdated(number, token.epoch, token.number, token.nonce))
        self.arrived()

    def heard(self) -> Answered | None:
        """All answers since the last look; of several of one host the last counts."""
        if not self.answers:
            return None
        last = dict(self.answers)
        self.answers = []
        answers, told = list(last.values()), self.hands.table.told
        return Answered(
            np.array(list(last), np.int64),
            np.array([each.token.epoch for each in answers], np.int64),
            np.array([each.token.number for each in answers], np.int64),
            np.array([each.token.nonce for each in answers], np.uint64),
            np.array([each.boot for each in answers], np.uint64),
            np.array([each.stamp for each in answers], np.int64),
            np.array([each.incarnation for each in answers], np.uint64),
            np.array([each.version for each in answers], np.int64),
            np.array([number in told and told[number].version == each.version for number, each in last.items()]),
        )

    # Judging

    def bounded(self) -> None:
        """No queue is longer than what it is about."""
        admission, size, hands = self.admission, self.leases.hosts.size, self.hands
        wrong = ""
        if admission.backlog > admission.size:
            wrong = f"{admission.backlog} hosts are in line, of {admission.size}"
        elif admission.in_flight > admission.brake.calibrated * ADMISSION.ceiling + 1:
            wrong = f"{admission.in_flight} calls are in flight"
        elif len(hands.writes) > size or len(hands.proofs) > size:
            wrong = f"{len(hands.writes)} writes and {len(hands.proofs)} proofs wait, of {size} hosts"
        self.walk.judge.check("backlog_bounded", wrong)
