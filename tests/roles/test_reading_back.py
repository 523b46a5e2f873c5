"""When what a commit read back may stand for a pass's read of DNS, and when DNS must be read again."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import pytest

from fencepost.core.effects import Commit, ReadDns, Wake
from fencepost.core.events import Changed, Committed, Compared
from fencepost.core.fence import Generation, Marker
from fencepost.core.judge import Pair, judge
from fencepost.core.record_set import content
from fencepost.core.store import Row
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.traffic.room import Room, transactions, wire_size
from fencepost.core.zone import Batch, Change
from fencepost.ports import PortError, Unavailable
from fencepost.roles.enactor import EnactorHands
from fencepost.roles.local_file import LocalFile
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore

DOMAIN = "example.test"
NAMES = tuple(f"e{n}.{DOMAIN}" for n in range(3))


async def sleeping(_: int) -> None:
    """Time passes."""
    await asyncio.sleep(0)


class Answering(ReferenceDns):
    """A port that sends several at once, each a line of ``outcomes``, reads them back, and counts its reads."""

    outcomes: Sequence[bool | PortError] = ()
    reads = 0

    async def read(self) -> Collection[str]:
        self.reads += 1
        return await super().read()

    def read_back(self) -> Collection[str] | None:
        return ()

    async def commit_each(
        self, batches: Sequence[Batch], go_on: Callable[[], bool] = lambda: True
    ) -> Sequence[bool | PortError]:
        assert [len(batch) for batch in batches] == [1, 1, 1]
        assert go_on()
        return self.outcomes


def reads_after(
    folder: Path, outcomes: Sequence[bool | PortError], act: Callable[[EnactorHands], Awaitable[None]]
) -> int:
    """How often DNS was read once three transactions had these outcomes and this was done."""

    async def go() -> int:
        port = Answering(ReferenceDomain(DOMAIN), sleeping)
        port.outcomes = outcomes
        settings = EnactorSettings("enactor/a", "demo", batch=3, room=Room(endpoints=1), at_once=3)
        store = ReferenceStore("1111-store", lambda: "a", sleeping)
        hands = EnactorHands(settings, DOMAIN, port, store, LocalFile(folder / "known"))
        await act(hands)
        return port.reads

    return asyncio.run(go())


def batch() -> Commit:
    """Three endpoints, made over nothing."""
    value = content(["192.0.2.1"], 30)
    marker = Marker.of("demo", "1111", Generation(0, 1), value, None, 1)
    port = ReferenceDns(ReferenceDomain(DOMAIN), sleeping)
    return Commit(tuple(Change(name, port.live(name), marker, value, "4") for name in NAMES))


@pytest.mark.parametrize(("outcomes", "told"), [((True, True, True), Committed), ((True, False, True), Changed)])
def test_what_was_just_read_back_isn_t_read_again(tmp_path: Path, outcomes: Sequence[bool], told: type) -> None:
    """All answers came before the reading back, so it shows why one was refused as well as a read would; but once."""

    async def act(hands: EnactorHands) -> None:
        assert isinstance(await hands.perform(batch()), told)
        await hands.perform(ReadDns())
        assert hands.dns.reads == 0  # type: ignore[attr-defined]
        await hands.perform(ReadDns())

    assert reads_after(tmp_path, outcomes, act) == 1


def test_after_a_lost_answer_dns_is_read(tmp_path: Path) -> None:
    """An unknown outcome is looked up, never guessed: that transaction may have come after the others' reading back."""

    async def act(hands: EnactorHands) -> None:
        with pytest.raises(Unavailable):
            await hands.perform(batch())
        await hands.perform(ReadDns())

    assert reads_after(tmp_path, (True, Unavailable("no answer", where="here"), True), act) == 1


def test_after_a_wait_dns_is_read(tmp_path: Path) -> None:
    """After several refusals an enactor waits; what was read back before is old by then."""

    async def act(hands: EnactorHands) -> None:
        await hands.perform(batch())
        await hands.perform(Wake(0))
        await hands.perform(ReadDns())

    assert reads_after(tmp_path, (True, False, True), act) == 1


def test_no_more_transactions_than_may_be_under_way() -> None:
    """Endpoints so large that a transaction holds one: four at once are four, though five would fill less than four."""
    value = content([f"192.0.2.{n}" for n in range(1, 60)], 30)
    empty = ReferenceDns(ReferenceDomain(DOMAIN), sleeping)
    pairs = tuple(
        Pair(empty.live(row.name), row)
        for row in (Row.of(f"f{n}.{DOMAIN}", Generation(0, 1), value, families="4") for n in range(9))
    )
    change = judge(pairs[0], "demo").change
    assert change is not None
    settings = EnactorSettings("enactor/a", "demo", room=Room(octets=wire_size(change) * 3 // 2), at_once=4)
    (commit,) = DnsEnactor(settings, settings.batch).enact(Compared(pairs, more=False))
    assert isinstance(commit, Commit)
    assert len(transactions(commit.batch, settings.room)) == len(commit.batch) == 4
