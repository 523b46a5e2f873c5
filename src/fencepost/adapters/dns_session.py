"""Signed conversations with one primary about one domain: its serial, a transfer, an update.

Each turns everything that can go wrong into the three exceptions of :mod:`fencepost.ports`. A read over a kept
connection that fails before anything came back is tried once more on a fresh one; an update never is.
"""

import asyncio
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TypeVar

from fencepost.adapters.dns_complaints import UNCLEAR, Standing, bad_rcode, bad_signature, network_words, no_answer
from fencepost.adapters.dns_link import Link
from fencepost.adapters.dns_mirror import Mirror, OutOfStep
from fencepost.adapters.dns_signature import SignatureError, Signer, Unverified, Verifier
from fencepost.adapters.dns_transfer import Transfer
from fencepost.adapters.dns_wire import Head, header, name_to_wire, read_name, read_records, skip_question, soa_serial
from fencepost.core.dns_numbers import (
    AAAA,
    AXFR,
    CNAME,
    IXFR,
    MESSAGE_MAX,
    NOERROR,
    NOTAUTH,
    NXDOMAIN,
    NXRRSET,
    QUERY,
    REFUSED,
    SOA,
    TXT,
    YXDOMAIN,
    YXRRSET,
    A,
    Malformed,
    split_strings,
)
from fencepost.ports import Misconfigured, PortError, Refused

Taken = TypeVar("Taken", bound=Transfer)

CHANGED = frozenset((NXRRSET, YXRRSET, NXDOMAIN, YXDOMAIN))
"""Response codes that say that a prerequisite didn't hold; not which (RFC 2136 section 3.2)."""


PATIENCE = 60
"""A whole transfer may last so many times as long as its first answer: one message in each five seconds is no end."""

_SIZES = {A: 4, AAAA: 16}
IN_FLIGHT = 48
"""So many questions are sent over a connection before the first answer is waited for."""


class NotOffered(Exception):  # noqa: N818  an answer, not a failure
    """The server doesn't give incremental transfers, or not from this serial: ask for the whole."""


class _Failed(Exception):  # noqa: N818  a response code on its way to becoming a complaint
    """An answer whose response code isn't success."""

    def __init__(self, rcode: int) -> None:
        super().__init__(rcode)
        self.rcode = rcode


class _Reply:
    """An answer taken apart: header, answer section, names by offset, and whether it is signed (and well)."""

    __slots__ = ("head", "known", "message", "records", "signed")

    def __init__(self, message: bytes, request: bytes, verifier: Verifier, *, runs: bool = False) -> None:
        self.message = message
        self.head = Head(message)
        if not self.head.reply or message[:2] != request[:2] or self.head.opcode != request[2] >> 3 & 15:
            raise Malformed("it answers another question")
        self.known: dict[int, bytes] = {}
        at = skip_question(message, self.head.counts[0], self.known)
        self.records, at = read_records(message, at, self.head.counts[1], self.known, runs=runs)
        self.signed = verifier.check(message, self.head, at, self.known)


def _records_at(reply: _Reply, asked: bytes, rtype: int) -> list[tuple[int, int, bytes]]:
    """The records of an answer at the owner that was asked for; a CNAME's data with its name in full."""
    found = []
    for owner, kind, ttl, start, end in reply.records:
        if owner == asked and kind in (rtype, CNAME):
            named = kind == CNAME
            data = read_name(reply.message, start, reply.known)[0] if named else reply.message[start:end]
            if len(data) != _SIZES.get(kind, len(data)):
                raise Malformed("an address has the wrong length")
            if kind == TXT:
                split_strings(data)
            found.append((kind, ttl, data))
    return found


