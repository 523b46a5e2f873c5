"""The DNS automation's own part of the incident: whether, when and how the endpoint is emptied is found by running it.

As it was: :mod:`.automation_as_it_was`. With the guard "clean-up" the same, but for a clean-up that spares what is
referred to. With the guard "fence" production's own planner, enactors and janitor: :mod:`.automation_fenced`. All go by
one schedule, :mod:`.automation_time`. A scenario that begins otherwise has no race: its outage begins when it says.
"""

import time
from functools import lru_cache

from msgspec import Struct

from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.incident.replay.automation_as_it_was import Raced, race
from fencepost.incident.replay.automation_fenced import Fenced, fenced
from fencepost.incident.replay.automation_time import DnsValues, dns_values
from fencepost.incident.replay.guards import Guard, Guards
from fencepost.incident.replay.outcome import Line
from fencepost.incident.replay.scenario import Cause, Scenario, Tick


class Automation(Struct, frozen=True):
    """What came of the automation.

    ``empty_at``: when the regional endpoint was emptied, None if it never was; ``stuck``: whether the automation, left
    to itself for half an hour, didn't mend it. ``emptied`` endpoints lost their addresses in all. ``stale_s`` is how
    long the regional endpoint answered from an older plan than before. ``fenced`` writes were refused since something
    newer stood there, ``writes`` applied. ``cpu`` seconds were spent, the first time that it was asked.
    """

    empty_at: Tick | None = None
    told: tuple[Line, ...] = ()
    stuck: bool = False
    fenced: int = 0
    writes: int = 0
    emptied: int = 0
    stale_s: float = 0.0
    cpu: float = 0.0


def automation(scenario: Scenario, guards: Guards, seed: int) -> Automation:
    """Run it, or remember how it ran. Raises ``Misconfigured`` or ``KeyError`` for values that aren't given."""
    match scenario.cause:
        case Cause.DNS_RACE:
            values = dns_values(scenario)
            if Guard.FENCE in guards:
                return _fenced(values, seed, scenario.lasts_s * SECOND)
            return _raced(values, seed, scenario.lasts_s * SECOND, Guard.CLEAN_UP in guards)
        case Cause.STORE_AWAY:
            return Automation(int(scenario.amount("outage.begins")))
        case Cause.BAD_PROBE:
            return Automation()


@lru_cache(256)
def _raced(values: DnsValues, seed: int, end: Instant, spares: bool) -> Automation:
    begun = time.process_time()
    raced = _race(values, seed, end, spares)
    return Automation(
        empty_at=_tick(raced.empty_at),
        told=raced.lines,
        stuck=raced.empty_at is not None and raced.mended_at is None,
        writes=raced.turns,
        emptied=raced.emptied,
        stale_s=_seconds(raced.stale),
        cpu=time.process_time() - begun,
    )


@lru_cache(256)
def _fenced(values: DnsValues, seed: int, end: Instant) -> Automation:
    begun = time.process_time()
    found: Fenced = fenced(values, seed, end, _race(values, seed, end, False).late)
    return Automation(
        empty_at=_tick(found.empty_at),
        told=found.lines,
        stuck=found.empty_at is not None and found.mended_at is None,
        fenced=found.refused,
        writes=found.writes,
        emptied=found.emptied,
        stale_s=_seconds(found.stale),
        cpu=time.process_time() - begun,
    )


@lru_cache(256)
def _race(values: DnsValues, seed: int, end: Instant, spares: bool) -> Raced:
    """The race as it was; the fenced run takes enactor A's delays from it."""
    return race(values, seed, end, spares=spares)


def _tick(at: Instant | None) -> Tick | None:
    return None if at is None else at // SECOND


def _seconds(span: Duration) -> float:
    return span / SECOND
