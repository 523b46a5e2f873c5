"""Gathering: from the store, else from DNS; slow readings go on, and what is gone or dead says nothing any more."""

import asyncio
import itertools
import json
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

import msgspec
from msgspec import structs
from status_examples import API, HEAD, NOW, POOL, WWW, at, live, region, row

from fencepost.core.instant import SECOND, Duration
from fencepost.core.store import Plan
from fencepost.core.traffic.membership import OverrideKind
from fencepost.ports import HistoryRow, Inputs, StorePort, Unavailable
from fencepost.roles import configuration, overrides
from fencepost.roles.configuration import Loaded
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.gather import Gatherer, gather
from fencepost.roles.status.processes import (
    alive,
    booted_at,
    gone,
    load_processes,
    read_processes,
    started_at,
    stopped,
)
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore


async def pause(length: Duration) -> None:
    await asyncio.sleep(length / SECOND)


async def filled(identity: str = HEAD.store) -> ReferenceStore:
    """A store with one plan, one pool and one override."""
    numbers = itertools.count(1)
    store = ReferenceStore(identity, lambda: f"{next(numbers):08x}", pause)
    await store.put_config(configuration.encode(Loaded(region(), 1, at("20:03:37"))), b"")
    await store.put_membership("web", 0, msgspec.json.encode(structs.replace(POOL, version=1)))
    word = StoredOverride("o1", OverrideKind.KEEP, "web", "127.0.1.2", by="ops", reason="canary build")
    await store.put_override("o1", overrides.encode(word))
    snapshot = (await store.inputs()).snapshot
    await store.publish(Plan(await store.head(), 9, snapshot, (row(API), row(WWW))))
    await store.note([HistoryRow("fenced", API, "enactor/a", "plan 8, live is 9", at("20:04:32"))])
    return store


class SlowDns(ReferenceDns):
    """A provider whose first reading takes until it is let go."""

    def __init__(self, domain: ReferenceDomain) -> None:
        super().__init__(domain, pause)
        self.go = asyncio.Event()
        self.readings = 0

    async def read(self) -> Collection[str]:
        self.readings += 1
        await self.go.wait()
        return await super().read()


def domain_of(*names: str) -> ReferenceDomain:
    domain = ReferenceDomain("example.test")
    domain.set(*(live(row(name)) for name in names))
    return domain


def test_one_gathering_reads_store_and_dns() -> None:
    """What a command line that finds no API asks for: source "store", everything known."""

    async def gathering() -> None:
        dns = ReferenceDns(domain_of(API, WWW), pause)
        status = await gather(region(), await filled(), {"example.test": dns}, None, {}, NOW)
        assert (status.source, status.plan, status.fenced, status.restarts) == ("store", 9, 1, None)
        assert [(each.generation, each.as_planned) for each in status.endpoints] == [(9, True), (9, True)]
        assert [each.on for each in status.overrides] == ["127.0.1.2"]
        assert (status.pools[0].in_, status.pools[0].kept) == (4, 1)
        assert status.promises["never_empty"].held is None

    asyncio.run(gathering())


def test_without_store_dns_is_looked_at_and_without_both_there_is_still_a_document() -> None:
    """Control plane down: the markers, and line one says so."""

    async def gathering() -> None:
        dns = ReferenceDns(domain_of(API), pause)
        status = await gather(region(), None, {"example.test": dns}, None, {}, NOW)
        assert (status.source, status.endpoints[0].generation, status.plan) == ("dns", 9, None)
        nothing = await gather(region(), None, None, None, {}, NOW)
        assert (nothing.source, nothing.endpoints[0].generation) == ("dns", None)

    asyncio.run(gathering())


def test_a_slow_reading_goes_on_and_a_later_document_has_its_fruit() -> None:
    """The first reading of a large domain takes longer than anybody waits: it must not be begun anew each time."""

    async def gathering() -> None:
        slow = SlowDns(domain_of(API, WWW))
        gatherer = Gatherer(region(), await filled(), {"example.test": slow}, None, within_s=0.02)
        for _ in range(3):
            status = await gatherer.gather({})
            assert status.endpoints[0].generation is None
            assert "dns-unavailable" in [each.id for each in status.problems]
        reading = gatherer._dns_reading._task
        assert reading is not None
        slow.go.set()
        await asyncio.wait([reading])
        status = await gatherer.gather({})
        assert status.endpoints[0].generation == 9
        assert slow.readings == 1

    asyncio.run(gathering())


