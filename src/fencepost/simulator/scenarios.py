"""Named scenarios: how big a region, what may go wrong in it, for how long, and which promises are judged."""

from collections.abc import Mapping

from msgspec import Struct

from fencepost.core.instant import HOUR, MILLISECOND, MINUTE, SECOND, Duration
from fencepost.core.promises import ALWAYS, EVENTUALLY, FLEET
from fencepost.simulator.fleet.schedule import FLEET_KINDS
from fencepost.simulator.schedule import KINDS, Kind, Upset, swarm

QUIET: Duration = 15 * MINUTE
"""Within so long after everything stopped going wrong, a region must have converged."""
PROMISES = (*ALWAYS, *EVENTUALLY)
FLEET_PROMISES = tuple(FLEET)


class Scenario(Struct, frozen=True, gc=False):
    """A region and what may happen to it.

    ``pools`` gives each pool's (endpoints, targets). ``kinds`` may be drawn by a seed (``every``: all are), ``fixed``
    happen in each walk. Of ``lasts``, the last ``quiet`` are without upsets. ``mean`` is a call's mean latency (0:
    drawn). ``promises`` are judged. With ``fleet`` it is a fleet of hosts instead, of so many shards, each with so many
    managers (0: drawn).
    """

    name: str
    meaning: str
    kinds: tuple[str, ...] = ()
    every: bool = False
    fixed: tuple[Upset, ...] = ()
    pools: tuple[tuple[int, int], ...] = ((12, 6), (12, 12), (6, 3))
    enactors: int = 3
    planners: int = 2
    lasts: Duration = HOUR
    quiet: Duration = QUIET
    mean: Duration = 0
    promises: tuple[str, ...] = PROMISES
    fleet: bool = False
    hosts: int = 0
    shards: int = 0
    managers: int = 0

    @property
    def drawn_from(self) -> Mapping[str, Kind]:
        """Every kind of upset that there is for it."""
        return FLEET_KINDS if self.fleet else KINDS

    @property
    def judgeable(self) -> tuple[str, ...]:
        """Every promise that can be judged in it."""
        return FLEET_PROMISES if self.fleet else PROMISES

    @property
    def endpoints(self) -> int:
        """How many endpoints there are."""
        return sum(count for count, _ in self.pools)

    def upsets(self, seed: int) -> tuple[Upset, ...]:
        """What goes wrong in one seed's walk."""
        drawn = swarm(
            seed, self.kinds, self.lasts - self.quiet, self.endpoints, every=self.every, known=self.drawn_from
        )
        return tuple(sorted((*self.fixed, *drawn), key=lambda each: each.at))


HANDS = (
    "marker-deleted",
    "record-emptied",
    "marker-and-record-deleted",
    "record-altered",
    "marker-deleted-and-record-altered",
    "foreign-marker",
)
CUT_OFF = ("dns-away", "store-away", "cut-off-from-store", "cut-off-from-dns")
MESSAGES = ("answer-lost", "write-lost", "write-late", "delivered-twice")
PROCESSES = ("crash", "pause", "stopped-before-write", "local-file-lost")
TARGETS = (
    "target-dies",
    "target-flaps",
    "target-lies",
    "zone-lost",
    "checker-cut-off",
    "probes-lost",
)
PERSONS = (
    "repair",
    "repair-with-an-end",
    "rollback",
    "withdraw",
    "drain",
    "keep",
    "pause-automation",
    "reload",
    "endpoint-unlisted",
    "listing-empty",
)


def small(
    name: str,
    meaning: str,
    *,
    fixed: tuple[Upset, ...],
    lasts: Duration,
    quiet: Duration,
    pools: tuple[tuple[int, int], ...] = ((2, 6),),
    enactors: int = 2,
) -> Scenario:
    """A short scenario with a fixed schedule, small enough to read as a story: one pool, one planner, quick calls."""
    return Scenario(
        name,
        meaning,
        fixed=fixed,
        pools=pools,
        enactors=enactors,
        planners=1,
        lasts=lasts,
        quiet=quiet,
        mean=2 * MILLISECOND,
    )


