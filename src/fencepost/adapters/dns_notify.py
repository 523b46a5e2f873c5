"""NOTIFY received (RFC 1996): a primary says that its domain changed, and is answered.

A NOTIFY says nothing but "look": what changed is learnt by asking for the serial. So a forged one costs a question to
the primary, and not even that more than 20 times a second. It is answered with its own question and the reply bit,
never longer than it was. One that is signed with our key gets a signed answer; one signed otherwise gets none.

BIND, PowerDNS (signed) and our own server send it over UDP, Knot over TCP, so both are listened to, on one port. A TCP
connection carries one message, within two seconds, and there are never more than eight.
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


class Listener(asyncio.DatagramProtocol):
    """A UDP socket that hears NOTIFY for one domain."""

    def __init__(self, address: tuple[str, int], apex: bytes, signer: Signer) -> None:
        self._address = address
        self._apex = apex
        self._signer = signer
        self._transport: asyncio.DatagramTransport | None = None
        self._heard = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._place = address
        self._connections = 0
        self._looked_at = 0.0

    @property
    def address(self) -> tuple[str, int] | None:
        """Where it listens; None before :meth:`open` and after :meth:`close`."""
        return self._place if self._transport is not None else None

    async def open(self) -> tuple[str, int]:
        """Start to listen, if not yet; the address and port. Raises ``OSError``."""
        for tries_left in range(PORT_TRIES, 0, -1):
            if self._transport is not None:
                break
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=self._address)
            try:
                place = transport.get_extra_info("sockname")[:2]
                self._server = await asyncio.start_server(self._connected, *place)
            except OSError:
                transport.close()
                if self._address[1] or tries_left == 1:
                    raise
                continue  # a port that is free for UDP needn't be for TCP
            self._transport = transport
            self._place = str(place[0]), int(place[1])
        return self._place

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
                reply = self._answer(await reader.readexactly(size))
                writer.write(len(reply).to_bytes(2, "big") + reply)
                self._heard.set()
                await writer.drain()
        except (Malformed, Unverified, SignatureError, EOFError, OSError):
            pass
        finally:
            self._connections -= 1
            writer.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A message from anybody."""
        with contextlib.suppress(Malformed, Unverified, SignatureError):
            reply = self._answer(data)
            if self._transport is not None:
                self._transport.sendto(reply, addr)
            self._heard.set()

    def _answer(self, message: bytes) -> bytes:
        """The answer to a NOTIFY about our domain. Raises :class:`Malformed` for anything else."""
        head = Head(message)
        if head.reply or head.opcode != NOTIFY or head.counts[0] != 1:
            raise Malformed("no NOTIFY")
        known: dict[int, bytes] = {}
        name, at = read_name(message, 12, known)
        if name != self._apex or message[at : at + 2] != SOA.to_bytes(2, "big"):
            raise Malformed("about something else")
        question = message[12 : at + 4]
        _, after = read_records(message, at + 4, head.counts[1], known)
        # The reply: same id and opcode, QR and AA, RCODE 0, the question alone (section 4.7).
        reply = message[:2] + b"\xa4\x00" + b"\x00\x01" + bytes(6) + question
        verifier = Verifier(self._signer, b"")
        if verifier.check(message, head, after, known):
            reply, _ = self._signer.sign(reply, request_mac=verifier.mac)
        return reply
