"""Where agents answer: one UDP and one TCP port of the same number, for one host or for thousands.

What arrives is opened and handed on; the answer goes back the way that the question came. Whatever isn't sealed with
the fleet's key is dropped without a word and counted. Datagrams are read in rounds, and the end of each round is told,
so that whoever must write something down before answering does it once a round.

An answer that a datagram doesn't hold is cut: its set goes first (it is asked for over a connection), and of many
attempts that are down only some are told. These leave the host's set then, and the next answers tell the others.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Protocol, cast

from msgspec.structs import replace

from fencepost.core.capacity.messages import Answer, FromHost, NetworkAnswer, ToHost
from fencepost.ports import Misconfigured
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, FRAME_BYTES, Frames, TooLong, Wire, framed

log = logging.getLogger(__name__)

RECEIVE_BYTES = 1 << 22
"""What may wait in the socket: a mass of checks that comes at once is answered late rather than lost."""
A_ROUND = 512
"""So many datagrams are read before what they ask for is written down and other tasks get their turn."""
CONNECTIONS_MOST = 1024
"""At that many the one that has been open longest without proof goes, so strangers can't keep managers out."""
UNPROVEN_BYTES = 32 * FRAME_BYTES
"""So much of unfinished messages is kept for all that have proven nothing; beyond it whoever has most of it goes."""
TRIES = 20
"""So many free ports are tried until one is free for both."""
UNSENT_MOST = 4 * FRAME_BYTES
"""A peer that asks and doesn't read its answers is given up."""
PROVE_S = 10.0
"""So long a connection may be open before something rightly sealed has come over it."""
CUT = 16
"""So few attempts always fit: an id has 40 bytes or so, seldom over 60."""
_SHORTEST = 28
"""A datagram that can be one of ours holds more than this."""

Answering = Callable[[FromHost], None]


class Answerer(Protocol):
    """What questions are handed to."""

    def told(self, message: ToHost, answer: Answering) -> None:
        """One question. ``answer`` may be called once, at any time, or never."""
        ...

    def round(self) -> None:
        """All questions that had arrived together have been handed over."""
        ...


class AgentServer:
    """The port's sockets. ``heard`` counts questions, ``unanswered`` connections given up.

    ``unproven`` are connections over which nothing rightly sealed has come so far, oldest first, each with how much of
    a message is there.
    """

    def __init__(self, wire: Wire, answerer: Answerer) -> None:
        self.wire = wire
        self.answerer = answerer
        self.heard = 0
        self.unanswered = 0
        self.connections: set[asyncio.Transport] = set()
        self.unproven: dict[_Connection, int] = {}
        self._udp: socket.socket | None = None
        self._tcp: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port (where 0 was asked, one that was free). Raises ``Misconfigured``."""
        for _ in range(TRIES if not port else 1):
            try:
                return await self._listen(host, port)
            except Misconfigured as error:  # what is free for datagrams may be taken for connections
                refused = error
        raise refused

    async def _listen(self, host: str, port: int) -> int:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        where, udp, loop = f"{host}:{port}", socket.socket(family, socket.SOCK_DGRAM), asyncio.get_running_loop()
        try:
            udp.setblocking(False)
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
            udp.bind((host, port))
            port = udp.getsockname()[1]
            self._tcp = await loop.create_server(lambda: _Connection(self), host, port, backlog=512)
        except OSError as error:
            udp.close()
            hint = "write another port, or end the process that has it (ss -lnptu tells)"
            if error.errno == errno.EADDRNOTAVAIL:
                hint = "write an address of this machine (ip address lists them)"
            raise Misconfigured(f"can't listen: {error.strerror}", where=where, hint=hint) from None
        self._udp = udp
        loop.add_reader(udp.fileno(), self._readable)
        return port

    async def stop(self) -> None:
        """Close all sockets."""
        if self._udp is not None:
            asyncio.get_running_loop().remove_reader(self._udp.fileno())
            self._udp.close()
            self._udp = None
        if self._tcp is not None:
            self._tcp.close()
            self._tcp = None
        for each in list(self.connections):
            each.abort()

    def _readable(self) -> None:
        udp, opened, told = self._udp, self.wire.open_to_host, self.answerer.told
        if udp is None:
            return
        for _ in range(A_ROUND):
            try:
                data, peer = udp.recvfrom(DATAGRAM_BYTES + 1)
            except OSError:  # nothing more; or an error about an answer that found nobody, which is his matter
                break
            if not _SHORTEST < len(data) <= DATAGRAM_BYTES:
                self.wire.dropped += 1
                continue
            found = opened(data)
            if found is not None:
                self.heard += 1
                told(found[1], _Datagram(self, peer, found[0]))
        self.answerer.round()

    def keeps(self, connection: "_Connection", size: int) -> None:
        """A connection that has proven nothing has so much of a message; where all have too much, the largest goes."""
        self.unproven[connection] = size
        if size and sum(self.unproven.values()) > UNPROVEN_BYTES:
            max(self.unproven, key=self.unproven.__getitem__).give_up()

    def send(self, peer: tuple[object, ...], request: int, message: FromHost) -> None:
        """Answer a datagram. What can't be sent now is as good as lost on the way."""
        if self._udp is None:
            return
        try:
            packet: bytes | None = self.wire.pack("from host", request, message, DATAGRAM_BYTES)
        except TooLong:
            packet = self.short(request, message)
        if packet is None:
            return
        try:
            self._udp.sendto(packet, peer)
        except OSError as error:
            log.debug("answer to %s: %s", peer, error)

    def short(self, request: int, message: FromHost) -> bytes | None:
        """An answer made to fit, without the words for people first; None if it can't be."""
        said = ""
        for each in (uncommented(message), shortened(message)):
            try:
                return self.wire.pack("from host", request, each, DATAGRAM_BYTES)
            except TooLong as error:
                said = str(error)
        log.warning("not answered: %s", said)
        return None


