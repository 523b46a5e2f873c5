"""Hours, spans and numbers of a replay in words: as the scenario's own clock shows them, with units."""

from datetime import datetime, timedelta

from fencepost.incident.replay.scenario import Scenario, Tick, Value

MINUTE = 60
HOUR = 3600
MILLION = 1_000_000
SPANS = (300, 600, 900, 1800, HOUR, 2 * HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR)
"""From one named hour to the next."""


class Hours:
    """The clock of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        """From its beginning, in its own zone."""
        self._begins = datetime.fromisoformat(scenario.begins)
        self.zone = scenario.zone
        self.lasts_s = scenario.lasts_s

    def at(self, tick: float) -> str:
        """As in "04:14"; seconds are cut off, as on a clock."""
        return f"{self._moment(tick):%H:%M}"

    def later(self, tick: float) -> str:
        """The same, said to be of the next day where it comes after the scenario's end."""
        return f"{self.at(tick)} next day" if tick > self.lasts_s else self.at(tick)

    def rfc3339(self, tick: Tick) -> str:
        """As in "2025-10-20T04:14:00-07:00"."""
        return self._moment(tick).isoformat()

    def days(self) -> str:
        """As in "PDT, 19 and 20 October 2025"."""
        first, last = self._begins, self._moment(self.lasts_s)
        if first.date() == last.date():
            return f"{self.zone}, {first.day} {first:%B %Y}"
        if (first.year, first.month) == (last.year, last.month):
            return f"{self.zone}, {first.day} and {last.day} {last:%B %Y}"
        return f"{self.zone}, {first.day} {first:%B} to {last.day} {last:%B %Y}"

    def every(self, most: int) -> int:
        """The shortest usual span of which no more than so many fit into the scenario."""
        return next((each for each in SPANS if self.lasts_s <= most * each), SPANS[-1])

    @property
    def midnight(self) -> Tick:
        """The last one at or before the beginning, so never after it."""
        return -(self._begins.hour * HOUR + self._begins.minute * MINUTE + self._begins.second)

    def is_whole(self, tick: Tick, every_s: int) -> bool:
        """Whether the clock shows a whole multiple then."""
        return (tick - self.midnight) % every_s == 0

    def whole(self, every_s: int) -> list[Tick]:
        """The ticks within it at which the clock shows a whole multiple, counted from midnight."""
        return list(range(self.midnight % every_s, self.lasts_s + 1, every_s))

    def _moment(self, tick: float) -> datetime:
        return self._begins + timedelta(seconds=int(tick))


def short(seconds: float) -> str:
    """A span in four or five columns: "0h50", "14h32"; under a minute "48s"."""
    if 0 < seconds < MINUTE:
        return f"{round(seconds)}s"
    minutes = round(seconds / MINUTE)
    return f"{minutes // 60}h{minutes % 60:02d}"


def spoken(seconds: float) -> str:
    """A span with its units: "50 min", "14 h 32 min", "12 s", "0 s"."""
    if seconds < MINUTE:
        return f"{round(seconds)} s"
    minutes = round(seconds / MINUTE)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def option(seconds: int) -> str:
    """A span as options take it: "2h37m"."""
    hours, rest = divmod(seconds, HOUR)
    minutes, left = divmod(rest, MINUTE)
    return "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (left, "s")) if number) or "0s"


def count(number: float) -> str:
    """A number of things: "96,771", "4.8 million"."""
    return f"{round(number / MILLION, 1):g} million" if number >= MILLION else f"{round(number):,}"


def percent(share: float) -> str:
    """A share: "23 %", "0.4 %", never a rounded 100 % or 0 % for what isn't whole or nothing."""
    number = share * 100
    for places in (0, 1, 2):
        shown = f"{number:.{places}f}"
        whole = float(shown)
        if number in (0.0, 100.0) or (0 < whole < 100 and (places or whole >= 1)):
            return f"{shown} %"
    return f"{number:.3f} %"


def amount(value: Value, hours: Hours) -> str:
    """A scenario's value with its unit, exactly."""
    if value.unit == "seconds":
        return exact(value.amount)
    if value.unit == "share":
        return f"{value.amount * 100:.10g} %"
    if value.unit == "per second":
        return f"{value.amount:.10g}/s"
    if value.unit == "hour":
        return hours.at(value.amount)
    return f"{value.amount:.15g}"


def exact(seconds: float) -> str:
    """A span with its units, nothing rounded: "120 ms", "100 s", "5 min", "2 h 37 min", "1 h 1 s"."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.10g} ms"
    if not seconds or (seconds % MINUTE and seconds < 10 * MINUTE):
        return f"{seconds:.10g} s"
    parts = ((seconds // HOUR, "h"), (seconds % HOUR // MINUTE, "min"), (seconds % MINUTE, "s"))
    return " ".join(f"{number:.10g} {unit}" for number, unit in parts if number)
