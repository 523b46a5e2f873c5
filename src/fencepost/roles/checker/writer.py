"""Reports to the store, by a task of its own, so that a slow store never holds up the probing.

Level-based: what waits is the newest body and the newest beat of each pool, never a queue. A body that couldn't be
written is tried again (or a newer one instead); a beat that couldn't be is dropped, because a beat that arrives late
would vouch for a moment that has passed. A beat is not written while the body it speaks of isn't.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from fencepost.core.jitter import jitter
from fencepost.core.traffic.verdict import Beat, CheckerReport
from fencepost.ports import Misconfigured, PortError, Refused

log = logging.getLogger(__name__)
AGAIN_S = 0.5
"""Wait between tries while the store is away, plus jitter of as much again."""
LOOK_AGAIN_S = 5.0
"""Wait when only a person can mend it. Not the minute that a provider is left alone who counts calls: from the moment
the store is mended until the next try no vote of this checker counts, and its sign of life says that it is damaged."""

Pool: TypeAlias = "tuple[str, str]"


LOOK_EACH_BEATS = 5
"""So often it is looked whether the store still has the last body: it changes seldom, and without it no beat counts."""


class ReportStore(Protocol):
    """What a checker asks of the store: a part of `fencepost.ports.StorePort`.

    Each call may raise Refused, Unavailable or Misconfigured. Bodies and beats are JSON of `CheckerReport` and
    `Beat`.
    """

    async def put_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        """Replace this checker's body for the pool."""

    async def beat_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        """Replace this checker's beat for the pool."""

    async def reports(self, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
        """Each checker's (zone, body, beat) of the pool; b"" where one of them was never written."""
        ...


class ReportWriter:
    """Carries bodies and beats to the store."""

    def __init__(self, store: ReportStore, on_problem: Callable[[PortError | None], None] | None = None) -> None:
        """``on_problem`` is told after each try why it failed, or None where it worked."""
        self.problem: PortError | None = None
        """Why the last write failed, or None after one that worked."""
        self._on_problem = on_problem
        self._store = store
        self._reports: dict[Pool, CheckerReport] = {}
        self._beats: dict[Pool, Beat] = {}
        self._written: dict[Pool, CheckerReport] = {}
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
        attempt = 0
        while True:
            try:
                return last_of(zone, pool, await self._store.reports(pool))
            except PortError as problem:
                self._note(problem)
                attempt += 1
                await asyncio.sleep(pause_s(problem, f"{zone}/{pool}", attempt))

    async def run(self) -> None:
        """Write what there is to write, until cancelled."""
        attempt = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            if not (self._reports or self._beats):  # a pass without a word to the store would call it well
                continue
            problem = await self._write()
            self._note(problem)
            if problem is None:
                attempt = 0
            else:
                attempt += 1
                await asyncio.sleep(pause_s(problem, "reports", attempt))
                self._beats.clear()
                self._wake.set()

    async def flush(self) -> None:
        """Write once what waits; to be called when `run` has ended. What can't be written is lost."""
        if self._reports or self._beats:
            self._note(await self._write())

    async def _write(self) -> PortError | None:
        """One pass; why it ended early, if it did. Bodies first: a beat never speaks of one that isn't there."""
        try:
            for pool, report in list(self._reports.items()):
                await self._put(pool, report)
            for pool in list(self._beats):
                if self._beats[pool].number % LOOK_EACH_BEATS == 0:
                    await self._see_to(pool)
                if pool not in self._reports:  # else a newer body came meanwhile, and the beat may be of that
                    beat = self._beats.pop(pool)
                    await self._store.beat_report(*pool, beat.sequence, msgspec.json.encode(beat))
        except PortError as problem:
            self._beats.clear()
            return problem
        return None

    async def _put(self, pool: Pool, report: CheckerReport) -> None:
        try:
            await self._store.put_report(*pool, report.sequence, msgspec.json.encode(report))
        except Refused as problem:
            log.warning("checker %s, pool %s: report %d is refused: %s", *pool, report.sequence, problem)
        else:
            self._written[pool] = report
        if self._reports[pool] is report:  # else a newer one came while this was written
            del self._reports[pool]

    async def _see_to(self, pool: Pool) -> None:
        """Put the last body again if the store has lost it: one that was put back from a copy, or lost its log."""
        mine = self._written.get(pool)
        if mine is None or pool in self._reports:
            return
        kept, _ = last_of(*pool, await self._store.reports(pool[1]))
        if kept is None or kept.sequence < mine.sequence:
            log.warning("checker %s, pool %s: the store has lost report %d; it is put again", *pool, mine.sequence)
            await self._store.put_report(*pool, mine.sequence, msgspec.json.encode(mine))

    def _note(self, problem: PortError | None) -> None:
        if str(problem) != str(self.problem):
            if problem is not None:
                log.warning("reports can't be written: %s", problem)
            else:
                log.info("reports are written again")
        self.problem = problem
        if self._on_problem is not None:
            self._on_problem(problem)


def last_of(zone: str, pool: str, reports: Sequence[tuple[str, bytes, bytes]]) -> tuple[CheckerReport | None, int]:
    """The zone's own body and its beat's number. One of another version, unreadable here, counts as none: its verdicts
    are lost, which the rules allow for (unknown serves)."""
    for its_zone, body, beat in reports:
        if its_zone == zone:
            try:
                last = msgspec.json.decode(body, type=CheckerReport) if body else None
                return last, msgspec.json.decode(beat, type=Beat).number if beat else 0
            except msgspec.DecodeError as error:
                log.warning("checker %s, pool %s: the last report can't be read and is dropped: %s", zone, pool, error)
    return None, 0


def pause_s(problem: PortError, what: str, attempt: int) -> float:
    """How long to wait before trying again."""
    if isinstance(problem, Misconfigured | Refused):
        return LOOK_AGAIN_S
    return AGAIN_S + jitter(int(AGAIN_S * 1e9), what, attempt) / 1e9
