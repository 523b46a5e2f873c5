"""Time and chance of the DNS automation: one heap of moves in virtual nanoseconds, and how long each call takes.

The same schedule is used for the enactors of October 2025 and for production's: when plans are made, how long the calls
of each enactor take (a stream of its own from the seed), and which pass of enactor A is the unlucky one. Everything is
counted from the scenario's beginning.

The slow spell is one pass: the first for which enactor A has picked a plan once the spell has begun. In it each of A's
calls takes so many times longer. That A loses the lock more often then isn't given: it follows from the longer time
between its reading a lock and its writing, in which others write.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import cycle
from typing import TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.incident.replay.outcome import Line
from fencepost.incident.replay.scenario import Scenario
from fencepost.ports import Misconfigured

ENACTORS = ("enactor A", "enactor B", "enactor C")
"""One a failure zone; the first is the unlucky one."""
REGIONAL = 0
"""The regional endpoint's place among the endpoints."""
REGIONAL_NAME = "the regional endpoint"
DRAWN = 4096
Act: TypeAlias = Callable[[], None]


class DnsValues(Struct, frozen=True):
    """The scenario's section ``dns``; durations in seconds.

    ``place_*``: after which share of its walk each enactor comes to the regional endpoint. ``call`` and ``call_spread``
    (standard deviation over mean) are a call's length, ``deletion`` that of deleting a plan's whole tree. ``plans``
    apart a plan is made, give or take ``plans_vary``. Clean-up deletes plans ``generations`` or more behind. ``slow``
    times longer take A's calls in the pass that begins after ``slow_begins``. A loser waits ``back_off``, twice as long
    each time, at most ``back_off_most``.
    """

    endpoints: int
    place_a: float
    place_b: float
    place_c: float
    call: float
    call_spread: float
    plans: float
    plans_vary: float
    generations: int
    deletion: float
    look: float
    slow: float
    slow_begins: float
    back_off: float
    back_off_most: float


class Chance:
    """How long an enactor's calls take; each draws one factor, in the order in which they are made."""

    def __init__(self, values: DnsValues, seed: int, purpose: int) -> None:
        """A stream of its own for each purpose. Factors are log-normal around 1."""
        sigma = float(np.sqrt(np.log1p(values.call_spread**2)))
        drawn = np.random.default_rng((seed, purpose)).lognormal(-(sigma**2) / 2, sigma, DRAWN)
        self._mean = values.call * SECOND
        self._factors = cycle(drawn.tolist())

    def call(self, times: float = 1.0) -> Duration:
        """One call, so many times longer than usual."""
        return int(next(self._factors) * self._mean * times)

    def lasting(self, seconds: float) -> Duration:
        """What takes so many seconds in the mean."""
        return int(next(self._factors) * seconds * SECOND)


class Timeline:
    """The heap of moves. Equal times are told apart by the order in which they were put in."""

    def __init__(self, end: Instant) -> None:
        """Nothing is to happen yet; whoever knows better may change the ``end``."""
        self.now: Instant = 0
        self.end = end
        self.lines: list[Line] = []
        self._heap: list[tuple[Instant, int, Act]] = []
        self._sequence = 0

    def later(self, after: Duration, act: Act) -> None:
        """A move to come."""
        self._sequence += 1
        heappush(self._heap, (self.now + after, self._sequence, act))

    def run(self) -> None:
        """Take every move up to the end."""
        heap = self._heap
        while heap and heap[0][0] <= self.end:
            self.now, _, act = heappop(heap)
            act()
        self.now = self.end

    def tell(self, who: str, what: str) -> None:
        """Something is said or done that belongs to the story."""
        self.lines.append(Line(self.now // SECOND, who, what))


def dns_values(scenario: Scenario) -> DnsValues:
    """The scenario's section. Raises ``Misconfigured`` for one that is missing, or too small to walk."""
    section: dict[str, float] = scenario.section("dns")
    whole = {key: round(section[key]) for key in ("endpoints", "generations") if key in section}
    try:
        values = msgspec.convert(section | whole, DnsValues)
    except msgspec.ValidationError as error:
        raise Misconfigured(str(error), where="[values.dns]", hint="give all that the race needs") from None
    for key in ("endpoints", "generations", "call", "plans"):
        if getattr(values, key) <= 0:
            raise Misconfigured(f"{key} is {getattr(values, key):g}", where=f"dns.{key}", hint="it is to be above 0")
    return values


def orders(values: DnsValues) -> tuple[tuple[int, ...], ...]:
    """In which order each enactor walks the endpoints: from a place of its own, going round."""
    every = tuple(range(values.endpoints))
    places = (values.place_a, values.place_b, values.place_c)
    starts = [-round(place * values.endpoints) % values.endpoints for place in places]
    return tuple(every[start:] + every[:start] for start in starts)


def plan_times(values: DnsValues, seed: int, end: Instant) -> tuple[Instant, ...]:
    """When the planner makes each plan."""
    most = int(end / (values.plans * SECOND * (1 - values.plans_vary))) + 2
    drawn = np.random.default_rng((seed, len(ENACTORS))).uniform(1 - values.plans_vary, 1 + values.plans_vary, most)
    times = np.cumsum(drawn * values.plans * SECOND).astype(np.int64).tolist()
    return tuple(at for at in times if at <= end)
