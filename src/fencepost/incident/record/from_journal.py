"""A record from a region's history: what went wrong in a span of time, as its parts wrote it down.

The history says what happened and what was done, never why: so cause, when it was fixed and lessons stay null, and the
record says so. Whoever keeps the record fills them in (kind "judgement").

    troubles beginning and ending -> phases, impact       fenced, removed, kept, healed, refused, found -> timeline
    a person's acts since -> mitigations                      the first of each kind of trouble -> detection

Plans and writes that went as meant aren't in it: ``fencepost history`` has them. What callers saw can't be known here;
an endpoint's empty spells are those that an enactor saw.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct, structs

from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.incident.record.record import (
    SCHEMA,
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
    Source,
    Symptom,
    Timeline,
)
from fencepost.incident.record.slugs import slug, unique
from fencepost.incident.record.stretches import NAMES, stretches, words
from fencepost.incident.record.troubles import LASTING, WORDS, Trouble, What, at_most, troubles
from fencepost.ports import HistoryRow, Refused

_HERE = "history"
"""The name of the record's one source."""
EVENTS = 2_000
"""Lines of the timeline at most: the newest stay."""
HOW = dict.fromkeys((What.REMOVED, What.KEPT, What.FAIL_OPEN, What.SUSPECT), "health checking")
"""How what isn't an enactor's was found: checkers' votes did, whatever role wrote the line."""
TOLD = ("removed", "kept", "back", "fenced", "refused", "healed", "finding", "operator")
"""The kinds of line that a timeline has."""
SHORTLY: Duration = 600 * SECOND
"""So long before the first trouble a person's act is told of: it may have set it off."""
LAST_S = 253_402_300_799
"""The last second that a calendar has."""


class Region(Struct, frozen=True):
    """What of a region a record needs: its name, provider, and each endpoint's pool."""

    name: str
    provider: str
    pools: Mapping[str, str]


