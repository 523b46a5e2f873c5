"""Words of a scenario file: hours on its own clock, durations, shares, rates, plain numbers."""

import math
import re
from datetime import datetime, timedelta

from fencepost.incident.replay.scenario import Tick
from fencepost.settings.mistakes import shown
from fencepost.settings.units import NS, WHOLE, duration_ns, share_ppm

DAY_S = 86_400
MOST = 1e12
"""No number of a scenario is larger; durations are at most a year."""
YEAR_S = 366 * DAY_S

_HOUR = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_LIKE_AN_HOUR = re.compile(r"[0-9]{1,3}:[0-9]{1,3}")
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,4})?) ?/s")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")


class Clock:
    """Hours of the scenario's own day. Raises ``ValueError`` for a beginning that is none."""

    def __init__(self, begins: str) -> None:
        """``begins``: RFC 3339, with its offset."""
        try:
            self.begins = datetime.fromisoformat(begins)
            self.begins + timedelta(days=30)
        except (ValueError, OverflowError):
            raise ValueError(f'{shown(begins)} is no time like "2025-10-19T23:30:00-07:00"') from None
        if self.begins.tzinfo is None or self.begins.utcoffset() is None:
            raise ValueError(f'{shown(begins)} has no offset; write it like "2025-10-19T23:30:00-07:00"')

    def tick(self, hour: str) -> Tick:
        """Seconds from the beginning to the next time that the clock shows this; "+1d 04:05" is a day later."""
        later = hour.startswith("+1d ")
        match = _HOUR.fullmatch(hour.removeprefix("+1d "))
        if match is None:
            raise ValueError(f'{shown(hour)} is no hour like "04:14" or "+1d 04:05"')
        begins = self.begins.hour * 3600 + self.begins.minute * 60 + self.begins.second
        return (int(match[1]) * 3600 + int(match[2]) * 60 - begins) % DAY_S + DAY_S * later


def seconds(text: str) -> int:
    """Whole seconds of a duration. Raises ``ValueError``."""
    try:
        found = duration_ns(text)
    except ValueError:
        raise ValueError(f'{shown(text)} is no duration like "90s" or "45m"') from None
    if found > YEAR_S * NS["s"]:
        raise ValueError(f"{shown(text)} is longer than a year")
    return found // NS["s"]


def number(text: str) -> float | str:
    """A plain number as one, all else as it is: for what comes from a command line."""
    return float(text) if _NUMBER.fullmatch(text) else text


def amount(value: float | str, clock: Clock, wanted: str = "") -> tuple[float, str]:
    """A number and its unit from its text. Raises ``ValueError``, which says what is ``wanted`` where it is an hour."""
    if isinstance(value, float | int):
        if not 0 <= value <= MOST or not math.isfinite(value):
            raise ValueError(f"{shown(value)} is no number from 0 to {MOST:.0e}")
        return float(value), ""
    if _HOUR.fullmatch(value):
        return float(clock.tick(value)), "hour"
    if value.endswith("%"):
        try:
            return share_ppm(value) / WHOLE, "share"
        except ValueError as error:
            raise ValueError(f"{shown(value)} {error}") from None
    rate = _RATE.fullmatch(value)
    if rate is not None:
        return float(rate[1]), "per second"
    try:
        found = duration_ns(value) / NS["s"]
    except ValueError:
        if wanted == "hour" or _LIKE_AN_HOUR.fullmatch(value):
            raise ValueError(f'{shown(value)} is no hour like "04:14"') from None
        raise ValueError(f'{shown(value)} is no number, duration ("45m"), share ("12%") or rate ("9/s")') from None
    if found > YEAR_S:
        raise ValueError(f"{shown(value)} is longer than a year")
    return found, "seconds"
