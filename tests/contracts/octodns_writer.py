"""A person with octoDNS, run in octoDNS's own environment: a plan is made, shown, and applied when told.

    octodns_writer.py CONFIG [--checksum]

It prints "planned" once the plan is made, waits for a line, applies, prints "applied" and how many changes. Nothing of
octoDNS is replaced: the wait is a plan output, octoDNS's own way to show a plan before it is applied (the place where a
person reads it). With --checksum the plan is made twice, as by a reviewer: octoDNS applies only what was reviewed.
"""

import io
import logging
import sys

from octodns.manager import Manager  # type: ignore[import-not-found]


class Held:
    """A plan output that says that a plan is made, and waits for a line."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, **_: object) -> None:
        """Called by octoDNS between planning and applying."""
        if Held.armed:
            sys.stdout.write("planned\n")
            sys.stdout.flush()
            sys.stdin.readline()

    armed = False


class Checksum(logging.Handler):
    """Reads the checksum that octoDNS logs."""

    found: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """One line of octoDNS's log."""
        text = record.getMessage()
        if text.startswith("checksum="):
            Checksum.found = text.removeprefix("checksum=")


def main() -> None:
    """Plan, wait, apply."""
    config = sys.argv[1]
    reviewed = "--checksum" in sys.argv
    if reviewed:
        logging.getLogger("Checksum").addHandler(Checksum())
        Manager(config, enable_checksum=True).sync(dry_run=True, plan_output_fh=io.StringIO())
    Held.armed = True
    manager = Manager(config, enable_checksum=reviewed)
    count = manager.sync(dry_run=False, plan_output_fh=io.StringIO(), checksum=Checksum.found)
    sys.stdout.write(f"applied {count}\n")


if __name__ == "__main__":
    sys.modules["octodns_writer"] = sys.modules["__main__"]  # octoDNS imports the output by this name
    main()
