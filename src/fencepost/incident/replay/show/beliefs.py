"""What each part believed at each moment, and what was so: the incident is the distance between the two.

No host was broken, no disk was full, no zone was dead. Each part acted well on what it saw. Both columns are said from
the run's own numbers, and from the lines that its parts left.
"""

from collections.abc import Callable

from msgspec import Struct

from fencepost.incident.replay.automation import automation
from fencepost.incident.replay.outcome import FAILING, Outcome
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.show.hours import Hours, count, percent, spoken
from fencepost.incident.replay.show.naming import GIVEN, moments

EACH_S = 300
"""Looked at so often, and whenever something happened."""
LITTLE = 0.01


class Belief(Struct, frozen=True, gc=False, array_like=True):
    """From a tick on, until the next: what the part believed or did, and what was so."""

    at: Tick
    believed: str
    so: str


class Part(Struct, frozen=True, gc=False):
    """One part, and its beliefs in order of time."""

    name: str
    beliefs: tuple[Belief, ...]


class Seen(Struct, frozen=True, gc=False):
    """The region at one moment: quantities by name, its hosts, and what had happened until then."""

    quantities: dict[str, float]
    hosts: int
    past: frozenset[str]

    def __getitem__(self, name: str) -> float:
        """A quantity."""
        return self.quantities[name]

    @property
    def broken(self) -> str:
        """The hosts without a lease, in words."""
        return f"{count(_rounded(self['leases_missing'] * self.hosts))} of {self.hosts:,} hosts"


def beliefs(outcome: Outcome) -> tuple[Part, ...]:
    """All parts, in the order of the cascade."""
    ticks = sorted({*range(0, outcome.scenario.lasts_s + 1, EACH_S), *outcome.happened.values(), int(outcome.times[0])})
    seen = [(tick, _seen(outcome, tick)) for tick in ticks if tick <= outcome.scenario.lasts_s]
    found = [_from_lines(outcome, who) for who in dict.fromkeys(line.who for line in outcome.lines)]
    found += [Part(name, _told(seen, say)) for name, say in PARTS]
    if outcome.scenario.dependents:
        found.append(Part("Services that depend on it", _merged([_down(outcome, tick) for tick, _ in seen])))
    return (*found, Part("People", _merged([_people(outcome, tick) for tick, _ in seen])))


def at(part: Part, tick: Tick) -> Belief | None:
    """What it believed then; None before it believed anything."""
    return next((each for each in reversed(part.beliefs) if each.at <= tick), None)


def _seen(outcome: Outcome, tick: Tick) -> Seen:
    index = min(int(outcome.times.searchsorted(tick)), len(outcome.times) - 1)
    past = frozenset(name for name, then in outcome.happened.items() if then <= tick)
    numbers = {name: float(values[index]) for name, values in outcome.series.items()}
    return Seen(numbers, outcome.options.hosts, past)


def _told(seen: list[tuple[Tick, Seen]], say: Callable[[Seen], tuple[str, str]]) -> tuple[Belief, ...]:
    return _merged([Belief(tick, *say(each)) for tick, each in seen])


def _merged(found: list[Belief]) -> tuple[Belief, ...]:
    """Without those that say what the one before said."""
    kept: list[Belief] = []
    for each in found:
        if not kept or (each.believed, each.so) != (kept[-1].believed, kept[-1].so):
            kept.append(each)
    return tuple(kept)


def _from_lines(outcome: Outcome, who: str) -> Part:
    """What a part said last, and when; once the outage is over, who ended it."""
    scenario, seed, hours = outcome.scenario, outcome.options.seed, Hours(outcome.scenario)
    lines: dict[Tick, list[str]] = {}
    for line in outcome.lines:
        if line.who == who:
            lines.setdefault(line.at, []).append(line.what)
    more = ""
    if outcome.options.outage_s is not None and automation(scenario, outcome.options.guards, seed).empty_at is None:
        more = "; the outage of this run is forced all the same"
    found = [Belief(tick, "; ".join(what), f"said at {hours.at(tick)}{more}") for tick, what in lines.items()]
    for act in scenario.acts:
        ended = outcome.happened.get(act.name)
        if act.does == GIVEN and ended is not None and found[-1].at <= ended:
            found.append(Belief(ended, found[-1].believed, f"{found[-1].so}; {hours.at(ended)} {act.words}"))
    return Part(who[:1].upper() + who[1:], tuple(found))


def _callers(seen: Seen) -> tuple[str, str]:
    lost = 1 - seen["store_access"]
    if lost < 0.0005:
        return "the store answers", "it does"
    if seen["dns_empty"]:
        return (
            f"{_about(lost)} find no such store; the others still hold an open connection",
            "the store is well; only its name has no address",
        )
    return f"{_about(lost)} still find no such store", "the name has addresses again; their caches don't know yet"


