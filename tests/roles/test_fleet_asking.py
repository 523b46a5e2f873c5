"""What a manager takes for an answer: to a question of its own, and asked lately."""

import asyncio
import contextlib
import socket

import numpy as np
import pytest
from free_ports import free_port

from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.lease_book import LeaseBook
from fencepost.core.capacity.lease_calls import HostsRead, Op, ShardRead, ShardWritten, Tick, lease_settings
from fencepost.core.capacity.messages import Answer, Check
from fencepost.core.capacity.rows import HostRow, ShardRow
from fencepost.core.capacity.token import Token
from fencepost.core.instant import SECOND
from fencepost.ports import Unavailable
from fencepost.roles.fleet import host_manager, manager_questions
from fencepost.roles.fleet.asking import ask, listening
from fencepost.roles.fleet.calibrated import UNCALIBRATED, settings_from
from fencepost.roles.fleet.host_manager import HostManager
from fencepost.roles.fleet.manager_hands import ManagerHands
from fencepost.roles.fleet.manager_questions import Questions
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, FRAME_BYTES, Wire, framed
from fencepost.roles.loop import Condition
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows

KEY = b"k" * 32
T = Token(1, 1, 7)
RENEW = 1000


async def sleep(_: int) -> None:
    """Nobody here waits."""


class Asking:
    """A manager's questions to one host, which is this test's socket; time is what the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 10 * RENEW
        monkeypatch.setattr(manager_questions, "clock", lambda: self.now)
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.udp.settimeout(10)
        self.wire = Wire(KEY)
        self.hands = ManagerHands(ReferenceFleet(ReferenceRows("life-1"), sleep), LeaseBook(1, "m1"), Condition())
        at = f"127.0.0.1:{self.udp.getsockname()[1]}"
        self.hands.table.put(Versioned(HostRow("h1", "a", at, number=1, nonce=7, lease="held", life="life-1"), 1))
        self.questions = Questions(Wire(KEY), Condition())
        self.questions.begin(self.hands, RENEW)

    def check(self) -> tuple[int, tuple[str, int]]:
        """Check the host: the number that the check carries, and whom to answer."""
        one = np.zeros(1, np.int64)
        self.questions.check(self.hands.table, 1, one, one + 1, np.array([7], np.uint64), whole=False)
        data, peer = self.udp.recvfrom(DATAGRAM_BYTES)
        found = self.wire.open_to_host(data)
        assert found is not None
        assert found[1] == Check("h1", T)
        return found[0], peer

    def packet(self, request: int) -> bytes:
        """The host's answer."""
        return self.wire.pack("from host", request, Answer("h1", T, 5, self.now, 6, 0), DATAGRAM_BYTES)

    async def heard(self, packet: bytes, peer: tuple[str, int]) -> bool:
        """Whether a packet that the manager gets counts as an answer."""
        self.udp.sendto(packet, peer)
        self.hands.arrived.clear()
        await asyncio.wait_for(self.hands.arrived.wait(), 10)
        answered, refused = self.questions.heard()
        assert not refused
        return answered is not None


def test_an_old_answer_sent_again_renews_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody without the key who had heard one answer kept a dead host's lease alive with it for as long as he liked.

    It counts for a renewal at least, the longest that a call may take, and for two at most while others are asked.
    """

    async def play() -> None:
        asking = Asking(monkeypatch)
        request, peer = asking.check()
        packet = asking.packet(request)
        assert await asking.heard(packet, peer)
        assert asking.check()[0] == request, "checks of a while carry one number"
        asking.now += RENEW
        other, _ = asking.check()
        assert other != request
        assert await asking.heard(packet, peer), "the one before counts still"
        assert await asking.heard(asking.packet(other), peer)
        asking.now += RENEW
        newest, _ = asking.check()
        assert not await asking.heard(packet, peer)
        assert not await asking.heard(asking.packet(0), peer)
        assert asking.questions.stale == 2
        assert await asking.heard(asking.packet(newest), peer)
        asking.udp.close()

    asyncio.run(play())


def test_who_was_stopped_hears_what_lies_in_the_inbox_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long ago it was asked (nomad PR #14474); what comes once others were asked is too late."""

    async def play() -> None:
        asking = Asking(monkeypatch)
        request, peer = asking.check()
        asking.now += 600 * RENEW
        assert await asking.heard(asking.packet(request), peer)
        asking.check()
        assert not await asking.heard(asking.packet(request), peer)
        asking.udp.close()

    asyncio.run(play())


