"""The race as a :class:`~fencepost.world.model.Model`: planner and enactors of October 2025 around plan trees.

Each outstanding call takes effect in one step, together with what its decider makes of the answer. Reading the newest
plan and checking it is one step; so is listing old plans; each turn and each deletion is one. A look that finds nothing
to do is no step, since it changes nothing.

The lock. A writer reads the lock record and sends its batch; if another writes in between, it is refused and begins
again. Here both happen in one step, so nobody ever loses the lock: losing it changes nothing but the time, and time is
already any order of steps. For the same reason the lock's text is forgotten after each step: no later step compares it
with one that it did not itself read.

Emptiness is found by a caller, who asks: a step of nobody's. ``watch`` says which promises are looked at; with none,
the exploration goes on through every broken state and counts them all.
"""

from collections import Counter
from collections.abc import Iterator
from copy import copy
from enum import Enum
from typing import NamedTuple, TypeAlias

from msgspec import Struct, structs

from fencepost.core.effects import Effect
from fencepost.core.events import Event, Woke
from fencepost.incident import tree
from fencepost.incident.enactor import TreeEnactor
from fencepost.incident.messages import (
    DeletePlan,
    ListPlans,
    PlanDeleted,
    PlansListed,
    PlansRead,
    PlanWritten,
    ReadPlans,
    Skipped,
    Turn,
    Turned,
    WritePlan,
)
from fencepost.incident.planner import PlanWriter
from fencepost.incident.tree import NO_LOCK, Guards, Lock, Outcome, Tree
from fencepost.world.model import Move

NAMES = ("api", "www", "db", "queue")
LETTERS = "ABCDEF"
PLANS_MOST = 8
EMPTY, BACKWARD = "never_empty", "never_backward"
PROMISES = (EMPTY, BACKWARD)
AnyDecider: TypeAlias = PlanWriter | TreeEnactor


class Perturbation(Enum):
    """What may happen besides, as often as the model says; the value is its name on the command line."""

    SKIP = "skip"
    ROLLBACK = "rollback"


PERTURBATION_MEANING = {
    Perturbation.SKIP: "an enactor passes over one endpoint",
    Perturbation.ROLLBACK: "an operator rolls one endpoint back to what its rollback record names",
}
"""What each perturbation is."""


class TreePart(NamedTuple):
    """A planner or an enactor, and its outstanding calls."""

    name: str
    decider: AnyDecider
    pending: tuple[Effect, ...]

    def key(self) -> tuple[object, ...]:
        """What tells this part from another; the name doesn't, so that enactors are interchangeable."""
        return type(self.decider), structs.astuple(self.decider)


class TreeShared(Struct, frozen=True, gc=False):
    """The trees, the perturbations that may still happen, and whether a caller has got no addresses."""

    tree: Tree
    left: tuple[Perturbation, ...] = ()
    found_empty: bool = False


Situation: TypeAlias = tuple[tuple[TreePart, ...], TreeShared]


