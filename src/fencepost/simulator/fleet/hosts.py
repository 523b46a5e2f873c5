"""A simulated host: its machine, its disk, its agent with the decider that ships, and what runs on it.

The agent works as the role does: what needs nothing carried out is answered at once, from the state as of before what
is being carried out; the rest waits in a line. Stopping takes time. A death between two effects leaves what was done.
"""

from collections import deque
from collections.abc import Callable
from copy import copy

from fencepost.core.capacity.host import (
    Ended,
    Host,
    HostEffect,
    HostEvent,
    HostMemory,
    HostSettings,
    Persist,
    Reply,
    Start,
    Started,
    StartFailed,
    Stop,
    Told,
)
from fencepost.core.capacity.messages import Answer, Check, FromHost, Order, ToHost
from fencepost.core.capacity.rows import HostRow
from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant
from fencepost.simulator.fleet.walk import Process, Walk

LINE_MOST = 256
Answering = Callable[[FromHost], None]


class SimHost:
    """One host. ``running`` is what truly runs, ``memory`` what is on its disk."""

    def __init__(self, walk: Walk, name: str, zone: str, room: int, renew: Duration) -> None:
        self.walk = walk
        self.name, self.zone, self.room, self.renew = name, zone, room, renew
        self.process = Process(name)
        self.settings = HostSettings(name, fresh_for=3 * renew)
        self.memory: HostMemory | None = None
        self.running: dict[str, None] = {}
        self.cut_until: Instant = 0
        self.slow: Duration = 0
        self.checked: Instant = 0
        self.decider = Host(self.settings)
        self.as_of: Host | None = None
        self.line: deque[tuple[HostEvent, Answering, str]] = deque()
        self.working = False

    @property
    def cut(self) -> bool:
        """Whether no message reaches it, nor leaves it."""
        return self.walk.now < self.cut_until

    def clock(self) -> Instant:
        """What its clock shows."""
        return self.process.clock(self.walk.now)

    # Lives and deaths

    def begin(self) -> None:
        """The agent starts, by what is on the disk and what runs."""
        self.process.life += 1
        self.process.alive = True
        self.process.well_since = self.walk.now
        self.line.clear()
        self.as_of, self.working = None, False
        self.decider = Host(self.settings)
        running = tuple(sorted(self.running))
        event = Started(self.memory, self.walk.draw(), self.walk.draw(), running)
        effects = self.decider.on(event, self.clock())
        self.carry_out(deque(effects), lambda _: None, lambda: None, at_once=True)
        self.walk.to(self.process, self.walk.now + self.walk.draw() % SECOND, self.register)

    def dies(self) -> None:
        """The machine is off: nothing runs, nothing answers."""
        self.process.life += 1
        self.process.alive = False
        self.running.clear()

    def reboots(self, *, forgets: bool = False) -> None:
        """The machine starts anew; with an empty disk if it ``forgets``."""
        self.dies()
        self.process.rebooted(self.walk.now)
        if forgets:
            self.memory = None
            self.walk.judge.forgot(self.name)
        self.begin()

    def register(self) -> None:
        """Makes itself known where nobody has asked for it for two renewals, and looks again later."""
        walk = self.walk
        asked = walk.now - self.checked if self.checked else 1 << 62
        if asked > 2 * self.renew and not walk.no_store(self.process) and not self.cut:
            at = walk.rows.table.get(("host", self.name))
            if at is None:
                addresses = tuple(f"{self.name}/{place}" for place in range(self.room))
                row = HostRow(self.name, self.zone, "192.0.2.1:7700", self.room, addresses)
                walk.judge.write(self.name, None, row, 0)
        walk.to(self.process, walk.now + 2 * self.renew + walk.draw() % self.renew, self.register)

    # Questions

    def hear(self, message: ToHost, answer: Answering, sender: str) -> None:
        """One question has arrived."""
        self.checked = self.walk.now
        state = copy(self.as_of or self.decider)
        if self.as_of is not None or not self.line:
            match state.on(Told(message), self.clock()):
                case (Reply(message=at_once),):
                    if isinstance(message, Check) and isinstance(at_once, Answer):
                        self.walk.judge.known(self.name, message.token, sender)
                    self.reply(at_once, answer)
                    return
        if len(self.line) < LINE_MOST:
            self.line.append((Told(message), answer, sender))
            self.work()

    def ends(self, id_: str) -> None:
        """An attempt ends by itself."""
        if self.running.pop(id_, True) is None:
            self.line.append((Ended(id_), lambda _: None, ""))
            self.work()

    def reply(self, message: FromHost, answer: Answering) -> None:
        """An answer leaves."""
        if isinstance(message, Answer):
            self.walk.judge.acknowledged(self.name, message)
        answer(message)

    def work(self) -> None:
        """Take the next of the line, if nothing is being carried out."""
        while self.line and not self.working:
            event, answer, sender = self.line.popleft()
            before = copy(self.decider)
            effects = self.decider.on(event, self.clock())
            if isinstance(event, Told) and isinstance(event.message, Order) and len(effects) > 1:
                self.walk.judge.obeyed(self.name, event.message, sender)
            self.as_of, self.working = before, True
            self.carry_out(deque(effects), answer, self.finished)

    def finished(self) -> None:
        """All of one event is done."""
        self.as_of, self.working = None, False
        self.work()

    def carry_out(
        self, effects: deque[HostEffect], answer: Answering, then: Callable[[], None],
        *, at_once: bool = False,
    ) -> None:  # fmt: skip
        """Effects in their order; stopping takes a while, and a crash meanwhile ends it there."""
        while effects:
            match effects.popleft():
                case Persist(memory=memory):
                    self.memory = memory
                case Stop(ids=ids):
                    if not at_once:
                        took = self.slow or self.walk.latency.call() + 5 * MILLISECOND
                        self.walk.to(
                            self.process,
                            self.walk.now + took,
                            lambda: self.stopped(ids, effects, answer, then),
                        )
                        return
                    for id_ in ids:
                        self.running.pop(id_, None)
                case Start() as start:
                    self.start(start)
                case Reply(message=message):
                    self.reply(message, answer)
                case _:
                    pass
        then()

    def stopped(
        self, ids: tuple[str, ...], rest: deque[HostEffect], answer: Answering, then: Callable[[], None]
    ) -> None:
        """These are gone; the rest follows."""
        for id_ in ids:
            self.running.pop(id_, None)
        self.carry_out(rest, answer, then)

    def start(self, start: Start) -> None:
        """Attempts are started while there is time."""
        for instance in start.instances:
            if self.clock() >= start.until:
                self.line.append((StartFailed(instance.id), lambda _: None, ""))
                continue
            self.running[instance.id] = None
            self.walk.judge.started(self.name, instance.id)
