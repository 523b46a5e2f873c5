"""One run of octoDNS, in its own environment: what it costs until the plan is made, and until it is applied.

    octodns_run.py CONFIG

Prints JSON: CPU seconds of this process at the plan and at the end, the same in wall seconds, peak memory in MB, and
how many changes were applied. Nothing of octoDNS is replaced; a plan output of ours looks at the clocks.
"""

import io
import json
import resource
import sys
import time
from pathlib import Path

sys.path.pop(0)  # beside this file lies an octodns_bind.py that isn't octoDNS's

from octodns.manager import Manager  # type: ignore[import-not-found]

at: dict[str, float] = {}


def look(word: str) -> None:
    """Note both clocks."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    at[f"{word}_cpu_s"] = used.ru_utime + used.ru_stime
    at[f"{word}_s"] = time.monotonic()


class Clock:
    """A plan output: octoDNS calls it between planning and applying."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, **_: object) -> None:
        """The plan is made."""
        look("plan")


def main() -> None:
    """Plan and apply."""
    began = time.monotonic()
    changes = Manager(sys.argv[1]).sync(dry_run=False, plan_output_fh=io.StringIO())
    look("all")
    peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
    figures = at | {"plan_s": at["plan_s"] - began, "all_s": at["all_s"] - began}
    sys.stdout.write(json.dumps(figures | {"peak_mb": int(peak) / 1024, "changes": changes}))


if __name__ == "__main__":
    sys.modules["octodns_run"] = sys.modules["__main__"]  # octoDNS imports the output by this name
    main()
