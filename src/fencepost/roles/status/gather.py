"""Reads the facts: from the store, from DNS, from the observer, from the supervisor's file, whatever can be had.

Each source has a time limit of its own, and what it said last stays beside its age: a blocked store or a dead DNS
server makes the document older, never absent. A reading that takes longer (the first of a large domain does) goes on
in the background, and a later document has its fruit. The same code serves the API, which keeps one
:class:`Gatherer`, and a command line that finds no API, which uses one once.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import structs

from fencepost.core.capacity.rows import CalibrationRow, CheckpointRow, DrainRow, Kind, ShardRow
from fencepost.core.instant import DAY, Instant
from fencepost.core.store import Head, Row
from fencepost.core.traffic.membership import Membership
from fencepost.core.zone import Live
from fencepost.ports import DnsPort, Misconfigured, PortError, StorePort, Unavailable
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles import configuration, overrides
from fencepost.roles.bodies import read_body
from fencepost.roles.domains import Domains
from fencepost.roles.status.breaches import breach
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import Source, Status, is_time
from fencepost.roles.status.facts import DnsFacts, Facts, FleetFacts, ObserverFacts, StoreFacts
from fencepost.roles.status.full_disk import full_disk
from fencepost.roles.status.processes import (
    gone,
    logs_in,
    pids_of,
    read_processes,
    stopped,
    stuck_writer,
    supervisor_of,
)
from fencepost.roles.status.promise_watch import VIOLATIONS_KEPT, Broken, Watched
from fencepost.roles.status.rejected import OnDisk, rejected
from fencepost.roles.status.repairers import Repairers
from fencepost.settings import Region, providers

if TYPE_CHECKING:  # a command line that gathers without an API needn't load a DNS library for its observer
    from fencepost.roles.observer import Observer

T = TypeVar("T")

WITHIN_S = 3.0
"""So long a document waits for each source."""
SHORT_S = 0.2
GIVE_UP_S = 120.0
"""A reading that takes this long is thrown away and begun anew."""
HISTORY_AT_ONCE = 10_000
KINDS_OF_SHARDS: tuple[Kind, ...] = ("shard", "checkpoint")
LOOK_AT_ONCE = 90
"""Rows looked at together: DynamoDB takes a hundred, two of them the store's own."""
LARGE = 500
"""So many endpoints take over 10 ms to describe."""


