"""The network manager: changes of network state on their way to the hosts.

What comes in and what is done are running totals, so that the age of the oldest change is a look into the past: when
did the total of what came in first exceed what is done by now? Changes that concern hosts without a lease can't be
delivered; they are held back, and a host that lost its lease needs all of its state anew.

As it was there is one queue, and all that was held joins it at a fixed rate. Throttled, as production's network manager
is, only the newest version of a host's state is sent, what new instances wait for goes first, and what was held takes
what is left.
"""

from bisect import bisect_right

from msgspec import Struct

from fencepost.incident.replay.scenario import Tick


class NetworkValues(Struct, frozen=True, gc=False):
    """Changes a second; ``resync`` for each host that lost its lease. ``release``: how fast held changes join."""

    drain: float
    resync: float
    release: float


class Queue:
    """Running totals at the end of each step."""

    __slots__ = ("_at", "_came", "_served")

    def __init__(self) -> None:
        """Empty."""
        self._at: list[Tick] = [0]
        self._came: list[float] = [0.0]
        self._served = 0.0

    @property
    def depth(self) -> float:
        """How many changes wait in the queue."""
        return self._came[-1] - self._served

    def step(self, now: Tick, changes: float, most: float) -> float:
        """So many changes come in during the step that ends now, and so many can be worked on. Gives what is left."""
        self._at.append(now)
        self._came.append(self._came[-1] + changes)
        done = min(self.depth, most)
        self._served += done
        return most - done

    def served_until(self) -> float:
        """Until when the changes of the past are done: who came before that has his network state."""
        if self.depth < 1e-6:
            return float(self._at[-1])
        place = bisect_right(self._came, self._served)
        before, after = self._came[place - 1], self._came[place]
        share = (self._served - before) / (after - before)
        return self._at[place - 1] + share * (self._at[place] - self._at[place - 1])


class Network:
    """Both queues. ``held`` is what isn't in a queue yet; ``throttled`` as production's."""

    __slots__ = ("_behind", "_first", "_throttled", "held", "values")

    def __init__(self, values: NetworkValues, throttled: bool) -> None:
        """Nothing on its way."""
        self.values, self._throttled = values, throttled
        self._first, self._behind = Queue(), Queue()
        self.held = 0.0

    @property
    def work_s(self) -> float:
        """How many seconds it takes to work off everything, held changes included."""
        return (self._first.depth + self._behind.depth + self.held) / self.values.drain

    @property
    def ahead(self) -> float:
        """How many changes a new instance's waits for."""
        return self._first.depth

    def hold(self, changes: float) -> None:
        """These can't be delivered yet."""
        self.held += changes

    def resync(self, hosts: float) -> None:
        """These hosts lost their leases: all of their state is to be sent anew, or only its newest version."""
        self.held += hosts * (1.0 if self._throttled else self.values.resync)

    def step(self, now: Tick, seconds: int, launched: float, ended: float, deliverable: bool) -> None:
        """One step: instances launched and ended; held changes join if hosts can take them."""
        released = min(self.held, self.values.release * seconds) if deliverable else 0.0
        drain = self.values.drain * seconds
        if not self._throttled:
            self.held -= released
            self._first.step(now, launched + ended + released, drain)
            return
        left = self._first.step(now, launched, drain)
        released = min(self.held, max(0.0, left - ended - self._behind.depth)) if deliverable else 0.0
        self.held -= released
        self._behind.step(now, ended + released, left)

    def age_s(self, now: Tick) -> float:
        """How long the oldest change that a new instance waits behind has been on its way."""
        return max(0.0, now - self._first.served_until())

    def served_until(self) -> float:
        """Instances launched before that have their network state."""
        return self._first.served_until()
