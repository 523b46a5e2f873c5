"""Alarms: when what looks dead is more likely the checks' fault than the targets'.

Three, from mild to strong. *Suspect* slows the refill of the removal budget to a tenth: 15 % dead and still in
service, or 20 % of targets flapping (the alternating checks of October 2025). *Freeze* stops removal for 60 s from the
moment when 30 points more of the pool turned sick within 20 s. *Panic* (fail open) stops it while half of the pool
looks dead, and puts back what automation took out in the last 15 minutes.

A share is the larger of two: of the pool's targets and of its weight. Weights may be what targets say of themselves,
so a big number from one that is well can't hide that the others are dead.

All speak in shares, so each needs at least two sick targets still in service: in a pool of three, one death is 33 %.

Awkward truth: a real die-off of half a pool is served until a person drains it. That is the price; status says so.
"""

from collections.abc import Callable, Iterable

import msgspec

from fencepost.core.instant import Instant
from fencepost.core.traffic.limits import PPM, SafetySettings, Standing, within_max_out
from fencepost.core.traffic.membership import MICRO, SERVING, Member, OverrideKind, State, Voter
from fencepost.core.traffic.quorum import LEAST_VOTES

LEAST_SICK = 2
"""Sick targets in service below which no share means anything."""


class Sickness(msgspec.Struct, frozen=True, gc=False):
    """How sick the pool looks; capacities in micro-capacity, shares in parts per million.

    Each share is the larger of that by number of targets and that by weight.

    dead: share dead by quorum, out ones included; those an operator keeps are not judged.
    dead_in, dead_in_count: dead and still in service, as a share and in targets.
    sick: share dead or failing now, out ones included.   sick_in, sick_in_count: in service, capacity and targets.
    flapping: targets that fell twice within the window.
    """

    dead: int
    dead_in: int
    dead_in_count: int
    sick: int
    sick_in: int
    sick_in_count: int
    flapping: int


def sickness(
    members: Iterable[Member], failing: Callable[[str], bool], pool: Standing, now: Instant, settings: SafetySettings
) -> Sickness:
    """Add it up. `failing` says of a key whether its newest probes fail everywhere."""
    dead = dead_in = dead_count = dead_in_count = sick = sick_in = sick_count = sick_in_count = flapping = 0
    for member in members:
        serving = member.state in SERVING
        if not serving and member.state is not State.OUT:
            continue
        if len(member.falls) > 1 and now - member.falls[1] <= settings.flap_window_ns:
            flapping += 1
        if member.forced is OverrideKind.KEEP:
            continue
        size = member.capacity * MICRO
        is_dead = member.healthy is False
        if is_dead:
            dead += size
            dead_count += 1
            if serving:
                dead_in += size
                dead_in_count += 1
        if is_dead or failing(member.key):
            sick += size
            sick_count += 1
            if serving:
                sick_in += size
                sick_in_count += 1
    return Sickness(
        _share(dead, dead_count, pool),
        _share(dead_in, dead_in_count, pool),
        dead_in_count,
        _share(sick, sick_count, pool),
        sick_in,
        sick_in_count,
        flapping,
    )


def _share(capacity: int, count: int, pool: Standing) -> int:
    """The larger of the shares by weight and by number."""
    return max(capacity * PPM // max(pool.capacity, 1), count * PPM // max(pool.count, 1))


def suspicion(how: Sickness, pool: Standing, settings: SafetySettings) -> str:
    """Why the pool is suspect; empty when it isn't."""
    if how.dead_in_count >= LEAST_SICK and how.dead_in >= settings.suspect_ppm:
        return "many dead"
    if how.flapping >= LEAST_SICK and how.flapping * PPM >= settings.flap_ppm * pool.count:
        return "flapping"
    return ""


class Memory(msgspec.Struct):
    """What one load balancer remembers for the alarms.

    samples: (when, share sick) of the last 20 s and the one before; none at start.
    rounds: calm rounds since the last uncalm pass.   marks: beat numbers when the last round was counted.
    """

    samples: tuple[tuple[Instant, int], ...] = ()
    rounds: int = 0
    marks: dict[str, int] = msgspec.field(default_factory=dict)

    def edge(self, how: Sickness, before: int, pool: Standing, now: Instant, settings: SafetySettings) -> bool:
        """Whether the pool turned much sicker within the window, and more so than `max_out` allows.

        before: the share sick as the row has it, for a load balancer that has just started.
        """
        samples = self.samples or ((now, before),)
        start = now - settings.edge_window_ns
        recent = tuple(each for each in samples if start < each[0] <= now)
        older = tuple(each for each in samples if each[0] <= start)
        lowest = min((share for _, share in older[-1:] + recent), default=how.sick)
        self.samples = older[-1:] + recent
        if not recent or recent[-1][1] != how.sick or now - recent[-1][0] >= settings.edge_window_ns // 20:
            self.samples += ((now, how.sick),)
        if how.sick_in_count < LEAST_SICK or how.sick - lowest < settings.edge_ppm:
            return False
        return not within_max_out(pool.out_count + how.sick_in_count, pool.out_capacity + how.sick_in, pool, settings)

    def calm_rounds(self, calm: bool, voters: tuple[Voter, ...], numbers: dict[str, int]) -> int:
        """Full rounds of fresh reports in which the pool was calm, without a break."""
        if not calm:
            self.rounds, self.marks = 0, dict(numbers)
            return 0
        fresh = [voter.zone for voter in voters if voter.state == "ok"]
        if len(fresh) >= LEAST_VOTES and all(self.marks.get(zone) != numbers[zone] for zone in fresh):
            self.rounds, self.marks = self.rounds + 1, dict(numbers)
        return self.rounds

    def clear(self) -> None:
        """Counters to zero, as after fail open and when automation is turned on again."""
        self.samples, self.rounds, self.marks = (), 0, {}

    def __copy__(self) -> "Memory":
        return Memory(self.samples, self.rounds, dict(self.marks))
