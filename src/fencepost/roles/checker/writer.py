"""Reports to the store, from a thread of their own, so that a slow disk never makes the prober late.

Level-based: what waits is the newest body and the newest beat of each pool, never a queue. A body that couldn't be
written is tried again (or a newer one instead); a beat that couldn't be is dropped, because a beat that arrives late
would vouch for a moment that has passed. A beat is not written while the body it speaks of isn't.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeAlias

import msgspec

from fencepost.core.jitter import jitter
from fencepost.core.traffic.verdict import Beat, CheckerReport
from fencepost.ports import Misconfigured, PortError, Refused

log = logging.getLogger(__name__)
AGAIN_S = 0.5
"""Wait between tries while the store is away, plus jitter of as much again."""
LOOK_AGAIN_S = 60.0
"""Wait when only a person can mend it."""

Pool: TypeAlias = "tuple[str, str]"


class ReportStore(Protocol):
    """What a checker asks of the store. Blocking; called from one thread only, the one that opened it.

    Each call may raise Refused, Unavailable or Misconfigured. Bodies and beats are JSON of `CheckerReport` and
    `Beat`.
    """

    def put_report(self, zone: str, pool: str, report: bytes) -> None:
        """Replace this checker's body for the pool."""

    def put_beat(self, zone: str, pool: str, beat: bytes) -> None:
        """Replace this checker's beat for the pool."""

    def last_report(self, zone: str, pool: str) -> tuple[bytes | None, bytes | None]:
        """This checker's own newest body and beat, None where there is none."""


class ReportWriter:
    """Owns the store and the thread that talks to it."""

    def __init__(self, open_store: Callable[[], ReportStore]) -> None:
        self.problem: PortError | None = None
        """Why the last write failed, or None after one that worked."""
        self._open = open_store
        self._store: ReportStore | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reports")
        self._reports: dict[Pool, CheckerReport] = {}
        self._beats: dict[Pool, Beat] = {}
        self._wake = asyncio.Event()

    def report(self, report: CheckerReport) -> None:
        """Write this body soon."""
        self._reports[report.zone, report.pool] = report
        self._wake.set()

    def beat(self, beat: Beat) -> None:
        """Write this beat soon, or never."""
        self._beats[beat.zone, beat.pool] = beat
        self._wake.set()

    async def last(self, zone: str, pool: str) -> tuple[CheckerReport | None, int]:
        """What this checker last published, and its last beat's number; waits until the store answers.

        There is no use in starting without: nothing could be published, and the last verdicts would be forgotten.
        """
        loop = asyncio.get_running_loop()
        attempt = 0
        while True:
            try:
                return await loop.run_in_executor(self._thread, self._read, zone, pool)
            except PortError as problem:
                self._note(problem)
                attempt += 1
                await asyncio.sleep(self._pause_s(problem, f"{zone}/{pool}", attempt))

    async def run(self) -> None:
        """Write what there is to write, until cancelled."""
        loop = asyncio.get_running_loop()
        attempt = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            reports, self._reports = self._reports, {}
            beats, self._beats = self._beats, {}
            unwritten, problem = await loop.run_in_executor(self._thread, self._write, reports, beats)
            self._note(problem)
            if problem is None:
                attempt = 0
            else:
                self._reports = {**unwritten, **self._reports}  # one that came meanwhile is newer
                attempt += 1
                await asyncio.sleep(self._pause_s(problem, "reports", attempt))
                self._wake.set()

    async def close(self) -> None:
        """Write the bodies that wait, once, and let the thread end."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._write, self._reports, {})
        self._thread.shutdown(wait=False)

    def _opened(self) -> ReportStore:
        if self._store is None:
            self._store = self._open()
        return self._store

    def _read(self, zone: str, pool: str) -> tuple[CheckerReport | None, int]:
        body, beat = self._opened().last_report(zone, pool)
        try:
            last = msgspec.json.decode(body, type=CheckerReport) if body is not None else None
            number = msgspec.json.decode(beat, type=Beat).number if beat is not None else 0
        except msgspec.DecodeError as error:
            # Another version's body: its verdicts are lost, which the rules allow for (unknown serves).
            log.warning("checker %s, pool %s: the last report can't be read and is dropped: %s", zone, pool, error)
            return None, 0
        return last, number

    def _write(
        self, reports: dict[Pool, CheckerReport], beats: dict[Pool, Beat]
    ) -> tuple[dict[Pool, CheckerReport], PortError | None]:
        """Runs in the thread: the bodies that were not written, and why."""
        unwritten = dict(reports)
        try:
            for pool, report in reports.items():
                self._opened().put_report(*pool, msgspec.json.encode(report))
                del unwritten[pool]
            for pool, beat in beats.items():
                self._opened().put_beat(*pool, msgspec.json.encode(beat))
        except PortError as problem:
            return unwritten, problem
        return unwritten, None

    def _note(self, problem: PortError | None) -> None:
        if str(problem) != str(self.problem):
            if problem is not None:
                log.warning("reports can't be written: %s", problem)
            else:
                log.info("reports are written again")
        self.problem = problem

    @staticmethod
    def _pause_s(problem: PortError, what: str, attempt: int) -> float:
        if isinstance(problem, Misconfigured | Refused):
            return LOOK_AGAIN_S
        return AGAIN_S + jitter(int(AGAIN_S * 1e9), what, attempt) / 1e9
