"""Host leases, as the explorer walks them."""

from collections import Counter
from collections.abc import Iterator

from fencepost.world import lease_acts, lease_begin, lease_faults, lease_moves, leases
from fencepost.world.lease_acts import Act, Effect, Seen
from fencepost.world.lease_minds import Minds
from fencepost.world.leases import MEANING, Fault, Shape, Shared, Slot
from fencepost.world.model import Move


class LeaseModel:
    """A :class:`~fencepost.explorer.factored.FactoredModel` of one shape: managers act on one thing at a time.

    Whether the goal can be reached is asked from every state; not whether a schedule may keep from it for ever: with
    messages that may always be too late, one can.
    """

    def __init__(self, shape: Shape, minds: Minds | None = None) -> None:
        """``minds`` are those met in other walks with the same deciders: what they decide isn't worked out again."""
        self.shape = shape
        self.minds = minds
        self.whole = shape.managers > 1 or any(fault is Fault.RESTORE for fault, _ in shape.budget)
        self.sometimes: Counter[str] = Counter()

    def start(self) -> tuple[tuple[Slot, ...], Shared]:
        """A shard that nobody owns yet, or whose host is held."""
        return lease_begin.begin(self.shape, self.minds)

    def kind(self, part: Slot) -> object:
        """Managers have names, by which rows know them."""
        return part.kind, part.name

    def moves(self, part: Slot, shared: Shared) -> Iterator[Move]:
        """A manager's call or message, the host's delivery, time."""
        return lease_moves.moves(part, shared, self.shape)

    def outside(self, shared: Shared) -> Iterator[Move]:
        """What goes wrong."""
        return lease_faults.adversary(shared)

    def lean_shared(self, shared: Shared) -> Shared:
        """Without answers under tokens that never come back, where that can't matter: they are as good as lost."""
        return shared if self.whole else leases.without_old_answers(shared)

    def lean_part(self, part: Slot, shared: Shared) -> Slot:
        """What a manager remembers is as old as it is."""
        return self.told(part, self.news(shared))

    def stirred(self, before: Shared, after: Shared) -> bool:  # noqa: ARG002  the protocol's shape
        """Whether time has just passed."""
        return after.passed != leases.NO_TIME

    def acting(self, part: Slot) -> bool:
        """Managers do, on the store's rows or a message."""
        return part.mind is not None

    def seen(self, shared: Shared) -> tuple[Seen, ...]:
        """The store's rows, and each answer under way."""
        return lease_acts.seen(shared)

    def acts(self, part: Slot, thing: Seen) -> Iterator[Act]:
        """What a manager may do about it."""
        return lease_moves.acts(part, thing, self.shape)

    def applied(self, shared: Shared, effect: Effect) -> Move | None:
        """What comes of it."""
        return lease_acts.applied(shared, effect)

    def news(self, shared: Shared) -> tuple[tuple[int, int], int]:
        """How much time has just passed, and the host's boot."""
        return shared.passed, shared.boot

    def told(self, part: Slot, news: tuple[tuple[int, int], int]) -> Slot:
        """A manager that much later."""
        return leases.caught_up(part, *news)

    def rested(self, shared: Shared) -> Shared:
        """No time has just passed any more."""
        return leases.rested(shared)

    def converged(self, shared: Shared) -> bool:
        """See :func:`~fencepost.world.leases.converged`."""
        return leases.converged(shared)

    def excused(self, shared: Shared) -> bool:
        """Where no further grant may be given by the bound of this world."""
        return leases.at_bound(shared)

    def title(self) -> str:
        """The shape in words."""
        return f"{self.shape.managers} lease manager{'s' * (self.shape.managers > 1)}, 1 host"

    def faults(self) -> tuple[str, ...]:
        """What may happen, in words."""
        return tuple(f"{MEANING[fault]} ({count} x)" for fault, count in self.shape.budget)