def from_journal(rows: Sequence[HistoryRow], region: Region, now: Instant, *, whole: bool = True) -> Record:
    """The record of what went wrong in these lines; not ``whole``: there are older ones that weren't read.

    Raises ``Refused`` if nothing went wrong.
    """
    rows = [readable(row) for row in rows if 0 <= row.at // SECOND <= LAST_S]
    found = troubles(rows)
    if not found:
        hint = "--last 7d looks further back;  fencepost history    shows what there is"
        raise Refused(
            "nothing went wrong in that time, so there is no incident to record", where=region.name, hint=hint
        )
    return _Told(rows, found, region, now, whole).record()


class _Told:
    """One history on its way to a record."""

    def __init__(
        self, rows: Sequence[HistoryRow], found: Sequence[Trouble], region: Region, now: Instant, whole: bool
    ) -> None:
        self.rows = sorted((row for row in rows if row.kind in TOLD), key=lambda row: (row.at, row.id))
        self.found, self.region, self.now, self.whole = found, region, now, whole
        self.open = [each for each in found if each.what in LASTING and each.ended is None]
        self.before = [each for each in found if each.begun is None]
        self.first = min((row.at for row in self.rows), default=now)
        self.begun = min((each.begun for each in found if each.begun is not None), default=None)
        self.ended = max((each.ended if each.ended is not None else each.begun or 0) for each in found)
        self.phases = self._phases()

    def record(self) -> Record:
        """All of it."""
        start = None if self.before else self.begun
        day = stamp(start if start is not None else self.first)
        return Record(
            SCHEMA,
            slug(f"{self.region.name} {day[:10]} {day[11:16].replace(':', '')}"),
            f"Region {self.region.name}, {day[:10]}: {self._counted()}",
            f"From the history of region {self.region.name}, {day[:10]} from {day[11:19]} UTC: {self._counted()}.",
            None if start is None else Moment(day, Kind.JOURNAL, _HERE),
            None if self.open else Moment(stamp(self.ended), Kind.JOURNAL, _HERE),
            None,
            tuple(Symptom(each.value, WORDS[each], Kind.JOURNAL, _HERE) for each in What if self._of(each)),
            None,
            (),
            self._components(),
            self._impact(),
            self._detection(),
            Timeline(self.phases, self._events()),
            self._mitigations(),
            (),
            (),
            self._not_known(),
            {_HERE: Source(f"history of region {self.region.name}, read {stamp(self.now)}")},
            unique(("journal", slug(self.region.name))),
        )

    def _of(self, what: What) -> list[Trouble]:
        return [each for each in self.found if each.what is what]

    def _counted(self) -> str:
        """As in "3 targets out, 1 endpoint emptied"."""
        said = []
        for what, one, more in _COUNTED:
            number = len({(each.on, each.target or each.begun) for each in self._of(what)})
            if what in (What.EMPTIED, What.ALTERED):
                number = len({each.on for each in self._of(what)})
            if number:
                said.append(f"{number} {one if number == 1 else more}")
        return ", ".join(said)

    def _components(self) -> tuple[str, ...]:
        whats = {each.what for each in self.found}
        named = []
        if whats & {What.EMPTIED, What.ALTERED, What.FENCED, What.REFUSED}:
            named += ["dns", f"dns-{self.region.provider}"]
        if whats & {What.REMOVED, What.KEPT, What.FAIL_OPEN, What.SUSPECT}:
            named += ["health-checks", "load-balancers"]
        if any(each.on == "store" for each in self.found):
            named.append("store")
        return unique(slug(each) for each in named)

    def _phases(self) -> tuple[Phase, ...]:
        found, counts = [], dict.fromkeys(NAMES.values(), 0)
        for each in stretches(self.found, self.first):
            name = "-".join(NAMES[kind] for kind in each.kinds)
            counts[name] = counts.get(name, 0) + 1
            numbered = name if counts[name] == 1 else f"{name}-{counts[name]}"
            ends = None if each.ended is None else stamp(each.ended)
            found.append(Phase(numbered, words(each.kinds), stamp(each.begun), ends, Kind.JOURNAL, _HERE))
        return tuple(found)

    def _impact(self) -> tuple[Impact, ...]:
        pools = {each.on for each in self.found if each.target or each.what in (What.FAIL_OPEN, What.SUSPECT)}
        empty = {each.on for each in self._of(What.EMPTIED)}
        names = sorted(empty | {name for name, pool in self.region.pools.items() if pool in pools})
        found = []
        for name in names:
            pool = self.region.pools.get(name)
            down = tuple(
                Interval(_maybe(each.begun), _maybe(each.ended)) for each in self._of(What.EMPTIED) if each.on == name
            )
            needs = ("dns",) if pool is None else (f"pool {pool}", "dns")
            found.append(Impact(name, needs, down, self._suffered(pool, down), Kind.JOURNAL, _HERE))
        return tuple(found)

    def _suffered(self, pool: str | None, down: Sequence[Interval]) -> str:
        said = [f"without addresses {len(down)} time{'' if len(down) == 1 else 's'}" if down else "never seen empty"]
        out = 0 if pool is None else at_most(self.found, What.REMOVED, pool)
        kept = 0 if pool is None else at_most(self.found, What.KEPT, pool)
        if out:
            said.append(f"at most {out} target{'' if out == 1 else 's'} of pool {pool} out at once")
        if kept:
            said.append(f"{kept} dead one{'' if kept == 1 else 's'} still answered")
        return "; ".join(said)

    def _detection(self) -> tuple[Detection, ...]:
        found = []
        for what in What:
            first = next((each for each in self._of(what) if each.begun is not None), None)
            if first is not None and first.begun is not None:
                by = HOW.get(what) or first.by.replace("/", " ") or "an enactor"
                found.append((first.begun, f"{first.on}: {first.text}", by))
        return tuple(Detection(stamp(at), what, by, Kind.JOURNAL, _HERE) for at, what, by in sorted(found))

    def _events(self) -> tuple[Happening, ...]:
        told = [(row.at, happening(row)) for row in self._shown()[-EVENTS:]]
        return tuple(Happening(stamp(at), words, self._phase(at), Kind.JOURNAL, _HERE) for at, words in told)

    def _shown(self) -> list[HistoryRow]:
        """All lines but what people did long before: what they did just before may have to do with it."""
        since = self._since() - SHORTLY
        return [row for row in self.rows if row.kind != "operator" or row.at >= since]

    def _since(self) -> Instant:
        return self.first if self.begun is None or self.before else self.begun

    def _phase(self, at: Instant) -> str | None:
        time = stamp(at)
        inside = [each for each in self.phases if each.begins <= time and (each.ends is None or time <= each.ends)]
        return inside[-1].name if inside else None

    def _mitigations(self) -> tuple[Mitigation, ...]:
        acts = [row for row in self.rows if row.kind == "operator"]
        return tuple(
            Mitigation(stamp(row.at), f"{row.on} {row.text}", row.by or None, Kind.JOURNAL, _HERE)
            for row in acts
            if row.at >= self._since()
        )

    def _not_known(self) -> tuple[NotKnown, ...]:
        found = [
            NotKnown("root_cause", "a history says what happened, not why"),
            NotKnown("root_cause_fixed", "for the same reason"),
            NotKnown("lessons", "they are for people to draw"),
            NotKnown(
                "impact", "what callers saw isn't in a history; an endpoint's empty spells are those an enactor saw"
            ),
        ]
        if self.before:
            names = ", ".join(unique(each.target or each.on for each in self.before)[:5])
            found.append(NotKnown("start", f"it began before the first line that was read: {names}"))
        if self.open:
            names = ", ".join(unique(each.target or each.on for each in self.open)[:5])
            found.append(NotKnown("end", f"not over yet: {names}"))
        left = len(self._shown()) - EVENTS
        if not self.whole:
            found.append(NotKnown("timeline.events", "older lines of that time weren't read: there are too many"))
        if left > 0:
            found.append(NotKnown("timeline.events", f"the {left:,} oldest lines are left out"))
        return tuple(found)


_COUNTED = (
    (What.EMPTIED, "endpoint emptied", "endpoints emptied"),
    (What.ALTERED, "endpoint altered", "endpoints altered"),
    (What.REMOVED, "target out", "targets out"),
    (What.KEPT, "dead target kept", "dead targets kept"),
    (What.FAIL_OPEN, "fail open", "times fail open"),
    (What.FENCED, "write fenced", "writes fenced"),
    (What.REFUSED, "write refused", "writes refused"),
    (What.SUSPECT, "pool suspect", "times a pool suspect"),
    (What.FOUND, "finding", "findings"),
)


def stamp(at: Instant) -> str:
    """Nanoseconds since 1970 as RFC 3339 in UTC, to the millisecond."""
    seconds, rest = divmod(at, SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1_000_000:03d}Z"


def happening(row: HistoryRow) -> str:
    """A line in words, with its kind unless it begins by it."""
    said = f"{row.on} {row.text}"
    return said if row.text.lower().startswith(row.kind) else f"{row.kind}: {said}"


def readable(row: HistoryRow) -> HistoryRow:
    """A line as a record can hold it, whatever lies in the store."""
    return structs.replace(row, on=plain(row.on), by=plain(row.by), text=plain(row.text))


def plain(text: str) -> str:
    """No half characters, no line ends."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _maybe(at: Instant | None) -> str | None:
    return None if at is None else stamp(at)
