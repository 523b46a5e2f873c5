"""A record in words, for a terminal or a mail: one thing a line, what hangs together under one heading.

Hours are those of the record's own offset, which the head names; the day stands where it isn't clear from the hour, a
day or more after the beginning.
What isn't of the same kind as most of the record says which it is, in brackets: a judgement must not look published.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from fencepost.incident.record.checking import between_s, lasted_s, leaves, moment
from fencepost.incident.record.record import Impact, Interval, Kind, Record, document
from fencepost.incident.replay.show.hours import spoken

WIDE = 22
"""Columns of what stands first in a line, at most."""
DAY = timedelta(days=1)


def lines(record: Record) -> list[str]:
    """All of it."""
    return _Telling(record).all()


def main_kind(record: Record) -> Kind:
    """Where most of a record comes from."""
    kinds = Counter(value for where, value in leaves(document(record)) if where.endswith(".kind"))
    return Kind(kinds.most_common(1)[0][0]) if kinds else Kind.JUDGEMENT


def day_of(record: Record) -> str:
    """The day that it began on; "?" if that isn't known."""
    return record.start.at[:10] if record.start is not None else "?"


def lasted(record: Record) -> str:
    """How long it lasted, in words; "?" if that isn't known."""
    seconds = between_s(record.start, record.end)
    return "?" if seconds is None else long(seconds)


def long(seconds: float) -> str:
    """A span in words; one under a second in milliseconds: 8 ms without addresses aren't none."""
    return f"{seconds * 1000:.0f} ms" if 0 < seconds < 1 else spoken(seconds)


class _Telling:
    """One record."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.kind = main_kind(record)
        times = [str(value) for where, value in leaves(document(record)) if _is_time(where) and value is not None]
        first = record.start.at if record.start is not None else min(times, key=moment, default=None)
        self.first: datetime | None = None if first is None else moment(first)
        self.seconds = any(moment(each).second for each in times)

    def all(self) -> list[str]:
        """Every heading that has something under it."""
        parts = (
            ("symptoms", self._symptoms()),
            ("cause", self._cause()),
            ("made worse", self._contributing()),
            ("who suffered", self._impact()),
            ("found", self._detection()),
            ("phases", self._phases()),
            ("what happened", self._events()),
            ("done about it", self._mitigations()),
            self._lessons(),
            ("not known", _columns([(each.part, each.why) for each in self.record.not_known])),
            ("related", self._related()),
            ("sources", self._sources()),
        )
        found = self._head()
        for heading, said in parts:
            if said:
                found += [heading, *said]
        return found

    def _related(self) -> list[str]:
        """Each record once, with all that it is related by, in the order of the first."""
        said: dict[str, list[str]] = {}
        for each in self.record.related:
            said.setdefault(each.id, []).append(f"{each.because}: {each.words}")
        return _columns([(id_, "; ".join(whys)) for id_, whys in said.items()])

    def _lessons(self) -> tuple[str, list[str]]:
        lessons = self.record.lessons
        kinds = {each.kind for each in lessons}
        if len(kinds) == 1 and self.kind not in kinds:
            return f"lessons{self._mark(lessons[0].kind)}", [f"  {each.words}" for each in lessons]
        return "lessons", [f"  {each.words}{self._mark(each.kind)}" for each in lessons]

    def _head(self) -> list[str]:
        record = self.record
        said = [self.kind.value]
        if self.first is not None:
            ends = "?" if record.end is None else self._hour(record.end.at, day=True)
            zone = f"{self.first:%z}"
            begins = f"{self.first:%Y-%m-%d} {self._hour(record.start.at)}" if record.start else "?"
            said.append(f"{begins} to {ends} ({zone[:3]}:{zone[3:]})")
        if lasted(record) != "?":
            said.append(lasted(record))
        fixed = between_s(record.start, record.root_cause_fixed)
        if fixed is not None:
            said.append(f"root cause fixed after {long(fixed)}")
        tags = [f"tags: {', '.join(record.tags)}"] if record.tags else []
        return [f"{record.id} · {record.title}", " · ".join(said), *tags, record.summary]

    def _symptoms(self) -> list[str]:
        return _columns([(each.name, each.words + self._mark(each.kind)) for each in self.record.symptoms])

    def _cause(self) -> list[str]:
        cause = self.record.root_cause
        if cause is None:
            return []
        rows = [(cause.category.value, (cause.mechanism or "not known how it works") + self._mark(cause.kind))]
        return _columns([*rows, ("set off by", cause.trigger or "not known")])

    def _contributing(self) -> list[str]:
        return _columns(
            [
                (each.category.value if each.category else "", each.words + self._mark(each.kind))
                for each in self.record.contributing
            ]
        )

    def _impact(self) -> list[str]:
        return _columns([(each.service, self._suffered(each)) for each in self.record.impact])

    def _suffered(self, impact: Impact) -> str:
        said = [", ".join(self._span(each) for each in impact.down)] if impact.down else []
        said += [impact.words] if impact.words else []
        said += [f"rests on {', '.join(impact.depends_on)}"] if impact.depends_on else []
        return " · ".join(said) + self._mark(impact.kind)

    def _span(self, span: Interval) -> str:
        begins = "?" if span.begins is None else self._hour(span.begins)
        ends = "?" if span.ends is None else self._hour(span.ends)
        return f"{begins} to {ends}"

    def _detection(self) -> list[str]:
        rows = []
        for each in self.record.detection:
            how = f" ({each.how})" if each.how else ""
            rows.append((self._maybe(each.at), each.what + how + self._mark(each.kind)))
        return _columns(rows)

    def _phases(self) -> list[str]:
        rows = []
        for each in self.record.timeline.phases:
            seconds = lasted_s(each)
            length = "not over" if seconds is None else long(seconds)
            rows.append((self._hour(each.begins), f"{each.words}: {length}{self._mark(each.kind)}"))
        return _columns(rows)

    def _events(self) -> list[str]:
        events = self.record.timeline.events
        return _columns([(self._hour(each.at), each.words + self._mark(each.kind)) for each in events])

    def _mitigations(self) -> list[str]:
        rows = []
        for each in self.record.mitigations:
            by = f", by {each.by}" if each.by else ""
            rows.append((self._maybe(each.at), each.words + by + self._mark(each.kind)))
        return _columns(rows)

    def _sources(self) -> list[str]:
        used = {str(value) for where, value in leaves(document(self.record)) if where.endswith(".source")}
        found = [(name, each) for name, each in self.record.sources.items() if name in used]
        return _columns([(name, each.title + (f" {each.url}" if each.url else "")) for name, each in found])

    def _mark(self, kind: Kind) -> str:
        return "" if kind is self.kind else f" [{kind.value}]"

    def _maybe(self, time: str | None) -> str:
        return "?" if time is None else self._hour(time)

    def _hour(self, time: str, *, day: bool = False) -> str:
        at = moment(time)
        if self.first is not None:
            at = at.astimezone(self.first.tzinfo)
        text = f"{at:%H:%M:%S}" if self.seconds else f"{at:%H:%M}"
        near = self.first is None or (at.date() == self.first.date() if day else abs(at - self.first) < DAY)
        return text if near else f"{at:%Y-%m-%d} {text}"


def _is_time(where: str) -> bool:
    return where.rpartition(".")[2] in ("at", "begins", "ends")


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Two columns, the first as wide as it needs to be, up to a bound."""
    wide = min(WIDE, max((len(first) for first, _ in rows), default=0))
    return [f"  {first:<{wide}}  {second}" for first, second in rows]
