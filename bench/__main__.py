"""Run the benchmarks, each in a process of its own, then say for each goal whether it is met.

    python -m bench             all of them, about ten minutes on two cores
    python -m bench NAME ...    some of them

Figures in CPU seconds hardly move with what else the machine does; those in milliseconds do.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import FILE, GOALS, told

BENCHES = {
    "sample_region": "the sample region: start, idle cost, memory; start-up of the command line",
    "death_to_gone": "1,000 targets, 100 of them die: from the decision until no DNS answer holds the address",
    "many_names": "100,000 endpoints beside 1,000: planner and enactor, cold, warm, and for changes",
    "dns_answers": "the embedded DNS server beside dnslib's server and Knot",
    "dns_reading": "reading and writing a domain of 100,000 endpoints on BIND",
    "octodns_bind": "100,000 names on BIND beside octoDNS; three enactors at once beside a bare loop",
    "route53_many": "30,000 endpoints by three enactors on Route 53's stand-in: batches beside the least there can be",
    "secondary": "Knot as a secondary of the embedded server",
    "store": "the SQLite store: calls, plans, eight planners at once",
    "store_postgresql": "the PostgreSQL store: calls, plans of 10,000 rows, one change among many, a hundred planners",
    "fleet_store": "a million hosts' rows in SQLite and PostgreSQL: renewals, grants, take-over; etcd beside them",
    "fleet_agents": "10,000 hosts in one process: checks a CPU second, with and without something to write down",
    "host_manager": "a million hosts in one manager: its cost, its decisions, and how soon another has taken over",
    "probing": "probing 10,000 targets each 10 s",
    "explorer": "the explorer: states a second, bytes a state",
    "admission": "admission: decisions a second, a million renewals, memory; 100,000 hosts at once",
    "replay": "October 2025 replayed: CPU and memory of 100,000 and a million hosts; the ablation",
    "simulator": "simulated hours: moves and region seconds a CPU second, wake-ups beside SimPy's",
}


def main() -> int:
    """1 if a benchmark broke or a goal isn't met, 2 for a name that is none."""
    names = sys.argv[1:] or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"no benchmark is called {unknown[0]}; there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    broken = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures"
        for name in names:
            print(f"\n{name}: {BENCHES[name]}", flush=True)
            began = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-m", f"bench.{name}"], env=os.environ | {FILE: str(path)}, check=False
            )
            print(f"  ({time.monotonic() - began:.0f} s{'' if done.returncode == 0 else ', BROKEN'})", flush=True)
            broken += [name] if done.returncode else []
        figures = told(path)
    goals = [goal for goal in GOALS if goal.bench in names]
    print(f"\n  {'goal':58}{'':>20}{'measured':>14}")
    for goal in goals:
        print(goal.line(figures))
    missed = [goal for goal in goals if goal.figure not in figures or not goal.met(figures[goal.figure])]
    print(
        f"\n{len(goals) - len(missed)} of {len(goals)} goals met" + (f"; broken: {', '.join(broken)}" if broken else "")
    )
    return 1 if missed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