class Reading(Generic[T]):
    """One source's reading: awaited for a while, and left to go on if it isn't done.

    A source that didn't answer last time is waited for only shortly, so that it doesn't hold up the others.
    """

    def __init__(self, what: str, where: str, within_s: float) -> None:
        self.what = what
        self.where = where
        self.within_s = within_s
        self._task: asyncio.Task[T] | None = None
        self._began = 0.0
        self._well = True

    async def result(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The reading's result, begun now if none is under way.

        Raises ``Unavailable`` past the limit, ``Misconfigured`` for what can't be read, or what the reading raises.
        """
        now = asyncio.get_running_loop().time()
        if self._task is not None and now - self._began > GIVE_UP_S:
            self._task.cancel()
            self._task = None
        if self._task is None:
            self._task, self._began = asyncio.create_task(work()), now
        limit_s = self.within_s if self._well else min(SHORT_S, self.within_s)
        done, _ = await asyncio.wait([self._task], timeout=limit_s)
        self._well = bool(done)
        if not done:
            raise Unavailable(f"{self.what} gave no answer within {self.within_s:g} s", where=self.where)
        task, self._task = self._task, None
        try:
            return task.result()
        except Unavailable:
            self._well = False
            raise
        except msgspec.MsgspecError as error:
            raise Misconfigured(f"{self.what} holds rows of another version ({error})", where=self.where) from None


class Gatherer:
    """Keeps what was last read, so that each further document costs only what changed.

    ``via`` is what the document's ``source`` says while the store answers: "api" or "store". ``within_s`` is how long
    a document waits for each source; ``fleet`` are the fleet's rows in that store. One call at a time.
    """

    def __init__(
        self,
        region: Region,
        store: StorePort | None,
        dns: Mapping[str, DnsPort] | None,
        observer: "Observer | None",
        *,
        via: Source = "store",
        folder: str = "",
        within_s: float = WITHIN_S,
        fleet: FleetStorePort | None = None,
    ) -> None:
        self.region = region
        self.fleet = fleet
        self.store = store
        self.dns = Domains(dict(dns)) if dns else None
        self.observer = observer
        self.via = via
        self.folder = folder
        self._store_reading: Reading[StoreFacts] = Reading("the store", region.store.place, within_s)
        whom = providers.where(region.dns) if providers.by_api(region.dns) else "the DNS server"
        self._dns_reading: Reading[set[str]] = Reading(whom, region.dns.provider, within_s)
        self.stored: StoreFacts | None = None
        self.answered: DnsFacts | None = None
        self.last: Facts | None = None
        self.composing_s = 0.0
        self.full_at: Instant = 0
        self.first_seen: dict[tuple[str, str], Instant] = {}
        self._head: Head | None = None
        self._rows: dict[str, Row] = {}
        self._pools: dict[str, tuple[int, Membership]] = {}
        self._configuration = configuration.Running()
        self._history = 0
        self._fenced = 0
        self._earlier: tuple[Broken, ...] = ()
        self._store_since: Instant = 0
        self.repairers = Repairers()
        self.on_disk = OnDisk()

    async def gather(self, processes: Mapping[str, Any] | None = None, now_ns: Instant | None = None) -> Status:
        """A document as of now. ``processes`` is what ``processes.json`` holds. Never raises a ``PortError``."""
        facts = await self.facts(processes, now_ns)
        # A thread where it takes long enough to be felt: the observer's timeouts run in this loop.
        large = len(facts.region.endpoints) > LARGE
        began = time.monotonic()
        status = await asyncio.to_thread(compose, facts) if large else compose(facts)
        self.composing_s = time.monotonic() - began
        now = now_ns if now_ns is not None else time.time_ns()
        found = {(problem.id, problem.on) for problem in status.problems}
        self.first_seen = {key: self.first_seen.get(key, now) for key in found}
        return status

    async def facts(self, processes: Mapping[str, Any] | None = None, now_ns: Instant | None = None) -> Facts:
        """What a document is made from."""
        running, started = read_processes(processes or {})
        store_error, dns_error = await asyncio.gather(self._read_store(now_ns, started), self._read_dns())
        loaded = self.stored.loaded if self.stored else None
        region = loaded.region if loaded is not None else self.region
        if self.observer is not None:
            self.observer.watches(watched(region, self._rows))
        self._answered(region, dns_error, now_ns)
        fresh = self.stored is not None and store_error is None
        if fresh:
            await self._read_repairers(region.owner)
        now, logs = now_ns if now_ns is not None else time.time_ns(), logs_in(self.folder)
        beats = self.stored.beats if self.stored is not None else ()
        full = full_disk(self.region.store, self.folder, logs, beats, now) if fresh else None
        self.full_at = now if full is not None else self.full_at
        pids = pids_of(self.stored, running)
        self.last = Facts(
            region=region,
            now=now,
            source=self.via if fresh else "dns",
            store=self.stored,
            store_error=store_error,
            store_full=full,
            full_at=self.full_at,
            dns=self.answered,
            dns_error=dns_error,
            observer=observed(self.observer, now_ns) if self.observer else None,
            processes=running,
            stuck_writer=stuck_writer(processes or {}) if started else None,
            first_seen=dict(self.first_seen),
            folder=self.folder,
            gone=gone(pids),
            stopped=stopped(pids | supervisor_of(processes or {})),
            logs=logs,
            repairers=dict(self.repairers.known),
            file=await self._file(region.path),
        )
        return self.last

    def aged(self, now_ns: Instant) -> Status | None:
        """The last document as of ``now_ns``, while the next one is slow in coming; None before the first."""
        if self.last is None:
            return None
        return compose(structs.replace(self.last, now=now_ns, store=self.stored, dns=self.answered))

    async def _read_store(self, now_ns: Instant | None, started: Instant) -> PortError | None:
        if self.store is None:
            return None
        try:
            stored = await self._store_reading.result(partial(self._from_store, self.store, started))
        except PortError as error:
            return error
        self.stored = structs.replace(stored, at=now_ns if now_ns is not None else time.time_ns())
        return None

    async def _from_store(self, store: StorePort, started: Instant) -> StoreFacts:
        head, rows = await store.newest_rows(self._head)
        if self._head is not None and head.store != self._head.store:
            self._store_since = time.time_ns()
        if self._head is None or head.store != self._head.store:
            self._rows, self._pools, self._history, self._fenced = {}, {}, 0, 0
        self._head = head
        self._rows.update((row.name, row) for row in rows)
        inputs = await store.inputs()
        for pool, (version, body) in inputs.membership.items():
            if pool not in self._pools or self._pools[pool][0] != version:
                with contextlib.suppress(Misconfigured):  # the load balancers tell it; the last that was read is shown
                    self._pools[pool] = (version, read_body(Membership, body, f"pool {pool}"))
        await self._count_fenced(store, started)
        return StoreFacts(
            at=0,
            head=head,
            rows=dict(self._rows),
            enacted=await store.enacted(),
            loaded=self._configuration.take(inputs.config),
            pools={pool: row for pool, (_, row) in self._pools.items() if pool in inputs.membership},
            overrides=overrides.readable(inputs.overrides)[0],
            orders=inputs.orders,
            findings=await store.findings(),
            beats=tuple(await store.beats()),
            fenced=self._fenced,
            breaches=self._earlier,
            since=self._store_since,
            stages=await self._stages(),
            fleet=await self._shards(),
        )

    async def _stages(self) -> tuple[DrainRow, ...]:
        """What the stages of the fleet's work say; nothing if its rows can't be read just now."""
        if self.fleet is None:
            return ()
        try:
            found = (await self.fleet.rows("drain")).rows
        except PortError:
            return ()
        return tuple(each.row for each in found if isinstance(each.row, DrainRow))

    async def _shards(self) -> FleetFacts | None:
        """How each shard stands, as its manager says; None if that can't be read just now."""
        if self.fleet is None or self.region.fleet is None:
            return None
        numbers = [str(shard) for shard in range(1, self.region.fleet.shards + 1)]
        places: list[tuple[Kind, str]] = [("calibration", "hosts")]
        places += [(kind, number) for number in numbers for kind in KINDS_OF_SHARDS]
        rows, life = [], ""
        try:
            for at in range(0, len(places), LOOK_AT_ONCE):
                proof = await self.fleet.prove(1, places[at : at + LOOK_AT_ONCE])
                life = proof.life
                rows += [each.row for each in proof.rows if each is not None]
        except PortError:
            return None
        return FleetFacts(
            life,
            {row.shard: row for row in rows if isinstance(row, ShardRow)},
            {int(row.block): row for row in rows if isinstance(row, CheckpointRow) and row.counts},
            next((row for row in rows if isinstance(row, CalibrationRow)), None),
        )

    async def _file(self, path: str) -> Region | None:
        """The file as it lies there, where it was refused."""
        return await self.on_disk.look(path) if self.stored and rejected(self.stored.findings) else None

    async def _read_repairers(self, owner: str) -> None:
        """Who placed the repairs that stand; a slow store costs the names."""
        if self.store is None or self.answered is None:
            return
        with contextlib.suppress(PortError, TimeoutError):
            async with asyncio.timeout(SHORT_S):
                await self.repairers.look(self.store, self.answered.lives, self._rows, owner, time.time_ns())

    async def _count_fenced(self, store: StorePort, started: Instant) -> None:
        """Go on counting where the last call ended; history is read a bounded number of lines at a time."""
        rows = await store.history(after=self._history, since=started, most=HISTORY_AT_ONCE)
        self._fenced += sum(row.kind == "fenced" for row in rows)
        recent = time.time_ns() - DAY
        found = (breach(row) for row in rows if row.kind == "finding" and is_time(row.at) and row.at > recent)
        self._earlier = (*self._earlier, *(each for each in found if each is not None))[-VIOLATIONS_KEPT:]
        self._history = max([self._history, *(row.id for row in rows)])

    async def _read_dns(self) -> PortError | None:
        if self.dns is None:
            return None
        try:
            await self._dns_reading.result(self.dns.read)
        except PortError as error:
            return error
        return None

    def _answered(self, region: Region, error: PortError | None, now_ns: Instant | None) -> None:
        """The mirrors are exact; what the observer saw serves where they can't be read."""
        names = {endpoint.name for endpoint in region.endpoints} | set(self._rows)
        if self.dns is None or error is not None:
            self._from_observer(names)
            return
        names.update(self.dns.names())
        lives = {name: self.dns.live(name) for name in sorted(names)}
        self.answered = DnsFacts(now_ns if now_ns is not None else time.time_ns(), lives)

    def _from_observer(self, names: set[str]) -> None:
        if self.observer is None or not self.observer.answered_at:
            return
        if self.answered is None or self.answered.at < self.observer.answered_at:
            seen: dict[str, Live] = {name: live for name, live in self.observer.lives().items() if name in names}
            self.answered = DnsFacts(self.observer.answered_at, seen)


async def gather(
    region: Region,
    store: StorePort | None,
    dns: Mapping[str, DnsPort] | None,
    observer: "Observer | None",
    processes: Mapping[str, Any],
    now_ns: Instant,
    *,
    folder: str = "",
    fleet: FleetStorePort | None = None,
) -> Status:
    """One document, for who asks once: source "store", or "dns" where the store can't be read."""
    return await Gatherer(region, store, dns, observer, folder=folder, fleet=fleet).gather(processes, now_ns)


def watched(region: Region, rows: Mapping[str, Row]) -> list[Watched]:
    """What the observer is to look at: each configured endpoint with its newest row."""
    return [
        Watched(
            endpoint.name,
            ("4" if "A" in endpoint.records else "") + ("6" if "AAAA" in endpoint.records else ""),
            rows.get(endpoint.name),
        )
        for endpoint in region.endpoints
    ]


def observed(observer: "Observer", now_ns: Instant | None) -> ObserverFacts:
    """What the observer knows, as one value."""
    watch = observer.watch
    now = now_ns if now_ns is not None else time.time_ns()
    return ObserverFacts(
        at=observer.answered_at,
        checked=dict(watch.checked),
        broken=dict(watch.broken),
        violations=observer.violations,
        emptied={name: watch.emptied_ns(name, now) for name in watch.past},
        empty_now={name: past.empty_since for name, past in watch.past.items() if past.empty_since},
        looks=watch.looks,
        unanswered=observer.unanswered,
        altered=watch.altered,
        error=observer.last_error,
        unsure=dict(watch.unsure),
        since=observer.began,
    )
