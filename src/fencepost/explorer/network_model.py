"""Network state and readiness, as the explorer walks them."""

from collections import Counter
from collections.abc import Iterator

from fencepost.world import network, network_moves
from fencepost.world.model import Move
from fencepost.world.network import Shape, Shared, Slot


class NetworkModel:
    """A :class:`~fencepost.world.model.Model` of one shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.sometimes: Counter[str] = Counter()

    def start(self) -> tuple[tuple[Slot, ...], Shared]:
        """An attempt that nothing was made for yet."""
        return network.start(self.shape)

    def kind(self, part: Slot) -> object:
        """Managers are interchangeable."""
        return part.kind

    def moves(self, part: Slot, shared: Shared) -> Iterator[Move]:
        """A manager's call or answer, the host's delivery, the lease's next step."""
        return network_moves.moves(part, shared)

    def outside(self, shared: Shared) -> Iterator[Move]:
        """What goes wrong."""
        return network_moves.adversary(shared)

    def lean_shared(self, shared: Shared) -> Shared:
        """All of it matters."""
        return shared

    def lean_part(self, part: Slot, shared: Shared) -> Slot:  # noqa: ARG002  the protocol's shape
        """All of it matters."""
        return part

    def stirred(self, before: Shared, after: Shared) -> bool:  # noqa: ARG002  the protocol's shape
        """Nothing is ever outdated."""
        return False

    def converged(self, shared: Shared) -> bool:
        """See :func:`~fencepost.world.network.converged`."""
        return network.converged(shared)

    def excused(self, shared: Shared) -> bool:  # noqa: ARG002  the protocol's shape
        """Nothing is."""
        return False

    def title(self) -> str:
        """The shape in words."""
        return network.title(self.shape)

    def faults(self) -> tuple[str, ...]:
        """What may happen."""
        return tuple(network.faults(self.shape))