def _leases(seen: Seen) -> tuple[str, str]:
    if seen["leases_missing"] < LITTLE:
        return "every host holds its lease", "they do"
    queue = seen["lease_queue"]
    wanted = seen["leases_missing"] * seen.hosts
    if queue > 2 * wanted:
        waste = f"; {count(_rounded(queue - wanted))} calls are wanted by nobody any more"
        return f"{seen.broken} are broken; {count(_rounded(queue))} calls are in line", f"every host runs well{waste}"
    line = f"; {count(_rounded(queue))} calls are in line" if queue >= 1 else ""
    return f"{seen.broken} are broken{line}", "every host runs well; only its lease ran out"


def _launches(seen: Seen) -> tuple[str, str]:
    failing, admitted = seen["launches_failing"], f"{seen['launches_admitted']:.3g} a second start"
    if failing <= FAILING:
        return f"there is capacity: {admitted}", "all that are asked for start"
    believed = f"there isn't enough capacity: {_about(failing)} refused"
    if seen["leases_missing"] >= LITTLE:
        return believed, f"hosts have room; {_about(seen['leases_missing'])} of them may not be used without a lease"
    if "launches-limited" in seen.past:
        return believed, f"hosts have room and leases; people let in {seen['launches_admitted']:.3g} a second"
    return believed, f"hosts have room and leases; {admitted}, more are asked for again and again"


def _network(seen: Seen) -> tuple[str, str]:
    work, age = seen["network_work"], seen["network_age"]
    if work < 120:
        return "all hosts have their network state", "they have"
    if age < 1:
        return f"{_span(work)} of changes are held back or in line", "no new instance waits for them"
    return (
        f"{_span(work)} of changes are in line, the oldest first",
        f"a new instance waits {_span(age)} for its network",
    )


def _checkers(seen: Seen) -> tuple[str, str]:
    unready, late = seen["targets_unready"], seen["results_late"]
    if unready < 0.0005 and late < 0.0005:
        return "targets pass", "they are well"
    so = f"{_about(unready)} of targets only wait for their network state; nothing is broken"
    if unready < 0.0005:
        so = "all targets are well"
    if late < 0.0005:
        return "some targets fail, pass and fail again", so
    return f"targets flap; {_about(late)} of results come too late and count as failed", so


def _failover(seen: Seen) -> tuple[str, str]:
    out, errors = seen["capacity_out"], seen["connection_errors"]
    so = f"{_about(errors)} of connections fail" if errors > 0.001 else "connections succeed"
    if "failover-off" in seen.past and "failover-on" not in seen.past:
        return "switched off by people", so
    if out < LITTLE:
        return "no zone is dead", so
    return f"zones are dead: {_about(out)} of capacity taken out of DNS", f"that capacity is healthy; {so}"


PARTS: tuple[tuple[str, Callable[[Seen], tuple[str, str]]], ...] = (
    ("Callers of the store", _callers),
    ("Lease manager", _leases),
    ("Launches", _launches),
    ("Network manager", _network),
    ("Health checkers", _checkers),
    ("Zone failover", _failover),
)
"""Who believes, and how it is said."""


def _down(outcome: Outcome, tick: Tick) -> Belief:
    down = [
        each.title
        for each in outcome.scenario.dependents
        if any(begun <= tick and (ended is None or tick < ended) for begun, ended in outcome.down.get(each.name, ()))
    ]
    return Belief(tick, ", ".join(down) or "none is down", f"{len(down)} of {len(outcome.scenario.dependents)} down")


def _people(outcome: Outcome, tick: Tick) -> Belief:
    """The last thing they did, and the last that could be seen."""
    hours, acts = Hours(outcome.scenario), {act.name for act in outcome.scenario.acts}
    last = {True: ("nothing done yet", -1), False: ("nothing was to be seen", -1)}
    for each in moments(outcome.scenario):
        then = outcome.happened.get(each.name)
        mine = each.name in acts
        if then is not None and last[mine][1] <= then <= tick:
            last[mine] = (f"{hours.at(then)} {each.words}", then)
    return Belief(tick, last[True][0], f"seen last: {last[False][0]}" if last[False][1] >= 0 else last[False][0])


def _rounded(number: float) -> float:
    """To two digits, so that what is said doesn't change all the time."""
    return float(f"{number:.2g}")


def _about(share: float) -> str:
    """A share to two digits, "all" or nearly all as such."""
    return "all" if share >= 0.9995 else percent(float(f"{share:.2g}") if share < 0.99 else round(share, 3))


def _span(seconds: float) -> str:
    """To five minutes once it is long."""
    return spoken(seconds if seconds < 1800 else round(seconds / 300) * 300)
