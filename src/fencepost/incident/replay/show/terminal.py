"""A replay on a terminal: phases as bars beside what was reported, the course of things as sparklines.

A bar's two halves are two facts: the upper half is reported, the lower simulated, a full block both. In ASCII they are
three characters. ``=`` stands behind a length that is equal because the script ends it at the published hour.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray

from fencepost.incident.replay.guards import Guard
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.scenario import Cause, Kind, Tick
from fencepost.incident.replay.show.hours import Hours, count, option, percent, short
from fencepost.incident.replay.show.judged import verdict
from fencepost.incident.replay.show.naming import called, counted, is_told, outage_s
from fencepost.incident.replay.show.phases import Span, axis, by_hand, length_s, stretches
from fencepost.incident.replay.show.remarks import remarks

USUAL = "aws-2025-10-19"
"""The scenario that is replayed where none is named."""
WIDTH = 100
"""No wider, even where there is room: a line that is longer isn't read better."""
NARROW = 72
"""Below that lengths stand on a line of their own."""
LABEL = 20
NAME = 24
"""Letters of the longest name that is shown whole; the column is as wide as the longest, at least as :data:`LABEL`."""
NUMBERS = 27
_ASCII = str.maketrans({"█": "#", "▀": "^", "▄": "_", "·": "-", "–": "-", "×": "x", "▶": ">", "…": "~"})
_LEVELS = "▁▂▃▄▅▆▇█"
_PLAIN_LEVELS = "_.-=+*%@"
_STYLES = {"bold": "1", "dim": "2", "cyan": "36", "yellow": "33"}


class _Sheet:
    """How wide, in which characters, in which colours."""

    def __init__(self, outcome: Outcome, width: int, unicode: bool, colour: bool) -> None:
        self.outcome, self.unicode, self.colour = outcome, unicode, colour
        self.width = min(width, WIDTH)
        self.narrow = self.width < NARROW
        parts = stretches(outcome)
        told = outcome.scenario.dependents
        names = [*(each.words for each in parts), *(each.title for each in told)]
        self.label = max(LABEL, min(NAME, max(map(len, names), default=0)) + 1)
        self.reported = is_told(outcome.scenario)
        """Of a made-up scenario nothing is reported; nothing of its bars is then told apart."""
        self.cells = max(10, self.width - 2 if self.narrow else self.width - 1 - self.label - NUMBERS)
        self.begins, self.ends = axis([outcome])
        self.hours = Hours(outcome.scenario)

    def cell(self, tick: Tick) -> int:
        return round((tick - self.begins) / (self.ends - self.begins) * self.cells)

    def covered(self, spans: Iterable[Span]) -> set[int]:
        """The cells of some spans; one that is short still has one."""
        cells: set[int] = set()
        for begun, ended in spans:
            if ended == begun:
                continue
            first = min(self.cell(begun), self.cells - 1)
            last = self.cells if ended is None else self.cell(ended)
            cells |= set(range(max(0, first), min(self.cells, max(first + 1, last))))
        return cells

    def bar(self, reported: Sequence[Span], simulated: Sequence[Span]) -> str:
        ours = self.covered(simulated)
        theirs = self.covered(reported) if self.reported else ours
        text = "".join(" ▀▄█"[(at in theirs) + 2 * (at in ours)] for at in range(self.cells))
        beyond = any(ended is None or ended > self.ends for _, ended in (*reported, *simulated))
        return text[:-1] + "▶" if beyond and text[-1] != " " else text

    def spark(self, values: NDArray[np.float64]) -> str:
        """The highest of what falls into each cell, 0 to 1."""
        times = self.outcome.times
        edges = np.linspace(self.begins, self.ends, self.cells + 1)
        bounds = np.searchsorted(times, edges, side="right")
        levels = _LEVELS if self.unicode else _PLAIN_LEVELS
        parts = [values[low : max(low + 1, high)] for low, high in pairwise(bounds)]
        tops = [float(part.max()) if len(part) else 0.0 for part in parts]
        return "".join(levels[min(len(levels) - 1, int(top * len(levels)))] for top in tops)

    def row(self, label: str, drawn: str, numbers: str, style: str = "") -> list[str]:
        """One line of the sheet; two where it is narrow."""
        if self.narrow:
            return [f" {self.styled(f'{label}  {numbers.strip()}', style)}", f" {drawn.rstrip()}"]
        return [f" {label:<{self.label}}{drawn}{numbers}".rstrip()]

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colour and style and text else text


