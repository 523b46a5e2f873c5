"""The lease storm once more, call by call: a heap of events, one object a call, and nothing of the replay's mechanisms.

It takes the scenario's numbers and shares no code with what it is held against. Time is a float here, not whole
seconds; each call is an object with its own timeout; workers share their speed among all calls that they have (each
call gets slower or faster while it runs, as others begin and end, renewals too), where the replay fixes a call's end
when it begins. The two are right to differ by minutes. They may not fall on different sides of a knee.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from fencepost.incident.replay.scenario import Scenario

FULL = 100_000
GIVE_UP, ASK, REGAIN, WAVE, THROTTLE, LAPSE = range(6)


@dataclass(frozen=True)
class Setting:
    """The scenario's numbers, for 100,000 hosts, in seconds and counts; ``outage_s`` is how long the store is away.

    ``steps_in_s``: when people step in, counted from the store's return; None: nobody does.
    """

    outage_s: float
    length: float
    renewal: float
    knee: float
    pool: float
    contention: float
    renew_cost: float
    establish_cost: float
    patience: float
    pooled_life: float
    caches_return: float
    rate: float
    burst: float
    wave: float
    waves: int
    steps_in_s: float | None


def setting_of(scenario: Scenario, outage_s: float, steps_in: bool) -> Setting:
    """The scenario's own numbers; people step in at 04:14, as reported, if they do."""
    amount = scenario.amount
    same = {
        "leases": ("length", "renewal"),
        "workers": ("knee", "pool", "contention", "renew_cost", "establish_cost", "patience"),
        "access": ("pooled_life", "caches_return"),
        "throttle": ("rate", "burst", "wave"),
    }
    numbers = {key: amount(f"{section}.{key}") for section, keys in same.items() for key in keys}
    reported = {act.name: act.reported or 0 for act in scenario.acts}
    at = reported["managers-restarted"] - reported["dns-restored"]
    waves = int(amount("throttle.waves"))
    return Setting(outage_s, **numbers, waves=waves, steps_in_s=at if steps_in else None)


@dataclass(slots=True, eq=False)
class Host:
    """One host: its lease's end (None if it has none), when its way comes back, the call that it waits for."""

    number: int
    end: float | None
    back: float
    call: "Call | None" = None


@dataclass(slots=True, eq=False)
class Call:
    """One call. ``dropped``: its manager was restarted, so nobody will work on it."""

    host: Host
    establish: bool
    at: float
    dropped: bool = False


@dataclass(slots=True, eq=False)
class Lapse:
    """A lease ends then, if it is still that lease."""

    host: Host
    at: float


