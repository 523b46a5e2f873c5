"""Which call goes wrong: faults are counted by call, so that a test says exactly which one."""

from fencepost.dev.route53.settings import Fault


class Faults:
    """What was asked to go wrong; may be added to while the server runs, from any thread."""

    def __init__(self) -> None:
        self._left: list[tuple[Fault, list[int]]] = []

    def add(self, fault: Fault) -> None:
        """From the next call on."""
        self._left.append((fault, [0, 0]))

    def clear(self) -> None:
        """Nothing goes wrong from now on."""
        self._left.clear()

    def next(self, action: str) -> Fault | None:
        """What goes wrong with this call, if anything: the first that is due."""
        due = None
        for fault, counted in self._left:
            if fault.action not in (None, action):
                continue
            counted[0] += 1
            spent = fault.times is not None and counted[1] >= fault.times
            if due is None and not spent and counted[0] % fault.every == 0:
                counted[1] += 1
                due = fault
        return due
