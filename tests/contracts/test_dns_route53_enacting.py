"""A whole enactor on Route 53, as its role runs it: decider, hands, adapter, SQLite store, local file."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

from dns_scene import DOMAIN, OWNER, standing
from route53_stage import Route53Stage, server, stage

from fencepost.adapters.dns_route53.batches import ROOM
from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.core.fence import Generation, Marker
from fencepost.core.record_set import content
from fencepost.core.store import Plan, Row
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.zone import Live
from fencepost.dev.route53 import Fault
from fencepost.roles.enactor import EnactorHands
from fencepost.roles.local_file import LocalFile
from fencepost.roles.loop import Condition, drive

__all__ = ["server", "stage"]
WRITE, LIST = "ChangeResourceRecordSets", "ListResourceRecordSets"
WITHIN_S = 60.0


async def enact(
    stage: Route53Stage,
    folder: Path,
    rows: Mapping[str, Collection[str]],
    enactors: int = 1,
    batch: int = ROOM.endpoints,
    slept: list[float] | None = None,
) -> list[EnactorHands]:
    """Publish rows, and let enactors of one host work until nothing is left to do but what was found unfit.

    With ``slept``, the ports' pauses take no time and are listed there, seconds.
    """
    store = SqliteStore.open(folder / "store.db", create=True)
    made = [Row.of(name, Generation(0, 1), content(addresses, 30), families="4") for name, addresses in rows.items()]
    assert await store.publish(Plan(await store.head(), 1, 0, tuple(made))) is not None
    names, all_hands, tasks = sorted(rows), [], []
    for index in range(enactors):
        at = index * len(names) // enactors
        cursor = names[at - 1] if at else ""
        settings = EnactorSettings(f"enactor/{index}", OWNER, batch=batch, room=ROOM, cursor=cursor)
        port = stage.port(folder=folder) if slept is None else stage.sleeping(slept, folder=folder)
        hands = EnactorHands(settings, DOMAIN, port, store, LocalFile(folder / f"{index}.known"))
        all_hands.append(hands)
        tasks.append(asyncio.ensure_future(drive(DnsEnactor(settings, settings.batch, cursor), hands, Condition())))
    try:
        async with asyncio.timeout(WITHIN_S):
            while not all(hands.head is not None and not len(hands.dirty) for hands in all_hands):
                await asyncio.sleep(0.02)
                for task in tasks:
                    assert not task.done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for hands in all_hands:
            hands.file.close()
        await store.close()
    return all_hands


def live(hands: EnactorHands, name: str) -> tuple[tuple[str, ...], int, int]:
    """An endpoint's addresses, generation, and how often that was written."""
    found = hands.dns.live(name)
    assert isinstance(found.marker, Marker)
    return found.a, found.marker.generation.number, found.marker.writes


