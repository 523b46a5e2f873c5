"""Transaction signatures (RFC 8945): requests checked and replies signed, the arithmetic left to dnspython.

A request with an unknown key is answered NOTAUTH with the error BADKEY, a wrong signature with BADSIG, both unsigned; a
clock too far off with BADTIME, signed, our own time in the other data, so that the client can see by how much.
"""

import base64
import binascii
from collections.abc import Mapping

import dns.exception
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tsig
from dns.rdtypes.ANY.TSIG import TSIG as SignatureData  # noqa: N811  it is a class, named like the type
from msgspec import Struct

from fencepost.core.dns_numbers import BADKEY, BADSIG, BADTIME, NOTAUTH, Malformed
from fencepost.ports import Misconfigured

from .request import Request, respond
from .wire import read_name

FUDGE_S = 300
"""Seconds that clocks may differ (RFC 8945 section 10)."""

SIGNATURE_BYTES_MAX = 255 + 10 + 255 + 16 + 64 + 6
"""Room that a signature may take in a reply: two names, the fixed fields, the longest digest, the other data."""

ALGORITHMS = ("hmac-sha256", "hmac-sha384", "hmac-sha512", "hmac-sha224", "hmac-sha1")


class Signer(Struct):
    """Signs the replies to one request; with ``whole`` false after the first, as the messages of one transfer."""

    key: dns.tsig.Key
    request_mac: bytes
    original_id: int
    context: object = None

    @property
    def size(self) -> int:
        """Bytes that a signature takes in a reply: owner, fixed fields, algorithm, times and numbers, the digest."""
        return len(_wire(self.key.name)) + 10 + len(_wire(self.key.algorithm)) + 16 + len(self.request_mac)

    def sign(self, reply: bytes, now_s: int, *, error: int = 0, other: bytes = b"", several: bool = False) -> bytes:
        """The reply with its signature as the last record."""
        blank = SignatureData(  # type: ignore[no-untyped-call]
            dns.rdataclass.ANY,
            dns.rdatatype.TSIG,
            self.key.algorithm,
            now_s,
            FUDGE_S,
            b"",
            self.original_id,
            error,
            other,
        )
        mac = b"" if self.context is not None else self.request_mac
        data, self.context = dns.tsig.sign(  # type: ignore[no-untyped-call]
            reply, self.key, blank, now_s, mac, self.context, several
        )
        return append(reply, self.key.name, data)


class Keys:
    """The keys that are known. Raises Misconfigured for an unknown algorithm or a secret that isn't base64."""

    def __init__(self, keys: Mapping[str, tuple[str, str]]) -> None:
        self._keys: dict[dns.name.Name, dns.tsig.Key] = {}
        for name, (algorithm, secret) in keys.items():
            if algorithm.lower().rstrip(".") not in ALGORITHMS:
                raise Misconfigured(
                    f"unknown TSIG algorithm {algorithm!r}",
                    where=f"key {name}",
                    hint=f"use one of {', '.join(ALGORITHMS)}",
                )
            try:
                plain = base64.b64decode(secret, validate=True)
            except (binascii.Error, ValueError):
                plain = b""
            if not plain:
                raise Misconfigured(
                    "the TSIG secret is empty or isn't base64",
                    where=f"key {name}",
                    hint="write it as tsig-keygen prints it",
                )
            key = dns.tsig.Key(dns.name.from_text(name.lower()), plain, dns.name.from_text(algorithm.lower()))
            self._keys[key.name] = key

    def check(self, request: Request, now_s: int) -> "Signer | Refusal":
        """Check a request's signature: who signs the reply, or the reply that refuses it. Raises :class:`Malformed`."""
        owner, data = _read(request)
        key = self._keys.get(owner)
        if key is None or key.algorithm != data.algorithm:
            return _refuse_unsigned(request, owner, data, BADKEY, "BADKEY")
        signer = Signer(key, data.mac, data.original_id)
        try:
            dns.tsig.validate(  # type: ignore[no-untyped-call]
                request.message, key, owner, data, now_s, b"", request.signature
            )
        except dns.tsig.BadTime:
            reply = respond(request, NOTAUTH)
            ours = now_s.to_bytes(6, "big")
            return Refusal(signer.sign(reply, data.time_signed, error=BADTIME, other=ours), "BADTIME")
        except dns.exception.DNSException:
            return _refuse_unsigned(request, owner, data, BADSIG, "BADSIG")
        return signer


class Refusal(Struct, frozen=True, gc=False):
    """The finished reply to a request whose signature didn't hold, and the error's name."""

    reply: bytes
    error: str


def append(reply: bytes, owner: dns.name.Name, data: SignatureData) -> bytes:
    """A message with a TSIG record put last and counted."""
    wire, name = data.to_wire(), _wire(owner)
    assert wire is not None  # only None when writing to a file  # noqa: S101
    additional = int.from_bytes(reply[10:12], "big") + 1
    return b"%b%b%b%b\0\xfa\0\xff\0\0\0\0%b%b" % (
        reply[:10],
        additional.to_bytes(2, "big"),
        reply[12:],
        name,
        len(wire).to_bytes(2, "big"),
        wire,
    )


def _wire(name: dns.name.Name) -> bytes:
    wire = name.to_wire()
    assert wire is not None  # only None when writing to a file  # noqa: S101
    return wire


def _read(request: Request) -> tuple[dns.name.Name, SignatureData]:
    """The signature record's owner (lower case) and data."""
    message = request.message
    owner, fixed = read_name(message, request.signature, {})
    size = int.from_bytes(message[fixed + 8 : fixed + 10], "big")
    if message[fixed + 2 : fixed + 8] != b"\0\xff\0\0\0\0":
        raise Malformed("a signature of the wrong class or TTL")
    try:
        name, _ = dns.name.from_wire(owner.lower(), 0)
        data = dns.rdata.from_wire(dns.rdataclass.ANY, dns.rdatatype.TSIG, message, fixed + 10, size)
    except (dns.exception.DNSException, ValueError) as error:
        raise Malformed("a signature that can't be read") from error
    assert isinstance(data, SignatureData)  # what dnspython makes of this type  # noqa: S101
    return name, data


def _refuse_unsigned(request: Request, owner: dns.name.Name, data: SignatureData, error: int, name: str) -> Refusal:
    """NOTAUTH with the error in a signature record whose MAC is empty (RFC 8945 section 5.3.2)."""
    empty = SignatureData(  # type: ignore[no-untyped-call]
        dns.rdataclass.ANY,
        dns.rdatatype.TSIG,
        data.algorithm,
        data.time_signed,
        data.fudge,
        b"",
        data.original_id,
        dns.rcode.Rcode.make(error),
        b"",
    )
    return Refusal(append(respond(request, NOTAUTH), owner, empty), name)
