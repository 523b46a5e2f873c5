"""The observer: asks the region's DNS server what any caller would ask, and checks the promises from the answers.

It shares no code path with what it watches: no mirror, no transfer, no store. Plain queries over UDP (TCP where an
answer was cut short, RFC 7766 section 5), a whole look at an endpoint being its marker, its A and AAAA records, and its
marker again. Judging is :mod:`fencepost.roles.status.promise_watch`'s; here are only questions and their pace.

Each endpoint is looked at once a second, and when its domain's serial has moved (asked for each 100 ms), up to a bound
of queries; of more endpoints it takes the next ones in turn. One that was found empty, altered or in motion is looked
at again each 20 ms. A question without an
answer (timeout, SERVFAIL, REFUSED) says nothing about the endpoint: it is counted, and the look is dropped.
"""

import asyncio
import contextlib
import ipaddress
import logging
import time
from collections.abc import Callable, Iterable, Mapping

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
from msgspec import Struct

from fencepost.core.fence import Foreign, Marker
from fencepost.core.instant import Instant
from fencepost.core.names import marker_name
from fencepost.core.zone import Live
from fencepost.roles.status.promise_watch import Broken, PromiseWatch, Seen, Watched

log = logging.getLogger(__name__)

QUERIES_A_LOOK = 4
AT_ONCE = 8
"""Looks under way at the same time; also so many unanswered ones in a row end a pass."""
AGAIN_S = 0.02
SERIAL_S = 0.1
AGAIN_MOST = 16
"""So many endpoints are looked at again at the short interval."""
QUESTIONS_KEPT = 4096
EDNS_BYTES = 1232
"""What fits every path without fragments (dnsflagday.net/2020); a longer answer comes over TCP."""


class ObserverSettings(Struct, frozen=True):
    """Whom to ask (address and port), whose markers are ours, and how often: ``queries_a_s`` bounds the questions.

    ``domains`` are those whose serials are watched, so that changes are looked at when they happen.
    """

    host: str
    port: int
    owner: str
    domains: tuple[str, ...] = ()
    every_s: float = 1.0
    timeout_s: float = 0.5
    queries_a_s: int = 200


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


