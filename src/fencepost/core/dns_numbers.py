"""DNS's numbers, and the strings of TXT data: what our server and our client both write and read.

Each reads messages in its own way, for its own reasons (the server keeps the case of names and trusts nobody's size;
the client takes a whole domain at a time), so that neither can hide a fault of the other. Only what the registries fix
is shared (IANA "Domain Name System (DNS) Parameters").
"""

HEADER_BYTES = 12
MESSAGE_MAX = 65_535
"""Bytes of one message over TCP, whose length is sent in two bytes (RFC 1035 section 4.2.2)."""
NAME_BYTES_MAX = 255
"""Bytes of one name, lengths and the root included (RFC 1035 section 3.1)."""

# RR types (IANA "Resource Record (RR) TYPEs").
A, NS, CNAME, SOA, PTR, MX, TXT, RP, AFSDB, RT, AAAA, SRV, KX = 1, 2, 5, 6, 12, 15, 16, 17, 18, 21, 28, 33, 36
DNAME, OPT, DS, RRSIG, NSEC, DNSKEY, NSEC3, NSEC3PARAM, TSIG, IXFR, AXFR, ANY, CAA = (
    39, 41, 43, 46, 47, 48, 50, 51, 250, 251, 252, 255, 257,
)  # fmt: skip

TTL_MAX = 2**31 - 1
"""Seconds; a TTL has 31 bits (RFC 2181 section 8)."""

# Classes, opcodes and response codes (RFC 1035, 1996, 2136, 6891).
IN, CLASS_NONE, CLASS_ANY = 1, 254, 255
QUERY, NOTIFY, UPDATE = 0, 4, 5
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, YXDOMAIN, YXRRSET, NXRRSET, NOTAUTH, NOTZONE = range(11)
BADVERS, BADSIG, BADKEY, BADTIME = 16, 16, 17, 18

RCODES = (
    "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED",
    "YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH", "NOTZONE",
)  # fmt: skip
"""Names of the response codes by number, for counters and people (RFC 1035 section 4.1.1, RFC 2136 section 2.2)."""


class Malformed(Exception):  # noqa: N818  a verdict on bytes from outside
    """The bytes are no DNS message, or not the part of one that was asked for."""


def split_strings(data: bytes) -> tuple[bytes, ...]:
    """The strings of TXT data, each of 0 to 255 bytes (RFC 1035 section 3.3.14). Raises :class:`Malformed`."""
    if data and data[0] == len(data) - 1:
        return (data[1:],)
    strings, at = [], 0
    while at < len(data):
        end = at + 1 + data[at]
        strings.append(data[at + 1 : end])
        at = end
    if at != len(data) or not strings:
        raise Malformed("TXT strings and their length differ")
    return tuple(strings)


def join_strings(strings: tuple[bytes, ...]) -> bytes:
    """TXT data of strings. Raises ``ValueError`` for one over 255 bytes."""
    return b"".join([bytes((len(string),)) + string for string in strings])
