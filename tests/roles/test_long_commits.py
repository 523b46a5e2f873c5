"""Commits that take seconds: what is published meanwhile is looked for, and comes before the rest."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec import structs

from fencepost.core.effects import Compare, ReadDns, ReadRows
from fencepost.core.events import Committed, Compared
from fencepost.core.fence import Generation
from fencepost.core.judge import judge
from fencepost.core.record_set import content
from fencepost.core.store import Plan, Row
from fencepost.core.traffic.dns_enactor import EnactorSettings
from fencepost.core.traffic.room import Room
from fencepost.core.zone import Batch
from fencepost.ports import PortError
from fencepost.roles import sending
from fencepost.roles.enactor import EnactorHands
from fencepost.roles.local_file import LocalFile
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore

DOMAIN = "example.test"
NAMES = tuple(f"e{n}.{DOMAIN}" for n in range(9))
SETTINGS = EnactorSettings("enactor/a", "demo", batch=4, room=Room(endpoints=1), at_once=4, at_once_most=9)


async def sleeping(_: int) -> None:
    """Time passes."""
    await asyncio.sleep(0)


class Slow(ReferenceDns):
    """A port that sends one transaction after the other; ``meanwhile`` happens after each."""

    sent = 0

    async def meanwhile(self) -> None:
        """Nothing, as a rule."""

    async def commit_each(
        self, batches: Sequence[Batch], go_on: Callable[[], bool] = lambda: True
    ) -> Sequence[bool | PortError]:
        outcomes: list[bool | PortError] = []
        for batch in batches:
            if outcomes and not go_on():
                break
            outcomes.append(await self.commit(batch))
            self.sent += 1
            await self.meanwhile()
        return outcomes


def stage(folder: Path, batch: int = SETTINGS.batch) -> tuple[ReferenceStore, Slow, EnactorHands]:
    """A store, an empty domain, and an enactor's hands on both."""
    store = ReferenceStore("1111-store", iter("abcd").__next__, sleeping)
    port = Slow(ReferenceDomain(DOMAIN), sleeping)
    settings = structs.replace(SETTINGS, batch=batch)
    return store, port, EnactorHands(settings, DOMAIN, port, store, LocalFile(folder / "known"))


async def published(store: ReferenceStore, number: int, *names: str) -> None:
    """A plan with these names, at one address."""
    value = content([f"192.0.2.{number}"], 30)
    rows = tuple(Row.of(name, Generation(0, number), value, families="4") for name in names)
    await store.publish(Plan(await store.head(), number, number, rows))


async def looked_at(hands: EnactorHands, cursor: str, limit: int = 9) -> Compared:
    """What a pass finds: DNS is read first, then the rows."""
    await hands.perform(ReadDns())
    await hands.perform(ReadRows())
    found = await hands.perform(Compare(limit, cursor))
    assert isinstance(found, Compared)
    return found


def batch_of(found: Compared) -> Batch:
    """The writes that it takes."""
    changes = [judge(pair, "demo").change for pair in found.pairs]
    return tuple(change for change in changes if change is not None)


def test_a_commit_ends_early_once_there_is_another_plan_and_what_is_in_that_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target that dies while thirty thousand endpoints are written for the first time shouldn't wait for them all."""
    monkeypatch.setattr(sending, "LOOK_S", 0)

    async def go() -> None:
        store, port, hands = stage(tmp_path)
        await published(store, 1, *NAMES)
        batch = batch_of(await looked_at(hands, ""))
        assert [change.name for change in batch] == [*NAMES]

        async def meanwhile() -> None:
            if port.sent == 3:
                await published(store, 2, NAMES[8], NAMES[0])
            for _ in range(9):
                await asyncio.sleep(0)

        port.meanwhile = meanwhile  # type: ignore[method-assign]
        told = await hands.commit(batch)
        assert (told, port.sent) == (Committed(NAMES[2]), 3)
        found = await looked_at(hands, NAMES[2])
        assert {pair.live.name for pair in found.pairs[:2]} == {NAMES[0], NAMES[8]}
        assert [pair.live.name for pair in found.pairs[2:]] == [*NAMES[3:8]]
        assert await hands.commit(batch_of(found)) == Committed()
        assert not (await looked_at(hands, NAMES[7])).pairs

    asyncio.run(go())


def test_a_commit_ends_when_its_time_is_over_and_goes_on_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow server doesn't keep an enactor from looking at DNS for minutes; the first transaction is sent always."""
    monkeypatch.setattr(sending, "SENDING_S", 0)

    async def go() -> None:
        store, port, hands = stage(tmp_path)
        await published(store, 1, *NAMES)
        for at, name in enumerate(NAMES[:3]):
            found = await looked_at(hands, NAMES[at - 1] if at else "")
            assert await hands.commit(batch_of(found)) == Committed(name)
            assert port.sent == at + 1

    asyncio.run(go())


def test_the_first_plan_that_is_read_is_in_no_hurry(tmp_path: Path) -> None:
    """All of it is new: enactors that began with the same names would be in one another's way."""

    async def go() -> None:
        store, _, hands = stage(tmp_path, batch=2)
        await published(store, 1, *NAMES[:3])
        assert [pair.live.name for pair in (await looked_at(hands, NAMES[0])).pairs] == [*NAMES[1:3], NAMES[0]]

    asyncio.run(go())
