"""A relay before a real server: passes messages both ways, counts them, and spoils the answers it is told to.

Also a made-up primary that answers with whatever records a test gives it, signed by dnspython.
"""

import asyncio
import struct
from collections.abc import Callable

import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.tsigkeyring
from free_ports import free_port
from servers import DOMAIN, KEY_NAME, KEY_SECRET

Spoil = Callable[[int, bytes], bytes | None]
"""Given an answer's number on its connection (from 0) and its bytes: what to pass on; None cuts it off."""


class Relay(asyncio.DatagramProtocol):
    """One relay on a free port. ``spoil`` may be set at any time, and applies to answers over TCP."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.port = 0
        self.spoil: Spoil = lambda _count, message: message
        self.delay_s: Callable[[bytes], float] = lambda _message: 0.0
        """How long an answer over TCP is kept back."""
        self.spoil_udp: Spoil = lambda _count, message: message
        self.asked_udp = 0
        self.asked_tcp: list[bytes] = []
        self._transport: asyncio.DatagramTransport | None = None
        self._back: dict[tuple[str, int], asyncio.DatagramTransport] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> "Relay":
        """Take a port."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", free_port())
        self.port = self._server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, ("127.0.0.1", self.port))
        return self

    async def stop(self) -> None:
        """Let go of it."""
        assert self._server is not None
        assert self._transport is not None
        self._server.close()
        for transport in (self._transport, *self._back.values()):
            transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A question over UDP."""
        self.asked_udp += 1
        task = asyncio.ensure_future(self._pass_on(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, data: bytes, addr: tuple[str, int]) -> None:
        if addr not in self._back:
            assert self._transport is not None
            back = _Back(self, self._transport, addr)
            loop = asyncio.get_running_loop()
            there = ("127.0.0.1", self.upstream)
            self._back[addr], _ = await loop.create_datagram_endpoint(lambda: back, remote_addr=there)
        self._back[addr].sendto(data)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to = await asyncio.open_connection("127.0.0.1", self.upstream, limit=1 << 20)
        answers = asyncio.ensure_future(self._answers(there, writer))
        try:
            while True:
                size = await reader.readexactly(2)
                message = await reader.readexactly(struct.unpack(">H", size)[0])
                self.asked_tcp.append(message)
                to.write(size + message)
        except (EOFError, OSError):
            pass
        finally:
            answers.cancel()
            writer.close()
            to.close()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        count = 0
        try:
            while True:
                size = struct.unpack(">H", await reader.readexactly(2))[0]
                message = self.spoil(count, await reader.readexactly(size))
                count += 1
                if message is None:
                    writer.close()
                    return
                await asyncio.sleep(self.delay_s(message))
                writer.write(struct.pack(">H", len(message)) + message)
        except (EOFError, OSError):
            writer.close()


class _Back(asyncio.DatagramProtocol):
    """Takes the server's answers back to one asker."""

    def __init__(self, relay: Relay, transport: asyncio.DatagramTransport, asker: tuple[str, int]) -> None:
        self._relay = relay
        self._transport = transport
        self._asker = asker

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:  # noqa: ARG002  asyncio's signature
        """An answer."""
        spoilt = self._relay.spoil_udp(0, data)
        if spoilt is not None:
            self._transport.sendto(spoilt, self._asker)


class MadeUp(asyncio.DatagramProtocol):
    """A primary whose answers are lists of records in text, signed. ``ixfr`` None answers NOTIMP."""

    def __init__(self) -> None:
        self.serial = 1
        self.records: list[str] = []
        self.ixfr: list[str] | None = None
        self.asked: list[str] = []
        self.update_rcode = int(dns.rcode.NXRRSET)
        self.update_rcodes: list[int] = []
        """Those of the next UPDATEs, in the order in which they come; then ``update_rcode``."""
        self.gather = 0
        """So many UPDATEs are answered together, the last first; the first of them not at all, if ``ignores``."""
        self.ignores = False
        self._held: list[bytes] = []
        self.endless: tuple[int, float] | None = None
        """Records a message, and the seconds between two, of a transfer that never ends."""
        self.port = 0

    def soa(self, serial: int | None = None) -> str:
        """The SOA record, of this or another version."""
        return f"{DOMAIN}. 60 IN SOA ns.{DOMAIN}. admin.{DOMAIN}. {serial or self.serial} 1 1 1 1"

    async def start(self) -> "MadeUp":
        """Take a port."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", free_port())
        self.port = self._server.sockets[0].getsockname()[1]
        self._udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, ("127.0.0.1", self.port))
        return self

    async def stop(self) -> None:
        """Let go of it."""
        self._server.close()
        self._udp.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A question over UDP."""
        self._udp.sendto(self._answer(data), addr)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = struct.unpack(">H", await reader.readexactly(2))[0]
                question = await reader.readexactly(size)
                if self.endless is not None and not question[2] >> 3 & 15:
                    await self._pour(question, writer)
                    continue
                reply = self._answer(question)
                for each in self._in_turn(reply) if self.gather and question[2] >> 3 & 15 else [reply]:
                    writer.write(struct.pack(">H", len(each)) + each)
        except (EOFError, OSError, asyncio.CancelledError):  # cancelled when a test ends
            writer.close()

    def _in_turn(self, reply: bytes) -> list[bytes]:
        """The answers that go out now, with this one, to an UPDATE."""
        self._held.insert(0, reply)
        if len(self._held) < self.gather:
            return []
        replies, self._held = self._held, []
        return replies[:-1] if self.ignores else replies

    async def _pour(self, wire: bytes, writer: asyncio.StreamWriter) -> None:
        """Answer a question for a transfer without an end, signed."""
        query = dns.message.from_wire(wire, keyring=dns.tsigkeyring.from_text({KEY_NAME: KEY_SECRET}))
        assert self.endless is not None
        count, every_s = self.endless
        context, first, number = None, True, 0
        while True:
            reply = dns.message.make_response(query)
            records = [self.soa()] if first else []
            records += [f"e{number + at}.{DOMAIN}. 30 IN A 192.0.2.1" for at in range(count)]
            number, first = number + count, False
            for record in records:
                name, ttl, rclass, rtype, data = record.split(" ", 4)
                reply.answer.append(dns.rrset.from_text(dns.name.from_text(name), int(ttl), rclass, rtype, data))
            message = reply.to_wire(multi=True, tsig_ctx=context)
            context = reply.tsig_ctx
            writer.write(struct.pack(">H", len(message)) + message)
            await writer.drain()
            await asyncio.sleep(every_s)

    def _answer(self, wire: bytes) -> bytes:
        query = dns.message.from_wire(wire, keyring=dns.tsigkeyring.from_text({KEY_NAME: KEY_SECRET}))
        reply = dns.message.make_response(query)
        if query.opcode() != 0:
            self.asked.append("UPDATE")
            rcode = self.update_rcodes.pop(0) if self.update_rcodes else self.update_rcode
            reply.set_rcode(dns.rcode.Rcode(rcode))
            return bytes(reply.to_wire())
        kind = dns.rdatatype.to_text(query.question[0].rdtype)
        self.asked.append(kind)
        records = {"SOA": [self.soa()], "AXFR": [self.soa(), *self.records, self.soa()], "IXFR": self.ixfr}[kind]
        if records is None:
            reply.set_rcode(dns.rcode.NOTIMP)
        for record in records or ():
            name, ttl, rclass, rtype, data = record.split(" ", 4)
            reply.answer.append(dns.rrset.from_text(dns.name.from_text(name), int(ttl), rclass, rtype, data))
        return bytes(reply.to_wire())
