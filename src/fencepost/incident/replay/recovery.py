"""One try at recovering for good: an outage, nobody at the keyboard, and at most one thing done about it an hour later.

*For good*: leases that haven't run out yet look like recovery, so a moment counts only if everything after it is well,
and for long enough. What is done is done to the replay's own parts: more workers, part of the line dropped by
restarting managers, new leases throttled. Nothing is added to the region for it.
"""

import numpy as np
from msgspec import Struct, structs

from fencepost.incident.replay.guards import Guards
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import FAILING, Outcome
from fencepost.incident.replay.region import Region
from fencepost.incident.replay.run import forced_at, replay
from fencepost.incident.replay.scenario import Scenario, Tick, Value

WITHIN_S = 4 * 3600
"""Who hasn't recovered by then never does; counted from the store's return, or from what was done."""
SETTLED_S = 900
"""So long all has to be well at the end."""
MISSING = 0.01
LATER_S = 3600
"""So long after the store's return something is done: whoever recovers alone has by then."""
MANAGERS = 20
"""Parts of the line that can be dropped one by one."""


class Intervention(Struct, frozen=True, gc=False):
    """What is done: ``workers`` times as many from then on; ``managers`` of :data:`MANAGERS` restarted at once, each
    with its part of the line; ``rate`` new leases let in a second, for 100,000 hosts (None: all)."""

    workers: float = 1.0
    managers: int = 0
    rate: float | None = None


NOTHING = Intervention()


class Recovery(Struct, frozen=True, gc=False):
    """``minutes`` from the store's return until all is well for good, None: never. ``work`` is the work done, to the
    part of it that somebody still waited for; None where there was none of that."""

    minutes: float | None
    work: float | None


class Intervened(Region):
    """A region in which that is done at a tick."""

    def __init__(
        self, scenario: Scenario, hosts: int, seed: int, guards: Guards, *, done: Intervention, at: Tick
    ) -> None:
        """Everything is well."""
        super().__init__(scenario, hosts, seed, guards)
        self._done: Intervention | None = done
        self._at = at

    def step(self, now: Tick) -> None:
        """Once it is time, that first."""
        if self._done is not None and now >= self._at:
            self._do(self._done, now)
            self._done = None
        super().step(now)

    def _do(self, done: Intervention, now: Tick) -> None:
        values, part = self.workers.values, self.leases.part
        self.workers.values = structs.replace(values, knee=values.knee * done.workers, pool=values.pool * done.workers)
        if done.rate is not None:
            part.throttle(done.rate * self.scale, self.scenario.amount("throttle.burst"))
        for manager in range(done.managers):
            part.restart(now, manager, MANAGERS)


def recovery(scenario: Scenario, options: Options, done: Intervention = NOTHING) -> Recovery:
    """Try it. ``options`` force the outage; nobody is at the keyboard."""
    begins, length = forced_at(scenario, options.seed) or 0, options.outage_s or 0
    restored = begins + length
    acts_at = restored + LATER_S
    lasts = (restored if done == NOTHING else acts_at) + WITHIN_S + SETTLED_S
    short = structs.replace(scenario, lasts_s=lasts)
    options = structs.replace(options, operators=False)

    def region(scenario: Scenario, hosts: int, seed: int, guards: Guards) -> Region:
        return Intervened(scenario, hosts, seed, guards, done=done, at=acts_at)

    outcome = replay(short, options, Region if done == NOTHING else region)
    after, work = recovered_after(outcome, restored), outcome.figures["work_ratio"]
    return Recovery(None if after is None else round(after / 60, 1), None if work is None else round(work, 2))


def recovered_after(outcome: Outcome, restored: int) -> float | None:
    """Seconds from the store's return until all is well for good; None if it isn't."""
    wrong = (outcome.series["leases_missing"] > MISSING) | (outcome.series["launches_failing"] > FAILING)
    last = int(outcome.times[np.nonzero(wrong)[0][-1]]) if wrong.any() else 0
    if last + SETTLED_S > int(outcome.times[-1]):
        return None
    return max(0.0, float(last - restored))


def workers_needed(scenario: Scenario) -> float:
    """For 100,000 hosts: all leases anew within the time in which callers come back, and all renewals."""
    amount = scenario.amount
    back_s = max(amount("access.caches_return"), amount("leases.renewal"))
    anew, renewed = amount("workers.establish_cost") / back_s, amount("workers.renew_cost") / amount("leases.renewal")
    return 100_000 * (anew + renewed)


def with_workers(scenario: Scenario, knee: float) -> Scenario:
    """The same with so many workers at the knee, the pool in its proportion."""
    over = scenario.amount("workers.pool") / scenario.amount("workers.knee")
    values: dict[str, Value] = dict(scenario.values)
    for key, amount in (("workers.knee", knee), ("workers.pool", knee * over)):
        values[key] = structs.replace(values[key], amount=amount)
    return structs.replace(scenario, values=values)
