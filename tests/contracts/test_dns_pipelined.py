"""Several UPDATEs under way at once, on each server (RFC 7766 section 6.2.1.1): each stands or falls by itself."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import dns.opcode
import dns.rcode
import pytest
from dns_scene import DOMAIN, OWNER, change, standing
from dns_stages import ServerStage
from msgspec.structs import replace
from relay import MadeUp, Relay
from servers import KEY_NAME, KEY_SECRET, Served, bind, embedded, knot, powerdns

from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.core.instant import SECOND
from fencepost.core.zone import Batch, Live
from fencepost.ports import Refused, Unavailable

SERVERS = {"bind": bind, "knot": knot, "powerdns": powerdns, "embedded": embedded}


@pytest.fixture(scope="module", params=SERVERS)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerStage]:
    """Each server."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    server: AbstractContextManager[Served] = SERVERS[request.param](folder)
    with server as served:
        yield ServerStage(served)


def is_reply(message: bytes) -> bool:
    """Whether an answer is one to an UPDATE."""
    return message[2] >> 3 & 15 == dns.opcode.UPDATE


def test_a_stale_one_among_several(stage: ServerStage) -> None:
    """Of five transactions at once the one that another writer came before is refused, and the others apply whole."""
    names = [f"p{n}.{DOMAIN}" for n in range(10)]

    async def act() -> None:
        await stage.hand(*(standing(name, 1, "192.0.2.1") for name in names))
        port, other = stage.port(), stage.port()
        await port.read()
        await other.read()
        assert port.read_back() is None, "nothing has been committed yet"
        assert await other.commit((change(other.live(names[5]), 2, "192.0.2.9"),))
        batches = [
            tuple(change(port.live(name), 3, "192.0.2.3") for name in names[at : at + 2]) for at in (0, 2, 4, 6, 8)
        ]
        assert await port.commit_each(batches) == [True, True, False, True, True]
        changed = port.read_back()
        assert changed is not None
        assert set(changed) == {*names} - {names[4]}, "others' writes too, as a read would have named them"
        assert port.live(names[5]) == standing(names[5], 2, "192.0.2.9")
        assert set(await port.read()) == set()
        for name in names:
            await other.read()
            expected = {names[4]: standing(names[4], 1, "192.0.2.1"), names[5]: standing(names[5], 2, "192.0.2.9")}
            assert other.live(name) == expected.get(name, standing(name, 3, "192.0.2.3"))

    stage.run(act)


def test_more_than_are_under_way_at_a_time(stage: ServerStage) -> None:
    """Of fourteen the first ones are read while the others are answered: each is told and read as if alone."""
    names = [f"o{n}.{DOMAIN}" for n in range(14)]

    async def act() -> None:
        port, other = stage.port(), stage.port()
        await port.read()
        await other.read()
        assert await other.commit((change(other.live(names[6]), 2, "192.0.2.9"),))
        batches = [(change(port.live(name), 1, "192.0.2.3"),) for name in names]
        assert await port.commit_each(batches) == [name != names[6] for name in names]
        changed = port.read_back()
        assert changed is not None
        assert set(changed) == {*names}
        await other.read()
        for name in names:
            expected = standing(name, 2, "192.0.2.9") if name == names[6] else standing(name, 1, "192.0.2.3")
            assert port.live(name) == other.live(name) == expected

    stage.run(act)


def test_one_that_may_not_be_sent(stage: ServerStage) -> None:
    """A transaction that would empty an endpoint isn't sent; those beside it are."""

    async def act() -> None:
        name, emptied = f"q0.{DOMAIN}", f"q1.{DOMAIN}"
        await stage.hand(standing(name, 1, "192.0.2.1"), standing(emptied, 1, "192.0.2.1"))
        port = stage.port()
        await port.read()
        empties = replace(change(port.live(emptied), 2), families="4")
        first, second = await port.commit_each([(empties,), (change(port.live(name), 2, "192.0.2.2"),)])
        assert "would be left without an address" in str(first)
        assert second is True

    stage.run(act)


