"""A host's own decider: which orders it obeys, and what it answers.

A manager that lost its lease on a host doesn't know it at once, and its orders may arrive late. So nothing here trusts
a sender: an order is obeyed only with the newest token that this host ever met, and only if it carries back a stamp of
the host's own clock, of this start of the agent, that is younger than three renewals. That is the dead-man's switch: a
host that nobody reaches obeys nothing any more, without a timer, since no message's arrival lengthens anything.

What outlives the agent is one value, :class:`HostMemory`. It is written before anything is answered, started or
stopped, so that a crash between any two effects leaves at worst an attempt that never ran and counts as down. An order
carries the whole set of instances, so there is no "start" to repeat; an attempt is started only when the set that has
it first is taken, and never again, whatever happens to it. Those that end are remembered for longer than the oldest
backup of a store that anyone may restore, since such a store asks for them again.

A memory that can't be written leaves the state of before the event, and one thing more: the attempts that an order
would have started are refused for good by this start of the agent, and by every later one as soon as anything can be
written again. Both are told, so that whoever places instances need not wait for a disk. Otherwise an order that was
sent meanwhile, or is sent again, could start an attempt whose successor runs elsewhere.

Awkward truth: a host whose memory is gone knows nothing of what ran on it, but for what runs now. It takes a new
incarnation, and whoever places instances must treat it as another host. And ``ended`` keeps time by a clock of its own
that stands still while the agent doesn't run, so that no wall clock matters: what ended is kept longer than asked for,
never shorter.
"""

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core.capacity.messages import (
    Answer,
    Check,
    FromHost,
    Instance,
    InstanceSet,
    NetworkAnswer,
    NetworkOrder,
    NetworkState,
    Newer,
    Order,
    ToHost,
)
from fencepost.core.capacity.token import NO_TOKEN, Token
from fencepost.core.effects import Effect
from fencepost.core.events import Event
from fencepost.core.instant import DAY, SECOND, Duration, Instant


class HostSettings(Struct, frozen=True, gc=False):
    """Who the host is. ``fresh_for`` is how long a stamp is worth something, three renewals: the lease's length.

    ``ended_kept`` is how long ended attempts are remembered; None keeps them for good and notes no times, which keeps
    an exhaustive walk small.
    """

    name: str
    fresh_for: Duration = 30 * SECOND
    ended_kept: Duration | None = 30 * DAY


class HostMemory(Struct, frozen=True, gc=False, array_like=True):
    """What a host must not forget: all of it is written before an answer rests on it.

    ``incarnation`` was drawn when the memory was made; ``token`` is the highest ever met; ``set`` what it is to run;
    ``ended`` attempts that are over, each with when, on the memory's own clock (see the module); ``network`` the newest
    network state of each attempt in the set, whole, so that a start can put it in place again.
    """

    incarnation: int
    token: Token = NO_TOKEN
    set: InstanceSet = InstanceSet()
    ended: tuple[tuple[str, Instant], ...] = ()
    network: tuple[NetworkState, ...] = ()

    @property
    def over(self) -> frozenset[str]:
        """The attempts that are never started again."""
        return frozenset(id_ for id_, _ in self.ended)


class Started(Event, frozen=True, gc=False):
    """The agent begins. ``memory`` is None if there is none; ``drawn`` is then the new incarnation.

    ``boot`` is drawn at each start; ``running`` are the attempts that run, started by an agent before this one.
    """

    memory: HostMemory | None
    drawn: int
    boot: int
    running: tuple[str, ...] = ()


class Told(Event, frozen=True, gc=False):
    """A manager's message."""

    message: ToHost


class Ended(Event, frozen=True, gc=False):
    """An attempt ended by itself."""

    id: str


class StartFailed(Event, frozen=True, gc=False):
    """An attempt couldn't be started, or not in time."""

    id: str


class Unwritten(Event, frozen=True, gc=False):
    """The memory couldn't be written for ``message``, or for an event of the host's own (None); why, for people.

    Told to the state of before that event, which counts.
    """

    why: str
    message: ToHost | None = None


class Again(Event, frozen=True, gc=False):
    """Time to try whether the memory can be written again."""


class Persist(Effect, frozen=True, gc=False):
    """Write the memory so that it outlives a power failure; go on only when that is done. Always the first effect.

    If it can't be written, the decider's state before this event counts, nothing is answered, and that state is told
    :class:`Unwritten`. An attempt that ended
    has ended all the same: it may be told as down, since whoever begins again from the memory of before finds it so.
    """

    memory: HostMemory


class Stop(Effect, frozen=True, gc=False):
    """End these attempts; go on when they are gone."""

    ids: tuple[str, ...]


