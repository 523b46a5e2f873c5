"""The observer's questions: a client of one DNS server, as plain as any caller's, over UDP, and TCP when cut short."""

import asyncio
import time

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

QUESTIONS_KEPT = 4096
EDNS_BYTES = 1232
"""What fits every path without fragments (dnsflagday.net/2020); a longer answer comes over TCP."""


class Unanswered(Exception):  # noqa: N818  an outcome that is counted, not an error
    """A question that wasn't answered; its text says how."""


class Question:
    """A question as it is sent (``wire``, without its id), and the last reply to it, read once.

    Most replies say what the last one said, byte for byte; then they aren't read again.
    """

    def __init__(self, name: str, rtype: dns.rdatatype.RdataType) -> None:
        self.query = dns.message.make_query(name, rtype, use_edns=0, payload=EDNS_BYTES, id=0)
        self.query.flags &= ~dns.flags.RD
        self.wire = self.query.to_wire()[2:]
        self.reply = b""
        self.answer: dns.rrset.RRset | None = None

    def judged(self, reply: dns.message.Message) -> dns.rrset.RRset | None:
        """The record set in a reply. Raises ValueError or :class:`Unanswered` if it says nothing about the question."""
        reply.id = self.query.id
        if not self.query.is_response(reply):
            raise ValueError("it answers another question")
        if reply.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            raise Unanswered(dns.rcode.to_text(reply.rcode()))
        asked = self.query.question[0]
        return reply.get_rrset(reply.answer, asked.name, asked.rdclass, asked.rdtype)


class Asker(asyncio.DatagramProtocol):
    """A DNS client of one server: one connected UDP socket, opened when first needed and anew after an error."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self.host = host
        self.port = port
        self.timeout_s = timeout_s
        self._transport: asyncio.DatagramTransport | None = None
        self._opening = asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._questions: dict[tuple[str, dns.rdatatype.RdataType], Question] = {}
        self._next_id = time.monotonic_ns() & 0xFFFF

    async def ask(self, name: str, rtype: dns.rdatatype.RdataType) -> dns.rrset.RRset | None:
        """The record set, or None where there is none. Raises :class:`Unanswered`."""
        question = self._question(name, rtype)
        try:
            return await self._answer(question)
        except TimeoutError:
            raise Unanswered(f"no answer within {self.timeout_s:g} s") from None
        except (OSError, EOFError) as error:
            raise Unanswered(str(error) or type(error).__name__) from None
        except (dns.exception.DNSException, ValueError) as error:
            raise Unanswered(f"an unreadable answer: {error}") from None

    def _question(self, name: str, rtype: dns.rdatatype.RdataType) -> Question:
        found = self._questions.get((name, rtype))
        if found is None:
            if len(self._questions) >= QUESTIONS_KEPT:
                self._questions.clear()
            found = self._questions[name, rtype] = Question(name, rtype)
        return found

    async def _answer(self, question: Question) -> dns.rrset.RRset | None:
        async with asyncio.timeout(self.timeout_s):
            wire = await self._exchange(question.wire)
            if wire[2:] == question.reply:
                return question.answer
            reply = dns.message.from_wire(wire, ignore_trailing=True, raise_on_truncation=False)
            cut = bool(reply.flags & dns.flags.TC)
            answer = question.judged(await self._over_tcp(question.query) if cut else reply)
        if not cut:
            question.reply, question.answer = wire[2:], answer
        return answer

    async def _exchange(self, wire: bytes) -> bytes:
        transport = await self._open()
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        number = self._new_id()
        self._waiting[number] = waiting
        try:
            transport.sendto(number.to_bytes(2, "big") + wire)
            return await waiting
        finally:
            self._waiting.pop(number, None)

    async def _over_tcp(self, query: dns.message.Message) -> dns.message.Message:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            wire = query.to_wire()
            writer.write(len(wire).to_bytes(2, "big") + wire)
            length = int.from_bytes(await reader.readexactly(2), "big")
            return dns.message.from_wire(await reader.readexactly(length))
        finally:
            writer.close()

    async def _open(self) -> asyncio.DatagramTransport:
        async with self._opening:
            if self._transport is None or self._transport.is_closing():
                loop = asyncio.get_running_loop()
                self._transport, _ = await loop.create_datagram_endpoint(
                    lambda: self, remote_addr=(self.host, self.port)
                )
            return self._transport

    def _new_id(self) -> int:
        # In turn, not by chance: the socket is connected, so only the server itself (or who can forge its address
        # on the path) could answer, and what is learnt here is shown, never acted on.
        while True:
            self._next_id = (self._next_id + 1) & 0xFFFF
            if self._next_id not in self._waiting:
                return self._next_id

    def datagram_received(self, data: bytes, _addr: object) -> None:
        """A reply: hand it to who waits for its id."""
        waiting = self._waiting.get(int.from_bytes(data[:2], "big")) if len(data) >= 12 else None
        if waiting is not None and not waiting.done():
            waiting.set_result(data)

    def error_received(self, exc: Exception) -> None:
        """Nobody listens there (an ICMP error): all who wait learn it at once."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(exc)

    def connection_lost(self, _exc: Exception | None) -> None:
        """The socket is gone; the next question opens another."""
        self._transport = None

    def close(self) -> None:
        """Let go of the socket."""
        if self._transport is not None:
            self._transport.close()
