"""Which values a scenario has to give, in which unit, and between which bounds the replay can take them."""

import math

from msgspec import Struct

from fencepost.incident.replay.scenario import Cause, Value


class Need(Struct, frozen=True, gc=False):
    """A unit as in :class:`.scenario.Value`, and the least and the most of it. ``whole``: nothing in between."""

    unit: str
    least: float
    most: float
    whole: bool = False


_ANY = Need("seconds", 0, math.inf)
_SOME = Need("seconds", 1, math.inf)
_SPAN = Need("seconds", 0.001, 86_400)
_CALL = Need("seconds", 0.001, 3600)
_WHOLE_DAY = Need("seconds", 2, 86_400)
_SHARE = Need("share", 0, 1)
_PART = Need("share", 0.0001, 1)
_RATE = Need("per second", 0, 1e6)
_FLOW = Need("per second", 0.01, 1e6)
_COUNT = Need("", 1, 1e6)
_FEW = Need("", 1, 1000)
_FACTOR = Need("", 0, 1000)
_HOUR = Need("hour", 0, math.inf)

DNS = {
    "endpoints": Need("", 1, 3_000), "place_a": _SHARE, "place_b": _SHARE, "place_c": _SHARE, "call": _CALL,
    "call_spread": _SHARE, "plans": Need("seconds", 5, 86_400), "plans_vary": Need("share", 0, 0.9),
    "generations": _FEW, "deletion": _SPAN, "look": Need("seconds", 0.1, 3600), "slow": Need("", 0.1, 1000),
    "slow_begins": _HOUR, "back_off": _CALL, "back_off_most": _CALL,
}  # fmt: skip

EVERY: dict[str, dict[str, Need]] = {
    "access": {"pooled_life": _ANY, "caches_return": _ANY},
    "leases": {"length": _WHOLE_DAY, "renewal": _WHOLE_DAY, "broken_always": Need("share", 0, 0.5)},
    "workers": {
        "knee": _COUNT, "pool": _COUNT, "contention": _FACTOR, "renew_cost": _CALL, "establish_cost": _CALL,
        "patience": Need("seconds", 1, 3600),
    },
    "throttle": {"rate": _RATE, "burst": _ANY, "waves": _FEW, "wave": _SOME},
    "launches": {
        "demand": _FLOW, "most": _RATE, "terminations": _SHARE, "retry": Need("seconds", 12, 86_400),
        "give_up": _WHOLE_DAY,
    },
    "limit": {"first": _RATE, "then": _RATE, "leased": _SHARE, "growth": _SHARE, "each": _SOME},
    "network": {"drain": _FLOW, "resync": Need("", 0, 1000), "release": _RATE},
    "balancers": {
        "balancers": Need("", 1, 20_000, True), "zones": Need("", 2, 10, True), "targets": Need("", 1, 10_000),
        "size_spread": Need("", 0, 4), "hot_spread": Need("", 0, 4), "register": _SHARE, "churn": _SHARE,
        "replace": _SOME, "used": _PART, "night": _SHARE, "morning": _HOUR, "day": _HOUR,
    },
    "checkers": {
        "dwell": Need("", 0.1, 1e6), "change_cost": Need("", 0, 1e6), "headroom": _SHARE, "late_most": _SHARE,
        "dead_share": _PART,
    },
    "guards": {"grace": _ANY, "network_bound": _SOME},
}  # fmt: skip
"""Sections that each scenario has: the whole region is always there."""

OWN: dict[Cause, dict[str, dict[str, Need]]] = {
    Cause.DNS_RACE: {"dns": DNS},
    Cause.STORE_AWAY: {"outage": {"begins": _HOUR}},
    Cause.BAD_PROBE: {"probe": {"begins": _HOUR, "rollout": _ANY, "fails": _PART}},
}
"""Sections of one cause only."""


ORDER = (
    ("balancers.morning", "balancers.day", False, "it has to be later"),
    ("leases.renewal", "leases.length", False, "a lease would run out before it is renewed"),
    ("workers.establish_cost", "workers.patience", False, "no call for a lease would ever be answered in time"),
    ("workers.knee", "workers.pool", True, "the pool has all workers, those up to the knee among them"),
    ("dns.back_off", "dns.back_off_most", True, "pauses begin with it and grow"),
)
"""What is less than what, whether both may be the same, and why."""


def disordered(values: dict[str, Value]) -> list[tuple[str, str]]:
    """Each value that is too small beside another one, by its key, and what is wrong."""
    found = []
    for low, high, same, why in ORDER:
        one, other = values.get(low), values.get(high)
        if one is None or other is None or one.amount < other.amount:
            continue
        if one.amount > other.amount or not same:
            less = "less" if same else "not more"
            found.append((high, f"{high} is {less} than {low}: {why}"))
    return found


def needs(cause: Cause | None) -> dict[str, dict[str, Need]]:
    """All sections of a scenario with that cause; None: it isn't known."""
    return EVERY | (OWN[cause] if cause is not None else {})


def unfit(amount: float, unit: str, need: Need) -> str:
    """What is wrong with a number, "" if nothing is."""
    if unit != need.unit:
        given = "an hour" if unit == "hour" else f"in {unit or 'plain numbers'}"
        wanted = 'an hour like "04:14"' if need.unit == "hour" else f"in {need.unit or 'plain numbers'}"
        return f"is {given}; it is to be {wanted}"
    if amount < need.least:
        return f"is less than {spelt(need.least, unit)}, the least that it can be"
    if amount > need.most:
        return f"is more than {spelt(need.most, unit)}, the most that it can be"
    if need.whole and amount != int(amount):
        return "is no whole number"
    return ""


def spelt(amount: float, unit: str) -> str:
    """A bound as it would be written in the file."""
    if unit == "seconds":
        return f"{amount:g}s"
    if unit == "share":
        return f"{amount * 100:g}%"
    return f"{amount:g}/s" if unit == "per second" else f"{amount:g}"