def terminal_text(outcome: Outcome, *, width: int, unicode: bool, colour: bool, named: str = "") -> str:
    """The whole answer: at most 100 columns, ASCII unless ``unicode``, with our own styles if ``colour``.

    ``named``: how the scenario was asked for, if not by its name.
    """
    sheet = _Sheet(outcome, width, unicode, colour)
    lines = [*_head(sheet), *_phases(sheet), *_sparks(sheet), *_dependents(sheet), *_last(sheet, named)]
    text = "\n".join(lines)
    return text if unicode else text.translate(_ASCII)


def _head(sheet: _Sheet) -> list[str]:
    outcome = sheet.outcome
    cpu_s = outcome.figures.get("cpu_s") or 0.0
    title = f"{outcome.scenario.title} {called(outcome.options)}"
    about = f" · {outcome.options.hosts:,} hosts · seed {outcome.options.seed} · {cpu_s:.1f} s CPU"
    legend = "█ both  ▀ reported  ▄ simulated" if sheet.reported else ""
    room = sheet.width - len(title) - len(about) - len(legend)
    shown = sheet.styled(title, "bold") + about
    if room >= 2:
        return [(shown + " " * room + legend).rstrip()]
    fits = len(title) + len(about) <= sheet.width
    rows = [shown] if fits else [sheet.styled(title, "bold"), about.removeprefix(" · ")]
    return [*rows, *([legend if sheet.narrow else legend.rjust(sheet.width)] if legend else [])]


def _phases(sheet: _Sheet) -> list[str]:
    first, last = f"{sheet.hours.at(sheet.begins)} {sheet.hours.zone}", sheet.hours.at(sheet.ends)
    scale = first + last.rjust(sheet.cells - len(first))
    if sheet.narrow:
        lines = [" " + sheet.styled(scale, "dim")]
    else:
        heads = f"{'reported':>11}{'simulated':>11}" if sheet.reported else f"{'simulated':>13}"
        lines = [" " * (sheet.label + 1) + sheet.styled(scale, "dim") + heads]
    for each in stretches(sheet.outcome):
        reported = [] if each.reported is None else [each.reported]
        simulated = [] if each.simulated is None else [each.simulated]
        numbers = _numbers(sheet, each.reported, each.simulated, each.equal)
        lines += sheet.row(each.words, sheet.bar(reported, simulated), numbers)
    return lines


def _numbers(sheet: _Sheet, reported: Span | None, simulated: Span | None, equal: bool) -> str:
    lasts = sheet.outcome.scenario.lasts_s
    theirs, ours = length_s(reported, lasts), length_s(simulated, lasts)
    left = "-" if theirs is None else short(theirs)
    right = "none" if ours is None else short(ours)
    if simulated is not None and simulated[1] is None:
        right = f">{right}"
    mark = " =" if equal else ""
    return _columns(sheet, left, right, mark)


def _columns(sheet: _Sheet, left: str, right: str, mark: str) -> str:
    """The lengths of a row; without what was reported where nothing was."""
    if sheet.narrow:
        return f"reported {left}  simulated {right}{mark}" if sheet.reported else f"{right}{mark}"
    return f"{left:>11}{right:>11}{mark}" if sheet.reported else f"{right:>13}{mark}"


