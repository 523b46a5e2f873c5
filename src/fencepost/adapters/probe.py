"""An open-loop prober: asks each target of a pool, once an interval, whether it is well.

Theory of operation. A tick (each 5 to 20 ms) does everything that isn't an answer: it ends probes whose time is up,
sends those that are due and hands the results gathered since the last tick to one callback, as a batch. Answers
arrive by protocol callbacks in between. Nothing waits for anything: a slow target holds a place in its lane and no
more (`probe_schedule`).

A probe is one connection: connect, ask, judge, reset. It ends by RST (SO_LINGER 0), never by FIN, so that no port is
left in TIME_WAIT: at 1,000 probes a second 60,000 would be (Kubernetes #89898).

Three answers, not two. `ok` is True, False, or None: *unknown* is what this process can't blame on the target. It has
no file descriptor left (Consul #3886 called that "down"), no local port, no place in the lane, or its own loop stood
still (Envoy #36295). The last is measured: each tick knows when it should have run, and a probe that was in flight
while the loop lost more than a quarter of the timeout is `late`, whether it passed or failed. The awkward truth: a
kernel that stalls without stalling this process, or a full network card, looks like dead targets. That is what
canaries are for.

What a probe says is one file a kind (`probe_http`, `probe_tcp`): a subclass of `Attempt` that talks, and a function
from settings to a `Check`. `Check.dial` carries further arguments for `create_connection`, which is all that TLS
needs.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias, cast

import msgspec

from fencepost.adapters.probe_schedule import Lane, Rounds, lane_limit, phases, until_tick

MS = 1_000_000
LINGER_ZERO = struct.pack("ii", 1, 0)
FILES_KEPT_BACK = 64
"""Descriptors that probes leave to everything else in the process."""

OURS = {
    errno.EMFILE: "out of file descriptors",
    errno.ENFILE: "out of file descriptors (whole machine)",
    errno.ENOBUFS: "out of socket memory",
    errno.ENOMEM: "out of memory",
    errno.EADDRNOTAVAIL: "out of local ports, or no local address of that family",
    errno.EAFNOSUPPORT: "this machine doesn't speak that address family",
    errno.EPERM: "not permitted on this machine",
    errno.EACCES: "not permitted on this machine",
}
"""Errors that say something about this machine and nothing about the target."""
THEIRS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.EPIPE: "connection reset",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network unreachable",
    errno.ETIMEDOUT: "timeout while connecting",
}

ProbeResult: TypeAlias = "tuple[str, bool | None, str, int, int | None]"
"""(target key, ok or None for unknown, cause or "", latency in ns, last capacity 0 to 255 or None)."""


class ProbeSettings(msgspec.Struct, frozen=True):
    """How one pool is probed. Times are nanoseconds; `good_statuses` empty means any 2xx. `host` is what the Host
    field says, empty for the address itself.

    `capacity_path` None asks for no capacity; `capacity_port` None means the probe's own port. Capacity is asked for
    each `capacity_every` rounds. `in_flight` overrides the computed limit of each lane.
    """

    kind: str = "http"
    port: int = 80
    path: str = "/"
    interval_ns: int = 10_000 * MS
    timeout_ns: int = 2_000 * MS
    host: str = ""
    good_statuses: tuple[int, ...] = ()
    capacity_port: int | None = None
    capacity_path: str | None = None
    capacity_every: int = 5
    in_flight: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError unless 0 < timeout < interval: a target must be done with one probe before the next."""
        if not 0 < self.timeout_ns < self.interval_ns:
            raise ValueError(f"timeout {self.timeout_ns} ns must lie between 0 and the interval, {self.interval_ns} ns")


class ProbeTarget(msgspec.Struct, frozen=True):
    """One address to probe. `port` and `path` override the pool's; v4 and v6 of a host are two targets."""

    key: str
    address: str
    port: int | None = None
    path: str | None = None


class Check(msgspec.Struct, frozen=True):
    """What to do to one target: where to connect, how (`create_connection` arguments), and who does the talking."""

    address: str
    port: int
    attempt: Callable[[], Attempt]
    dial: Mapping[str, Any] = {}


def cause_of(error: BaseException) -> tuple[bool | None, str]:
    """The verdict an error leads to: (False, why) for the target's own, (None, why) for ours."""
    number = error.errno if isinstance(error, OSError) else None
    if number in OURS:
        return None, OURS[number]
    if number in THEIRS:
        return False, THEIRS[number]
    return False, f"{type(error).__name__}: {error}"[:80]


