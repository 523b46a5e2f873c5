"""Enactors that work through the same names keep out of each other's way: what two write at once is refused to one."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from msgspec.structs import replace

from fencepost.core.effects import Compare, ReadDns
from fencepost.core.events import Compared
from fencepost.core.fence import Generation
from fencepost.core.judge import Pair, judge
from fencepost.core.record_set import content
from fencepost.core.store import Row
from fencepost.core.traffic.dns_enactor import EnactorSettings
from fencepost.roles.enactor import EnactorHands
from fencepost.roles.local_file import LocalFile
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore

DOMAIN = "example.test"
NAMES = tuple(f"e{n:03}.{DOMAIN}" for n in range(100))
LIMIT = 8
ROWS = {name: Row.of(name, Generation(0, 1), content(["192.0.2.1"], 30), families="4") for name in NAMES}


class Near(ReferenceDns):
    """A port that reads back what it wrote, so that it knows at any time where others are."""

    def read_back(self) -> Collection[str] | None:
        return None


async def sleeping(_: int) -> None:
    """Time passes."""
    await asyncio.sleep(0)


def beside_another(folder: Path, act: Callable[[EnactorHands, ReferenceDns, ReferenceDomain], Awaitable[None]]) -> None:
    """Run a test with an enactor that knows every row, and the port of another; nothing stands in DNS."""

    async def go() -> None:
        there = ReferenceDomain(DOMAIN)
        settings = EnactorSettings("enactor/a", "demo", batch=LIMIT)
        store = ReferenceStore("1111-store", lambda: "a", sleeping)
        hands = EnactorHands(settings, DOMAIN, Near(there, sleeping), store, LocalFile(folder / "known"))
        hands.rows.update(ROWS)
        hands.dirty.update(ROWS)
        await hands.perform(ReadDns())
        await act(hands, ReferenceDns(there, sleeping), there)

    asyncio.run(go())


async def write(port: ReferenceDns, *names: str) -> None:
    """Another enactor writes these rows."""
    await port.read()
    changes = tuple(judge(Pair(port.live(name), ROWS[name]), "demo").change for name in names)
    assert await port.commit(tuple(change for change in changes if change is not None))


async def offered(hands: EnactorHands, cursor: str) -> tuple[str, ...]:
    """The names that a pass is shown."""
    answer = await hands.perform(Compare(LIMIT, cursor))
    assert isinstance(answer, Compared)
    assert answer.more
    return tuple(pair.live.name for pair in answer.pairs)


def test_what_another_wrote_is_done_as_soon_as_it_is_read(tmp_path: Path) -> None:
    """Or a third of all names would look undone until the walk comes there."""

    async def act(hands: EnactorHands, other: ReferenceDns, there: ReferenceDomain) -> None:
        await write(other, *NAMES[10:60])
        await hands.perform(ReadDns())
        assert len(hands.dirty) == 50

    beside_another(tmp_path, act)


def test_a_pass_ends_where_another_is_at_work_and_the_next_one_begins_elsewhere(tmp_path: Path) -> None:
    """Right behind what another has written it is writing on."""

    async def act(hands: EnactorHands, other: ReferenceDns, there: ReferenceDomain) -> None:
        await write(other, *NAMES[10:20])
        await hands.perform(ReadDns())
        assert await offered(hands, NAMES[4]) == NAMES[5:10]
        elsewhere = await offered(hands, NAMES[9])
        at = NAMES.index(elsewhere[0])
        assert elsewhere == NAMES[at : at + LIMIT]
        assert at >= 20 + LIMIT

    beside_another(tmp_path, act)


def test_the_last_names_are_offered_wherever_others_are(tmp_path: Path) -> None:
    """Who was at work there may have died: a refusal costs less than waiting for it."""

    async def act(hands: EnactorHands, other: ReferenceDns, there: ReferenceDomain) -> None:
        await write(other, *NAMES[: 100 - LIMIT])
        await hands.perform(ReadDns())
        answer = await hands.perform(Compare(LIMIT, NAMES[99 - LIMIT]))
        assert isinstance(answer, Compared)
        assert sorted(pair.live.name for pair in answer.pairs) == [*NAMES[100 - LIMIT :]]

    beside_another(tmp_path, act)


def test_what_another_altered_is_healed_in_its_turn(tmp_path: Path) -> None:
    """An altered record is no sign of an enactor, and stays to be done."""

    async def act(hands: EnactorHands, other: ReferenceDns, there: ReferenceDomain) -> None:
        await write(other, *NAMES[10:20])
        await hands.perform(ReadDns())
        there.set(replace(other.live(NAMES[12]), a=("192.0.2.99",)))
        await hands.perform(ReadDns())
        assert NAMES[12] in hands.dirty
        assert NAMES[13] not in hands.dirty

    beside_another(tmp_path, act)