class TreeModel:
    """So many enactors, plans and endpoints, with these guards and perturbations; see the module.

    ``begin`` is a situation to begin with, instead of one before anything was planned. Raises ``ValueError`` for a size
    out of range.
    """

    def __init__(
        self,
        enactors: int = 3,
        plans: int = 3,
        endpoints: int = 2,
        guards: Guards = frozenset(),
        perturbations: tuple[Perturbation, ...] = (),
        *,
        watch: tuple[str, ...] = PROMISES,
        begin: Situation | None = None,
    ) -> None:
        for what, size, most in (
            ("enactors", enactors, len(LETTERS)),
            ("plans", plans, PLANS_MOST),
            ("endpoints", endpoints, len(NAMES)),
        ):
            if not 1 <= size <= most:
                raise ValueError(f"{what} is {size}; from 1 to {most} can be explored")
        self.sizes = (enactors, plans, endpoints)
        self.names = NAMES[:endpoints]
        self.guards = guards
        self.perturbations = perturbations
        self.watch = watch
        self.begin = begin
        self.sometimes: Counter[str] = Counter()

    def start(self) -> Situation:
        """Before anything was planned, unless ``begin`` says otherwise."""
        if self.begin is not None:
            return self.begin
        enactors, plans, endpoints = self.sizes
        parts = [told(TreePart(f"enactor {LETTERS[n]}", TreeEnactor(), ()), Woke()) for n in range(enactors)]
        planner = told(TreePart("planner", PlanWriter(plans), ()), Woke())
        return (*parts, planner), TreeShared(tree.new(endpoints), self.perturbations)

    def kind(self, part: TreePart) -> object:
        """Enactors are interchangeable."""
        return type(part.decider)

    def moves(self, part: TreePart, shared: TreeShared) -> Iterator[Move]:
        """Each outstanding call of one part, and an endpoint passed over."""
        for effect in part.pending:
            move = self.carried_out(part, effect, shared)
            if move is not None:
                yield move
            if isinstance(effect, Turn) and Perturbation.SKIP in shared.left:
                label = f"skips {self.names[effect.endpoint]}"
                after = told(part, Skipped(effect.endpoint))
                yield Move(label, after, spent(shared, Perturbation.SKIP), calm=False, event="skipped")

    def carried_out(self, part: TreePart, effect: Effect, shared: TreeShared) -> Move | None:
        """One call takes effect and is answered; None where that would change nothing and show nothing."""
        trees = shared.tree
        match effect:
            case WritePlan():
                after = tree.write(trees)
                part = told(part, PlanWritten(after.written))
                return Move(f"writes plan {after.written}", part, at(shared, after), event="plan written")
            case ReadPlans():
                after_part = told(part, PlansRead(trees.written, trees.live))
                if after_part.pending == part.pending:
                    return None
                return Move(f"picks plan {trees.written} and checks it", after_part, shared, event="picked")
            case Turn():
                return self.turned(part, effect, shared)
            case ListPlans():
                plans = tuple(plan for plan in range(1, trees.written + 1) if not trees.gone(plan))
                after_part = told(part, PlansListed(plans))
                found = [str(call.plan) for call in after_part.pending if isinstance(call, DeletePlan)]
                label = f"cleaning up, finds plan {found[0]}" if found else "finds nothing to clean up"
                return Move(label, after_part, shared, event="found old plans" if found else "")
            case DeletePlan(plan=plan):
                after, outcome = tree.delete(trees, plan, self.guards)
                label = f"deletes plan {plan}" if outcome is Outcome.DONE else f"spares plan {plan}"
                event = "deleted" if outcome is Outcome.DONE else "spared"
                return Move(label, told(part, PlanDeleted(outcome)), at(shared, after), event=event)
            case _:
                raise TypeError(f"no part calls {type(effect).__name__}")

    def turned(self, part: TreePart, effect: Turn, shared: TreeShared) -> Move:
        """A turn of an alias, with the lock read just before it."""
        trees, name = shared.tree, self.names[effect.endpoint]
        seen, mine = trees.lock[effect.endpoint], Lock(part.name)
        after, outcome = tree.turn(trees, effect.endpoint, effect.plan, seen, mine, self.guards)
        part = told(part, Turned(effect.endpoint, outcome))
        if outcome is not Outcome.DONE:
            label = f"can't point {name} at plan {effect.plan}: {outcome.value}"
            return Move(label, part, shared, event=outcome.name.lower().replace("_", " "))
        back = effect.plan < trees.live[effect.endpoint]
        broken = BACKWARD if back and BACKWARD in self.watch else None
        event = "went backward" if back else "turned"
        return Move(f"points {name} at plan {effect.plan}", part, at(shared, after), broken, event=event)

    def outside(self, shared: TreeShared) -> Iterator[Move]:
        """A caller who gets no addresses, and an operator's rollback."""
        for endpoint, name in enumerate(self.names):
            if EMPTY in self.watch and shared.tree.empty(endpoint) and not shared.found_empty:
                found = structs.replace(shared, found_empty=True)
                yield Move(f"asks for {name}", None, found, EMPTY, calm=False, event="found empty")
            before = shared.tree.before[endpoint]
            if Perturbation.ROLLBACK in shared.left and before and before != shared.tree.live[endpoint]:
                after, outcome = tree.roll_back(shared.tree, endpoint, self.guards)
                if outcome is Outcome.DONE:
                    left = spent(at(shared, after), Perturbation.ROLLBACK)
                    yield Move(f"rolls {name} back to plan {before}", None, left, calm=False, event="rolled back")

    def lean_shared(self, shared: TreeShared) -> TreeShared:
        """Without lock texts: see the module."""
        trees = shared.tree
        if all(lock == NO_LOCK for lock in trees.lock):
            return shared
        return at(shared, structs.replace(trees, lock=(NO_LOCK,) * len(trees.lock)))

    def lean_part(self, part: TreePart, shared: TreeShared) -> TreePart:
        """As it is: nothing is forgotten."""
        del shared
        return part

    def stirred(self, before: TreeShared, after: TreeShared) -> bool:
        """Never: nothing is forgotten of parts."""
        del before, after
        return False

    def converged(self, shared: TreeShared) -> bool:
        """Whether every endpoint points at the newest plan."""
        return all(plan == shared.tree.written for plan in shared.tree.live)

    def excused(self, shared: TreeShared) -> bool:
        """Never: no bound of the model keeps an enactor from going on."""
        del shared
        return False

    def title(self) -> str:
        """The sizes in words."""
        words = zip(self.sizes, ("enactor", "plan", "endpoint"), strict=True)
        return ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in words)

    def faults(self) -> tuple[str, ...]:
        """The perturbations, by name."""
        return tuple(perturbation.value for perturbation in self.perturbations)


def told(part: TreePart, event: Event) -> TreePart:
    """The part once its decider was told an event."""
    decider = copy(part.decider)
    return part._replace(pending=decider.on(event, 0), decider=decider)


def at(shared: TreeShared, trees: Tree) -> TreeShared:
    """What is shared, with other trees."""
    return structs.replace(shared, tree=trees)


def spent(shared: TreeShared, perturbation: Perturbation) -> TreeShared:
    """What is shared, once a perturbation has happened."""
    place = shared.left.index(perturbation)
    return structs.replace(shared, left=shared.left[:place] + shared.left[place + 1 :])
