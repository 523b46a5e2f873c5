"""Lines to paste into another terminal while ``up`` runs, with this run's names and pids in them.

They stay as they are: a line that changes while it is being copied is worse than none. New ones are made once all of
them were tried, or once everything has been back in for a minute. What each does depends on how much automation may
still take out, so that part is said as of now.
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from fencepost.cli.terminal import styled
from fencepost.core.instant import SECOND
from fencepost.roles.status.document import PoolStatus, Status
from fencepost.settings import Region
from fencepost.settings.meaning import leaves_dns_ns
from fencepost.settings.schema import Pool
from fencepost.settings.units import spoken

QUIET_S = 60.0
"""Everything back in for so long, and what was tried may be tried again."""
TARGETS_LEAST = 6
"""Fewer stand-ins than this can't show a limit."""


class Tries(Struct):
    """What is offered: the processes that the lines name, targets by address. ``whole_since`` is when all were in."""

    region: Region
    first: tuple[str, int] | None = None
    pair: tuple[tuple[str, int], tuple[str, int]] | None = None
    enactor: int | None = None
    whole_since: float | None = None

    def lines(self, status: Status, pids: Mapping[str, int | None], now_s: float) -> list[str]:
        """The lines as of now (``now_s``: any steady clock)."""
        self.choose(status, pids, now_s)
        endpoint, place = self.region.endpoints[0].name, self.region.dns.listen
        rows = [("TRY, IN ANOTHER TERMINAL", "AND SEE")]
        if place is not None:
            count = len(status.endpoints[0].addresses or ()) if status.endpoints else 0
            rows.append((f"dig @{place.host} -p {place.port} +short {endpoint}", f"{number(count)} addresses"))
        rows += self.kills(status, pids)
        rows.append((f"{command()} explain {endpoint}", "why each address is in or out"))
        if self.enactor is not None:
            rows.append((f"kill -9 {self.enactor}", "an enactor dies; callers see nothing"))
        rows.append((f"{command()} dev wipe {endpoint}", "the record is emptied, and heals"))
        width = max(len(row[0]) for row in rows) + 2
        lines = [f" {left:<{width}}{right}" for left, right in rows]
        return [styled(lines[0], "bold"), *lines[1:]]

    def choose(self, status: Status, pids: Mapping[str, int | None], now_s: float) -> None:
        """Keep what was chosen, unless it is time for new lines."""
        whole = all(pids.values()) and all(pool.in_ == pool.targets and not pool.dead for pool in status.pools)
        self.whole_since = (self.whole_since if self.whole_since is not None else now_s) if whole else None
        named = [pid for _, pid in (self.first, *(self.pair or ()))] if self.first else []
        named += [self.enactor] if self.enactor is not None else []
        gone = [pid for pid in named if pid not in pids.values()]
        quiet = self.whole_since is not None and now_s - self.whole_since >= QUIET_S
        if named and (not gone or (len(gone) < len(named) and not quiet)):
            return
        enactors = [pid for name, pid in sorted(pids.items()) if name.startswith("enactor/") and pid]
        living = [
            (name.partition("/")[2], pid) for name, pid in sorted(pids.items()) if name.startswith("target/") and pid
        ]
        self.enactor = enactors[len(enactors) // 2] if enactors else None
        if len(living) >= TARGETS_LEAST:
            self.first = living[len(living) // 2 - 1]
            self.pair = (living[-2], living[0])

    def kills(self, status: Status, pids: Mapping[str, int | None]) -> list[tuple[str, str]]:
        """The lines that kill targets, and what comes of it as the pool stands now."""
        pool = self.region.pools[0]
        stands = next((each for each in status.pools if each.name == pool.name), None)
        if self.first is None or self.pair is None or stands is None:
            return []
        longest = leaves_dns_ns(pool)[1]
        may = may_leave(stands, pool)
        why = why_kept(stands)
        address, pid = self.first
        tried = pid not in pids.values()
        leaves = f"{address} leaves within {spoken(longest)}"
        rows = [(f"kill {pid}", leaves if may > 0 or tried else f"it is kept: {why}")]
        one, other = self.pair
        after = may if tried else max(0, may - 1)
        says = {0: f"both are kept: {why}", 1: "one more leaves, one is kept: the limit"}.get(after, "two more leave")
        wait = longest // SECOND + 2
        rows.append((f"kill {one[1]}; sleep {wait}; kill {other[1]}", says))
        return rows


def may_leave(stands: PoolStatus, pool: Pool) -> int:
    """How many targets of average weight automation may still take out now; 0 where that isn't known."""
    if stands.budget is None or stands.max_out_targets is None or stands.targets == 0:
        return 0
    each = sum(target.counts for target in pool.targets) / len(pool.targets)
    return max(0, min(int(stands.budget / each + 1e-6), stands.max_out_targets - (stands.out or 0)))


def why_kept(stands: PoolStatus) -> str:
    """The limit that is reached."""
    if stands.max_out_targets is not None and stands.max_out_targets <= (stands.out or 0):
        return "max_out is reached"
    if stands.budget_next_s is None:
        return "the budget pays for one"
    return f"the budget is spent, the next in {spoken(int(stands.budget_next_s) * SECOND)}"


def number(count: int) -> str:
    """A small number in words."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    return words[count] if count < len(words) else str(count)


def command() -> str:
    """How this program is called from here."""
    called = Path(sys.argv[0])
    if shutil.which("fencepost") == str(called.absolute()) or called.name == str(called):
        return "fencepost"
    try:
        return str(called.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(called)
