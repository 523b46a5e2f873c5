"""A lease manager's decider in the leases' world: a value that never changes, and whose steps are worked out once each.

There are thousands of situations, and few states that a decider can be in; it is the same object in all of them. What
an event leads to is kept with it. So the decider that ships runs once for each event in each of its states, and no
less is asked of it: a step depends on nothing but its state, the event and the time, which is always the same here.
"""

from collections.abc import Callable, Hashable

import numpy as np

from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import Effect, Event
from fencepost.core.capacity.lease_columns import BLOCK, LONG_AGO
from fencepost.core.instant import Instant

NOW: Instant = 10
"""What every clock says."""
FRESH = 3
LEASE = 4
SAID = ("stamp", "boot", "host_incarnation", "host_version", "whole", "echo")
"""Columns of what a host said, and nothing reads once its token isn't the present one."""


class Minds:
    """The states met so far.

    Walks may share them, of the same deciders: those with a rule taken out must not meet what others decided.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Mind] = {}

    def of(self, decider: HostLeases) -> "Mind":
        """The state of this decider, which isn't to be changed any more."""
        key = (decider.settings, type(decider), decider.key())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Mind(decider, self, key)
        return found


class Mind:
    """One state of a decider; two of one walk are equal if they are the same object."""

    def __init__(self, decider: HostLeases, minds: Minds, key: Hashable) -> None:
        self.decider = decider
        self.minds = minds
        self._key = key
        self._after: dict[Hashable, tuple[Mind, tuple[Effect, ...]]] = {}
        self._aged: dict[Hashable, Mind] = {}

    def __repr__(self) -> str:
        return repr(self._key)

    def on(self, news: Hashable, event: Callable[[], Event]) -> tuple["Mind", tuple[Effect, ...]]:
        """The state after an event, and what is then to be done. ``news`` is what tells the event from others."""
        found = self._after.get(news)
        if found is None:
            decider = self.decider.copy()
            effects = decider.on(event(), NOW)
            lean(decider)
            found = self._after[news] = self.minds.of(decider), effects
        return found

    def aged(self, passed: tuple[int, int], boot: int) -> "Mind":
        """The state once so much time has passed, managers' and the host's; ``boot`` is the host's present one."""
        found = self._aged.get((passed, boot))
        if found is None:
            decider = self.decider.copy()
            if passed[0]:
                decider.aged(1, NOW - LEASE)
            if passed[1]:
                stamps, own = decider.hosts.stamp, decider.hosts.boot == boot
                stamps[own] = np.maximum(stamps[own] - 1, NOW - FRESH)
            lean(decider)
            found = self._aged[passed, boot] = self.minds.of(decider)
        return found


def lean(decider: HostLeases) -> None:
    """Forget what no step can tell any more.

    When it last beat: a beat may come at any time. How many leases lapsed: there is but one. How long ago an end
    passed, or an answer was too old for an order. What was said under a token that isn't the present one.
    """
    decider.owner.beaten = decider.owner.since = decider.window = LONG_AGO
    decider.lapses = 0
    if decider.complete or decider.waited:
        decider.taken = LONG_AGO
    decider.ticked = max(decider.ticked, NOW - 2)
    hosts = decider.hosts
    np.maximum(hosts.ends, NOW, out=hosts.ends)
    np.maximum(hosts.seen, NOW - 2, out=hosts.seen)
    if hosts.size and not hosts.fresh[0]:
        for name in SAID:
            if name in BLOCK:
                getattr(hosts, name)[0] = 0