class Observer:
    """Looks at endpoints, judges them, and keeps what was seen. ``clock`` gives nanoseconds since 1970."""

    def __init__(self, settings: ObserverSettings, clock: Callable[[], Instant] = time.time_ns) -> None:
        self.settings = settings
        self.watch = PromiseWatch(settings.owner)
        self.endpoints: dict[str, Watched] = {}
        self.asked = 0
        self.unanswered = 0
        self.last_error = ""
        self.answered_at: Instant = 0
        self._clock = clock
        self._asker = Asker(settings.host, settings.port, settings.timeout_s)
        self._place = ""
        self._changed = asyncio.Event()
        self._serials: dict[str, int] = {}
        self._budget = float(settings.queries_a_s)
        self._budget_at = time.monotonic()

    def watches(self, endpoints: Iterable[Watched]) -> None:
        """Look at exactly these from now on."""
        self.endpoints = {endpoint.name: endpoint for endpoint in endpoints}
        self.watch.forget_but(frozenset(self.endpoints))

    @property
    def violations(self) -> tuple[Broken, ...]:
        """What was seen broken, oldest first."""
        return tuple(self.watch.violations)

    def lives(self) -> Mapping[str, Live]:
        """Each endpoint as last seen. A weighted set whose answer fits its marker is given whole, as in the marker."""
        found = {}
        for name, past in self.watch.past.items():
            if past.last is not None:
                found[name] = self._live(name, past.last, drawn=past.whole)
        return found

    @staticmethod
    def _live(name: str, seen: Seen, *, drawn: bool) -> Live:
        live = seen.live(name)
        value = live.marker.content if isinstance(live.marker, Marker) else None
        if drawn and value is not None and value.weights:
            return Live(name, live.marker, value.a, value.aaaa, value.ttl)
        return live

    async def look(self, endpoint: Watched) -> bool:
        """Look at one endpoint; whether it is worth another look soon. Raises :class:`Unanswered`."""
        marker = marker_name(endpoint.name)
        before = await self._marker(marker)
        a, ttl_a = await self._addresses(endpoint.name, dns.rdatatype.A)
        aaaa, ttl_aaaa = await self._addresses(endpoint.name, dns.rdatatype.AAAA)
        after = await self._marker(marker)
        now = self._clock()
        self.answered_at, self.last_error = now, ""
        return self.watch.observe(endpoint, Seen(before, a, aaaa, ttl_a if a else ttl_aaaa, after), now)

    async def _marker(self, name: str) -> Marker | Foreign | None:
        found = await self._ask(name, dns.rdatatype.TXT)
        if found is None:
            return None
        raw = tuple(sorted(tuple(bytes(string) for string in rdata.strings) for rdata in found))
        marker = Marker.parse(raw[0]) if len(raw) == 1 else None
        return marker if marker is not None else Foreign("", raw)

    async def _addresses(self, name: str, rtype: dns.rdatatype.RdataType) -> tuple[tuple[str, ...], int]:
        found = await self._ask(name, rtype)
        if found is None:
            return (), 0
        # By number, not by text: the order that digests are made in.
        addresses = sorted({int(ipaddress.ip_address(rdata.address)) for rdata in found})
        kind = ipaddress.IPv4Address if rtype == dns.rdatatype.A else ipaddress.IPv6Address
        return tuple(str(kind(address)) for address in addresses), found.ttl

    async def _ask(self, name: str, rtype: dns.rdatatype.RdataType) -> dns.rrset.RRset | None:
        self.asked += 1
        self._budget -= 1
        return await self._asker.ask(name, rtype)

    async def run(self) -> None:
        """Look each second and at every change, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._look_on())
                group.create_task(self._watch_serials())
        finally:
            self._asker.close()

    async def _look_on(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            end = loop.time() + self.settings.every_s
            self._changed.clear()
            again = await self.look_at(self._due())
            while not self._changed.is_set() and loop.time() < end:
                if again:
                    await asyncio.sleep(AGAIN_S)
                    again = await self.look_at(again[:AGAIN_MOST])
                    continue
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), max(0.0, end - loop.time()))
            # However often a domain changes, and however little is left of the bound: never without a pause.
            await asyncio.sleep(AGAIN_S)

    async def _watch_serials(self) -> None:
        while True:
            for domain in self.settings.domains:
                with contextlib.suppress(Unanswered):
                    found = await self._ask(domain, dns.rdatatype.SOA)
                    serial = int(found[0].serial) if found else -1
                    if self._serials.get(domain, serial) != serial:
                        self._changed.set()
                    self._serials[domain] = serial
            await asyncio.sleep(SERIAL_S * max(1.0, len(self.settings.domains) / 5))

    def _due(self) -> list[Watched]:
        """The next endpoints in turn, as many as the bound of queries has left; one at least."""
        now = time.monotonic()
        gained = (now - self._budget_at) * self.settings.queries_a_s
        self._budget, self._budget_at = min(self._budget + gained, self.settings.queries_a_s), now
        most = max(1, int(self._budget) // QUERIES_A_LOOK)
        names = sorted(self.endpoints)
        if len(names) > most:
            start = next((at for at, name in enumerate(names) if name > self._place), 0)
            names = (names[start:] + names[:start])[:most]
            self._place = names[-1]
        return [self.endpoints[name] for name in names]

    async def look_at(self, endpoints: list[Watched]) -> list[Watched]:
        """Look at several, a few at a time; those worth another look soon."""
        again: list[Watched] = []
        left = iter(endpoints)
        failed = 0

        async def work() -> None:
            nonlocal failed
            for endpoint in left:
                try:
                    if await self.look(endpoint):
                        again.append(endpoint)
                    failed = 0
                except Unanswered as error:
                    failed += 1
                    self._missed(error)
                if failed >= AT_ONCE:
                    return

        await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(endpoints)))))
        return sorted(again, key=lambda endpoint: endpoint.name)

    def _missed(self, error: Unanswered) -> None:
        self.unanswered += 1
        if str(error) != self.last_error:
            self.last_error = str(error)
            log.warning("observer: %s:%d: %s", self.settings.host, self.settings.port, error)


async def run_observer(observer: Observer, tell: Callable[[Broken], None] | None = None) -> None:
    """Observe until cancelled; ``tell`` is given each violation once."""
    told = 0

    async def telling() -> None:
        nonlocal told
        while True:
            for broken in observer.watch.violations[told:]:
                log.error("%s is broken at %s: %s", broken.promise, broken.on, broken.what)
                told += 1
                if tell is not None:
                    tell(broken)
            await asyncio.sleep(observer.settings.every_s)

    told_by = asyncio.create_task(telling())
    try:
        await observer.run()
    finally:
        told_by.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await told_by
