"""A host under two managers' messages in any order, with crashes between any two effects: what always holds."""

from copy import copy
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fencepost.core.capacity.host import (
    Again,
    ApplyNetwork,
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
    Unwritten,
)
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
)
from fencepost.core.capacity.token import NO_TOKEN, Token

FRESH = 30
SETTINGS = HostSettings("h1", fresh_for=FRESH, ended_kept=None)
NAMES = ("web-1.1", "web-1.2", "web-2.1")
TOKENS = st.builds(Token, st.integers(1, 3), st.integers(1, 2), st.integers(1, 2))
CRASH = st.sampled_from([99, 99, 99, 99, 0, 1, 2, 3])
"""Before which effect the agent dies, mostly none."""
FLAWS = st.sampled_from(
    [*[""] * 6, "late", "too late", "old stamp", "restart", "token", "same version", "two versions"],
)
"""What is wrong with an order, mostly nothing."""


def instances(ids: list[str]) -> tuple[Instance, ...]:
    """Attempts without a command."""
    return tuple(map(Instance, ids))


@dataclass
class Machine:
    """What there is outside the decider: a disk, processes, files of network state, and what was said.

    ``refused`` is what couldn't be written down: by this start of the agent, or by one that could write later.
    """

    disk: HostMemory | None = None
    runs: set[str] = field(default_factory=set)
    files: dict[str, NetworkState] = field(default_factory=dict)
    starts: list[tuple[int, str]] = field(default_factory=list)
    memories: list[HostMemory] = field(default_factory=list)
    answers: list[FromHost] = field(default_factory=list)
    acknowledged: Token = NO_TOKEN
    refused: set[str] = field(default_factory=set)

    def carry_out(self, effect: HostEffect) -> None:
        """One effect, with what must hold just then."""
        match effect:
            case Persist(memory=memory):
                self.disk = memory
                self.memories.append(memory)
            case Stop(ids=ids):
                self.runs -= set(ids)
            case Start(instances=instances):
                assert self.disk is not None
                for each in instances:
                    assert each.id in self.disk.set.ids, "started before it was written down"
                    assert each.id not in self.refused, "it may run elsewhere by now"
                    self.starts.append((self.disk.incarnation, each.id))
                    self.runs.add(each.id)
            case ApplyNetwork(states=states):
                for state in states:
                    there = self.files.get(state.id)
                    assert there is None or state == there or state.version > there.version
                    self.files[state.id] = state
            case Reply(message=message):
                self.answer(message)

    def answer(self, message: FromHost) -> None:
        """Nothing is said that a crash right now would make untrue."""
        assert self.disk is not None
        self.answers.append(message)
        match message:
            case Answer():
                assert message.token == self.disk.token
                assert (message.version, message.incarnation) == (self.disk.set.version, self.disk.incarnation)
                assert set(message.down) == self.disk.set.ids - self.runs
                self.acknowledged = message.token
            case Newer():
                assert message.token == self.disk.token
            case NetworkAnswer(has=has):
                assert all((self.files[id_].version, self.files[id_].digest) == (v, d) for id_, v, d in has)


