"""Master files (RFC 1035, section 5), and zones in general: the parser is dnspython's.

$INCLUDE and $GENERATE are followed, $ORIGIN and $TTL count. A file that has neither $ORIGIN nor absolute names doesn't
say which domain it is; then the person does.
"""

import io
import re
from itertools import count, islice
from pathlib import Path

import dns.exception
import dns.name
import dns.rdatatype
import dns.zone

from fencepost.importing.includes import whole_text
from fencepost.importing.records import ADDRESSES, POINTERS, Book
from fencepost.ports import Misconfigured

RECORDS_MOST = 1_000_000
"""Three times what a region is promised for; a line with $GENERATE, or a transfer, may have as many as it likes."""
_AT = re.compile(r"^(?P<file>.*?):(?P<line>\d+): (?P<what>.*)$", re.DOTALL)


def read(book: Book, path: Path, domain: str = "") -> None:
    """Read a master file into ``book``. Raises ``Misconfigured`` with file and line, ``OSError``."""
    origin = f"{domain}." if domain else None
    text = whole_text(path)
    try:
        zone = dns.zone.from_file(
            io.StringIO(text), origin, zone_factory=Bounded, filename=str(path), relativize=False, check_origin=False
        )
    except dns.zone.UnknownOrigin:
        hint = "say which:  --domain example.com"
        raise Misconfigured("no $ORIGIN says which domain it is", where=str(path), hint=hint) from None
    except dns.exception.DNSException as error:
        raise fault(error, path, text, origin) from None
    except ValueError as error:
        if isinstance(error, UnicodeDecodeError):
            what = f"a file that it includes is not UTF-8 (byte {error.start})"
            raise Misconfigured(what, where=str(path)) from None
        # BIND writes a domain that takes updates with "$ORIGIN ." ahead of its SOA record.
        said = "its SOA record stands at another name than its $ORIGIN or --domain says"
        hint = "say which domain it is:  --domain example.com"
        raise Misconfigured(said, where=str(path), hint=hint) from None
    of_zone(book, zone)


class Bounded(dns.zone.Zone):
    """A zone of so many records at most. Raises dnspython's ``SyntaxError``, which the parser gives a line."""

    def writer(self, replacement: bool = False) -> dns.zone.Transaction:
        """As dnspython has it, and counting."""
        made, counts = super().writer(replacement), count(1)

        def take(*_: object) -> None:
            if next(counts) > RECORDS_MOST:
                what = f"more than {RECORDS_MOST} records"
                raise dns.exception.SyntaxError(what)  # type: ignore[no-untyped-call]

        made.check_put_rdataset(take)
        return made


def fault(error: Exception, path: Path, text: str, origin: str | None) -> Misconfigured:
    """A parser's complaint, with where it stands."""
    said = str(error) or type(error).__name__
    found = _AT.match(said)
    what, where = (found["what"], f"{found['file']}:{found['line']}") if found else (said, str(path))
    if found and found["file"] == str(path) and not parses(text, origin, int(found["line"]) - 1):
        where = f"{path}:{int(found['line']) - 1}"
    return Misconfigured(f"can't be read: {what.rstrip('.')}", where=where, hint="as in RFC 1035, section 5")


def parses(text: str, origin: str | None, lines: int) -> bool:
    """Whether the first so many lines are right.

    The parser reads a record to its line's end before it looks at the values, and then names the next line.
    """
    if lines < 1:
        return True
    text = "".join(islice(io.StringIO(text), lines))
    try:
        dns.zone.from_text(text, origin, zone_factory=Bounded, relativize=False, check_origin=False, allow_include=True)
    except dns.zone.UnknownOrigin:  # so far nothing says which domain it is, which is no mistake
        return True
    except dns.exception.DNSException:
        return False
    return True


def of_zone(book: Book, zone: dns.zone.Zone) -> None:
    """Gather a zone's records. One without a SOA is still a domain if it has an origin. Raises ``Misconfigured``."""
    tops = [name for name, rdataset in zone.iterate_rdatasets() if rdataset.rdtype == dns.rdatatype.SOA]
    origin = tops[0] if tops else zone.origin
    if origin is None or origin == dns.name.root:
        raise Misconfigured("doesn't say which domain it is", hint="say which:  --domain example.com")
    try:
        book.domain(origin.to_text())
    except ValueError as error:
        raise Misconfigured(f"the domain {origin} {error}") from None
    for name, rdataset in zone.iterate_rdatasets():
        kind, owner = dns.rdatatype.to_text(rdataset.rdtype), name.derelativize(origin).to_text()
        if kind == "TXT":
            book.marker(owner)
        elif kind in ADDRESSES:
            book.add(owner, kind, rdataset.ttl, [rdata.address for rdata in rdataset])
        elif kind in POINTERS:
            book.add(owner, kind, rdataset.ttl, [rdata.to_text().split()[-1] for rdata in rdataset])
        else:
            book.add(owner, kind, rdataset.ttl, ())