def test_dnscontrol_1114_501_changes_are_split_below_the_limit(stage: Route53Stage, tmp_path: Path) -> None:
    """Each takes two records here, and two more if they were there before: no batch is over 1,000 of them."""
    names = [f"n{number:03}.example.test" for number in range(501)]

    async def act() -> None:
        await stage.hand(*(standing(name, 0, "198.51.100.1") for name in names[:200]))
        stage.server.calls.clear()
        (hands,) = await enact(stage, tmp_path, {name: ["192.0.2.1"] for name in names})
        assert not hands.found
        assert all(live(hands, name) == (("192.0.2.1",), 1, 1) for name in names)
        characters = 501 * 150 + 200 * 150
        assert 2 <= list(stage.server.calls).count(WRITE) <= 1.1 * -(-characters // 32_000) + 1

    stage.run(act)


def test_external_dns_1293_octodns_96_each_sixth_call_is_turned_away(stage: Route53Stage, tmp_path: Path) -> None:
    """ "Rate exceeded", to reads and writes: every endpoint is written, once, after pauses of seconds, not an hour."""
    names = [f"n{number:03}.example.test" for number in range(300)]
    slept: list[float] = []

    async def act() -> None:
        fault = Fault("error", code="Throttling", status=400, message="Rate exceeded", every=6)
        stage.server.faults.add(fault)
        rows = {name: [f"192.0.2.{n % 250}"] for n, name in enumerate(names)}
        (hands,) = await enact(stage, tmp_path, rows, batch=10, slept=slept)
        calls = list(stage.server.calls)
        turned_away = calls[5::6]
        assert turned_away.count(WRITE) >= 3
        assert calls.count(WRITE) - turned_away.count(WRITE) == 30, "each batch is applied once"
        assert all(live(hands, name) == ((f"192.0.2.{n % 250}",), 1, 1) for n, name in enumerate(names))
        pauses = [each for each in slept if each > 0.2]
        assert len(pauses) >= len(turned_away) - 1, "all but one that came at the very end were waited for"
        assert max(pauses) <= 8
        assert sum(slept) <= 10 * len(turned_away)

    stage.run(act)


def test_external_dns_1293_octodns_96_the_first_listing_is_turned_away(stage: Route53Stage, tmp_path: Path) -> None:
    """Three times in a row, before anything is known: it is asked for again, later each time."""
    slept: list[float] = []

    async def act() -> None:
        stage.server.faults.add(Fault("error", LIST, times=3, code="Throttling", status=400, message="Rate exceeded"))
        (hands,) = await enact(stage, tmp_path, {"n.example.test": ["192.0.2.1"]}, slept=slept)
        assert live(hands, "n.example.test") == (("192.0.2.1",), 1, 1)
        assert list(stage.server.calls).count(LIST) >= 4
        assert sum(each > 0.2 for each in slept) >= 3
        assert sum(slept) <= 30

    stage.run(act)


def test_external_dns_1517_421_one_endpoint_that_can_not_be_written_holds_up_no_other(
    stage: Route53Stage, tmp_path: Path
) -> None:
    """101 addresses where a set takes 100: the other 49 are written, and it is found unfit with its reason."""
    rows = {f"n{number:02}.example.test": ["192.0.2.1"] for number in range(50)}
    rows["n25.example.test"] = [f"10.0.0.{number}" for number in range(101)]

    async def act() -> None:
        (hands,) = await enact(stage, tmp_path, rows)
        assert list(hands.found) == ["n25.example.test"]
        assert hands.dns.live("n25.example.test") == Live("n25.example.test")
        assert all(live(hands, name)[1] == 1 for name in rows if name != "n25.example.test")

    stage.run(act)


def test_an_answer_lost_under_way_is_neither_repeated_nor_forgotten(stage: Route53Stage, tmp_path: Path) -> None:
    """The batch was applied, its answer never came: read again, nothing left to do, nothing written twice."""
    names = [f"n{number:03}.example.test" for number in range(40)]

    async def act() -> None:
        stage.server.faults.add(Fault("lost", WRITE, times=1))
        (hands,) = await enact(stage, tmp_path, {name: ["192.0.2.1"] for name in names})
        assert all(live(hands, name) == (("192.0.2.1",), 1, 1) for name in names)
        assert list(stage.server.calls).count(WRITE) == 1

    stage.run(act)


def test_three_enactors_of_a_host_write_each_endpoint_once(stage: Route53Stage, tmp_path: Path) -> None:
    """Each begins at its own place; what one wrote the others know without asking, so hardly a batch is wasted."""
    names = [f"n{number:03}.example.test" for number in range(600)]
    ten = [f"192.0.2.{number}" for number in range(10)]

    async def act() -> None:
        found = await enact(stage, tmp_path, dict.fromkeys(names, ten), enactors=3)
        for hands in found:
            await hands.dns.read()
            assert all(live(hands, name)[1:] == (1, 1) for name in names)
        least = -(-600 * 11 // 1_000)
        assert list(stage.server.calls).count(WRITE) <= least + 2 * 3

    stage.run(act)
