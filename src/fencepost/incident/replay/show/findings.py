"""What is worth saying about a course of things, found in its numbers: nothing here knows how it came out before."""

import numpy as np
from msgspec import Struct

from fencepost.incident.replay.outcome import FAILING, Outcome
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.show.hours import Hours, count, percent, spoken
from fencepost.incident.replay.show.naming import GIVEN

LONG_S = 20 * 60
"""A standstill worth saying lasts so long."""
JUMP_S = 10 * 60
"""As much work that arrives at once is worth saying."""


class Finding(Struct, frozen=True, gc=False):
    """Something to be said at one point of a chart: the tick, the quantity's value there, and one or two lines."""

    at: Tick
    value: float
    lines: tuple[str, ...]


def restored_at(outcome: Outcome) -> Tick | None:
    """When the outage itself was over."""
    given = (act.name for act in outcome.scenario.acts if act.does == GIVEN)
    return next((outcome.happened[name] for name in given if name in outcome.happened), None)


def standstill(outcome: Outcome) -> Finding | None:
    """The longest that leases were worked for and none was regained, although the store could be reached by all."""
    began, hosts, hours = restored_at(outcome), outcome.options.hosts, Hours(outcome.scenario)
    if began is None:
        return None
    times, missing = outcome.times, outcome.series["leases_missing"]
    reached = np.flatnonzero((times > began) & (outcome.series["store_access"] > 0.9999))
    if not len(reached):
        return None
    first = int(reached[0])
    highest = np.maximum.accumulate(missing[first:])
    fallen = np.flatnonzero(missing[first:] < highest - 0.005)
    last = first + (int(fallen[0]) if len(fallen) else len(highest)) - 1
    still = np.flatnonzero(missing[first : last + 1] > highest[: last + 1 - first] - 0.5 / hosts)
    last = first + int(still[-1])
    lasted = int(times[last] - times[first])
    if missing[first] < 0.5 or lasted < LONG_S or not outcome.series["lease_queue"][first : last + 1].all():
        return None
    regained = round(float((highest[: last - first + 1] - missing[first : last + 1]).max()) * hosts)
    head = "every lease times out in the queue:" if not regained else "leases time out in the queue:"
    text = f"{count(regained)} regained {hours.at(times[first])}–{hours.at(times[last])}"
    middle = (first + last) // 2
    return Finding(int(times[middle]), float(missing[middle]), (head, text))


def back(outcome: Outcome) -> Finding | None:
    """When hosts had their leases again, if ever more than a hundredth had none."""
    times, missing = outcome.times, outcome.series["leases_missing"]
    many = np.flatnonzero(missing > 0.01)
    if not len(many) or many[-1] + 1 >= len(missing):
        return None
    at = int(many[-1]) + 1
    return Finding(int(times[at]), float(missing[at]), (f"back {Hours(outcome.scenario).at(times[at])}",))


def launches_normal(outcome: Outcome) -> Finding | None:
    """When launches were refused for the last time."""
    times, failing = outcome.times, outcome.series["launches_failing"]
    refused = np.flatnonzero(failing > FAILING)
    if not len(refused) or refused[-1] + 1 >= len(failing):
        return None
    at = int(refused[-1]) + 1
    return Finding(int(times[at]), float(failing[at]), (f"normal {Hours(outcome.scenario).at(times[at])}",))


def longest_line(outcome: Outcome) -> Finding | None:
    """The peak of the lease manager's line, and how much of it is wanted: a host can want one call at most."""
    queue, hosts = outcome.series["lease_queue"], outcome.options.hosts
    at = int(queue.argmax())
    peak = float(queue[at])
    if peak < 1:
        return None
    second = f"at most {hosts:,} of them wanted: one a host" if peak > 2 * hosts else ""
    return Finding(int(outcome.times[at]), peak, tuple(filter(None, (f"peak {count(peak)} calls,", second))))


def arrival(outcome: Outcome) -> Finding | None:
    """Network changes that come all at once."""
    work = outcome.series["network_work"]
    grown = np.diff(work, prepend=work[:1])
    window = np.convolve(grown, np.ones(50), "valid")
    if not len(window) or window.max() < JUMP_S:
        return None
    at = min(int(window.argmax()) + 49, len(work) - 1)
    tick = int(outcome.times[at])
    lines = (
        f"{Hours(outcome.scenario).at(tick)}: held changes and whole states",
        f"arrive at once: {spoken(float(work[at]))} of work",
    )
    return Finding(tick, float(outcome.series["network_age"][at]), lines)


def longest_wait(outcome: Outcome) -> Finding | None:
    """The longest that a new instance waits for its network state."""
    age = outcome.series["network_age"]
    at = int(age.argmax())
    if age[at] < 120:
        return None
    tick = int(outcome.times[at])
    text = f"a new instance waits {spoken(float(age[at]))} ({Hours(outcome.scenario).at(tick)})"
    return Finding(tick, float(age[at]), (text,))


def removal(outcome: Outcome) -> Finding | None:
    """Healthy capacity that automation takes out."""
    out, late = outcome.series["capacity_out"], outcome.series["results_late"]
    worst = float(out.max())
    if worst < 0.01:
        return None
    at = int(np.flatnonzero(out > worst / 2)[0])
    lines = (
        f"{percent(float(late.max()))} of checks come too late:" if late.max() > 0 else "zones look dead:",
        f"failover removes up to {percent(worst)} that is well",
    )
    return Finding(int(outcome.times[at]), 1 - float(out[at]), lines)
