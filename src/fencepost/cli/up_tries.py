"""Lines to paste into another terminal while ``up`` runs, with this run's names and pids in them.

A line that changes while it is being copied is worse than none, and one that names a process that has died is worse
still: its number may be another's by now. So a line speaks of one role or target for the whole run, and its number
changes only with that process: a line that was tried says what came of it until the process runs again, and then has
its new number. What each does depends on how much automation may still take out, so that part is said as of now.
"""

import functools
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from fencepost.cli.folder import here
from fencepost.cli.layout import LEAST, cells, fitted
from fencepost.cli.terminal import styled
from fencepost.core.instant import SECOND
from fencepost.roles.status.document import PoolStatus, Status
from fencepost.settings import Region
from fencepost.settings.meaning import leaves_dns_ns
from fencepost.settings.providers import by_api
from fencepost.settings.schema import Pool
from fencepost.settings.units import spoken

TARGETS_LEAST = 6
"""Fewer stand-ins than this can't show a limit."""
BACK = "started again in about a minute"
"""When the sample starts a stand-in that has ended."""

DRAWN_MOST = 8
"""Addresses that our DNS server draws at most: its ``ADDRESSES_MAX``, without loading the server here."""


class Tries(Struct):
    """What is offered: the processes that the lines speak of, by the names that the supervisor has for them.

    ``gone`` tells of addresses where nothing is started again by itself, and by which commands something would be.
    """

    region: Region
    first: str | None = None
    pair: tuple[str, str] | None = None
    enactor: str | None = None
    gone: Callable[[], Mapping[str, str]] = dict

    def lines(self, status: Status, pids: Mapping[str, int | None], columns: int) -> list[str]:
        """The lines as of now, as rows of a terminal. A command that would be cut isn't offered."""
        self.choose(pids)
        endpoint, place = self.region.endpoints[0].name, self.region.dns.place
        rows = [("TRY, IN ANOTHER TERMINAL", "AND SEE")]
        if place is not None:
            rows.append((f"dig @{place.host} -p {place.port} +short {endpoint}", answered(self.region, status)))
        rows += self.kills(status, pids)
        rows.append((f"{command()} explain {endpoint}", "why each address is in or out"))
        if self.enactor is not None:
            pid = pids.get(self.enactor)
            dies = "an enactor dies, unnoticed"
            rows.append((f"kill -9 {pid}", dies) if pid else (f"({self.enactor} is down)", "started again at once"))
        if "agents" in pids:
            rows.append((f"{command()} fleet instances", "which host runs which target"))
        if not by_api(self.region.dns):
            rows.append((f"{command()} dev wipe {endpoint}", "the record empties and heals"))
        found = laid_out([row for row in rows if len(row[0]) < columns], columns)
        return [styled(found[0], "bold"), *found[1:]]

    def choose(self, pids: Mapping[str, int | None]) -> None:
        """Keep what was chosen for as long as there is such a process, up or down."""
        if not all(name in pids for name in (self.first, *(self.pair or ()), self.enactor) if name is not None):
            self.first = self.pair = self.enactor = None
        enactors = [name for name in sorted(pids) if name.startswith("enactor/")]
        if self.enactor is None and enactors:
            self.enactor = enactors[len(enactors) // 2]
        listed = {f"target/{target.address}" for pool in self.region.pools for target in pool.targets}
        targets = [name for name in sorted(pids) if name in listed]
        if self.first is None and len(targets) >= TARGETS_LEAST:
            self.first = targets[len(targets) // 2 - 1]
            self.pair = (targets[-2], targets[0])

    def kills(self, status: Status, pids: Mapping[str, int | None]) -> list[tuple[str, str]]:
        """The lines that kill targets in service, and what comes of it as the pool stands now."""
        pool = self.region.pools[0]
        stands = next((each for each in status.pools if each.name == pool.name), None)
        if self.first is None or self.pair is None or stands is None:
            return []
        longest, may = leaves_dns_ns(pool)[1], may_leave(stands, pool, status.mode)
        rows = self.idle(status, [self.first], pids)
        offered = not rows
        if offered:
            leaves = f"{address_of(self.first)} leaves within {spoken(longest)}"
            kept = f"it is kept: {why_kept(stands, status.mode)}"
            rows.append((f"kill {pids[self.first]}", leaves if may > 0 else kept))
        idle = self.idle(status, list(self.pair), pids)
        if idle:
            return rows + idle
        before = 1 if offered and may > 0 else 0
        one, other = pids[self.pair[0]], pids[self.pair[1]]
        says = {0: f"both are kept: {why_kept(stands, status.mode, before)}", 1: "one more leaves, one is kept"}
        then = says.get(may - before, "two more leave")
        return [*rows, (f"kill {one}; sleep {longest // SECOND + 2}; kill {other}", then)]

    def idle(self, status: Status, names: list[str], pids: Mapping[str, int | None]) -> list[tuple[str, str]]:
        """A line that says why these aren't offered: they are down, or no checks' verdict would change anything."""
        down = [address_of(name) for name in names if not pids[name]]
        if down:
            verb = "is" if len(down) == 1 else "are"
            return [(f"({' and '.join(down)} {verb} down)", self.down(status, down))]
        endpoint = status.endpoints[0] if status.endpoints else None
        if endpoint is None or endpoint.addresses is None:
            return []
        reasons = {each.address: each.reason for each in endpoint.out}
        found = []
        for address in map(address_of, names):
            if address in endpoint.kept:
                found.append((f"({address} is kept)", f"it looks dead already; {command()} explain {address}"))
            elif address not in endpoint.addresses:
                why = reasons.get(address, "not in service")
                found.append((f"({address} is out of DNS)", f"{why}; {command()} explain {address}"))
        return found

    def down(self, status: Status, addresses: list[str]) -> str:
        """What came of these deaths so far, and what starts something there again, if that is to come."""
        gone = self.gone()
        ends = [f"nothing runs at {each} until: {gone[each]}" if each in gone else BACK for each in addresses]
        return "; ".join(dict.fromkeys([*(came_of(status, each) for each in addresses), *ends]))


def answered(region: Region, status: Status) -> str:
    """How many addresses an answer for the first endpoint has. Our server draws them where their weights differ.

    What was launched beside the listed addresses weighs little at first, and the status doesn't say how much by now.
    """
    addresses = (status.endpoints[0].addresses or ()) if status.endpoints else ()
    targets = region.pool(region.endpoints[0].pool).targets
    weighs = {target.address: target.counts for target in targets}
    count, others = len(addresses), any(each not in weighs for each in addresses)
    if region.dns.provider == "embedded" and count > 1 and (others or len(set(weighs.values())) > 1):
        of = f" of {count}" if count > DRAWN_MOST else ""
        return f"up to {number(min(count, DRAWN_MOST))}{of} addresses, drawn by weight"
    return "one address" if count == 1 else f"{number(count)} addresses"


def address_of(name: str) -> str:
    """The address of a stand-in, by the supervisor's name for it."""
    return name.partition("/")[2]


def came_of(status: Status, address: str) -> str:
    """What came of a target's death so far."""
    endpoint = status.endpoints[0] if status.endpoints else None
    if endpoint is None or endpoint.addresses is None:
        return "DNS isn't known"
    if address in endpoint.kept:
        return "kept in DNS"
    return "still in DNS" if address in endpoint.addresses else "out of DNS"


def laid_out(rows: list[tuple[str, str]], columns: int) -> list[str]:
    """Commands, and beside each what it shows; beneath it where the command is too long for that."""
    most = columns - 3 - LEAST
    left = max((cells(row[0]) for row in rows if cells(row[0]) <= most), default=0)
    found = []
    for command_, see in rows:
        if cells(command_) <= left:
            found += fitted(f" {command_:<{left}}  {see}", columns, left + 3)
        else:
            found += [f" {command_}", *fitted(f" {'':<{left}}  {see}", columns, left + 3)]
    return found


def may_leave(stands: PoolStatus, pool: Pool, mode: str = "enabled") -> int:
    """How many targets of average weight automation may still take out now; 0 where that isn't known."""
    if stopped(stands, mode) or stands.budget is None or stands.max_out_targets is None or stands.targets == 0:
        return 0
    each = sum(target.counts for target in pool.targets) / len(pool.targets) if pool.targets else 1
    return max(0, min(int(stands.budget / each + 1e-6), stands.max_out_targets - (stands.out or 0)))


def stopped(stands: PoolStatus, mode: str) -> str:
    """Why automation takes nothing out at all; "" if it may."""
    if mode != "enabled" or stands.mode not in (None, "enabled"):
        return "automation is off here"
    return "the pool is in fail open" if stands.panic else ""


def why_kept(stands: PoolStatus, mode: str = "enabled", before: int = 0) -> str:
    """The limit that is reached, once so many more have left."""
    if why := stopped(stands, mode):
        return why
    if stands.max_out_targets is not None and stands.max_out_targets <= (stands.out or 0) + before:
        return "max_out is reached" + (" by the one above" if before else "")
    if stands.budget_next_s is None:
        return "the budget pays for one" if before else "what is left of the budget isn't known"
    return f"the budget is spent, the next in {spoken(int(stands.budget_next_s) * SECOND)}"


def number(count: int) -> str:
    """A small number in words."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    return words[count] if count < len(words) else str(count)


@functools.cache
def command() -> str:
    """How this program is called from here; looked up once, not at each drawing."""
    called = Path(sys.argv[0])
    whole = here() / called
    if shutil.which("fencepost") == str(whole) or called.name == str(called):
        return "fencepost"
    try:
        return str(whole.relative_to(here()))
    except ValueError:
        return str(called)