SCENARIOS: dict[str, Scenario] = {
    each.name: each
    for each in (
        Scenario("swarm", "half of all kinds of upset, drawn by each seed: the default", tuple(KINDS)),
        Scenario("quiet", "nothing goes wrong"),
        small(
            "race",
            "October 2025: two enactors stand still between reading and writing, plans follow each other and old rows "
            "are cleaned up; then the two go on",
            fixed=(
                Upset(3 * MINUTE, "stopped-before-write", 0, 12 * MINUTE),
                Upset(3 * MINUTE, "stopped-before-write", 1, 13 * MINUTE),
                Upset(3 * MINUTE, "target-dies", 0, 2 * MINUTE),
                Upset(7 * MINUTE, "target-dies", 1, 2 * MINUTE),
                Upset(11 * MINUTE, "target-dies", 2, 15 * MINUTE),
            ),
            enactors=3,
            lasts=30 * MINUTE,
            quiet=10 * MINUTE,
        ),
        Scenario(
            "store-outage",
            "the store is away, lost, set back to an old copy, while records are edited by hand and targets die",
            ("store-away", "store-wiped", "store-restored", *HANDS[:4], *TARGETS[:1], *PROCESSES),
            every=True,
        ),
        Scenario(
            "bad-hands",
            "records and markers are deleted, emptied and altered by hand, and parts crash meanwhile",
            (*HANDS, *PROCESSES, *MESSAGES),
            every=True,
        ),
        Scenario(
            "flapping-targets",
            "targets die, flap and lie, zones go, checkers are cut off",
            (*TARGETS, "crash", "drain"),
            every=True,
        ),
        Scenario(
            "operators",
            "persons repair, roll back, withdraw, release, drain, keep, pause and reload",
            (*PERSONS, *TARGETS[:2], *PROCESSES),
            every=True,
        ),
        Scenario(
            "lost-messages",
            "answers are lost, writes come late or twice, DNS and store go away",
            (*MESSAGES, *CUT_OFF, *PROCESSES, *TARGETS[:2]),
            every=True,
        ),
        small(
            "outage",
            "the store goes away, records are emptied and healed without it; then it is lost, and made again from what "
            "stands in DNS",
            fixed=(
                Upset(2 * MINUTE, "store-away", 0, 3 * MINUTE),
                Upset(3 * MINUTE, "record-emptied", 1),
                Upset(3 * MINUTE + 30 * SECOND, "record-altered", 0),
                Upset(4 * MINUTE, "record-emptied", 0),
                Upset(6 * MINUTE, "store-wiped"),
                Upset(6 * MINUTE + SECOND, "record-altered", 0),
                Upset(8 * MINUTE, "target-dies", 0, 2 * MINUTE),
            ),
            lasts=24 * MINUTE,
            quiet=8 * MINUTE,
        ),
        small(
            "marker-lost-twice",
            "an enactor stands still about to make a lost marker anew; the content changes, the marker is lost again",
            fixed=(
                Upset(2 * MINUTE, "stopped-before-write", 0, 6 * MINUTE),
                Upset(2 * MINUTE, "pause", 1, 20 * SECOND),
                Upset(2 * MINUTE + SECOND, "marker-deleted", 0),
                Upset(3 * MINUTE, "target-dies", 0, 9 * MINUTE),
                Upset(7 * MINUTE + 50 * SECOND, "pause", 1, 30 * SECOND),
                Upset(7 * MINUTE + 55 * SECOND, "marker-deleted", 0),
            ),
            lasts=20 * MINUTE,
            quiet=8 * MINUTE,
        ),
        small(
            "enactors-stopped",
            "both enactors stand still while plans follow each other and the janitor goes round",
            fixed=(
                Upset(2 * MINUTE, "pause", 0, 16 * MINUTE),
                Upset(2 * MINUTE, "pause", 1, 16 * MINUTE),
                *(Upset((3 + 3 * n) * MINUTE, "target-dies", n, 30 * SECOND) for n in range(4)),
            ),
            lasts=30 * MINUTE,
            quiet=10 * MINUTE,
        ),
        small(
            "two-repairs",
            "a repair's release waits for a planner that stands still; meanwhile the endpoint is repaired once more",
            fixed=(
                Upset(2 * MINUTE, "repair", 0, 2 * MINUTE + 10 * SECOND),
                Upset(4 * MINUTE, "pause", 2, 2 * MINUTE),
                Upset(5 * MINUTE, "repair", 0, 4 * MINUTE),
            ),
            lasts=18 * MINUTE,
            quiet=7 * MINUTE,
        ),
        small(
            "hold",
            "a person repairs an endpoint while the store is away; it is emptied, healed, adopted and released",
            fixed=(
                Upset(2 * MINUTE, "store-away", 0, 2 * MINUTE),
                Upset(2 * MINUTE + 30 * SECOND, "repair", 0, 6 * MINUTE),
                Upset(3 * MINUTE, "record-emptied", 0),
                Upset(5 * MINUTE, "marker-deleted", 1),
                Upset(6 * MINUTE, "crash", 2),
            ),
            lasts=16 * MINUTE,
            quiet=6 * MINUTE,
        ),
        small(
            "first-minutes",
            "five minutes of a small region: the start, one death, one return",
            fixed=(Upset(2 * MINUTE, "target-dies", 0, 45 * SECOND),),
            pools=((2, 3),),
            lasts=7 * MINUTE,
            quiet=3 * MINUTE,
        ),
        Scenario(
            "fleet",
            "hosts, their managers over one to three shards, leases and placement; half of all kinds of upset",
            tuple(FLEET_KINDS),
            lasts=40 * MINUTE,
            quiet=10 * MINUTE,
            promises=FLEET_PROMISES,
            fleet=True,
        ),
    )
}
"""Every scenario, by name."""
