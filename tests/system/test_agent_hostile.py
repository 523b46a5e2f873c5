"""What strangers send to an agent's port: dropped and counted, never a crash, never an answer."""

import asyncio
import contextlib
import random
import socket
from collections.abc import Awaitable, Callable

import pytest

from fencepost.core.capacity.messages import (
    Answer,
    Check,
    FromHost,
    Instance,
    InstanceSet,
    NetworkAnswer,
    Order,
    ToHost,
)
from fencepost.core.capacity.token import Token
from fencepost.roles.fleet import agent_server
from fencepost.roles.fleet.agent_server import CUT, AgentServer, Answering
from fencepost.roles.fleet.asking import ask
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, FRAME_BYTES, Wire, framed

KEY = b"k" * 32
T = Token(1, 1, 1)
PACKETS = 10_000


class Echo:
    """Answers each question with an answer as long as it is told to."""

    def __init__(self, down: int = 0) -> None:
        self.down = tuple(f"web-{number}.1" for number in range(down))
        self.asked: list[ToHost] = []

    def told(self, message: ToHost, answer: Answering) -> None:
        """One question."""
        self.asked.append(message)
        answer(Answer(message.host, T, 1, 1, 1, 1, self.down, InstanceSet()))

    def round(self) -> None:
        """Nothing."""


Play = Callable[[AgentServer, Echo, tuple[str, int]], Awaitable[None]]


def played(play: Play, down: int = 0) -> None:
    """Run a play with a server at a free port."""

    async def main() -> None:
        echo = Echo(down)
        server = AgentServer(Wire(KEY), echo)
        port = await server.start("127.0.0.1", 0)
        try:
            await play(server, echo, ("127.0.0.1", port))
        finally:
            await server.stop()

    asyncio.run(main())


async def by_datagram(wire: Wire, place: tuple[str, int], message: ToHost) -> FromHost:
    """A question by datagram, answered."""
    loop = asyncio.get_running_loop()
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.setblocking(False)
        udp.connect(place)
        await loop.sock_sendall(udp, wire.pack("to host", 3, message, DATAGRAM_BYTES))
        found = wire.open_from_host(await asyncio.wait_for(loop.sock_recv(udp, DATAGRAM_BYTES), 10))
    assert found is not None
    return found[1]


def test_ten_thousand_hostile_datagrams_get_no_answer() -> None:
    """Noise, cut packets, those of other fleets, our own answers thrown back: a stranger learns nothing."""

    async def play(server: AgentServer, echo: Echo, place: tuple[str, int]) -> None:
        chance = random.Random(2)
        good = Wire(KEY).pack("to host", 1, Check("h1", T), DATAGRAM_BYTES)
        back = Wire(KEY).pack("from host", 1, Answer("h1", T, 1, 1, 1, 1), DATAGRAM_BYTES)
        other = Wire(b"j" * 32).pack("to host", 1, Check("h1", T), DATAGRAM_BYTES)
        with socket.socket(type=socket.SOCK_DGRAM) as udp:
            udp.setblocking(False)
            udp.connect(place)
            for number in range(PACKETS):
                kinds = (
                    chance.randbytes(chance.randrange(1500)),
                    good[: chance.randrange(len(good))],
                    good + b"\0" * chance.randrange(1, 2000),
                    back,
                    other,
                )
                udp.send(kinds[number % len(kinds)])
                if number % 50 == 0:
                    await asyncio.sleep(0)
            async with asyncio.timeout(20):
                while server.wire.dropped < PACKETS:  # noqa: ASYNC110  the kernel hands them over when it does
                    await asyncio.sleep(0.01)
            with pytest.raises(BlockingIOError):
                udp.recv(2000)
        assert not echo.asked
        assert server.wire.dropped == PACKETS
        assert isinstance(await by_datagram(Wire(KEY), place, Check("h1", T)), Answer), "it goes on"

    played(play)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: h1\r\n\r\n",
        b"\xff\xff\xff\xff",
        (0).to_bytes(4, "big"),
        framed(b"x" * 40),
        framed(Wire(b"j" * 32).pack("to host", 1, Check("h1", T), FRAME_BYTES)),
    ],
)
def test_a_hostile_connection_is_closed_without_a_word(sent: bytes) -> None:
    """Whoever hasn't the key has nothing to ask."""

    async def play(server: AgentServer, echo: Echo, place: tuple[str, int]) -> None:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(sent)
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        assert not echo.asked
        assert server.wire.dropped >= 1
        assert isinstance(await ask(Wire(KEY), place, Check("h1", T), 10), Answer)

    played(play)


