"""The region that ships, as the explorer walks it: its moves, its goal, and what may be forgotten about it."""

from collections.abc import Iterator

from fencepost.explorer.lean import Lean
from fencepost.world import calls, goals, hands, region, windows
from fencepost.world.model import Move
from fencepost.world.region import Shape, Shared, Slot


class RegionModel:
    """A :class:`~fencepost.world.model.Model` of one shape. ``reduce=False`` forgets nothing (see ``lean``)."""

    def __init__(self, shape: Shape, *, reduce: bool = True) -> None:
        self.shape = shape
        self.lean = Lean(shape, on=reduce)
        self.sometimes = self.lean.sometimes
        self.lean_shared = self.lean.shared
        self.lean_part = self.lean.slot
        self.stirred = self.lean.stirred

    def start(self) -> tuple[tuple[Slot, ...], Shared]:
        """A region before anything was planned."""
        return region.start(self.shape)

    def kind(self, part: Slot) -> object:
        """Those of one sort, working with one store."""
        return type(part.decider), part.store

    def moves(self, part: Slot, shared: Shared) -> Iterator[Move]:
        """The part's pending call, that call gone wrong, or its end."""
        window = windows.window(part)
        return calls.moves(part, shared) if window is None else windows.moves(part, shared, window)

    def outside(self, shared: Shared) -> Iterator[Move]:
        """Late writes that arrive, and hands."""
        yield from calls.arrivals(shared)
        yield from hands.adversary(shared)

    def converged(self, shared: Shared) -> bool:
        """See :func:`~fencepost.world.goals.converged`."""
        return goals.converged(shared, planned=self.shape.planners > 0)

    def excused(self, shared: Shared) -> bool:
        """See :func:`~fencepost.world.goals.near_the_end`."""
        return goals.near_the_end(shared)

    def title(self) -> str:
        """The shape in words."""
        return region.title(self.shape)

    def faults(self) -> tuple[str, ...]:
        """What may happen at all."""
        return tuple(fault.value for fault, count in self.shape.budget if count)
