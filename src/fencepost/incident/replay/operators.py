"""What people can do to the region. When they do it is in the scenario; here is what it is, and how long it goes on."""

from typing import TYPE_CHECKING

from fencepost.incident.replay.scenario import Scenario, Tick

if TYPE_CHECKING:
    from fencepost.incident.replay.region import Region

DEEDS = {
    "restore-store": "the store can be found again, by each caller as its caches let go",
    "limit-launches": "so many launches a second, more once hosts have leases",
    "relax-launches": "the limit grows as long as the network is normal",
    "throttle-leases": "so many new leases a second; managers are restarted one after the other",
    "failover-off": "zones of balancers are no longer taken out by automation, and those out come back",
    "failover-on": "automation may take zones out again",
    "mend-probe": "the health check that fails for what is well is rolled back",
    "mitigate-inside": "nothing in the region's own machinery: dependents that it helps name it in their rules",
    "restart-pollers": "the same",
}
"""What an act does, by its name in the file."""


class LaunchLimit:
    """How many launches a second people let in: few, then more once hosts have leases, then ever more."""

    __slots__ = ("_each_s", "_first", "_growth", "_leased", "_limit", "_next", "_then", "_wide")

    def __init__(self, scenario: Scenario, scale: float) -> None:
        """No limit."""
        values = scenario.section("limit")
        self._first, self._then = values["first"] * scale, values["then"] * scale
        self._leased, self._growth, self._each_s = values["leased"], values["growth"], values["each"]
        self._limit: float | None = None
        self._next: Tick | None = None
        self._wide = False

    def begin(self) -> None:
        """From now on there is one."""
        self._limit = self._first

    def relax(self, now: Tick) -> None:
        """From now on it grows."""
        self._next = now

    def most(self, now: Tick, leased: float, normal: bool) -> float | None:
        """Launches a second; None without a limit. ``leased`` of the hosts have a lease; ``normal``: the network."""
        if self._limit is None:
            return None
        if not self._wide and leased >= self._leased:
            self._wide, self._limit = True, max(self._limit, self._then)
        if self._next is not None and now >= self._next and normal:
            self._limit *= 1 + self._growth
            self._next = now + int(self._each_s)
        return self._limit


class Restarts:
    """Managers restarted one after the other, each with its part of the line."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        """None under way."""
        self._left: list[tuple[Tick, int, int]] = []

    def begin(self, now: Tick, waves: int, wave_s: int) -> None:
        """From now on, so many waves so far apart."""
        self._left = [(now + wave * wave_s, wave, waves) for wave in range(waves)]

    def due(self, now: Tick) -> list[tuple[int, int]]:
        """Which part of how many is to be restarted by now."""
        due = [(wave, waves) for at, wave, waves in self._left if at <= now]
        self._left = [each for each in self._left if each[0] > now]
        return due


class Probe:
    """A bad health check on its way to all checkers of one zone, until it is rolled back; none in most scenarios."""

    __slots__ = ("_begins", "_fails", "_rollout_s")

    def __init__(self, scenario: Scenario) -> None:
        """As the scenario says."""
        values = scenario.section("probe")
        self._begins, self._rollout_s = values.get("begins", 0.0), values.get("rollout", 0.0)
        self._fails = values.get("fails", 0.0)

    def mend(self) -> None:
        """It is rolled back, everywhere at once."""
        self._fails = 0.0

    def fails(self, now: Tick) -> float:
        """So large a share of the checks of what is well fails in that zone."""
        if not self._fails or now < self._begins:
            return 0.0
        return self._fails * min(1.0, (now - self._begins) / max(1.0, self._rollout_s))


def perform(deed: str, region: "Region", now: Tick) -> None:
    """Do it."""
    scenario = region.scenario
    if deed == "restore-store":
        region.restore(now)
    elif deed == "limit-launches":
        region.limit.begin()
    elif deed == "relax-launches":
        region.limit.relax(now)
    elif deed == "throttle-leases":
        values = scenario.section("throttle")
        region.leases.part.throttle(values["rate"] * region.scale, values["burst"])
        region.restarts.begin(now, int(values["waves"]), int(values["wave"]))
    elif deed == "mend-probe":
        region.probe.mend()
    elif deed in ("failover-off", "failover-on"):
        region.balancers.failover_on = deed == "failover-on"
