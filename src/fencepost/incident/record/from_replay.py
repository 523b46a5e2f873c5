"""A record from a replay: what came out of the run, none of what was reported.

Every part is of kind "replay", and its source names the scenario, the options and how many of the scenario's values are
published, estimates and calibrated. What is derived, and by which rule:

- a *symptom* is what was seen to rise above its bound, a *recovery* what fell below one again;
- *found* is what people found (an act that changes nothing), and what was seen only after it had lasted a while: so
  long does monitoring look;
- the *start* is the first thing that was seen to go wrong, the *end* that of the last phase;
- the *root cause is fixed* when what was away can be found again;
- *contributing* is what the figures say of leases, of capacity taken out and of wasted work.

The awkward part: the mechanism is told in words that belong to the scenario's kind of cause, since no run can say why.
"""

from datetime import datetime, timedelta

from fencepost.incident.record.record import (
    SCHEMA,
    Category,
    Contributing,
    Detection,
    Happening,
    Impact,
    Interval,
    Kind,
    Mitigation,
    Moment,
    NotKnown,
    Phase,
    Record,
    Related,
    RootCause,
    Source,
    Symptom,
    Timeline,
)
from fencepost.incident.record.slugs import slug, unique
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.scenario import Cause, Dependent, Event, Scenario, Tick
from fencepost.incident.replay.scenario import Kind as Provenance
from fencepost.incident.replay.show.hours import option, percent, spoken
from fencepost.incident.replay.show.naming import GIVEN, called, counted, moments
from fencepost.incident.replay.show.phases import stretches
from fencepost.ports import Refused

_HERE = "replay"
"""The name of the record's one source."""
MUCH = 0.01
"""Less of hosts or of capacity isn't worth a word."""
WASTED = 1.5
"""So many times as long as it need have been, and recovery was held up by itself."""

MECHANISM = {
    Cause.DNS_RACE: (
        Category.STALE_WRITE,
        "A slow writer put an old plan over a newer one, and a clean-up deleted that plan and its addresses.",
        "one writer's calls took many times longer than the others'",
    ),
    Cause.STORE_AWAY: (
        Category.DEPENDENCY_LOST,
        "The database behind everything couldn't be reached.",
        "the database went away at the scenario's hour",
    ),
    Cause.BAD_PROBE: (
        Category.BAD_HEALTH_CHECK,
        "A health check that fails for what is well was rolled out to one zone.",
        "the roll-out, at the scenario's hour",
    ),
}
"""What kind of cause each scenario's is, how it works, what sets it off."""

COMPONENTS = {
    Cause.DNS_RACE: ("dns", "dns-automation"),
    Cause.STORE_AWAY: ("store",),
    Cause.BAD_PROBE: ("health-checks", "load-balancers"),
}
"""What failed first."""

CALLED = {"balancers": "load-balancers", "leases": "host-leases", "network": "network-configuration"}
"""What scenarios call shorter than records do."""


def from_replay(outcome: Outcome) -> Record:
    """The record of a replay. Raises ``Refused`` if nothing went wrong in it."""
    return _Told(outcome).record()


