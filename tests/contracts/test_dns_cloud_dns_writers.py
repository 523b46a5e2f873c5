"""Many writers, and whole enactors, on the stand-in of Google Cloud DNS: they meet at the domain's serial."""

import asyncio
import random
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from cloud_dns_fake import error
from cloud_dns_stage import CloudStage
from dns_scene import DOMAIN, OWNER, change, standing

from fencepost.adapters import dns_cloud_dns
from fencepost.adapters.dns_cloud_dns import CloudDns
from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.core.fence import Generation, Marker
from fencepost.core.record_set import content
from fencepost.core.store import Plan, Row
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.roles.enactor import EnactorHands
from fencepost.roles.local_file import LocalFile
from fencepost.roles.loop import Condition, drive
from fencepost.settings.providers import PROVIDERS

NAME = f"race.{DOMAIN}"
ROOM = PROVIDERS["clouddns"].room


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, and pause shortly."""
    monkeypatch.setattr(dns_cloud_dns, "POLL_S", 0.02)
    monkeypatch.setattr("fencepost.adapters.https.PAUSE_MIN_S", 0.001)


@pytest.mark.parametrize(
    ("writers", "swaps"), [(12, 10), pytest.param(100, 100, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])]
)
def test_each_swap_is_one_generation(writers: int, swaps: int) -> None:
    """Each writer swaps so many times, refused or not in between; generations rise by one, each by one writer."""
    stage = CloudStage(direct=True)
    applied: list[int] = []
    refused = [0]

    async def writer(port: CloudDns, number: int) -> None:
        chance = random.Random(number)
        for _ in range(swaps):
            while True:
                await asyncio.sleep(chance.random() * writers / 200)
                await port.read()
                marker = port.live(NAME).marker
                assert isinstance(marker, Marker)
                generation = marker.generation.number + 1
                if await port.commit((change(port.live(NAME), generation, f"10.0.{number >> 8}.{number & 255}"),)):
                    applied.append(generation)
                    break
                refused[0] += 1

    async def act() -> None:
        await stage.hand(standing(NAME, 0, "192.0.2.1"))
        before = len(stage.fake.changes)
        await asyncio.gather(*(writer(stage.port(), number) for number in range(writers)))
        assert sorted(applied) == list(range(1, writers * swaps + 1))
        assert len(stage.fake.changes) == before + writers * swaps
        assert refused[0] > 0
        port = stage.port()
        await port.read()
        marker = port.live(NAME).marker
        assert isinstance(marker, Marker)
        assert marker.generation.number == writers * swaps

    stage.run(act)


async def enact(
    stage: CloudStage, folder: Path, rows: Mapping[str, Collection[str]], enactors: int
) -> list[EnactorHands]:
    """Publish rows, and let enactors, each with a port of its own, work until nothing is left to do."""
    store = SqliteStore.open(folder / "store.db", create=True)
    made = [Row.of(name, Generation(0, 1), content(addresses, 30), families="4") for name, addresses in rows.items()]
    assert await store.publish(Plan(await store.head(), 1, 0, tuple(made))) is not None
    names, all_hands, tasks = sorted(rows), [], []
    for index in range(enactors):
        at = index * len(names) // enactors
        settings = EnactorSettings(f"enactor/{index}", OWNER, batch=10, room=ROOM, cursor=names[at - 1] if at else "")
        hands = EnactorHands(settings, DOMAIN, stage.port(), store, LocalFile(folder / f"{index}.known"))
        all_hands.append(hands)
        tasks.append(asyncio.ensure_future(drive(DnsEnactor(settings, 10, settings.cursor), hands, Condition())))
    try:
        async with asyncio.timeout(60):
            while not all(hands.head is not None and not len(hands.dirty) for hands in all_hands):
                await asyncio.sleep(0.02)
                assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for hands in all_hands:
            hands.file.close()
        await store.close()
    return all_hands


@pytest.mark.parametrize("throttled", [False, True])
def test_three_enactors_write_each_endpoint_once(tmp_path: Path, throttled: bool) -> None:
    """A hundred endpoints in batches of ten by three at once, also if each sixth call is turned away (octodns #96)."""
    stage = CloudStage(direct=True)
    calls = iter(range(1, 1_000_000))
    refusal = (429, error(429, "rateLimitExceeded", "Quota exceeded for quota metric"))
    if throttled:
        stage.fake.disturb = lambda _method, _path: refusal if next(calls) % 6 == 0 else None

    async def act() -> None:
        rows = {f"n{number:03}.{DOMAIN}": [f"192.0.2.{number + 1}"] for number in range(100)}
        found = await enact(stage, tmp_path, rows, enactors=3)
        assert not any(hands.found for hands in found)
        written = [each["name"] for made in stage.fake.changes for each in made["additions"] if each["type"] == "A"]
        assert sorted(written) == sorted(f"{name}." for name in rows), "each once"
        assert all(stage.fake.sets[f"{name}.", "A"]["rrdatas"] == addresses for name, addresses in rows.items())

    stage.run(act)
