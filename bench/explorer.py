"""How fast the explorer walks and how much each state takes: states a second and bytes a state, in four regions.

    python -m bench.explorer

Floors we hold ourselves to: 100,000 states/s, and 150 bytes a state where there are a million; October 2025 in 0.5 s.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figures import FILE, tell, told
from fencepost.explorer.explore import Explorer
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import tell as tell_result
from fencepost.incident.race import find_race
from fencepost.world.faults import Fault
from fencepost.world.region import Shape

BASE = ((Fault.INPUT, 2), (Fault.WITHDRAW, 1))
SHAPES = {
    "reduced": (Shape(2, 2, budget=(*BASE, (Fault.REPAIR, 1), (Fault.RELEASE, 1))), True),
    "whole": (Shape(2, 1, budget=(*BASE, (Fault.REPAIR, 1))), False),
    "large": (Shape(2, 2, budget=(*BASE, (Fault.CRASH, 1), (Fault.REPAIR, 1), (Fault.RELEASE, 1))), True),
    "two endpoints": (Shape(2, 1, endpoints=2, budget=(*BASE[1:], (Fault.INPUT, 1), (Fault.REPAIR, 1))), True),
}


def measure(name: str) -> None:
    """Explore one region and print its figures; alone in its process, so that the memory is its own."""
    shape, reduce = SHAPES[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = Explorer(RegionModel(shape, reduce=reduce)).run()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    words = f"{result.states:,} states"
    tell(f"{name}: states a second", result.states / result.cpu_s, "/CPU s", words)
    tell(f"{name}: bytes a state", grown / result.states, "B")
    print(f"    {tell_result(result).splitlines()[0]}", flush=True)


def main() -> None:
    """Each region in its own process, then the slowest of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(os.environ.setdefault(FILE, str(Path(folder) / "figures")))
        for each in SHAPES:
            subprocess.run([sys.executable, "-m", "bench.explorer", each], check=True)
        figures = told(path)
        if path.parent == Path(folder):
            del os.environ[FILE]
    least = min(figures[f"{each}: states a second"] for each in SHAPES)
    tell("states a second, least of four regions", least, "/CPU s")
    race = find_race(lambda model, *, symmetry: Explorer(model, symmetry=symmetry).run())
    tell("October 2025 as it was, found", race.found.cpu_s, "s CPU", f"{len(race.told)} steps")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        main()