class _Datagram:
    """The way back to one datagram's sender."""

    __slots__ = ("peer", "request", "server")

    def __init__(self, server: AgentServer, peer: tuple[object, ...], request: int) -> None:
        self.server, self.peer, self.request = server, peer, request

    def __call__(self, message: FromHost) -> None:
        self.server.send(self.peer, self.request, message)


class _Connection(asyncio.Protocol):
    """One manager's connection: any number of questions, answered in any order."""

    def __init__(self, server: AgentServer) -> None:
        self.server = server
        self.frames = Frames()
        self.proof: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if len(self.server.connections) >= CONNECTIONS_MOST:
            oldest = next(iter(self.server.unproven), self)
            oldest.give_up()
            if oldest is self:
                return
        self.server.connections.add(self.transport)
        self.server.keeps(self, 0)
        self.proof = asyncio.get_running_loop().call_later(PROVE_S, self.give_up)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the protocol's signature
        self.server.connections.discard(self.transport)
        self.proven()

    def proven(self) -> None:
        self.server.unproven.pop(self, None)
        if self.proof is not None:
            self.proof.cancel()
            self.proof = None

    def give_up(self) -> None:
        self.server.unanswered += 1
        self.server.connections.discard(self.transport)
        self.proven()
        self.frames = Frames()
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        try:
            packets = self.frames.feed(data)
        except TooLong:
            self.server.wire.dropped += 1
            self.give_up()
            return
        for packet in packets:
            found = self.server.wire.open_to_host(packet)
            if found is None:  # whoever hasn't the key has nothing to ask here
                self.give_up()
                return
            self.proven()
            self.server.heard += 1
            request = found[0]
            self.server.answerer.told(found[1], lambda message, request=request: self.answer(request, message))  # type: ignore[misc]
        if self in self.server.unproven:
            self.server.keeps(self, self.frames.size)
        self.server.answerer.round()

    def answer(self, request: int, message: FromHost) -> None:
        if self.transport.is_closing():
            return
        try:
            self.transport.write(framed(self.server.wire.pack("from host", request, message, FRAME_BYTES)))
        except TooLong as error:
            log.warning("not answered: %s", error)
        if self.transport.get_write_buffer_size() > UNSENT_MOST:
            self.give_up()


def uncommented(message: FromHost) -> FromHost:
    """An answer without the words for people, but for the first one's."""
    return replace(message, causes=message.causes[:1]) if isinstance(message, Answer) else message


def shortened(message: FromHost) -> FromHost:
    """An answer that fits into a datagram, and is true as far as it goes."""
    match message:
        case Answer():
            few = message.down[:CUT], message.refused[:CUT]
            return replace(message, set=None, down=few[0], refused=few[1], causes=())
        case NetworkAnswer():
            return replace(message, has=message.has[:CUT], unknown=message.unknown[:CUT])
        case _:
            return message
