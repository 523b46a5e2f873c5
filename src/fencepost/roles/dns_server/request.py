"""One request, as far as every kind of request needs it: header, question, where the sections are, EDNS, signature.

Sections are skipped over, not read: an update's records are looked at only after its signature held, so that a
stranger's 64 KiB costs one cheap walk.
"""

from msgspec import Struct

from fencepost.core.dns_numbers import BADVERS, HEADER_BYTES, NAME_BYTES_MAX, OPT, TSIG, Malformed

from .wire import skip_name, skip_record

UDP_SIZE = 1_232
"""Largest answer over UDP, whatever the client offers: what crosses every path unfragmented (DNS flag day 2020)."""

UDP_SIZE_PLAIN = 512
"""Without EDNS (RFC 1035 section 2.3.4)."""


class Edns(Struct, frozen=True, gc=False):
    """What the OPT record says (RFC 6891): the client's size in bytes, version, the DO bit to be echoed (RFC 3225)."""

    size: int
    version: int
    wants_dnssec: bool


class Request(Struct, frozen=True, gc=False):
    """One message that is a request. ``name`` is lower case; ``end`` is the offset after the question.

    ``records`` has the offset of each further record's start, then the end; the ``counts`` are those of the three
    sections after the question. ``signature`` is the offset of the TSIG record, which is always the last, or 0.
    """

    message: bytes
    opcode: int
    name: bytes
    rtype: int
    rclass: int
    end: int
    counts: tuple[int, int, int]
    starts: tuple[int, ...]
    edns: Edns | None
    signature: int
    tcp: bool
    source: str

    @property
    def limit(self) -> int:
        """How many bytes an answer may have."""
        if self.tcp:
            return 65_535
        return UDP_SIZE_PLAIN if self.edns is None else max(UDP_SIZE_PLAIN, min(self.edns.size, UDP_SIZE))


def read_request(message: bytes, *, tcp: bool, source: str) -> Request:
    """Take a message apart. ``message`` has at least a header, and is no reply.

    Raises :class:`Malformed`, also for one question too few or too many and for bytes left over.
    """
    if message[4] or message[5] != 1:
        raise Malformed("not one question")
    after_name = skip_name(message, HEADER_BYTES, whole=True)
    if after_name - HEADER_BYTES > NAME_BYTES_MAX:
        raise Malformed("the question's name is too long")
    end = after_name + 4
    if end > len(message):
        raise Malformed("question cut short")
    counts = (
        message[6] << 8 | message[7],
        message[8] << 8 | message[9],
        message[10] << 8 | message[11],
    )
    starts, edns, signature = _walk(message, end, counts)
    return Request(
        message,
        message[2] >> 3 & 0xF,
        message[HEADER_BYTES:after_name].lower(),
        message[after_name] << 8 | message[after_name + 1],
        message[after_name + 2] << 8 | message[after_name + 3],
        end,
        counts,
        starts,
        edns,
        signature,
        tcp,
        source,
    )


def _walk(message: bytes, at: int, counts: tuple[int, int, int]) -> tuple[tuple[int, ...], Edns | None, int]:
    """Start offsets of all records and the end; the OPT and the TSIG, which may stand in the last section only."""
    total, first_additional = sum(counts), counts[0] + counts[1]
    starts = [at]
    edns, signature = None, 0
    for index in range(total):
        rtype, fixed, end = skip_record(message, at)
        if rtype == OPT:
            if index < first_additional or edns is not None or message[at]:
                raise Malformed("OPT out of place")
            size, version, flags = message[fixed + 2 : fixed + 4], message[fixed + 5], message[fixed + 6]
            edns = Edns(int.from_bytes(size, "big"), version, bool(flags & 0x80))
        elif rtype == TSIG:
            if index < first_additional or index != total - 1:
                raise Malformed("TSIG out of place")
            signature = at
        at = end
        starts.append(at)
    if at != len(message):
        raise Malformed("bytes left over")
    return tuple(starts), edns, signature


def opt_record(edns: Edns | None, rcode: int = 0) -> bytes:
    """Our OPT record for the answer, if the request had one."""
    if edns is None:
        return b""
    return b"\0\0\x29%b%b\0%b\0\0\0" % (
        UDP_SIZE.to_bytes(2, "big"),
        (rcode >> 4).to_bytes(1, "big"),
        b"\x80" if edns.wants_dnssec else b"\0",
    )


def respond(
    request: Request,
    rcode: int,
    body: bytes = b"",
    counts: tuple[int, int, int] = (0, 0, 0),
    *,
    authoritative: bool = False,
    truncated: bool = False,
) -> bytes:
    """A whole answer with the request's id, question and RD bit, our OPT if it had one; ``body`` is all sections."""
    message = request.message
    opt = opt_record(request.edns, rcode)
    return b"%b%c%c\0\x01%b%b%b%b%b%b" % (
        message[:2],
        0x80 | message[2] & 0x79 | (4 if authoritative else 0) | (2 if truncated else 0),
        rcode & 0xF,
        counts[0].to_bytes(2, "big"),
        counts[1].to_bytes(2, "big"),
        (counts[2] + bool(opt)).to_bytes(2, "big"),
        message[HEADER_BYTES : request.end],
        body,
        opt,
    )


def respond_bare(message: bytes, rcode: int) -> bytes:
    """A header only, for a message that can't be taken apart: never longer than what came."""
    return b"%b%c%c\0\0\0\0\0\0\0\0" % (message[:2], 0x80 | message[2] & 0x79, rcode & 0xF)


def wrong_version(request: Request) -> bytes | None:
    """The BADVERS answer to an EDNS version we don't know (RFC 6891 section 6.1.3)."""
    if request.edns is None or request.edns.version == 0:
        return None
    return respond(request, BADVERS)
