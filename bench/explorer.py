"""How fast the explorer walks and how much each state takes: states a second and bytes a state, in three regions.

Run: .venv/bin/python bench/explorer.py. Floors we hold ourselves to: 80,000 states/s and 150 bytes a state.
"""

import resource
import subprocess
import sys

from fencepost.explorer.explore import Explorer
from fencepost.explorer.result import tell
from fencepost.world.faults import Fault
from fencepost.world.region import Shape

BASE = ((Fault.INPUT, 2), (Fault.WITHDRAW, 1))
SHAPES = {
    "reduced": (Shape(2, 2, budget=(*BASE, (Fault.REPAIR, 1), (Fault.RELEASE, 1))), True),
    "whole": (Shape(2, 1, budget=(*BASE, (Fault.REPAIR, 1))), False),
    "two endpoints": (Shape(2, 1, endpoints=2, budget=(*BASE[1:], (Fault.INPUT, 1), (Fault.REPAIR, 1))), True),
}


def measure(name: str) -> None:
    """Explore one region and print its figures; alone in its process, so that the memory is its own."""
    shape, reduce = SHAPES[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = Explorer(shape, reduce=reduce).run()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    rate, size = result.states / result.cpu_s, grown / result.states
    print(f"{name:14} {result.states:>9,} states {rate:>9,.0f} states/s {size:>5.0f} bytes a state")
    print(f"{'':14} {tell(result).splitlines()[0]}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        for each in SHAPES:
            subprocess.run([sys.executable, __file__, each], check=True)
