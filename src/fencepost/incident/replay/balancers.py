"""Load balancers whose targets include some that can't serve yet, and the checkers that look at them.

A target whose network state hasn't arrived fails its check, passes, fails again. Each change of state costs checks of
its own, and the checkers have little to spare: beyond that results come late, and a late result counts as a failure. A
zone of a balancer in which most results of a round are failures looks dead; so does one to which a bad health check is
rolled out, though it serves. What is then done about it is a policy: as it was, its nodes leave DNS until a round looks
better, and each such change is work for the checkers again.

Balancers are counted as zones of them, 1,500 numbers a round; while nothing is unready or out, no round is drawn.
"""

from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fencepost.incident.replay.scenario import Tick

Mask = NDArray[np.bool_]

HOUR_S = 3600
LEAST = 0.5
"""Fewer unready targets than that are none."""


class BalancerValues(Struct, frozen=True, gc=False):
    """Counts, spreads of lognormal distributions, shares.

    ``register`` of the launches become targets. ``churn`` of the targets die in an hour; ``replace`` is how many
    seconds it takes to make good what is missing. Traffic takes ``used`` of the capacity from ``day`` on, ``night`` of
    that until ``morning`` (both ticks).
    """

    balancers: int
    zones: int
    targets: float
    size_spread: float
    hot_spread: float
    register: float
    churn: float
    replace: float
    used: float
    night: float
    morning: float
    day: float


class CheckerValues(Struct, frozen=True, gc=False):
    """``dwell`` in checks, ``change_cost`` in checks a change of state, ``headroom`` and ``late_most`` in shares."""

    dwell: float
    change_cost: float
    headroom: float
    late_most: float
    dead_share: float


class Failover(Protocol):
    """What is done about zones that look dead."""

    def out(self, dead: Mask, out: Mask, sizes: NDArray[np.int64], now: Tick) -> Mask:
        """Which zones of which balancers are out of DNS from now on; arrays of balancers × zones."""
        ...


class Balancers:
    """Zones of balancers at the end of a step. Of all capacity the shares ``out``, ``unready`` and ``missing``;
    ``errors`` of all connections; ``late`` of all check results. ``probe_fails``: of the checks of what is well in each
    balancer's last zone so many fail."""

    __slots__ = (
        "_chance", "_changed", "_checkers", "_failover", "_hot", "_outs", "_sizes", "_traffic", "errors", "failover_on",
        "late", "missing", "out", "probe_fails", "targets", "unready", "values",
    )  # fmt: skip

    def __init__(
        self, values: BalancerValues, checkers: CheckerValues, failover: Failover, chance: np.random.Generator
    ) -> None:
        """All in service."""
        self.values, self._checkers, self._failover, self._chance = values, checkers, failover, chance
        sizes = chance.lognormal(-(values.size_spread**2) / 2, values.size_spread, values.balancers)
        each = np.maximum(1, np.rint(sizes * values.targets / sizes.mean())).astype(np.int64)
        self._sizes = np.repeat(each[:, None], values.zones, axis=1)
        self._traffic = each / each.sum()
        hot = chance.lognormal(-(values.hot_spread**2) / 2, values.hot_spread, values.balancers)
        self._hot = np.repeat((hot / hot.sum() / values.zones)[:, None], values.zones, axis=1)
        self._outs = np.zeros(self._sizes.shape, np.bool_)
        self._changed = 0
        self.targets = int(self._sizes.sum())
        self.failover_on = True
        self.probe_fails = 0.0
        self.out = self.unready = self.missing = self.errors = self.late = 0.0

    def step(self, now: Tick, seconds: int, unready: float, failing: float) -> None:
        """One round of checks and connections.

        ``unready`` targets in all have no network state yet; ``failing`` of the launches are refused, so that what
        dies isn't replaced, and what is missing isn't made good.
        """
        self.unready = unready / self.targets
        self._check(now, unready)
        values = self.values
        self.missing += values.churn * seconds / HOUR_S * failing
        self.missing -= self.missing * min(1.0, seconds / values.replace * (1 - failing))
        into = min(1.0, max(0.0, (now - values.morning) / (values.day - values.morning)))
        traffic = values.used * (values.night + (1 - values.night) * into)
        if not self._outs.any() and unready < LEAST and self.missing <= 1 - traffic:
            self.errors = 0.0
            return
        serving = np.where(self._outs, 0, self._sizes).sum(axis=1)
        waiting = np.where(self._outs, 0.0, self._hot).sum(axis=1) * unready
        served = np.minimum(1.0, serving / self._sizes.sum(axis=1) * (1 - self.missing) / traffic)
        lands = waiting / 2 / np.maximum(1.0, serving + waiting / 2)
        self.errors = float((self._traffic * (1 - served * (1 - lands))).sum())

    def _check(self, now: Tick, unready: float) -> None:
        if unready < LEAST and not self._changed and not self._outs.any() and not self.probe_fails:
            self.late = self.out = 0.0
            return
        checkers = self._checkers
        changes = unready / checkers.dwell + self._changed
        load = 1 + (unready + changes * checkers.change_cost) / self.targets
        self.late = min(checkers.late_most, max(0.0, 1 - (1 + checkers.headroom) / load))
        there = np.rint(self._hot * unready).astype(np.int64)
        fails = np.full(self._sizes.shape, self.late)
        if self.probe_fails:
            fails[:, -1] = 1 - (1 - self.late) * (1 - self.probe_fails)
        failing = self._chance.binomial(self._sizes, fails) + self._chance.binomial(there, (1 + self.late) / 2)
        dead = failing >= checkers.dead_share * (self._sizes + there)
        outs = self._failover.out(dead, self._outs, self._sizes, now) if self.failover_on else np.zeros_like(dead)
        self._changed = int(self._sizes[outs != self._outs].sum())
        self._outs = outs
        self.out = float(self._sizes[outs].sum()) / self.targets


class AsItWasFailover:
    """A zone that looks dead leaves DNS at once, and is back with the first round that looks better; never all zones of
    a balancer."""

    def out(self, dead: Mask, *_: object) -> Mask:
        """Nothing bounds how much goes at once."""
        chosen: Mask = dead & ~dead.all(axis=1, keepdims=True)
        return chosen