def test_only_what_changed_is_read_again_and_a_new_store_starts_anew() -> None:
    """Rows and history are carried on; a wiped store's are forgotten, its fenced writes too."""

    async def gathering() -> None:
        store = await filled()
        gatherer = Gatherer(region(), store, None, None, via="api")
        assert (await gatherer.gather({})).fenced == 1
        await store.note([HistoryRow("fenced", API, "enactor/b", "plan 8, live is 9", at("20:04:33"))])
        snapshot = (await store.inputs()).snapshot
        await store.publish(Plan(await store.head(), 10, snapshot, (row(API, number=10),)))
        status = await gatherer.gather({})
        assert (status.plan, status.fenced, status.source) == (10, 2, "api")
        assert gatherer.stored is not None
        assert {name: found.generation.number for name, found in gatherer.stored.rows.items()} == {API: 10, WWW: 9}
        gatherer.store = await filled("cafe" * 8)
        status = await gatherer.gather({})
        assert (status.plan, status.fenced) == (9, 1)

    asyncio.run(gathering())


class Failing(ReferenceStore):
    """A store that has gone away."""

    async def inputs(self) -> Inputs:
        raise Unavailable("the store file is gone")


def test_a_problem_is_known_since_it_was_first_seen() -> None:
    """What has no recorded beginning counts from the first document that had it, and is forgotten when it ends."""

    async def gathering() -> None:
        good = await filled()
        bad: StorePort = Failing(HEAD.store, str, pause)
        gatherer = Gatherer(region(), bad, None, None)
        first = await gatherer.gather({}, NOW)
        assert [(each.id, each.since) for each in first.problems if each.id != "region-down"] == [
            ("store-unavailable", None)
        ]
        later = await gatherer.gather({}, NOW + 61 * SECOND)
        found = [(each.needs_person, each.since) for each in later.problems if each.id != "region-down"]
        assert found == [(True, first.at)]
        gatherer.store = good
        await gatherer.gather({}, NOW + 62 * SECOND)
        assert ("store-unavailable", region().store.path) not in gatherer.first_seen

    asyncio.run(gathering())


def test_processes_count_while_their_supervisor_lives(tmp_path: Path) -> None:
    """A file left behind by a dead supervisor says nothing of what runs now."""
    held = {"supervisor": os.getpid(), "processes": {"planner": {"pid": 7, "restarts": 1, "last_exit": None}}}
    found, started = read_processes(held)
    assert found["planner"].restarts == 1
    assert 0 < time.time_ns() - started < 3600 * SECOND
    assert read_processes({**held, "supervisor": 2**22 + 1}) == ({}, 0)
    assert read_processes({"supervisor": os.getpid(), "processes": {"planner": 7}})[0] == {}
    assert started_at("no pid", booted_at()) == 0
    assert load_processes(tmp_path) == {}
    (tmp_path / "processes.json").write_text(json.dumps(held))
    assert load_processes(tmp_path) == held
    (tmp_path / "processes.json").write_text("[")
    assert load_processes(tmp_path) == {}


def test_a_process_that_died_is_gone_also_before_it_was_waited_for() -> None:
    """A zombie has a pid and does nothing; the process that asks is alive, and so is another user's."""
    child = os.fork()
    if not child:
        os._exit(0)
    assert not alive(10**30), "a number that no process has"
    while alive(child):
        time.sleep(0.005)
    assert gone({child, os.getpid(), 1}) == {child}
    os.waitpid(child, 0)
    assert gone({child, os.getpid(), 0}) == {child}


def test_a_process_that_a_signal_stopped_is_told_from_one_that_waits() -> None:
    """proc_pid_stat(5): T is stopped by a signal; to sleep, or to wait for one's turn, is another state."""
    child = os.fork()
    if not child:
        while True:
            signal.pause()
    try:
        assert stopped({child, os.getpid(), 0, 10**30}) == frozenset()
        os.kill(child, signal.SIGSTOP)
        os.waitpid(child, os.WUNTRACED)
        assert stopped({child, os.getpid()}) == {child}
        assert alive(child)
        os.kill(child, signal.SIGCONT)
        os.waitpid(child, os.WCONTINUED)
        assert stopped({child}) == frozenset()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
