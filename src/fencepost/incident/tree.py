"""Plan trees: what the DNS held in October 2025, and the two transactions that changed it.

A plan is a tree of records of its own: for each endpoint its addresses. An endpoint's name is a root alias that points
at one plan's tree, so a plan is made live by turning the alias, one endpoint a transaction. No address stands at the
name itself: whoever deletes a plan deletes what every alias that still points at it answers.

With each turn of an alias the same transaction writes the endpoint's rollback record, "what was live before". Where
that plan is gone the code failed, and with it the turn.

The lock record is one TXT record an endpoint: who wrote last, and when. A batch begins by deleting the exact text its
writer had read and creating its own, so of two writers that read the same text one loses, backs off and tries again.
That keeps two from writing at the same moment, and that is all: whoever tries again writes the same plan as before,
however old it has become meanwhile.

The guards are the mends discussed since, each a condition inside the transaction that it guards; all are off as it was.
"""

from enum import Enum
from typing import TypeAlias

from msgspec import Struct, structs

from fencepost.core.instant import Instant


class Guard(Enum):
    """A condition that a transaction may check; the value is its name on the command line."""

    CONDITIONAL_WRITE = "conditional-write"
    TARGET_EXISTS = "target-exists"
    CLEANUP_SPARES = "cleanup-spares"
    ROLLBACK_TOLERATES = "rollback-tolerates"


GUARD_MEANING = {
    Guard.CONDITIONAL_WRITE: "a turn of an alias requires that what is live is older",
    Guard.TARGET_EXISTS: "a turn of an alias requires that the plan it turns to still exists",
    Guard.CLEANUP_SPARES: "a deletion requires that no alias or rollback record points at the plan",
    Guard.ROLLBACK_TOLERATES: "a turn of an alias goes on when what was live before is gone",
}
"""What each guard requires, in the transaction itself."""

Guards: TypeAlias = frozenset[Guard]


class Lock(Struct, frozen=True, gc=False):
    """The text of a lock record: who wrote last, and when (nanoseconds since 1970)."""

    holder: str = ""
    at: Instant = 0


NO_LOCK = Lock()


class Tree(Struct, frozen=True, gc=False):
    """All plans and all endpoints. Plans are numbered from 1; 0 is none.

    ``written`` is the newest plan's number, ``deleted`` those cleaned up, in order; ``live``, ``before`` (the rollback
    record) and ``lock`` have one element an endpoint.
    """

    live: tuple[int, ...]
    before: tuple[int, ...]
    lock: tuple[Lock, ...]
    written: int = 0
    deleted: tuple[int, ...] = ()

    def gone(self, plan: int) -> bool:
        """Whether a plan was written and then cleaned up."""
        return plan in self.deleted

    def empty(self, endpoint: int) -> bool:
        """Whether callers of a published endpoint get NOERROR and no addresses."""
        return self.gone(self.live[endpoint])

    def refers(self, plan: int) -> bool:
        """Whether an alias or a rollback record points at a plan."""
        return plan in self.live or plan in self.before


class Outcome(Enum):
    """How a transaction ended. All but DONE left everything as it was."""

    DONE = "done"
    LOCK_LOST = "another had the lock"
    BEFORE_MISSING = "the plan that was live before is gone, so it can't be saved"
    LIVE_IS_NEWER = "what is live isn't older"
    TARGET_GONE = "the plan to turn to is gone"
    SPARED = "it is referred to"


def new(endpoints: int) -> Tree:
    """Nothing planned and nothing published yet."""
    return Tree((0,) * endpoints, (0,) * endpoints, (NO_LOCK,) * endpoints)


def turn(tree: Tree, endpoint: int, plan: int, seen: Lock, mine: Lock, guards: Guards) -> tuple[Tree, Outcome]:
    """The transaction that points one endpoint at a plan; ``seen`` is the lock text its writer has read."""
    before = tree.live[endpoint]
    if tree.lock[endpoint] != seen:
        return tree, Outcome.LOCK_LOST
    if Guard.CONDITIONAL_WRITE in guards and before >= plan:
        return tree, Outcome.LIVE_IS_NEWER
    if Guard.TARGET_EXISTS in guards and tree.gone(plan):
        return tree, Outcome.TARGET_GONE
    if tree.gone(before):
        if Guard.ROLLBACK_TOLERATES not in guards:
            return tree, Outcome.BEFORE_MISSING
        before = 0
    return pointed(tree, endpoint, plan, before, mine), Outcome.DONE


def roll_back(tree: Tree, endpoint: int, guards: Guards) -> tuple[Tree, Outcome]:
    """An operator's transaction: the endpoint points at what its rollback record names, the record at what was live.

    It goes back on purpose, so a conditional write isn't asked of it. There must be a record: the caller looks.
    """
    plan, before = tree.before[endpoint], tree.live[endpoint]
    if Guard.TARGET_EXISTS in guards and tree.gone(plan):
        return tree, Outcome.TARGET_GONE
    if tree.gone(before):
        before = 0  # what a person does by hand needs no record of the automation's
    return pointed(tree, endpoint, plan, before, NO_LOCK), Outcome.DONE


def pointed(tree: Tree, endpoint: int, plan: int, before: int, lock: Lock) -> Tree:
    """The tree after an applied turn."""
    return structs.replace(
        tree,
        live=placed(tree.live, endpoint, plan),
        before=placed(tree.before, endpoint, before),
        lock=tree.lock[:endpoint] + (lock,) + tree.lock[endpoint + 1 :],
    )


def placed(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    """A tuple with one element replaced."""
    return values[:at] + (value,) + values[at + 1 :]


def write(tree: Tree) -> Tree:
    """The next plan is written: a tree of its own, which nothing points at yet."""
    return structs.replace(tree, written=tree.written + 1)


def delete(tree: Tree, plan: int, guards: Guards) -> tuple[Tree, Outcome]:
    """The transaction that deletes a plan's tree; of one that is gone already nothing is left to delete."""
    if Guard.CLEANUP_SPARES in guards and tree.refers(plan):
        return tree, Outcome.SPARED
    if tree.gone(plan):
        return tree, Outcome.DONE
    return structs.replace(tree, deleted=tuple(sorted((*tree.deleted, plan)))), Outcome.DONE