def test_connections_that_prove_nothing_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand idle ones would keep the managers out."""
    monkeypatch.setattr(agent_server, "PROVE_S", 0.05)

    async def play(server: AgentServer, _: Echo, place: tuple[str, int]) -> None:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(b"\0\0")
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), 10)
        writer.close()
        assert server.unanswered == 1
        assert not server.connections

    played(play)


def test_strangers_cant_fill_the_memory_nor_keep_managers_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hundred connections, each with a message that never ends, took 300 MB; a thousand idle ones, every
    manager's turn for ten seconds. The one with most of such a message goes, then the one open for longest."""
    monkeypatch.setattr(agent_server, "UNPROVEN_BYTES", 200_000)
    monkeypatch.setattr(agent_server, "CONNECTIONS_MOST", 20)

    async def play(server: AgentServer, _: Echo, place: tuple[str, int]) -> None:
        endless = FRAME_BYTES.to_bytes(4, "big") + b"x" * 50_000
        strangers = [await asyncio.open_connection(*place) for _ in range(12)]
        for number, (_reader, writer) in enumerate(strangers):
            writer.write(endless + b"x" * number)
        async with asyncio.timeout(10):
            while server.unanswered < 9 or sum(server.unproven.values()) < 3 * 50_000:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert sum(server.unproven.values()) <= 200_000
        idle = [await asyncio.open_connection(*place) for _ in range(30)]
        assert isinstance(await ask(Wire(KEY), place, Check("h1", T), 10), Answer)
        assert len(server.connections) <= 20
        for _reader, writer in (*strangers, *idle):
            writer.close()
        async with asyncio.timeout(10):
            while server.connections or server.unproven:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    played(play)


def test_one_connection_carries_many_questions() -> None:
    """Cut anywhere by the network, each is answered under its own number."""

    async def play(_: AgentServer, echo: Echo, place: tuple[str, int]) -> None:
        wire = Wire(KEY)
        sent = b"".join(framed(wire.pack("to host", number, Check("h1", T), FRAME_BYTES)) for number in range(50))
        reader, writer = await asyncio.open_connection(*place)
        for at in range(0, len(sent), 7):
            writer.write(sent[at : at + 7])
            await asyncio.sleep(0)
        numbers = []
        for _number in range(50):
            size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), 10), "big")
            found = wire.open_from_host(await reader.readexactly(size))
            assert found is not None
            numbers.append(found[0])
        writer.close()
        assert numbers == list(range(50))
        assert len(echo.asked) == 50

    played(play)


def test_an_answer_too_long_for_a_datagram_is_cut_and_true_as_far_as_it_goes() -> None:
    """A host on which 500 attempts died at once isn't silent for it; over a connection all are told."""

    async def play(_: AgentServer, echo: Echo, place: tuple[str, int]) -> None:
        wire = Wire(KEY)
        short = await by_datagram(wire, place, Check("h1", T))
        assert isinstance(short, Answer)
        assert (short.down, short.set) == (echo.down[:CUT], None)
        whole = await ask(wire, place, Check("h1", T), 10)
        assert isinstance(whole, Answer)
        assert whole.down == echo.down

    played(play, down=500)


def test_each_kind_of_answer_can_be_cut() -> None:
    """Network answers as well, should a manager ask for them by datagram."""
    many = tuple((f"web-{number}.1", 1, "d" * 32) for number in range(100))
    cut = agent_server.shortened(NetworkAnswer("h1", 1, 1, many, ("a",) * 100))
    assert len(Wire(KEY).pack("from host", 1, cut, DATAGRAM_BYTES)) <= DATAGRAM_BYTES


def test_an_order_goes_through_a_connection_whole() -> None:
    """A set of hundreds of instances is far over a datagram."""

    async def play(_: AgentServer, echo: Echo, place: tuple[str, int]) -> None:
        many = tuple(Instance(f"web-{number}.1", "web", "127.0.3.1", 80) for number in range(500))
        order = Order("h1", T, 1, 1, InstanceSet(1, many))
        await ask(Wire(KEY), place, order, 10)
        assert echo.asked == [order]

    played(play)
