"""NOTIFY received (RFC 1996): a primary says that its domain changed, and is answered.

A NOTIFY says nothing but "look": what changed is learnt by asking for the serial. So a forged one costs a question to
the primary, and not even that more than 20 times a second. It is answered with its own question and the reply bit,
never longer than it was. One that is signed with our key gets a signed answer; one signed otherwise gets none.

BIND, PowerDNS (signed) and our own server send it over UDP, Knot over TCP, so both are listened to, on one port. A TCP
connection carries one message, within two seconds, and there are never more than eight.

The domains of one process share a socket where its place is fixed (:class:`Ear`): a primary is told one address, and
the NOTIFY says which domain it is about.
"""

import asyncio
import contextlib

from fencepost.adapters.dns_signature import SignatureError, Signer, Unverified, Verifier
from fencepost.adapters.dns_wire import Head, read_name, read_records
from fencepost.core.dns_numbers import NOTIFY, SOA, Malformed

CONNECTIONS_MAX = 8
CONNECTION_S = 2.0
PORT_TRIES = 8
LOOKS_APART_S = 0.05
"""The least time between two questions that NOTIFY messages cause."""


class Ear(asyncio.DatagramProtocol):
    """A place where NOTIFY is heard, over UDP and TCP, for any number of domains."""

    def __init__(self, address: tuple[str, int]) -> None:
        """Opens nothing yet; port 0 takes a free one."""
        self._address = address
        self._place = address
        self.listeners: dict[bytes, Listener] = {}
        self._transport: asyncio.DatagramTransport | None = None
        self._server: asyncio.Server | None = None
        self._connections = 0
        self._opening = asyncio.Lock()

    @property
    def address(self) -> tuple[str, int] | None:
        """Where it listens; None before :meth:`open` and after the last listener left."""
        return self._place if self._transport is not None else None

    async def open(self, listener: "Listener") -> tuple[str, int]:
        """Start to listen, if not yet, and tell that listener too; the address and port. Raises ``OSError``."""
        async with self._opening:
            if self._transport is None:
                await self._bind()
            self.listeners[listener.apex] = listener
            return self._place

    async def _bind(self) -> None:
        loop = asyncio.get_running_loop()
        for tries_left in range(PORT_TRIES - 1, -1, -1):
            transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=self._address)
            try:
                place = transport.get_extra_info("sockname")[:2]
                self._server = await asyncio.start_server(self._connected, *place)
            except OSError:
                transport.close()
                if self._address[1] or not tries_left:
                    raise
                continue  # a port that is free for UDP needn't be for TCP
            self._transport = transport
            self._place = str(place[0]), int(place[1])
            return

    def leave(self, listener: "Listener") -> None:
        """One listener less; the last one takes the socket with it."""
        self.listeners.pop(listener.apex, None)
        if self.listeners:
            return
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A message over TCP."""
        self._connections += 1
        try:
            if self._connections > CONNECTIONS_MAX:
                return
            async with asyncio.timeout(CONNECTION_S):
                size = int.from_bytes(await reader.readexactly(2), "big")
                reply = self.heard(await reader.readexactly(size))
                writer.write(len(reply).to_bytes(2, "big") + reply)
                await writer.drain()
        except (Malformed, Unverified, SignatureError, EOFError, OSError):
            pass
        finally:
            self._connections -= 1
            writer.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A message from anybody."""
        with contextlib.suppress(Malformed, Unverified, SignatureError):
            reply = self.heard(data)
            if self._transport is not None:
                self._transport.sendto(reply, addr)

    def heard(self, message: bytes) -> bytes:
        """Wake whom a NOTIFY is for; its answer. Raises :class:`Malformed` for anything else."""
        head = Head(message)
        if head.reply or head.opcode != NOTIFY or head.counts[0] != 1:
            raise Malformed("no NOTIFY")
        known: dict[int, bytes] = {}
        name, at = read_name(message, 12, known)
        listener = self.listeners.get(name)
        if listener is None or message[at : at + 2] != SOA.to_bytes(2, "big"):
            raise Malformed("about something else")
        question = message[12 : at + 4]
        _, after = read_records(message, at + 4, head.counts[1], known)
        # The reply: same id and opcode, QR and AA, RCODE 0, the question alone (section 4.7).
        reply = message[:2] + b"\xa4\x00" + b"\x00\x01" + bytes(6) + question
        verifier = Verifier(listener.signer, b"")
        if verifier.check(message, head, after, known):
            reply, _ = listener.signer.sign(reply, request_mac=verifier.mac)
        listener.wake()
        return reply


class Listener:
    """Who waits for NOTIFY about one domain, at an ear of its own or one that is shared."""

    def __init__(self, ear: Ear, apex: bytes, signer: Signer) -> None:
        self.apex = apex
        self.signer = signer
        self._ear = ear
        self._heard = asyncio.Event()
        self._open = False
        self._looked_at = 0.0

    @property
    def address(self) -> tuple[str, int] | None:
        """Where it listens; None before :meth:`open` and after :meth:`close`."""
        return self._ear.address if self._open else None

    async def open(self) -> tuple[str, int]:
        """Start to listen, if not yet; the address and port. Raises ``OSError``."""
        place = await self._ear.open(self)
        self._open = True
        return place

    def wake(self) -> None:
        """A NOTIFY has come."""
        self._heard.set()

    async def told(self, most_s: float) -> bool:
        """Wait for a NOTIFY, so long at most; whether one came. It is not before its time, if the last was just now."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(most_s):
                await self._heard.wait()
        except TimeoutError:
            return False
        early = self._looked_at + LOOKS_APART_S - loop.time()
        if early > 0:
            await asyncio.sleep(early)
        self._heard.clear()
        self._looked_at = loop.time()
        return True

    def close(self) -> None:
        """Stop listening."""
        self._open = False
        self._ear.leave(self)