class AnyOrder(RuleBasedStateMachine):
    """Two managers' messages in any order, delays, crashes between any two effects, reboots, a lost disk."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine()
        self.now = 0
        self.boots = 0
        self.host = Host(SETTINGS)
        self.stamps: list[tuple[int, int]] = [(0, 0)]

    @initialize()
    def begin(self) -> None:
        """The agent's first start."""
        self.restart(crash=99)

    def restart(self, crash: int) -> None:
        """The agent starts, and may die again right away; the next start then comes through."""
        self.boots += 1
        self.host = Host(SETTINGS)
        self.machine.refused &= self.machine.disk.over if self.machine.disk is not None else set()
        event = Started(self.machine.disk, 1000 + self.boots, self.boots, tuple(sorted(self.machine.runs)))
        self.happen(event, crash)

    def happen(self, event: HostEvent, crash: int) -> None:
        """Tell the decider; die before the effect number ``crash``, if there are so many."""
        effects = self.host.on(event, self.now)
        for number, effect in enumerate(effects):
            if number == crash:
                self.restart(crash=99)
                return
            if isinstance(effect, Start):
                assert self.now < effect.until
            self.machine.carry_out(effect)

    @rule(token=TOKENS | st.none(), crash=CRASH)
    def check(self, token: Token | None, crash: int) -> None:
        """A check of any manager, or of the one whose token is newest; its stamp is kept for orders."""
        assert self.machine.disk is not None
        self.ask(token or self.machine.disk.token, crash)

    def ask(self, token: Token, crash: int) -> None:
        """A check."""
        heard = len(self.machine.answers)
        self.happen(Told(Check("h1", token)), crash)
        for answer in self.machine.answers[heard:]:
            if isinstance(answer, Answer):
                assert answer.token == token
                self.stamps.append((answer.boot, answer.stamp))

    @rule(flaw=FLAWS, token=TOKENS, ids=st.lists(st.sampled_from(NAMES), max_size=3), crash=CRASH)
    def order(self, flaw: str, token: Token, ids: list[str], crash: int) -> None:
        """A check and an order with its stamp, as a manager does it; now and then something is wrong with it."""
        assert self.machine.disk is not None
        known = self.machine.disk.token
        self.ask(token if known == NO_TOKEN else known, crash=99)
        boot, stamp = self.stamps[0 if flaw == "old stamp" else -1]
        if flaw in ("late", "too late"):
            self.now += FRESH - (flaw == "late")
        if flaw == "restart":
            self.restart(crash=99)
        memory = self.machine.disk
        version = memory.set.version + {"same version": 0, "two versions": 2}.get(flaw, 1)
        order = Order(
            "h1", token if flaw == "token" else memory.token, boot, stamp, InstanceSet(version, instances(ids))
        )
        started, acknowledged, boots = len(self.machine.starts), self.machine.acknowledged, self.boots
        self.happen(Told(order), crash)
        if len(self.machine.starts) > started or self.machine.disk.set != memory.set:
            assert order.token == acknowledged, "obeyed under a token that isn't the last one acknowledged"
            assert boot == boots
            assert 0 <= self.now - stamp < FRESH
            assert version > memory.set.version

    @rule(ids=st.lists(st.sampled_from(NAMES), max_size=3), lost=st.booleans())
    def fill(self, ids: list[str], lost: bool) -> None:
        """An order comes while the disk is full, or a check with a token that would have to be written."""
        assert self.machine.disk is not None
        memory = self.machine.disk
        self.ask(memory.token, crash=99)
        boot, stamp = self.stamps[-1]
        order = Order("h1", memory.token, boot, stamp, InstanceSet(memory.set.version + 1, instances(ids)))
        message = Check("h1", Token(memory.token.epoch, memory.token.number + 1, 1)) if lost else order
        before = copy(self.host)
        effects = self.host.on(Told(message), self.now)
        self.host = before
        if not isinstance(effects[0], Persist):
            return
        assert self.host.on(Unwritten("full", message), self.now) == ()
        if not lost:
            self.machine.refused |= set(ids) - memory.set.ids
        self.ask(memory.token, crash=99)
        said = self.machine.answers[-1]
        assert isinstance(said, Answer)
        assert said.unable == "full"
        assert set(said.refused) >= self.machine.refused - memory.over

    @rule(crash=CRASH)
    def empty(self, crash: int) -> None:
        """The memory is written again, if it couldn't be."""
        self.happen(Again(), crash)
        assert not self.host.unable
        assert not self.host.refused

    @rule(at=st.integers(0, 5), version=st.integers(-1, 1), digest=st.sampled_from("ab"), crash=CRASH)
    def publish(self, at: int, version: int, digest: str, crash: int) -> None:
        """A network state under the current token, mostly of an attempt that runs, about as new as what it has."""
        assert self.machine.disk is not None
        choice = sorted(self.machine.runs) or NAMES
        id_ = NAMES[0] if at == 5 else choice[at % len(choice)]
        has = self.machine.files[id_].version if id_ in self.machine.files else 1
        state = NetworkState(id_, has + version, digest, b"")
        self.happen(Told(NetworkOrder("h1", self.machine.disk.token, (state,))), crash)

    @precondition(lambda self: self.machine.runs)
    @rule(data=st.data(), crash=CRASH)
    def end(self, data: st.DataObject, crash: int) -> None:
        """An attempt ends by itself, or is found not to have started."""
        id_ = data.draw(st.sampled_from(sorted(self.machine.runs)))
        self.machine.runs.discard(id_)
        self.happen(Ended(id_) if data.draw(st.booleans()) else StartFailed(id_), crash)

    @rule(passed=st.sampled_from([1, 2, 15, 40]))
    def wait(self, passed: int) -> None:
        """Time passes."""
        self.now += passed

    @rule(reboot=st.booleans(), crash=CRASH)
    def die(self, reboot: bool, crash: int) -> None:
        """The agent dies; with the machine, nothing runs any more and its clock begins anew."""
        if reboot:
            self.machine.runs, self.now = set(), 0
        self.restart(crash)

    @rule()
    def lose_memory(self) -> None:
        """The disk is replaced: what was started before may be started by another incarnation."""
        self.machine.disk, self.machine.files = None, {}
        self.restart(crash=99)

    @invariant()
    def nothing_is_started_twice(self) -> None:
        """Not by one memory, whatever happens."""
        assert len(self.machine.starts) == len(set(self.machine.starts))

    @invariant()
    def what_runs_is_in_the_set(self) -> None:
        """And what is in the set and doesn't run is known to be over."""
        if self.machine.disk is not None:
            assert self.machine.runs <= self.machine.disk.set.ids
            assert self.machine.disk.set.ids - self.machine.runs <= self.machine.disk.over
            assert not self.machine.runs & self.machine.disk.over
            assert self.host.memory == self.machine.disk
            assert self.host.running == self.machine.runs

    @invariant()
    def what_is_remembered_is_in_place(self) -> None:
        """An instance that runs has the network state that its host would tell of."""
        if self.machine.disk is not None:
            for state in self.machine.disk.network:
                assert state.id not in self.machine.runs or self.machine.files[state.id] == state

    @invariant()
    def nothing_falls(self) -> None:
        """Tokens, set versions, network versions and what ended, within an incarnation."""
        for one, next_ in pairwise(self.machine.memories[-8:]):
            if one.incarnation != next_.incarnation:
                continue
            assert not one.token.outdates(next_.token)
            assert one.set.version <= next_.set.version
            assert one.set == next_.set or one.set.version < next_.set.version
            assert one.over <= next_.over
            had = {state.id: state for state in one.network}
            for state in next_.network:
                there = had.get(state.id)
                assert there is None or state == there or state.version > there.version


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = hypothesis_settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.soak
class TestAnyOrderLonger(AnyOrder.TestCase):  # type: ignore[valid-type, misc]  # made by hypothesis
    """The same a thousand times."""

    settings = hypothesis_settings(max_examples=1000, stateful_step_count=40, deadline=None)
