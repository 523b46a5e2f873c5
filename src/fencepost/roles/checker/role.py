"""The checker: one process a zone, which probes every pool's targets and publishes what it thinks of them.

Each pool has a prober (IO) and a `Checker` (the decision: hysteresis, doubt about itself). This module carries values
from one to the other and decides nothing, except what counts as an observation: an *unknown* result, one that the
prober can't blame on the target, is no observation and is not passed on. What the process notices about itself, a
late loop, no file descriptors, no canary, it tells the checkers of all pools, because it is true for all of them.

Canaries: one that answers is enough. Were all needed, one dead canary would silence every checker in the region. They
are probed twice an interval and count as lost when none was reached for a whole interval and a timeout, so one lost
packet isn't a cut network, and a cut is still noticed before `fall` failures have come in.

What a prober, its settings and its targets are is assembly's choice; of a target only its `key` is read here.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from fencepost.core.decider import Decider
from fencepost.core.effects import Effect, Wake
from fencepost.core.events import Event, Woke
from fencepost.core.traffic.health import (
    CanaryProbed,
    Checker,
    FilesExhausted,
    LoopLag,
    Probed,
    PublishBeat,
    PublishReport,
    Rejudged,
    Restarted,
    TargetsListed,
)
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.verdict import CheckerReport, ProbeResult
from fencepost.ports import PortError
from fencepost.roles.checker.health_port import open_health_port
from fencepost.roles.checker.lag import LagSampler
from fencepost.roles.checker.writer import ReportStore, ReportWriter

log = logging.getLogger(__name__)

Result: TypeAlias = "tuple[str, bool | None, str, int, int | None]"
"""As a prober gives it: (target key, ok or None for unknown, cause, latency in ns, capacity or None)."""
OnResults: TypeAlias = Callable[[list[Result]], None]


class Prober(Protocol):
    """What the role asks of a prober of one pool."""

    @property
    def files_ran_out_ns(self) -> int:
        """When, on the monotonic clock, a file descriptor was last missing; 0 is never."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End at once."""

    def set_targets(self, targets: Iterable[Any]) -> None:
        """Probe exactly these."""


class CheckedPool(msgspec.Struct, frozen=True):
    """One pool: how it is judged, how it is probed (the prober's own settings), and what (each target has a `key`)."""

    name: str
    health: HealthSettings
    probe: Any
    targets: tuple[Any, ...]


class CheckerSettings(msgspec.Struct, frozen=True):
    """A checker's zone, pools, and where its own health port listens (None: nowhere; port 0: any free one)."""

    zone: str
    pools: tuple[CheckedPool, ...]
    health_address: str | None = None
    health_port: int = 0


def wall_clock() -> Callable[[], int]:
    """Nanoseconds since 1970 that never step: the wall clock as of now, carried on by the monotonic one."""
    offset = time.time_ns() - time.monotonic_ns()
    return lambda: offset + time.monotonic_ns()


def lift_file_limit() -> None:
    """Use all the descriptors the system allows: the soft limit is often 1,024, for the sake of programs that
    select().
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class PoolRunner:
    """One pool's prober and decider, and the effects of the latter."""

    def __init__(self, zone: str, pool: CheckedPool, writer: ReportWriter, clock: Callable[[], int]) -> None:
        self.pool = pool
        self.decider: Decider = Checker(zone, pool.name, pool.health)
        self.prober: Prober | None = None
        self.report: CheckerReport | None = None
        self.beat = 0
        self.unknown = 0
        """Results that said nothing about their target."""
        self._writer = writer
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None

    def tell(self, event: Event) -> None:
        """Let the decider judge, and carry out what it asks for."""
        for effect in self.decider.on(event, self._clock()):
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case PublishReport(report=report):
                self.report = report
                self._writer.report(report)
            case PublishBeat(beat=beat):
                self.beat = beat.number
                self._writer.beat(beat)
            case Wake(after=after):
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = asyncio.get_running_loop().call_later(after / 1e9, self.tell, Woke())
            case _:
                raise TypeError(f"a checker can't ask for {type(effect).__name__}")

    def list_targets(self, pool: CheckedPool) -> None:
        """Judge and probe exactly the pool's targets."""
        self.pool = pool
        self.tell(TargetsListed(tuple(target.key for target in pool.targets)))
        if self.prober is not None:
            self.prober.set_targets(pool.targets)

    def rejudge(self, pool: CheckedPool) -> None:
        """Judge what goes on being probed as before by the pool's numbers."""
        self.pool = msgspec.structs.replace(self.pool, health=pool.health)
        self.tell(Rejudged(pool.health))

    def probed(self, results: Sequence[Result]) -> bool:
        """Pass on what was observed; whether there was anything."""
        known = tuple(
            ProbeResult(key, ok, cause, capacity) for key, ok, cause, _, capacity in results if ok is not None
        )
        self.unknown += len(results) - len(known)
        if known:
            self.tell(Probed(known))
        return bool(known)

    def stop(self) -> None:
        """No more probes, no more wakes."""
        if self.prober is not None:
            self.prober.stop()
        if self._timer is not None:
            self._timer.cancel()