@dataclass
class Storm:
    """From the store's return on, which is second 0."""

    setting: Setting
    hosts: int
    seed: int
    now: float = 0.0
    events: list[tuple[float, int, int, object]] = field(default_factory=list)
    numbered: int = 0
    line: deque[Call] = field(default_factory=deque)
    running: list[tuple[float, int, Call]] = field(default_factory=list)
    worked: float = 0.0
    """Seconds of full speed that a call has had that has run since the beginning."""
    rate: float | None = None
    tokens: float = 0.0
    told: float = 0.0
    missing: int = 0
    whole_since: float | None = None
    useful: float = 0.0
    done: float = 0.0

    def __post_init__(self) -> None:
        """Each host as the outage left it."""
        chance, set_ = Random(self.seed), self.setting
        self.chance = chance
        self.scale = self.hosts / FULL
        self.knee, self.pool = set_.knee * self.scale, max(1, round(set_.pool * self.scale))
        for number in range(self.hosts):
            phase = chance.random() * set_.renewal
            lost = -set_.outage_s + chance.expovariate(1 / set_.pooled_life)
            last = phase + math.floor((min(lost, 0.0) - phase) / set_.renewal) * set_.renewal
            host = Host(number, last + set_.length, 0.0)
            if lost < 0:
                host.back = chance.random() * set_.caches_return
            if last + set_.length <= 0:
                host.end = None
                self.missing += 1
            else:
                self._at(last + set_.length, LAPSE, Lapse(host, last + set_.length))
            self._at(phase, ASK, host)
        if set_.steps_in_s is not None:
            self._at(set_.steps_in_s, THROTTLE, None)
            for wave in range(set_.waves):
                self._at(set_.steps_in_s + wave * set_.wave, WAVE, wave)

    def _at(self, at: float, kind: int, what: object) -> None:
        self.numbered += 1
        heappush(self.events, (at, self.numbered, kind, what))

    # Time

    def run(self, until: float, settled: float = 600.0) -> bool:
        """Whether by then all hosts but one in 500 have had a lease for so long. Ends as soon as that is so."""
        while self.now < until:
            ends = self._next_end()
            at = self.events[0][0] if self.events else until
            if ends <= at:
                self._pass_to(ends)
                self._end_call()
            else:
                self._pass_to(at)
                _, _, kind, what = heappop(self.events)
                self._happens(kind, what)
            if self.missing * 500 > self.hosts:
                self.whole_since = None
            elif self.whole_since is None:
                self.whole_since = self.now
            elif self.now - self.whole_since > settled and self.now > self.setting.caches_return:
                return True
        return False

    def _speed(self) -> float:
        over = len(self.running) / self.knee
        return 1.0 if over <= 1 else 1 / over / (1 + self.setting.contention * (over - 1))

    def _next_end(self) -> float:
        if not self.running:
            return math.inf
        return self.now + (self.running[0][0] - self.worked) / self._speed()

    def _pass_to(self, at: float) -> None:
        self.worked += (at - self.now) * self._speed()
        self.now = at

    def _begin_calls(self) -> None:
        while len(self.running) < self.pool and self.line:
            call = self.line.popleft()
            if call.dropped:
                continue
            cost = self.setting.establish_cost if call.establish else self.setting.renew_cost
            self.numbered += 1
            heappush(self.running, (self.worked + cost, self.numbered, call))

    def _end_call(self) -> None:
        _, _, call = heappop(self.running)
        host, cost = call.host, self.setting.establish_cost if call.establish else self.setting.renew_cost
        self.done += cost
        if host.call is call:
            self.useful += cost
            host.call = None
            self.missing -= host.end is None
            host.end = self.now + self.setting.length
            self._at(host.end, LAPSE, Lapse(host, host.end))
            self._at(self.now + self.setting.renewal, ASK, host)
        self._begin_calls()

    # What happens

    def _happens(self, kind: int, what: object) -> None:
        if kind == ASK:
            assert isinstance(what, Host)
            self._ask(what)
        elif kind == GIVE_UP:
            assert isinstance(what, Call)
            if what.host.call is what:
                self._ask(what.host)
        elif kind == LAPSE:
            assert isinstance(what, Lapse)
            host = what.host
            if host.end == what.at:
                host.end = None
                self.missing += 1
        elif kind == THROTTLE:
            self.rate = self.setting.rate * self.scale
            self.tokens, self.told = self.rate * self.setting.burst, self.now
        else:
            assert isinstance(what, int)
            self._restart(what)

    def _ask(self, host: Host) -> None:
        if host.back > self.now:
            host.call = None
            self._at(self.now + self.setting.renewal, ASK, host)
            return
        if self.rate is not None and host.end is None and not self._let_in():
            host.call = None
            self._at(self.now + self.setting.renewal, ASK, host)
            return
        host.call = Call(host, host.end is None, self.now)
        self.line.append(host.call)
        self._at(self.now + self.setting.patience, GIVE_UP, host.call)
        self._begin_calls()

    def _let_in(self) -> bool:
        assert self.rate is not None
        most = self.rate * self.setting.burst
        self.tokens = min(most, self.tokens + (self.now - self.told) * self.rate)
        self.told = self.now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def _restart(self, wave: int) -> None:
        """One of so many managers begins anew: its part of the line is gone, and who waited asks at a time of his."""
        for call in self.line:
            if call.host.number * self.setting.waves // self.hosts != wave or call.dropped:
                continue
            call.dropped = True
            if call.host.call is call:
                call.host.call = None
                self._at(self.now + self.chance.uniform(1, self.setting.renewal), ASK, call.host)