class Session:
    """Asks one primary about one domain. One call at a time."""

    def __init__(self, server: tuple[str, int], domain: str, signer: Signer, key: str, timeout_s: float) -> None:
        """``key`` is the key's name, for messages."""
        host, port = server
        self.server = host if port == 53 else f"{host}:{port}"
        self._domain = domain
        self._apex = name_to_wire(domain)
        self._signer = signer
        self._key = key
        self._timeout_s = timeout_s
        self._link = Link(server, timeout_s)

    def close(self) -> None:
        """Let go of sockets."""
        self._link.close()

    async def serial(self) -> int:
        """The serial the server has now.

        It is asked over UDP. An answer that isn't a signed success is only taken as a reason to ask again over TCP:
        a forged datagram mustn't make us believe that our key is refused.
        """
        doing = f"SOA query of {self._domain}"
        try:
            return await self._serial(doing)
        except _Failed as failed:
            raise await self.complaint(failed.rcode, doing) from None

    async def complaint(self, rcode: int, doing: str, standing: Standing | None = None) -> PortError:
        """The exception for a response code that isn't success; asks what lies behind it, unless that is told."""
        found = standing if standing is not None else await self.standing(rcode)
        return bad_rcode(self.server, self._domain, rcode, doing, self._key, found)

    async def standing(self, rcode: int) -> Standing:
        """What the server thinks of our key and domain, where a response code may have to do with that.

        One signed SOA question, over TCP. PowerDNS answers NOTAUTH, unsigned, to a signature it doesn't take.
        """
        if rcode not in UNCLEAR:
            return Standing.UNKNOWN
        signed, mac = self._signer.sign(self._question(SOA))
        try:
            with self._explained("SOA query"):
                reply = _Reply(await self._ask_stream(signed, again=True), signed, Verifier(self._signer, mac))
        except PortError:
            return Standing.UNKNOWN
        answered = reply.head.rcode
        if answered == NOTAUTH and not reply.signed:
            return Standing.KEY_REFUSED
        if answered == NOERROR and reply.signed and self._has_soa(reply):
            return Standing.WELCOME
        return Standing.NO_DOMAIN if answered in (NOERROR, NXDOMAIN, REFUSED) else Standing.UNKNOWN

    async def _serial(self, doing: str) -> int:
        signed, mac = self._signer.sign(self._question(SOA))
        with self._explained(doing):
            message = await self._link.ask(signed)
            try:
                reply = _Reply(message, signed, Verifier(self._signer, mac))
                doubtful = reply.head.truncated or reply.head.rcode != NOERROR or not reply.signed
            except (Malformed, SignatureError, Unverified):
                doubtful = True
            if doubtful:
                message = await self._ask_stream(signed, again=True)
                reply = _Reply(message, signed, Verifier(self._signer, mac))
            self._check_success(reply, must_be_signed=True)
            if not self._has_soa(reply):
                raise Misconfigured(
                    f"{self.server} holds no domain {self._domain}",
                    where=doing,
                    hint="name under [dns] domains the domain exactly as its primary does, then  fencepost plan",
                )
            return soa_serial(message, reply.records[0], reply.known)

    async def transfer(self, mirror: Mirror, *, whole: bool) -> Transfer:
        """A complete and verified transfer, ready to be finished. ``whole`` asks for everything.

        Raises :class:`NotOffered` for an incremental one that can't be had or doesn't fit, else the ports' exceptions.
        """
        return await self.take(Transfer(mirror, whole=whole), -1 if whole else mirror.serial)

    async def take(self, transfer: Taken, since: int) -> Taken:
        """Feed a transfer until it is complete: what changed since a serial, or everything if that is -1.

        Raises :class:`NotOffered` for an incremental one that can't be had or doesn't fit, else the ports' exceptions.
        """
        whole = since < 0
        doing = f"{'AXFR' if whole else 'IXFR'} of {self._domain}"
        question = self._question(AXFR if whole else IXFR)
        if not whole:
            # RFC 1995 section 3: a SOA record with the serial we hold, in the authority section.
            data = b"\0\0" + since.to_bytes(4, "big") + bytes(16)
            record = b"\xc0\x0c\0\x06\0\x01\0\0\0\0" + len(data).to_bytes(2, "big") + data
            question = question[:8] + b"\0\x01" + question[10:] + record
        signed, mac = self._signer.sign(question)
        verifier = Verifier(self._signer, mac, several=True)
        try:
            with self._explained(doing):
                try:
                    async with asyncio.timeout(PATIENCE * self._timeout_s) as limit:
                        return await self._take(signed, verifier, transfer, doing)
                except BaseException as error:
                    self._link.drop()  # what may still come over this connection is unknown
                    if limit.expired():
                        raise no_answer(self.server, "its transfer goes on and on", doing) from None
                    if isinstance(error, Malformed) and not whole:
                        raise NotOffered from error
                    raise
        except _Failed as failed:
            raise await self.complaint(failed.rcode, doing) from None

    async def look_up(self, questions: Sequence[tuple[bytes, int]]) -> list[list[tuple[int, int, bytes]]] | None:
        """The records (type, TTL, data) at each (owner, type), by signed questions over TCP, some at a time in flight.

        A CNAME at the owner comes in place of what was asked. None if an answer isn't one with authority: below a
        delegation, say, the records can't be asked for. Raises the ports' exceptions.
        """
        found: list[list[tuple[int, int, bytes]]] = []
        with self._explained(f"queries of {self._domain}"):
            for at in range(0, len(questions), IN_FLIGHT):
                try:
                    answers = await self._look_up(questions[at : at + IN_FLIGHT])
                except BaseException:
                    self._link.drop()
                    raise
                if answers is None:
                    return None
                found += answers
        return found

    async def _look_up(self, questions: Sequence[tuple[bytes, int]]) -> list[list[tuple[int, int, bytes]]] | None:
        connection, _ = await self._link.connection()
        first = secrets.randbelow(65536 - len(questions))
        asked = []
        for at, (owner, rtype) in enumerate(questions):
            question = header(first + at, QUERY, (1, 0, 0, 0)) + owner + rtype.to_bytes(2, "big") + b"\0\x01"
            asked.append(self._signer.sign(question))
        found: list[list[tuple[int, int, bytes]] | None] = [None] * len(asked)
        async with asyncio.timeout(self._timeout_s):
            for signed, _mac in asked:
                await connection.send(signed)
            for _ in asked:
                message = await connection.receive()
                at = Head(message).id - first
                if not 0 <= at < len(asked) or found[at] is not None:
                    raise Malformed("it answers another question")
                signed, mac = asked[at]
                reply = _Reply(message, signed, Verifier(self._signer, mac))
                if not reply.signed:
                    raise Unverified("its answer is not signed")
                if not reply.head.authoritative or reply.head.rcode not in (NOERROR, NXDOMAIN):
                    self._link.drop()  # the other answers are still to come
                    return None
                found[at] = _records_at(reply, *questions[at])
        self._link.keep(connection)
        return [records for records in found if records is not None]

    async def update(self, message: bytes, doing: str) -> int:
        """Send an update, once; its response code. Raises ``Unavailable`` when the outcome is unknown."""
        (outcome,) = await self.updates([(message, doing)])
        if isinstance(outcome, PortError):
            raise outcome
        return outcome

    async def updates(self, messages: Iterable[tuple[bytes, str]]) -> list[int | PortError]:
        """Send updates with different ids, each once, several before the first is answered (RFC 7766 section 6.2.1.1).

        Each is taken, with what it does in words, when it is to be sent; none any more once the connection is lost.
        For each that was taken, answered in any order, its response code, or the exception: ``Unavailable`` for an
        unknown outcome.
        """
        found: list[int | PortError] = []
        taken: list[tuple[bytes, bytes, str]] = []
        answers: dict[bytes, bytes] = {}
        lost: PortError | None = None

        def due() -> Iterator[bytes]:
            for message, doing in messages:
                signed, mac = self._signer.sign(message)
                taken.append((signed, mac, doing))
                if len(signed) <= MESSAGE_MAX:
                    yield signed

        waiting = due()
        first = next(waiting, None)
        try:
            if first is not None:
                with self._explained(taken[-1][2]):
                    await self._link.exchange(chain((first,), waiting), answers)
        except PortError as error:
            lost = error
        for message, mac, told in taken:
            answer = answers.get(message[:2])
            try:
                if len(message) > MESSAGE_MAX:
                    size = f"the update takes {len(message):,} bytes; a message holds {MESSAGE_MAX:,}"
                    found.append(Refused(size, where=told))
                elif answer is None and lost is not None:
                    found.append(lost)
                else:
                    found.append(await self._updated(answer or b"", message, mac, told))
            except PortError as error:
                found.append(error)
        return found

    async def _updated(self, answer: bytes, signed: bytes, mac: bytes, doing: str) -> int:
        """The response code in an update's answer.

        An error needs no signature to be believed; success, and "changed", do.
        """
        with self._explained(doing):
            try:
                reply = _Reply(answer, signed, Verifier(self._signer, mac))
            except SignatureError as error:
                # Knot says BADKEY of a key that it knows too, if its access list gives that key no right to this.
                if error.error == "BADKEY" and await self.standing(NOTAUTH) is Standing.WELCOME:
                    return NOTAUTH
                raise
            if not reply.signed and (reply.head.rcode == NOERROR or reply.head.rcode in CHANGED):
                raise Unverified("its answer is not signed")
            return reply.head.rcode

    def _question(self, rtype: int) -> bytes:
        return header(secrets.randbelow(65536), QUERY, (1, 0, 0, 0)) + self._apex + rtype.to_bytes(2, "big") + b"\0\x01"

    def _has_soa(self, reply: _Reply) -> bool:
        return bool(reply.records) and reply.records[0][1] == SOA and reply.records[0][0] == self._apex

    @staticmethod
    def _check_success(reply: _Reply, *, must_be_signed: bool) -> None:
        """An error needs no signature to be believed; success does."""
        if reply.head.rcode != NOERROR:
            raise _Failed(reply.head.rcode)
        if must_be_signed and not reply.signed:
            raise Unverified("its answer is not signed")

    async def _ask_stream(self, signed: bytes, *, again: bool) -> bytes:
        """One message over TCP and its answer. ``again``: once more if a kept connection turns out to be closed."""
        connection, used = await self._link.connection()
        try:
            async with asyncio.timeout(self._timeout_s):
                await connection.send(signed)
                reply = await connection.receive()
        except (OSError, EOFError) as error:
            self._link.drop()
            if used and again and not isinstance(error, TimeoutError):
                return await self._ask_stream(signed, again=False)
            raise
        except BaseException:
            self._link.drop()
            raise
        self._link.keep(connection)
        return reply

    async def _take(self, signed: bytes, verifier: Verifier, transfer: Taken, doing: str) -> Taken:
        """Ask for a transfer and take its messages until it is complete."""
        message = await self._ask_stream(signed, again=True)
        connection, _ = await self._link.connection()
        first = True
        while True:
            reply = _Reply(message, signed, verifier, runs=True)
            incremental = doing.startswith("IXFR")
            if incremental and first and reply.head.rcode != NOERROR:
                raise NotOffered
            self._check_success(reply, must_be_signed=first)
            first = False
            if transfer.feed(message, reply.records, reply.known):
                break
            await asyncio.sleep(0)  # with a full buffer nothing below would wait, and nobody else had a turn
            async with asyncio.timeout(self._timeout_s):
                message = await connection.receive()
        if not reply.signed:
            raise Unverified("its last message is not signed")
        self._link.keep(connection)
        return transfer

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Turn what goes wrong on the way into the ports' exceptions."""
        try:
            yield
        except SignatureError as error:
            raise bad_signature(self.server, self._key, error.error, error.ahead_s, doing) from None
        except Unverified as error:
            raise no_answer(self.server, f"its answer can't be trusted: {error}", doing) from error
        except Malformed as error:
            raise no_answer(self.server, f"its answer makes no sense: {error}", doing) from error
        except OutOfStep:
            raise NotOffered from None
        except TimeoutError:
            raise no_answer(self.server, f"no answer within {self._timeout_s:g} s", doing) from None
        except EOFError:
            raise no_answer(self.server, "closed the connection in the middle", doing) from None
        except OSError as error:
            raise no_answer(self.server, network_words(error), doing) from error