def test_the_role_hears_its_inbox_before_it_lets_time_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease ended two seconds ago, and the renewal lies there (nomad PR #14474): it is renewed.

    No rule for long sleeps helps here, nor that against a mass lapse: this is one host, and a sleep of three seconds.
    """

    async def play() -> None:
        shard, renew = ShardRow(1, 1, "m1", 1, open="life-1"), 10 * SECOND
        store = ReferenceFleet(ReferenceRows("life-1"), sleep)
        settings = lease_settings("m1", 1, 1, renew)
        admission = settings_from(UNCALIBRATED, settings)
        manager = HostManager(settings, admission, store, Questions(Wire(KEY), Condition()), Condition())
        hosts_row = HostRow("h1", "a", "127.0.0.1:9", 4, (), 1, 7, "held", "life-1", 5, 6, reported=True)
        manager.hands.table.put(Versioned(hosts_row, 1))
        shows = 100 * SECOND
        monkeypatch.setattr(host_manager, "now", lambda: shows)
        facts = manager.hands.table.facts(range(1), "life-1")
        for event in (ShardRead("life-1", None), ShardRead("life-1", None), ShardWritten(shard)):
            manager.leases.on(event, shows)
        manager.core.on(HostsRead("life-1", 1, facts), shows)
        ends = int(manager.leases.hosts.ends[0])
        for at in range(shows, ends, 3 * SECOND):
            manager.leases.on(Tick(), at)
        assert manager.leases.acting
        shows = ends + 2 * SECOND
        manager.hands.book.hear(Answer("h1", T, 5, 1, 6, 0))
        task = asyncio.ensure_future(manager.decide())
        await asyncio.sleep(0)
        task.cancel()
        assert manager.leases.hosts.busy[0] != Op.LAPSE
        assert manager.leases.hosts.ends[0] == shows + settings.lease

    asyncio.run(play())


def test_an_answer_over_a_connection_is_to_the_question_that_was_asked() -> None:
    """One that was recorded, or belongs to another question, is as good as none."""

    async def play() -> None:
        wire, ahead = Wire(KEY), 0

        async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found = wire.open_to_host(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
            assert found is not None
            answer = Answer("h1", T, 5, 1, 6, 0)
            writer.write(framed(wire.pack("from host", (found[0] + ahead) % 2**64, answer, FRAME_BYTES)))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answers, "127.0.0.1", free_port())
        place = server.sockets[0].getsockname()[:2]
        assert isinstance(await ask(Wire(KEY), place, Check("h1", T), 10), Answer)
        ahead = 1
        with pytest.raises(Unavailable, match="something else than was asked"):
            await ask(Wire(KEY), place, Check("h1", T), 10)
        taken = f"127.0.0.1:{place[1]}"
        assert await listening([taken, "127.0.0.1:0", "nowhere"]) == {taken}
        server.close()
        await server.wait_closed()
        assert await listening([taken]) == frozenset()

    asyncio.run(play())


def test_hosts_that_take_connections_and_never_answer_hold_up_the_others_for_a_renewal_at_most() -> None:
    """Kubernetes #44887: a call that hangs must be given up while its lease lasts. Two hundred hosts hang, in a line of
    sixty-four connections, before one that answers: with three seconds for each it was heard after nine."""

    async def play() -> None:
        wire = Wire(KEY)

        async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found = wire.open_to_host(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
            assert found is not None
            writer.write(framed(wire.pack("from host", found[0], Answer("well", T, 5, 1, 6, 0), FRAME_BYTES)))
            await writer.drain()
            writer.close()

        stuck, well = (
            await asyncio.start_server(hangs, "127.0.0.1", 0),
            await asyncio.start_server(answers, "127.0.0.1", 0),
        )
        hands = ManagerHands(ReferenceFleet(ReferenceRows("life-1"), sleep), LeaseBook(1, "m1"), Condition())
        names = [*(f"h{number:03}" for number in range(200)), "well"]
        for number, name in enumerate(names):
            server = well if name == "well" else stuck
            at = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            hands.table.put(
                Versioned(HostRow(name, "a", at, number=1, nonce=7, lease="held", life="life-1"), number + 1)
            )
        questions = Questions(Wire(KEY), Condition())
        questions.begin(hands, SECOND // 4)
        assert questions.patience_s == 0.25
        task = asyncio.create_task(questions.run())
        ids = np.arange(len(names))
        questions.check(hands.table, 1, ids, ids * 0 + 1, np.full(len(ids), 7, np.uint64), whole=True)
        await asyncio.wait_for(hands.arrived.wait(), 8)
        answered, _ = questions.heard()
        assert answered is not None
        assert answered.ids.tolist() == [200]
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for server in (stuck, well):
            server.close()

    asyncio.run(play())


def test_how_long_a_connection_is_waited_for_follows_the_renewal() -> None:
    """And is three seconds at most: no host takes longer that means to answer."""
    questions = Questions(Wire(KEY), Condition())
    hands = ManagerHands(ReferenceFleet(ReferenceRows("life-1"), sleep), LeaseBook(1, "m1"), Condition())
    found = []
    for renew in (SECOND // 10, SECOND, 10 * SECOND):
        questions.begin(hands, renew)
        found.append(questions.patience_s)
    assert found == [0.25, 1.0, 3.0]


def test_a_manager_says_when_its_store_answers_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After PostgreSQL was back each role's log said so but the host-manager's, which ended with "can't be reached"."""

    async def main() -> None:
        store = ReferenceFleet(ReferenceRows("life-1"), sleep)
        hands = ManagerHands(store, LeaseBook(1, "m1"), Condition())
        monkeypatch.setattr(hands, "tell", lambda *_: None)
        prove = store.prove

        async def away(*_: object) -> None:
            raise Unavailable("the database can't be reached")

        monkeypatch.setattr(store, "prove", away)
        await hands._read_shard()
        monkeypatch.setattr(store, "prove", prove)
        for _ in range(2):
            await hands._read_shard()

    caplog.set_level("INFO")
    asyncio.run(main())
    assert [each.getMessage().partition(";")[0] for each in caplog.records] == [
        "reading the shard: the database can't be reached",
        "reading the shard works again",
    ]