class Start(Effect, frozen=True, gc=False):
    """Start these attempts. Not after ``until``, on this host's clock: by then they may run elsewhere.

    Each that isn't started is answered by :class:`StartFailed`; that it is down is told from the next answer on.
    """

    instances: tuple[Instance, ...]
    until: Instant


class ApplyNetwork(Effect, frozen=True, gc=False):
    """Put these network states in place of those before; the same one again does no harm."""

    states: tuple[NetworkState, ...]


class Reply(Effect, frozen=True, gc=False):
    """Send this to whoever sent the message."""

    message: FromHost


HostEvent: TypeAlias = Started | Told | Ended | StartFailed | Unwritten | Again
HostEffect: TypeAlias = Persist | Stop | Start | ApplyNetwork | Reply


class Host(Struct, gc=False):
    """A host's whole state: what is durable, and what an agent's death loses.

    ``memory`` is None until :class:`Started`. ``running`` are the attempts that run; one in the set that doesn't run is
    down, for good. ``ahead`` is how far the memory's clock is ahead of the host's. ``unable`` and ``refused`` are as in
    :class:`~fencepost.core.capacity.messages.Answer`; where nothing is the former, nothing is the latter.
    """

    settings: HostSettings
    memory: HostMemory | None = None
    boot: int = 0
    running: frozenset[str] = frozenset()
    ahead: Duration = 0
    unable: str = ""
    refused: frozenset[str] = frozenset()

    def on(self, event: HostEvent, now: Instant) -> tuple[HostEffect, ...]:
        """The effects to carry out, in order. ``now`` is this host's CLOCK_BOOTTIME, nanoseconds.

        A message that is for another host, or comes before :class:`Started`, is met with silence.
        """
        match event:
            case Told(message=message):
                if self.memory is None or message.host != self.settings.name:
                    return ()
                match message:
                    case Check():
                        return self.check(self.memory, message, now)
                    case Order():
                        return self.order(self.memory, message, now)
                    case NetworkOrder():
                        return self.network(self.memory, message, now)
            case Started():
                return self.start(event, now)
            case Ended() | StartFailed():
                return self.over(event.id, now)
            case Unwritten():
                return self.unwritten(event, now)
            case Again():
                return (self.keep(self.memory, now),) if self.memory is not None and self.unable else ()

    def keep(self, memory: HostMemory, now: Instant) -> Persist:
        """This is the memory from now on. What was refused while none could be written is over with it, for good."""
        self.memory = self.ending(memory, self.refused - memory.over, now)
        self.unable, self.refused = "", frozenset()
        return Persist(self.memory)

    def unwritten(self, event: Unwritten, now: Instant) -> tuple[HostEffect, ...]:
        """Nothing was taken; what an order would have started never will be."""
        self.unable = event.why
        order = event.message
        if isinstance(order, Order) and self.memory is not None and self.obeys(self.memory, order, now):
            self.refused |= order.set.ids - self.memory.set.ids - self.memory.over
        return ()

    def start(self, event: Started, now: Instant) -> tuple[HostEffect, ...]:
        """Go on from the memory: what doesn't run is over, and what runs but isn't in the set is stopped."""
        memory = before = event.memory or HostMemory(event.drawn)
        self.boot, self.unable, self.refused = event.boot, "", frozenset()
        if self.settings.ended_kept is not None:
            self.ahead = max((when for _, when in memory.ended), default=0) - now
        running, over = frozenset(event.running), memory.over
        self.running = (running & memory.set.ids) - over
        astray = running - self.running
        memory = self.ending(memory, (memory.set.ids | astray) - self.running - over, now)
        self.memory = memory
        states = tuple(state for state in memory.network if state.id in self.running)
        return (
            *((Persist(memory),) if event.memory is None or memory != before else ()),
            *((Stop(tuple(sorted(astray))),) if astray else ()),
            *((ApplyNetwork(states),) if states else ()),
        )

    def check(self, memory: HostMemory, check: Check, now: Instant) -> tuple[HostEffect, ...]:
        """Answer with a stamp under a token that nothing met so far outdates. The usual check writes nothing."""
        if check.token == memory.token:
            return (Reply(self.answer(memory, now, whole=check.whole)),)
        if memory.token.outdates(check.token):
            return (Reply(Newer(self.settings.name, memory.token)),)
        kept = self.keep(replace(memory, token=check.token), now)
        return kept, Reply(self.answer(kept.memory, now, whole=check.whole))

    def obeys(self, memory: HostMemory, order: Order, now: Instant) -> bool:
        """Whether an order is from who holds the lease, asked for not long ago, and news."""
        return (
            order.token == memory.token != NO_TOKEN
            and order.boot == self.boot
            and 0 <= now - order.stamp < self.fresh_for(order)
            and order.set.version > memory.set.version
        )

    def fresh_for(self, order: Order) -> Duration:
        """How long an order's stamp is worth something: as long as to both, its sender and this host."""
        return min(self.settings.fresh_for, order.lasts or self.settings.fresh_for)

    def order(self, memory: HostMemory, order: Order, now: Instant) -> tuple[HostEffect, ...]:
        """Take the set whole, or leave all as it is; either way the answer is the state.

        A token that was never met in a check earns no answer under it: the answer is then under the one that was met.
        """
        if memory.token != order.token and memory.token.outdates(order.token):
            return (Reply(Newer(self.settings.name, memory.token)),)
        if not self.obeys(memory, order, now):
            return (Reply(self.answer(memory, now)),)
        wanted, over = order.set.ids, memory.over | self.refused
        leaving = memory.set.ids - wanted
        fresh = wanted - memory.set.ids - over
        starting = {each.id: each for each in order.set.instances if each.id in fresh}
        stopping = self.running - wanted
        kept = tuple(state for state in memory.network if state.id in wanted)
        taken = self.keep(self.ending(replace(memory, set=order.set, network=kept), leaving - over, now), now)
        self.running = (self.running & wanted) | fresh
        return (
            taken,
            *((Stop(tuple(sorted(stopping))),) if stopping else ()),
            *((Start(tuple(starting.values()), order.stamp + self.fresh_for(order)),) if starting else ()),
            Reply(self.answer(taken.memory, now)),
        )

    def network(self, memory: HostMemory, order: NetworkOrder, now: Instant) -> tuple[HostEffect, ...]:
        """Put newer states in place. Older ones, and others of the same number, are refused by telling what is there.

        The same state again is put in place again, so that an answer never rests on what a crash may have left undone.
        An attempt that is down takes no state, as if it weren't there: it must never seem ready.
        """
        if memory.token != order.token and memory.token.outdates(order.token):
            return (Reply(Newer(self.settings.name, memory.token)),)
        has = {state.id: state for state in memory.network}
        taken: dict[str, NetworkState] = {}
        if order.token == memory.token != NO_TOKEN:
            for state in order.states:
                there = taken.get(state.id) or has.get(state.id)
                if state.id not in self.running:
                    continue
                if there is None or state.version > there.version:
                    taken[state.id] = state
                elif (state.version, state.digest) == (there.version, there.digest):
                    taken[state.id] = there
        now_has = has | taken
        network = tuple(now_has.values())
        asked = dict.fromkeys(state.id for state in order.states)
        known = [now_has[id_] for id_ in asked if id_ in self.running and id_ in now_has]
        told = NetworkAnswer(
            self.settings.name,
            self.boot,
            memory.incarnation,
            tuple((state.id, state.version, state.digest) for state in known),
            tuple(id_ for id_ in asked if id_ not in self.running),
        )
        if network != memory.network:
            kept = self.keep(replace(memory, network=network), now)
            return kept, ApplyNetwork(tuple(taken.values())), Reply(told)
        return *((ApplyNetwork(tuple(taken.values())),) if taken else ()), Reply(told)

    def over(self, id_: str, now: Instant) -> tuple[HostEffect, ...]:
        """An attempt doesn't run any more, or never did: it is down, and remembered as ended."""
        self.running -= {id_}
        if self.memory is None or id_ in self.memory.over or id_ not in self.memory.set.ids:
            return ()
        return (self.keep(self.ending(self.memory, frozenset((id_,)), now), now),)

    def ending(self, memory: HostMemory, ids: frozenset[str], now: Instant) -> HostMemory:
        """The memory with these attempts ended; those that ended long ago, and aren't in the set, go."""
        if not ids:
            return memory
        clock = now + self.ahead if self.settings.ended_kept is not None else 0
        kept = memory.ended
        if self.settings.ended_kept is not None:
            oldest, wanted = clock - self.settings.ended_kept, memory.set.ids
            kept = tuple(each for each in kept if each[1] > oldest or each[0] in wanted)
        return replace(memory, ended=(*kept, *((id_, clock) for id_ in sorted(ids))))

    def answer(self, memory: HostMemory, now: Instant, *, whole: bool = False) -> Answer:
        """The host's state as of now, which is its stamp."""
        return Answer(
            self.settings.name,
            memory.token,
            self.boot,
            now,
            memory.incarnation,
            memory.set.version,
            tuple(each.id for each in memory.set.instances if each.id not in self.running),
            memory.set if whole else None,
            unable=self.unable,
            refused=tuple(sorted(self.refused)),
        )