def _sparks(sheet: _Sheet) -> list[str]:
    """Broken leases of all hosts, line and wait to their own peaks, capacity above a floor that is near its least."""
    series = {name: values.astype(np.float64) for name, values in sheet.outcome.series.items()}
    lowest = 1.0 - float(series["capacity_out"].max())
    floor = np.floor(lowest * 10) / 10 if lowest < 1 else 0.0
    queue, wait = float(series["lease_queue"].max()), float(series["network_age"].max())
    broken = sheet.outcome.figures["broken_leases_max"] or 0.0
    waiting = f"peak {count(queue)} calls" if queue else "never a call waits"
    share = (1.0 - series["capacity_out"] - floor) / (1 - floor)
    rows = [
        ("broken leases", series["leases_missing"], f"peak {count(broken)}"),
        ("lease queue", _of_peak(series["lease_queue"]), waiting),
        ("wait for network", _of_peak(series["network_age"]), f"peak {short(wait)}" if wait else "never a minute"),
        ("capacity in DNS", share, f"least {percent(lowest)}"),
    ]
    return [line for label, values, text in rows for line in sheet.row(label, sheet.spark(values), "   " + text)]


def _of_peak(values: NDArray[np.float64]) -> NDArray[np.float64]:
    peak = float(values.max())
    return values / peak if peak else values


def _dependents(sheet: _Sheet) -> list[str]:
    outcome = sheet.outcome
    if not outcome.scenario.dependents:
        return []
    lines = []
    lasts = outcome.scenario.lasts_s
    for each in outcome.scenario.dependents:
        down = outcome.down.get(each.name, ())
        theirs = sum(ended - begun for begun, ended in each.reported)
        ours = sum(length_s(span, lasts) or 0 for span in down)
        more = ">" if any(ended is None for _, ended in down) else ""
        left, right = short(theirs) if each.reported else "-", f"{more}{short(ours)}" if down else "none"
        hand = " =" if by_hand(outcome, each.name) else ""
        numbers = _columns(sheet, left, right, hand)
        lines += sheet.row(_short(each.title), sheet.bar(each.reported, down), numbers)
    return [sheet.styled("who depends on it, and was down", "dim"), *lines]


def _short(title: str) -> str:
    return title if len(title) <= NAME else f"{title[: NAME - 1]}…"


def _last(sheet: _Sheet, named: str) -> list[str]:
    outcome = sheet.outcome
    if not sheet.reported:
        script = "=  ended by a person at the hour that the scenario gives; the rest emerges"
    else:
        script = "=  ended by a person at the published hour, so equal by script; the rest emerges"
    said = [script] if _any_by_script(outcome) else []
    near = verdict(outcome)
    said += [f"{each}." for each in (*remarks(outcome), *([near] if near else []))]
    lines = [
        part for each in (*said, _known(outcome, named)) for part in wrap(each, sheet.width, break_on_hyphens=False)
    ]
    return [*(sheet.styled(line, "dim") for line in lines), _next(outcome)]


def _any_by_script(outcome: Outcome) -> bool:
    """Whether any length is marked."""
    return any(each.equal for each in stretches(outcome)) or any(by_hand(outcome, name) for name in outcome.down)


def _known(outcome: Outcome, named: str) -> str:
    """How many values of which kind, and where to see them."""
    numbers = counted(outcome.scenario)
    estimates = numbers[Kind.ESTIMATE]
    told = (
        (numbers[Kind.PUBLISHED], "values and hours published"),
        (estimates, f"estimate{'s' * (estimates != 1)}"),
        (numbers[Kind.CALIBRATED], "calibrated to fit"),
    )
    kinds = ", ".join(f"{number} {words}" for number, words in told if number)
    asked = named or outcome.scenario.name
    return f"{kinds}: replay {'' if asked == USUAL else f'{asked} '}--values lists each"


def _next(outcome: Outcome) -> str:
    """What to try after this run."""
    if outcome.scenario.cause is Cause.BAD_PROBE:
        return "Try  --html FILE" if outcome.options.guards else "Try  --guards production   or   --guards velocity"
    length = outage_s(outcome.scenario) or 2 * 3600
    forced = f"--dns-outage {option(length)}"
    if not outcome.options.guards:
        return f"Try  --guards production   or   --guards production {forced}   or   --ablate"
    if not outcome.figures.get("dns_empty_s"):
        return f"The endpoint was never empty.   Try  {forced}   to see the other guards at work"
    missing = [guard.value for guard in Guard if guard not in outcome.options.guards]
    return "Try  --ablate   or   --html FILE" if not missing else f"Try  --guards production {forced}   or   --ablate"
