"""A simulated manager: the very object that the role drives, on virtual time, store and messages.

All that arrived is told before time is. What the role does with sockets, messages do here.
"""

from collections.abc import Callable

from fencepost.core.admission import Admission
from fencepost.core.capacity.calibrated import settings_from
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
    lease_settings,
)
from fencepost.core.capacity.lease_manager import Effect, LeaseManager, News
from fencepost.core.capacity.messages import FromHost, ToHost
from fencepost.core.capacity.rows import CalibrationRow
from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant
from fencepost.simulator.fleet.hands import Hands
from fencepost.simulator.fleet.hosts import SimHost
from fencepost.simulator.fleet.walk import PAUSE, Process, Walk

ANSWER: Duration = 3 * SECOND
"""So long the answer to an order is waited for."""
STORM_MOST = 60
"""So many messages a host may be sent within one R; more is a storm."""


class SimManager:
    """One shard's manager. ``standing`` is what a crash takes away."""

    def __init__(
        self, walk: Walk, process: Process, hosts: dict[str, SimHost], shard: int, of: int, renew: Duration,
        calibrated: CalibrationRow,
    ) -> None:  # fmt: skip
        self.walk, self.process, self.hosts, self.row = walk, process, hosts, calibrated
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
        self.calibrated = settings_from(self.row, self.settings)
        self.core = LeaseManager(self.settings, self.calibrated)
        self.hands = Hands(walk, self.process, self.core.book, self.arrived)
        self.sent: dict[str, tuple[Instant, int]] = {}
        self.turn = 0
        self.wakes: Instant = 1 << 62
        self.looking = False
        self.wake_at(walk.now)

    @property
    def leases(self) -> HostLeases:
        """What decides about leases."""
        return self.core.leases

    @property
    def admission(self) -> Admission:
        """What decides who is asked next."""
        return self.core.admission

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
        next_at = self.core.next_at(self.process.clock(self.walk.now))
        self.wake_at(self.walk.now if self.hands.inbox else self.process.when(next_at))

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
        answered, refused = self.core.book.heard()
        if answered is not None:
            self.tell(answered)
        for each in refused:
            self.tell(each)
        while self.hands.inbox:
            self.tell(self.hands.inbox.popleft())

    def pass_time(self) -> None:
        """Whose time it is, who has kept silent, and the tick."""
        self.carry_out(self.core.pass_time(self.process.clock(self.walk.now)))

    def tell(self, event: Event) -> None:
        """One event."""
        self.carry_out(self.core.on(event, self.process.clock(self.walk.now)))

    def carry_out(self, effects: tuple[Effect, ...]) -> None:
        """Effects in their order."""
        book, hosts = self.core.book, self.leases.hosts
        for effect in effects:
            match effect:
                case News():
                    for each in self.news:
                        each()
                case Send(ids=ids, whole=whole):
                    for _, check in book.table.checks(book.epoch, ids, hosts.number, hosts.nonce, whole=whole):
                        self.send(check.host, check, whole)
                case SendOrders():
                    for _, order in book.table.orders(book.epoch, effect, 3 * self.renew):
                        self.send(order.host, order, True)
                case Forget():
                    self.turn += 1
                case ReadShard() | WriteShard() | ReadHosts() | Write() | Prove():
                    self.hands.perform(effect)

    # Questions

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
        self.core.book.hear(answer)
        self.arrived()

    # Judging

    def bounded(self) -> None:
        """No queue is longer than what it is about."""
        admission, size, book = self.admission, self.leases.hosts.size, self.core.book
        wrong = ""
        if admission.backlog > admission.size:
            wrong = f"{admission.backlog} hosts are in line, of {admission.size}"
        elif admission.in_flight > admission.brake.calibrated * self.calibrated.ceiling + 1:
            wrong = f"{admission.in_flight} calls are in flight"
        elif len(book.writes) > size or len(book.proofs) > size:
            wrong = f"{len(book.writes)} writes and {len(book.proofs)} proofs wait, of {size} hosts"
        self.walk.judge.check("backlog_bounded", wrong)
