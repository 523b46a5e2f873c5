"""Zone transfers: the whole domain (RFC 5936) or what changed since a serial (RFC 1995), as a stream of messages.

The messages come from one version: a snapshot of immutable names for the whole, journal entries for the changes.
They are made one at a time, as the connection takes them, so that a transfer of 300,000 records neither stalls the
answers nor piles up in memory. Each message repeats the question, so that owner names can point at it.
"""

from collections.abc import Iterable, Iterator

from fencepost.core.dns_numbers import HEADER_BYTES, SOA, Malformed

from .contents import Contents, record_head, record_wire
from .request import Request, opt_record
from .signatures import SIGNATURE_BYTES_MAX
from .wire import read_record

MESSAGE_BYTES = 32_768
"""Records of one message; a longer one would hold up other answers for more than a millisecond or two."""


def whole(contents: Contents) -> Iterator[bytes]:
    """Every record of a domain, the SOA first and last (RFC 5936 section 2.2); a change meanwhile isn't seen."""
    apex, soa = contents.apex, contents.soa
    nodes = contents.snapshot()
    first = record_wire(apex, apex, soa, soa.rdatas[0])

    def records() -> Iterator[bytes]:
        yield first
        for owner, node in nodes:
            for found in node:
                if found.rtype != SOA:
                    head = record_head(owner, apex, found)
                    for rdata in found.rdatas:
                        yield b"%b%b%b" % (head, len(rdata).to_bytes(2, "big"), rdata)
        yield first

    return records()


def since(soa: bytes, changes: Iterable[tuple[tuple[bytes, ...], tuple[bytes, ...]]]) -> Iterator[bytes]:
    """What changed, oldest first, between two copies of the newest SOA record (RFC 1995 section 4)."""
    yield soa
    for removed, added in changes:
        yield from removed
        yield from added
    yield soa


def messages(request: Request, records: Iterable[bytes], size: int = MESSAGE_BYTES) -> Iterator[bytes]:
    """The records packed into messages of about ``size`` bytes, never past 64 KiB with a signature; none is split."""
    question = request.message[HEADER_BYTES : request.end]
    opt = opt_record(request.edns)
    room = 65_535 - HEADER_BYTES - len(question) - len(opt) - SIGNATURE_BYTES_MAX
    batch: list[bytes] = []
    used = 0
    for record in records:
        if batch and (used >= size or used + len(record) > room):
            yield _message(request, question, batch, opt)
            batch, used = [], 0
        batch.append(record)
        used += len(record)
    yield _message(request, question, batch, opt)


def _message(request: Request, question: bytes, records: list[bytes], opt: bytes) -> bytes:
    return b"%b%c\0\0\x01%b\0\0%b%b%b%b" % (
        request.message[:2],
        0x84 | request.message[2] & 1,
        len(records).to_bytes(2, "big"),
        b"\0\x01" if opt else b"\0\0",
        question,
        b"".join(records),
        opt,
    )


def client_serial(request: Request) -> int:
    """The serial an IXFR request says it has, from the SOA in its authority section (RFC 1995 section 3).

    Raises :class:`Malformed`.
    """
    if request.counts[:2] != (0, 1):
        raise Malformed("an IXFR request has one SOA in its authority section")
    record, _ = read_record(request.message, request.starts[0], {})
    if record.rtype != SOA or record.size < 22:
        raise Malformed("an IXFR request has one SOA in its authority section")
    return int.from_bytes(request.message[record.at + record.size - 20 :][:4], "big")