def test_no_more_are_sent_than_it_is_said_to_go_on_with(stage: ServerStage) -> None:
    """The outcomes are those of what was sent; of the rest nothing reaches the server."""
    names = [f"g{n}.{DOMAIN}" for n in range(30)]

    async def act() -> None:
        port = stage.port()
        await port.read()
        asked = itertools.count(1)
        batches = [(change(port.live(name), 1, "192.0.2.1"),) for name in names]
        outcomes = await port.commit_each(batches, lambda: next(asked) < 20)
        assert outcomes == [True] * 20
        assert await port.commit_each(batches[20:], lambda: False) == [True], "the first is sent in any case"
        await port.read()
        assert [name for name in names if port.live(name).marker is not None] == names[:21]

    stage.run(act)


def on_made_up(act: Callable[[MadeUp, Rfc2136Dns, list[Batch]], Awaitable[None]]) -> None:
    """Run a test with a primary that answers three UPDATEs together, the last first, and three batches for it."""

    async def whole() -> None:
        primary = await MadeUp().start()
        primary.gather = 3
        settings = Rfc2136Settings(
            ("127.0.0.1", primary.port), DOMAIN, KEY_NAME, KEY_SECRET, OWNER, timeout=SECOND // 2
        )
        port = Rfc2136Dns(settings)
        try:
            await port.read()
            await act(primary, port, [(change(Live(f"r{n}.{DOMAIN}"), 1, "192.0.2.1"),) for n in range(3)])
        finally:
            await port.close()
            await primary.stop()

    asyncio.run(whole())


def test_answers_in_another_order() -> None:
    """RFC 7766 section 7: answers are told apart by their ids, not by when they come."""

    async def act(primary: MadeUp, port: Rfc2136Dns, batches: list[Batch]) -> None:
        primary.update_rcodes = [int(dns.rcode.NXRRSET), int(dns.rcode.SERVFAIL), int(dns.rcode.YXRRSET)]
        first, second, third = await port.commit_each(batches)
        assert (first, third) == (False, False)
        assert isinstance(second, Unavailable)
        assert "SERVFAIL" in second.what

    on_made_up(act)


def test_one_that_is_never_answered() -> None:
    """Its outcome is unknown, those of the others are what was answered; what follows isn't mixed up with it."""

    async def act(primary: MadeUp, port: Rfc2136Dns, batches: list[Batch]) -> None:
        primary.ignores = True
        first, second, third = await port.commit_each(batches)
        assert isinstance(first, Unavailable)
        assert "no answer within" in first.what
        assert (second, third) == (False, False)
        primary.ignores = False
        assert await port.commit_each(batches) == [False, False, False]

    on_made_up(act)


def test_what_applied_beside_a_lie() -> None:
    """NOERROR to all three, and nothing written: none is taken for done."""

    async def act(primary: MadeUp, port: Rfc2136Dns, batches: list[Batch]) -> None:
        primary.update_rcode = int(dns.rcode.NOERROR)
        for outcome in await port.commit_each(batches):
            assert isinstance(outcome, Refused)
            assert "wrote nothing" in outcome.what

    on_made_up(act)


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_a_connection_cut_between_answers(stage: ServerStage, cut: int) -> None:
    """What was answered before the cut is known; the rest applied or not, and ends as written once in either case."""
    names = [f"s{cut}{n}.{DOMAIN}" for n in range(4)]

    async def act() -> None:
        await stage.hand(*(standing(name, 1, "192.0.2.1") for name in names))
        relay = await Relay(stage.served.port).start()
        port = Rfc2136Dns(replace(stage.settings(), server=("127.0.0.1", relay.port), timeout=5 * SECOND))
        updates = itertools.count()
        relay.spoil = lambda _, message: None if is_reply(message) and next(updates) == cut else message
        try:
            await port.read()
            outcomes = await port.commit_each([(change(port.live(name), 2, "192.0.2.2"),) for name in names])
            assert [outcome is True for outcome in outcomes].count(True) == cut
            assert all(outcome is True or isinstance(outcome, Unavailable) for outcome in outcomes)
            async with asyncio.timeout(10):
                while left := [name for name in names if port.live(name) != standing(name, 2, "192.0.2.2")]:
                    await port.commit_each([(change(port.live(name), 2, "192.0.2.2"),) for name in left])
                    await port.read()
        finally:
            await port.close()
            await relay.stop()

    stage.run(act)