class _Told:
    """One outcome on its way to a record."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.scenario: Scenario = outcome.scenario
        self.begins = datetime.fromisoformat(self.scenario.begins)
        self.phases = self._phases()

    def record(self) -> Record:
        """All of it. Raises ``Refused``."""
        scenario, options = self.scenario, self.outcome.options
        start = self._start()
        if start is None:
            hint = "--dns-outage 2h37m forces an outage" if scenario.cause is Cause.DNS_RACE else "other --guards"
            what = f"nothing went wrong in this replay ({called(options)}), so there is no incident to record"
            raise Refused(what, where=scenario.name, hint=hint)
        fixed = [self._at(act.name) for act in scenario.acts if act.does == GIVEN]
        return Record(
            SCHEMA,
            slug(f"replay {scenario.name} {called(options)} seed {options.seed}"),
            f"{scenario.title}, replayed {called(options)}",
            self._summary(),
            self._moment(start),
            self._end(),
            next((self._moment(each) for each in fixed if each is not None), None),
            self._symptoms(),
            self._root_cause(),
            self._contributing(),
            self._components(),
            self._impact(),
            self._detection(),
            Timeline(self.phases, self._events()),
            self._mitigations(),
            (),
            (Related(scenario.name, "named", "the incident that this replays"),),
            self._not_known(),
            {_HERE: Source(self._source())},
            unique(slug(each) for each in ("replay", scenario.name, called(options))),
        )

    def _summary(self) -> str:
        figures = self.outcome.figures
        parts = [
            (figures.get("dns_empty_s"), "the endpoint had no address for {}"),
            (figures.get("leases_missing_s"), "more than 1 % of hosts had no lease for {}"),
            (figures.get("launch_failing_s"), "more than 5 % of launches failed for {}"),
        ]
        said = "; ".join(words.format(spoken(seconds)) for seconds, words in parts if seconds)
        return f"A replay of {self.scenario.title}, {called(self.outcome.options)}: {said or 'see the timeline'}."

    def _source(self) -> str:
        options, kinds = self.outcome.options, counted(self.scenario)
        known = ", ".join(f"{kinds[kind]} {kind.value}" for kind in Provenance)
        return (
            f"fencepost replay of {self.scenario.name}, {called(options)}: "
            f"{options.hosts:,} hosts, seed {options.seed}; "
            f"values: {known} (calibrated ones are ours: nobody published them)"
        )

    def _time(self, tick: Tick) -> str:
        return (self.begins + timedelta(seconds=int(tick))).isoformat()

    def _moment(self, tick: Tick) -> Moment:
        return Moment(self._time(tick), Kind.REPLAY, _HERE)

    def _at(self, name: str) -> Tick | None:
        return self.outcome.happened.get(name)

    def _rises(self) -> list[tuple[Tick, Event]]:
        """What was seen to rise above its bound, in order of time."""
        found = [
            (self._at(each.name), each) for each in self.scenario.events if each.when.seen and each.when.seen.above
        ]
        return sorted(((at, each) for at, each in found if at is not None), key=lambda each: each[0])

    def _start(self) -> Tick | None:
        return min((at for at, _ in self._rises()), default=None)

    def _end(self) -> Moment | None:
        """That of the last phase; None where one isn't over, or where there is none."""
        ends = [each.ends for each in self.phases]
        last = max((each for each in ends if each is not None), default=None)
        return Moment(last, Kind.REPLAY, _HERE) if last is not None and None not in ends else None

    def _phases(self) -> tuple[Phase, ...]:
        found = []
        for each in stretches(self.outcome):
            if each.simulated is not None and each.simulated[0] != each.simulated[1]:
                begun, ended = each.simulated
                ends = None if ended is None else self._time(ended)
                found.append(Phase(slug(each.name), each.words, self._time(begun), ends, Kind.REPLAY, _HERE))
        return tuple(sorted(found, key=lambda each: each.begins))

    def _symptoms(self) -> tuple[Symptom, ...]:
        return tuple(
            Symptom(slug(each.name), each.words, Kind.REPLAY, _HERE)
            for _, each in self._rises()
            if not _monitored(each)
        )

    def _root_cause(self) -> RootCause:
        category, mechanism, trigger = MECHANISM[self.scenario.cause]
        length = self.outcome.options.outage_s
        if length is None:
            return RootCause(category, mechanism, trigger, Kind.REPLAY, _HERE)
        words = f"An outage of {option(length)} was forced; what would have caused it isn't part of this replay."
        return RootCause(Category.DEPENDENCY_LOST, words, None, Kind.REPLAY, _HERE)

    def _contributing(self) -> tuple[Contributing, ...]:
        figures, found = self.outcome.figures, []
        broken = figures.get("broken_leases_max") or 0.0
        if broken > MUCH * self.outcome.options.hosts:
            words = f"{broken:,.0f} of {self.outcome.options.hosts:,} hosts were without a lease at worst"
            found.append(Contributing(Category.DEPENDENCY_LOST, words, Kind.REPLAY, _HERE))
        ratio = figures.get("recovery_ratio")
        if ratio is not None and ratio > WASTED:
            words = f"leases took {ratio:.1f} times as long to come back as they would have with no work wasted"
            found.append(Contributing(Category.OVERLOAD, words, Kind.REPLAY, _HERE))
        out = figures.get("capacity_out_max") or 0.0
        if out > MUCH:
            words = f"automation took {percent(out)} of healthy capacity out of DNS at worst"
            found.append(Contributing(Category.REMOVAL, words, Kind.REPLAY, _HERE))
        return tuple(found)

    def _components(self) -> tuple[str, ...]:
        needed = [each for service in self._suffering() for each in service.depends_on]
        forced = self.outcome.options.outage_s is not None
        first = ("dns",) if forced and self.scenario.cause is Cause.DNS_RACE else COMPONENTS[self.scenario.cause]
        return unique(slug(CALLED.get(each, each)) for each in (*first, *sorted(needed)))

    def _suffering(self) -> list[Dependent]:
        return [each for each in self.scenario.dependents if self.outcome.down.get(each.name)]

    def _impact(self) -> tuple[Impact, ...]:
        titles = {each.name: each.title for each in self.scenario.dependents}
        found = []
        for each in self._suffering():
            spans = self.outcome.down[each.name]
            down = tuple(
                Interval(self._time(begun), None if ended is None else self._time(ended)) for begun, ended in spans
            )
            needs = tuple(titles.get(name, name) for name in each.depends_on)
            found.append(Impact(each.title, needs, down, None, Kind.REPLAY, _HERE))
        return tuple(found)

    def _detection(self) -> tuple[Detection, ...]:
        acts = [each for each in self.scenario.acts if not each.does]
        found = [(self._at(each.name), each.words, "by people") for each in acts]
        found += [
            (at, each.words, f"it had lasted {spoken(each.when.lasting_s)}")
            for at, each in self._rises()
            if _monitored(each)
        ]
        seen = sorted((at, what, how) for at, what, how in found if at is not None)
        return tuple(Detection(self._time(at), what, how, Kind.REPLAY, _HERE) for at, what, how in seen)

    def _events(self) -> tuple[Happening, ...]:
        found = [(self._at(each.name), each.words) for each in moments(self.scenario)]
        seen = sorted((at, words) for at, words in found if at is not None)
        return tuple(Happening(self._time(at), words, self._phase(at), Kind.REPLAY, _HERE) for at, words in seen)

    def _phase(self, tick: Tick) -> str | None:
        time = self._time(tick)
        inside = [each for each in self.phases if each.begins <= time and (each.ends is None or time < each.ends)]
        return inside[-1].name if inside else None

    def _mitigations(self) -> tuple[Mitigation, ...]:
        acts = [(self._at(each.name), each.words) for each in self.scenario.acts if each.does]
        done = sorted((at, words) for at, words in acts if at is not None)
        return tuple(Mitigation(self._time(at), words, None, Kind.REPLAY, _HERE) for at, words in done)

    def _not_known(self) -> tuple[NotKnown, ...]:
        found = [NotKnown("lessons", "a replay draws none: fencepost replay --ablate says what each guard is worth")]
        if self.outcome.options.outage_s is not None:
            found.append(NotKnown("root_cause.trigger", "the outage was forced"))
        if self._end() is None:
            found.append(NotKnown("end", f"it isn't over after the scenario's {spoken(self.scenario.lasts_s)}"))
        open_ = [each.title for each in self._suffering() if self.outcome.down[each.name][-1][1] is None]
        if open_:
            found.append(NotKnown("impact", f"not over when the scenario ends: {', '.join(open_)}"))
        return tuple(found)


def _monitored(event: Event) -> bool:
    """Whether it is seen only once it has lasted: so monitoring finds things."""
    return event.when.lasting_s > 0 and not event.when.backdated
