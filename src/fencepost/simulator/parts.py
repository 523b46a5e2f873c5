"""What runs in a region, by kind and by process."""

from fencepost.simulator.dns_parts import DnsPart
from fencepost.simulator.health_parts import Balancer, CheckerPart
from fencepost.simulator.walk import Process


class Parts:
    """Everything that runs in a region."""

    def __init__(self) -> None:
        self.dns: list[DnsPart] = []
        self.balancers: list[Balancer] = []
        self.checkers: list[CheckerPart] = []

    def processes(self) -> list[Process]:
        """Every process once."""
        return [part.process for part in self.dns] + [part.process for part in self.checkers]

    def living_in(self, process: Process) -> list[DnsPart | Balancer | CheckerPart]:
        """The parts of one process."""
        return [part for part in self.every() if part.process is process]

    def every(self) -> list[DnsPart | Balancer | CheckerPart]:
        """All of them."""
        return [*self.dns, *self.balancers, *self.checkers]
