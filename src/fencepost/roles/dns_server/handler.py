"""From a message to its answer, whatever came over whichever socket.

:meth:`Handler.now` answers at once all that needs no waiting: queries, refusals, errors. What takes time (an update
must reach the disk, a transfer is long) comes back as :class:`Later`, its signature already checked, and is run by
:meth:`Handler.later` as a stream of messages.

A reply over UDP is never longer than the client's EDNS size, an error to a broken message never longer than the
message, and a message that is itself a reply is dropped: nothing here can be made to amplify or to talk to itself.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Executor

from msgspec import Struct

from fencepost.core.dns_numbers import (
    AXFR,
    FORMERR,
    HEADER_BYTES,
    IN,
    IXFR,
    MESSAGE_MAX,
    NOERROR,
    NOTAUTH,
    NOTIFY,
    NOTIMP,
    NS,
    NXDOMAIN,
    QUERY,
    RCODES,
    REFUSED,
    SERVFAIL,
    SOA,
    UPDATE,
    Malformed,
)
from fencepost.ports import PortError

from .answers import Answer, Draw, Kept, build, key_of
from .contents import Change, Contents, domain_of, record_wire
from .counters import Counters, count
from .file import DomainFile
from .lookup import look_up
from .request import Request, opt_record, read_request, respond, respond_bare, wrong_version
from .signatures import Keys, Refusal, Signer
from .transfers import client_serial, messages, since, whole
from .updates import Refuse, plan_update
from .wire import newer

# Flags and counts of an ordinary query: RD, AD and CD as they like, one question, at most an OPT.
_ORDINARY = frozenset(
    bytes((rd, bits, 0, 1, 0, 0, 0, 0, 0, opt)) for rd in (0, 1) for bits in (0, 0x10, 0x20, 0x30) for opt in (0, 1)
)


log = logging.getLogger(__name__)

TOLD_ANYWAY = 1000
"""Records of changes that are sent also where the whole domain is less: who asks what happened wants to know that."""
_FAULTS_LOGGED = 10
_WHOLE_TRANSFERS_MAX = 8  # each keeps its version's names while it runs


class Later(Struct, frozen=True, gc=False):
    """An accepted update or transfer."""

    request: Request
    contents: Contents
    signer: Signer | None


class Handler:
    """Answers for the given domains out of memory, with the file behind them."""

    def __init__(
        self,
        domains: dict[bytes, Contents],
        file: DomainFile,
        keys: Keys,
        transfer: frozenset[str],
        counters: Counters,
        writer: Executor,
        *,
        changed: Callable[[bytes], None],
        wall: Callable[[], float] = time.time,
        draw: Draw | None = None,
    ) -> None:
        self._domains = domains
        self._file = file
        self._keys = keys
        self._transfer = transfer
        self._counters = counters
        self._writer = writer
        self._changed = changed
        self._wall = wall
        self._draw = draw or draw_numbers
        self._kept = Kept()
        self._writing = asyncio.Lock()
        # Two gates: transfers that a client without our key leaves unread must not keep a writer's waiting.
        self._sending = {signed: asyncio.Semaphore(_WHOLE_TRANSFERS_MAX) for signed in (False, True)}

    def now(
        self, message: bytes, source: str, *, tcp: bool = False, signed: Callable[[], None] = lambda: None
    ) -> bytes | Later | None:
        """The reply to a message, None if it gets none, or what is to be run later. Never raises.

        ``signed`` is called for a message that one of our keys has signed.
        """
        if message[2:12] in _ORDINARY and not tcp:
            kept = self._kept.by_key.get(message[12:].lower())
            if kept is not None:
                self._counters.answers += 1
                return kept.reply(message)
        if len(message) < HEADER_BYTES or message[2] & 0x80:
            self._counters.dropped += 1
            return None
        try:
            return self._first_look(message, source, tcp, signed)
        except Malformed:
            self._counters.malformed += 1
            self._counters.formerr += 1
            return respond_bare(message, FORMERR)
        except Exception:  # a bug must cost one answer, not the server
            self._fault()
            return respond_bare(message, SERVFAIL)

    async def later(self, work: Later) -> AsyncGenerator[bytes, None]:
        """The messages that answer an update or a transfer. Never raises, but for cancellation."""
        try:
            if work.request.opcode == UPDATE:
                yield await self._update(work)
            else:
                whole_one = work.request.rtype == AXFR
                gate = self._sending[work.signer is not None] if whole_one else contextlib.nullcontext()
                async with gate, contextlib.aclosing(self._send(work)) as parts:
                    async for message in parts:
                        yield message
        except Malformed:
            self._counters.malformed += 1
            yield self._signed(respond(work.request, FORMERR), work.signer)
        except Exception:  # as in ``now``
            self._fault()
            yield self._signed(respond(work.request, SERVFAIL), work.signer)

    def _first_look(self, message: bytes, source: str, tcp: bool, signed: Callable[[], None]) -> bytes | Later | None:
        opcode = message[2] >> 3 & 0xF
        if opcode not in (QUERY, NOTIFY, UPDATE):
            self._counters.other += 1
            return respond_bare(message, NOTIMP)
        request = read_request(message, tcp=tcp, source=source)
        refusal = wrong_version(request)
        if refusal is not None:
            self._counters.other += 1
            return refusal
        signer = None
        if request.signature:
            checked = self._keys.check(request, int(self._wall()))
            if isinstance(checked, Refusal):
                count(self._counters.signatures, checked.error)
                if opcode == UPDATE:
                    count(self._counters.updates, "NOTAUTH")
                return checked.reply
            signer = checked
            signed()
        answer = self._dispatch(request, signer)
        return self._signed(answer, signer) if isinstance(answer, bytes) else answer

    def _dispatch(self, request: Request, signer: Signer | None) -> bytes | Later:
        contents = domain_of(request.name, self._domains) if request.rclass == IN else None
        if request.opcode == UPDATE:
            return self._accept_update(request, contents, signer)
        if request.opcode == NOTIFY:
            count(self._counters.notifies, "received")
            return respond(request, NOERROR if contents is not None else NOTAUTH, authoritative=contents is not None)
        if request.counts[0] or (request.counts[1] and request.rtype != IXFR):
            raise Malformed("a query has a question only")
        if contents is None:
            self._counters.refused += 1
            return respond(request, REFUSED)
        if request.rtype in (AXFR, IXFR):
            return self._accept_transfer(request, contents, signer)
        if 249 <= request.rtype <= 254:
            self._counters.other += 1
            return respond(request, NOTIMP)
        return self._query(request, contents, signer)

    def _query(self, request: Request, contents: Contents, signer: Signer | None) -> bytes:
        opt = opt_record(request.edns)
        message, room = request.message, request.limit
        if signer is not None:
            # Who signs is a writer of ours that wants the records as they are: whole, and not drawn by weight.
            found = look_up(contents, request.name, request.rtype)
            answer = build(contents, found, request.name, room - signer.size, opt, None)
            return self._counted(answer.reply(message), found.rcode)
        key = None if request.tcp else self._key(request)
        kept = self._kept.by_key.get(key) if key is not None else None
        if kept is not None:
            return self._counted(kept.reply(message), NOERROR)
        found = look_up(contents, request.name, request.rtype)
        built: Answer = build(contents, found, request.name, room, opt, self._draw)
        if key is not None:
            self._kept.keep(key, built, found, contents.apex)
        return self._counted(built.reply(message), found.rcode)

    def _key(self, request: Request) -> bytes | None:
        """The request's key as :mod:`.answers` has them, options of its OPT left out."""
        edns = request.edns
        opt = b""
        if edns is not None:
            flags = b"\x80" if edns.wants_dnssec else b"\0"
            opt = b"\0\0\x29%b\0\0%b\0\0\0" % (edns.size.to_bytes(2, "big"), flags)
        return key_of(request.name + request.message[request.end - 4 : request.end], opt)

    def _counted(self, reply: bytes, rcode: int) -> bytes:
        if rcode == NXDOMAIN:
            self._counters.nxdomain += 1
        else:
            self._counters.answers += 1
        return reply

    def _accept_update(self, request: Request, contents: Contents | None, signer: Signer | None) -> bytes | Later:
        rcode = NOERROR
        if request.rtype != SOA:
            rcode = FORMERR
        elif contents is None or contents.apex != request.name:
            rcode = NOTAUTH
        elif signer is None:
            rcode = REFUSED
        else:
            return Later(request, contents, signer)
        count(self._counters.updates, RCODES[rcode])
        return respond(request, rcode)

    def _accept_transfer(self, request: Request, contents: Contents, signer: Signer | None) -> bytes | Later:
        if request.name != contents.apex:
            self._counters.other += 1
            return respond(request, NOTAUTH)
        if signer is None and request.source not in self._transfer:
            count(self._counters.transfers, "refused")
            self._counters.refused += 1
            return respond(request, REFUSED)
        if request.rtype == AXFR and not request.tcp:
            raise Malformed("AXFR is for TCP only (RFC 5936 section 4.2)")
        return Later(request, contents, signer)

    async def _update(self, work: Later) -> bytes:
        """One update after the other: plan it, write it, and only then serve it."""
        async with self._writing:
            try:
                change = plan_update(work.request, work.contents, self._domains)
                if change is not None:
                    await self.commit(work.contents, change)
                rcode = NOERROR
            except Refuse as refused:
                rcode = refused.rcode
            except PortError as error:
                self._counters.errors += 1
                log.error("update not written: %s (%s)", error, error.hint)  # noqa: TRY400  its text says it all
                rcode = SERVFAIL
        count(self._counters.updates, RCODES[rcode])
        return self._signed(respond(work.request, rcode), work.signer)

    async def commit(self, contents: Contents, change: Change) -> None:
        """Write a change to the file, then serve it. Raises what the file raises, nothing changed."""
        written = asyncio.get_running_loop().run_in_executor(self._writer, self._file.commit, contents.apex, change)
        try:
            await asyncio.shield(written)
        finally:
            # Cancelled while the disk was busy: what is written must be served all the same.
            if not written.done():
                await asyncio.wait([written])
            if not written.cancelled() and written.exception() is None:
                self._file.note(contents.apex, written.result())
                self._serve(contents, change)
        unsafe = written.result().unsafe
        if unsafe is not None:  # served, and gone with this process unless the file can be written anew by then
            raise unsafe

    async def look(self) -> None:
        """See to it that the file is at its path. Raises what the file raises."""
        async with self._writing:
            await asyncio.get_running_loop().run_in_executor(self._writer, self._file.look)

    def _serve(self, contents: Contents, change: Change) -> None:
        below = [node for owner, node in change.nodes.items() if owner != contents.apex]
        cuts = any(found.rtype == NS for node in below for found in node)
        contents.apply(change.nodes)
        if cuts or contents.cuts:
            self._kept.clear()
        else:
            self._kept.forget(change.nodes)
        self._counters.changes += 1
        self._changed(contents.apex)

    async def _send(self, work: Later) -> AsyncGenerator[bytes, None]:
        request, signer = work.request, work.signer
        kind, records = await self._records(work)
        if not request.tcp:
            yield self._signed(self._in_one(work, list(records)), signer)
            count(self._counters.transfers, kind)
            return
        several = False
        for message in messages(request, records):
            if signer is not None:
                message = signer.sign(message, int(self._wall()), several=True)
            if several:
                await asyncio.sleep(0)  # let ordinary questions in between two messages
            several = True
            yield message
        count(self._counters.transfers, kind)

    async def _records(self, work: Later) -> tuple[str, Iterator[bytes]]:
        """What a transfer sends: the whole domain, or less if the client has a serial that the journal reaches."""
        request, contents = work.request, work.contents
        apex, soa = contents.apex, contents.soa
        newest = record_wire(apex, apex, soa, soa.rdatas[0])
        if request.rtype == AXFR:
            return "axfr", whole(contents)
        serial = client_serial(request)
        if not newer(contents.serial, serial):
            return "current", iter((newest,))
        entries = list(self._file.journals[apex])
        start = next((index for index, entry in enumerate(entries) if entry.serial_from == serial), None)
        if start is not None and sum(entry.records for entry in entries[start:]) <= max(contents.records, TOLD_ANYWAY):
            first, last = entries[start].seq, entries[-1].seq
            loop = asyncio.get_running_loop()
            changes = await loop.run_in_executor(self._writer, self._file.changes, apex, first, last)
            if len(changes) == len(entries) - start:
                return "ixfr", since(newest, changes)
        return "axfr", whole(contents) if request.tcp else iter((newest,))

    def _in_one(self, work: Later, records: list[bytes]) -> bytes:
        """An incremental transfer over UDP: one message, or the newest SOA alone, which says "ask over TCP"."""
        request = work.request
        limit = request.limit - (work.signer.size if work.signer is not None else 0)
        message = next(messages(request, records, MESSAGE_MAX))
        if len(records) == 1 or sum(map(len, records)) + request.end + 11 > limit:
            message = next(messages(request, records[:1]))
        return message

    def _fault(self) -> None:
        """Count a fault of our own; the first ones are logged whole, since whoever can cause one can cause many."""
        self._counters.errors += 1
        if self._counters.errors <= _FAULTS_LOGGED:
            log.exception("a message was answered SERVFAIL")

    def _signed(self, reply: bytes, signer: Signer | None) -> bytes:
        return reply if signer is None else signer.sign(reply, int(self._wall()))


def draw_numbers(count: int) -> list[float]:
    """Numbers from [0, 1) for the weights: fair, not secret."""
    return [random.random() for _ in range(count)]  # noqa: S311  not secret