class CheckerRole:
    """The running checker. `open_prober` takes a pool's probe settings; `open_canaries` has one opener a canary;
    `on_problem` is told why reports can't be written, or None when they can.
    """

    def __init__(
        self,
        settings: CheckerSettings,
        *,
        open_prober: Callable[[Any, OnResults], Prober],
        store: ReportStore,
        open_canaries: Sequence[Callable[[OnResults], Prober]] = (),
        clock: Callable[[], int] | None = None,
        on_problem: Callable[[PortError | None], None] | None = None,
    ) -> None:
        self.settings = settings
        self.writer = ReportWriter(store, on_problem)
        self.pools: dict[str, PoolRunner] = {}
        self.health_port: int | None = None
        self._open_prober = open_prober
        self._canaries = [opened(self._canary_probed) for opened in open_canaries]
        self._clock = clock or wall_clock()
        self._lag = LagSampler(lambda p99_ns: self._tell_all(LoopLag(p99_ns)))
        self._canary_passed_ns = time.monotonic_ns()
        self._exhausted = False
        self._changing = asyncio.Lock()  # a reload may come while the first pools still wait for the store

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] | None = None) -> None:
        """Check until `stop` is set. Raises OSError if the health port is taken."""
        settings = self.settings
        lift_file_limit()
        server = None
        if settings.health_address is not None:
            server = await open_health_port(settings.health_address, settings.health_port, self._say)
            self.health_port = server.sockets[0].getsockname()[1]
        writing: asyncio.Task[None] | None = None
        try:
            await self.reload(self.settings)
            writing = asyncio.create_task(self.writer.run())
            self._canary_passed_ns = time.monotonic_ns()
            self._lag.start()
            for canary in self._canaries:
                canary.start()
            if ready is not None:
                ready()
            await stop.wait()
        finally:
            self._lag.stop()
            for canary in self._canaries:
                canary.stop()
            for runner in self.pools.values():
                runner.stop()
            if server is not None:
                server.close()
            if writing is not None:
                writing.cancel()
                await asyncio.wait([writing])
                await self.writer.flush()

    async def reload(self, settings: CheckerSettings) -> None:
        """Go on with new pools and targets. Zone and health port stay as they were.

        Only a pool that is probed otherwise, its pace included, begins anew, without votes until it is warm. What else
        changes disturbs nobody.
        """
        async with self._changing:
            wanted = {pool.name: pool for pool in settings.pools}
            for name, runner in list(self.pools.items()):
                pool = wanted.get(name)
                if pool is None or pool.probe != runner.pool.probe:
                    runner.stop()
                    del self.pools[name]
                    if pool is not None and runner.report is not None:
                        # What it last thought may not have reached the store yet.
                        self._start(pool, runner.report, runner.beat)
                    continue
                if pool.health != runner.pool.health:
                    runner.rejudge(pool)
                if pool.targets != runner.pool.targets:
                    runner.list_targets(pool)
            for name, pool in wanted.items():
                if name not in self.pools:
                    self._start(pool, *await self.writer.last(settings.zone, name))
            self.settings = settings

    def _start(self, pool: CheckedPool, last: CheckerReport | None, beat: int) -> None:
        runner = PoolRunner(self.settings.zone, pool, self.writer, self._clock)

        def on_results(results: list[Result]) -> None:
            self._watch_files(runner)
            if runner.probed(results):
                self._files_work_again()

        runner.tell(Restarted(last, beat))
        runner.prober = self._open_prober(pool.probe, on_results)
        runner.list_targets(pool)
        runner.prober.start()
        self.pools[pool.name] = runner

    def _tell_all(self, event: Event) -> None:
        for runner in self.pools.values():
            runner.tell(event)

    def _canary_probed(self, results: list[Result]) -> None:
        known = [ok for _, ok, *_ in results if ok is not None]
        if not known or not self.pools:
            return
        now = time.monotonic_ns()
        if any(known):
            self._canary_passed_ns = now
        for runner in self.pools.values():
            patience_ns = runner.pool.health.interval_ns + runner.pool.health.timeout_ns
            runner.tell(CanaryProbed(now - self._canary_passed_ns < patience_ns))

    def _watch_files(self, runner: PoolRunner) -> None:
        if (
            not self._exhausted
            and runner.prober is not None
            and self._files_missed_ns() < runner.pool.health.interval_ns
        ):
            self._exhausted = True
            log.warning("checker %s is out of file descriptors", self.settings.zone)
            self._tell_all(FilesExhausted(exhausted=True))

    def _files_work_again(self) -> None:
        longest_ns = max(runner.pool.health.interval_ns for runner in self.pools.values())
        if self._exhausted and self._files_missed_ns() >= longest_ns:
            self._exhausted = False
            self._tell_all(FilesExhausted(exhausted=False))

    def _files_missed_ns(self) -> int:
        """How long ago a descriptor was last missing, in any pool."""
        probers = [runner.prober for runner in self.pools.values() if runner.prober is not None]
        last_ns = max((prober.files_ran_out_ns for prober in probers), default=0)
        return time.monotonic_ns() - last_ns if last_ns else 1 << 62

    def _say(self) -> str:
        doubts = sorted({str(r.report.suspect) for r in self.pools.values() if r.report and r.report.suspect})
        return f"checker {self.settings.zone}\n" + "".join(f"suspect: {doubt}\n" for doubt in doubts)


async def run(
    settings: CheckerSettings,
    *,
    open_prober: Callable[[Any, OnResults], Prober],
    store: ReportStore,
    open_canaries: Sequence[Callable[[OnResults], Prober]] = (),
    stop: asyncio.Event,
    ready: Callable[[], None] | None = None,
) -> None:
    """Be a checker until `stop` is set. Raises OSError if the health port is taken."""
    role = CheckerRole(settings, open_prober=open_prober, store=store, open_canaries=open_canaries)
    await role.run(stop, ready)