class State:
    """What the prober remembers of a target between probes."""

    __slots__ = ("asked", "busy", "capacity", "capacity_check", "check", "gone", "suspect", "target", "waiting")

    def __init__(self, target: ProbeTarget, check: Check, capacity_check: Check | None) -> None:
        self.target = target
        self.check = check
        self.capacity_check = capacity_check
        self.capacity: int | None = None
        self.suspect = False
        self.waiting = False
        self.busy = False
        self.gone = False
        self.asked = 0


class Attempt(asyncio.Protocol):
    """One probe under way, or one question for a capacity. Subclasses talk, and call `finish` once they know."""

    lane: Lane[State]
    state: State
    started_ns: int
    lag_ns: int
    done_with: Callable[[Attempt, bool | None, str], None]
    for_capacity = False
    capacity: int | None = None
    transport: asyncio.Transport | None = None
    task: asyncio.Task[None] | None = None
    done = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Arrange for an end by RST, then start talking."""
        transport = cast("asyncio.Transport", transport)
        self.transport = transport
        with suppress(OSError):  # the peer may be gone already: then there is nothing to linger for
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
        if self.done:
            transport.abort()
        else:
            self.connected(transport)

    def connected(self, transport: asyncio.Transport) -> None:
        """Send what the probe sends."""
        raise NotImplementedError

    def connection_lost(self, exc: Exception | None) -> None:
        """The target closed before it was judged."""
        self.finish(*(cause_of(exc) if exc else (False, "closed without an answer")))

    def finish(self, ok: bool | None, cause: str = "") -> None:
        """Judge once, and reset the connection; later calls change nothing."""
        if self.done:
            return
        self.done = True
        if self.transport is not None:
            self.transport.abort()
        elif self.task is not None:
            self.task.cancel()
        self.done_with(self, ok, cause)

    async def connect(self, check: Check) -> None:
        """Open the connection; an error in doing so is the verdict."""
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, check.address, check.port, **check.dial)
        except OSError as error:
            self.finish(*cause_of(error))


class Prober:
    """Probes the targets of one pool until stopped; results come in batches to `on_results`.

    `salt` (the checker's zone) keeps several checkers from probing the same target at the same instant.
    """

    def __init__(
        self,
        settings: ProbeSettings,
        check: Callable[[ProbeTarget], Check],
        on_results: Callable[[list[ProbeResult]], None],
        *,
        salt: str = "",
        capacity_check: Callable[[ProbeTarget], Check] | None = None,
    ) -> None:
        self.settings = settings
        self.tick_ns = min(20 * MS, max(5 * MS, settings.timeout_ns // 25))
        self.sent = 0
        self.late = 0
        self.files_ran_out_ns = 0
        """When (monotonic) a probe last failed for want of a file descriptor; 0 is never."""
        self._check, self._capacity_check = check, capacity_check
        self._on_results = on_results
        self._rounds: Rounds[State] = Rounds(salt, settings.interval_ns)
        self._states: dict[str, State] = {}
        self._live: Lane[State] = Lane()
        self._suspect: Lane[State] = Lane()
        self._deadlines: deque[Attempt] = deque()
        self._results: list[ProbeResult] = []
        self._lag_ns = 0
        self._tick_due_ns = 0
        self._per_tick = 1
        self._sparse = True
        self._timer: asyncio.Handle | None = None
        self._out_of_time = f"timeout after {settings.timeout_ns / MS:.4g} ms"

    @property
    def in_flight(self) -> int:
        """Connections open or being opened."""
        return self._live.in_flight + self._suspect.in_flight

    def start(self) -> None:
        """Begin; must run inside the event loop."""
        if self._timer is None:
            self._tick_due_ns = time.monotonic_ns()
            self._tick()

    def stop(self) -> None:
        """End at once: probes in flight are reset and give no result."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for state in self._states.values():
            state.gone = True
        self._states.clear()
        for attempt in self._deadlines:
            attempt.finish(None, "stopped")
        self._results.clear()

    def set_targets(self, targets: Iterable[ProbeTarget]) -> None:
        """Probe exactly these from now on. Those that stay keep their turn; new ones start within one interval; those
        that left get no further probe, and a probe of theirs in flight gives no result.
        """
        wanted = {target.key: target for target in targets}
        fresh = {
            key: State(target, self._check(target), self._capacity_check(target) if self._capacity_check else None)
            for key, target in wanted.items()
            if key not in self._states or self._states[key].target != target
        }
        for key, state in list(self._states.items()):
            if key in fresh or key not in wanted:
                state.gone = True
                del self._states[key]
        now = time.monotonic_ns()
        for key, phase_ns in phases(fresh, self._rounds.salt, self.settings.interval_ns).items():
            self._states[key] = fresh[key]
            self._rounds.add(key, fresh[key], now + phase_ns)
        count, interval_ns = len(self._states), self.settings.interval_ns
        self._per_tick = 1 + -(-2 * count * self.tick_ns // interval_ns)
        self._sparse = 2 * count * self.tick_ns <= interval_ns
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_KEPT_BACK
        if self._timer is not None:
            self._arm(now, until_tick(now, self.tick_ns))  # some may be due before the tick that was waited for
        limit = self.settings.in_flight or lane_limit(count, interval_ns, self.settings.timeout_ns, files)
        self._live.limit = self._suspect.limit = limit

    def _tick(self) -> None:
        now = time.monotonic_ns()
        self._lag_ns += self._lost(now)
        self._arm(now, until_tick(now, self.tick_ns))  # first, so that an error below can't end the probing
        started_before = now - self.settings.timeout_ns
        while self._deadlines and (self._deadlines[0].done or self._deadlines[0].started_ns <= started_before):
            self._deadlines.popleft().finish(False, self._out_of_time)
        self._send_waiting()
        for _ in range(self._per_tick):
            due = self._rounds.pop_due(now)
            if due is None:
                break
            self._turn(now, *due)
        if self._results:
            batch, self._results = self._results, []
            self._on_results(batch)
        self._rest(now)

    def _arm(self, now: int, wait_ns: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._tick_due_ns = now + wait_ns
        self._timer = asyncio.get_running_loop().call_later(wait_ns / 1e9, self._tick)

    def _rest(self, now: int) -> None:
        """Skip the ticks that would find nothing to do: most of what a quiet checker costs is waking up."""
        if self._timer is None or self.in_flight or self._live.waiting or self._suspect.waiting:
            return
        due_ns = min(self._rounds.next_due_ns(now + self.settings.interval_ns), now + self.settings.interval_ns)
        if due_ns - now > 2 * self.tick_ns:
            self._arm(now, due_ns - now + until_tick(due_ns, self.tick_ns) % self.tick_ns)

    def _lost(self, now: int) -> int:
        """Nanoseconds by which a tick is late; up to one tick is ordinary."""
        late_ns = now - self._tick_due_ns
        return late_ns if late_ns > self.tick_ns else 0

    def _turn(self, now: int, due_ns: int, turn: int, key: str, first_ns: int, state: State) -> None:
        if state.gone:
            return
        self._rounds.next_round(now, turn, key, first_ns, state)
        if now - due_ns >= self.settings.interval_ns:
            return  # a whole interval late: this round was missed
        if state.waiting:
            lane = self._suspect if state.suspect else self._live
            self._results.append((key, None, f"not sent: {lane.in_flight} probes in flight", 0, state.capacity))
        elif not state.busy:
            lane = self._suspect if state.suspect else self._live
            if lane.full or lane.waiting:
                state.waiting = True
                lane.waiting.append(state)
            else:
                self._send(state, lane)

    def _send_waiting(self) -> None:
        for lane in (self._live, self._suspect):
            while lane.waiting and not lane.full:
                state = lane.waiting.popleft()
                state.waiting = False
                if not state.gone:
                    self._send(state, lane)

    def _send(self, state: State, lane: Lane[State]) -> None:
        state.busy = True
        self._launch(state, state.check, lane)
        if state.capacity_check is not None:
            if state.asked % self.settings.capacity_every == 0:
                self._launch(state, state.capacity_check, lane)
            state.asked += 1

    def _launch(self, state: State, check: Check, lane: Lane[State]) -> None:
        attempt = check.attempt()
        attempt.state, attempt.lane, attempt.lag_ns = state, lane, self._lag_ns
        attempt.started_ns = time.monotonic_ns()
        attempt.done_with = self._finished
        lane.in_flight += 1
        self.sent += 1
        self._deadlines.append(attempt)
        attempt.task = asyncio.get_running_loop().create_task(attempt.connect(check))

    def _finished(self, attempt: Attempt, ok: bool | None, cause: str) -> None:
        attempt.lane.in_flight -= 1
        state = attempt.state
        if ok is None and cause.startswith(OURS[errno.EMFILE]):
            self.files_ran_out_ns = time.monotonic_ns()
        if attempt.for_capacity:
            state.capacity = attempt.capacity
            return
        state.busy = False
        if state.gone:
            return
        now = time.monotonic_ns()
        lag_ns = self._lag_ns - attempt.lag_ns + self._lost(now)
        if lag_ns * 4 > self.settings.timeout_ns:
            self.late += 1
            ok, cause = None, f"late: the checker's own loop stood still for {lag_ns / MS:.0f} ms"
        if ok is not None:
            state.suspect = not ok
        self._results.append((state.target.key, ok, cause, now - attempt.started_ns, state.capacity))
        if self._sparse and not self.in_flight and self._timer is not None:
            # Nobody else is waited for: hand it on now, and sleep until the next one is due.
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_soon(self._tick)
