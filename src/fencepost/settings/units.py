"""Durations, shares and rates: text to integers and back.

Everything inside counts in integers: nanoseconds, and millionths of a share (ppm), so that no rounding differs between
explorer and running role. Numbers without a unit are refused: an interval of ``10`` has been ten seconds to one reader
and ten milliseconds to another.
"""

import re
from fractions import Fraction

import msgspec

NS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
"""Nanoseconds in each unit of a duration."""

WHOLE = 1_000_000
"""Parts in a whole share: 100 %."""

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?(ms|s|m|h|d)")
_SHARE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,4})?) ?%")
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,4})?) ?%/(s|min|h|d)")
_PER = {"s": NS["s"], "min": NS["m"], "h": NS["h"], "d": NS["d"]}


class Rate(msgspec.Struct, frozen=True, gc=False):
    """So many millionths of a pool's weight in so many nanoseconds. The pair is kept, since 5 %/h divides evenly by
    neither."""

    share_ppm: int
    per_ns: int


def duration_ns(text: str) -> int:
    """Read ``"500ms"``, ``"10s"``, ``"5m"``, ``"2h"``, ``"7d"`` into nanoseconds. Raises ValueError for anything
    else."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError('is no duration; write a number and its unit, like "500ms", "10s", "5m" or "7d"')
    return int(Fraction(match[1]) * NS[match[2]])


def share_ppm(text: str) -> int:
    """Read ``"20%"`` into millionths. Raises ValueError for anything else, and for more than 100 %."""
    match = _SHARE.fullmatch(text)
    if match is None:
        raise ValueError('is no share; write a number and a per cent sign, like "20%"')
    ppm = int(Fraction(match[1]) * 10_000)
    if ppm > WHOLE:
        raise ValueError("is over 100%")
    return ppm


def rate(text: str) -> Rate:
    """Read ``"5%/min"`` (or /s, /h, /d). Raises ValueError for anything else, and for more than 100 % in one unit."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError('is no rate; write a share and a time, like "5%/min"')
    ppm = int(Fraction(match[1]) * 10_000)
    if ppm > WHOLE:
        raise ValueError("is over 100% in one s, min, h or d")
    return Rate(ppm, _PER[match[2]])


def duration_text(ns: int) -> str:
    """Write a duration as one would in the file: the largest unit that leaves a whole number; ``"1500ms"``,
    ``"90s"``."""
    for unit in ("d", "h", "m", "s", "ms"):
        if ns % NS[unit] == 0 and (ns or unit == "s"):
            return f"{ns // NS[unit]}{unit}"
    return f"{ns / NS['ms']:g}ms"


def share_text(ppm: int) -> str:
    """Write a share as one would in the file: ``"20%"``, ``"12.5%"``."""
    return f"{ppm / 10_000:g}%"


def rate_text(value: Rate) -> str:
    """Write a rate as one would in the file: ``"5%/min"``."""
    unit = next((name for name, ns in _PER.items() if ns == value.per_ns), f"{value.per_ns}ns")
    return f"{share_text(value.share_ppm)}/{unit}"


def spoken(ns: int) -> str:
    """Say a duration to a person in at most two units: ``"3.5 s"``, ``"3 min 20 s"``, ``"2 h"``."""
    seconds = ns / NS["s"]
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for size, name, small, small_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {name}" + (f" {rest} {small_name}" if rest else "")
    return f"{whole} s"
