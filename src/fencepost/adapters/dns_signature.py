"""TSIG on messages that are bytes (RFC 8945): this module finds and places the record and verifies what is as usual,
our key, no error, the time right; dnspython has the algorithms, and says what is the matter with whatever is odd.

A signature covers the message's bytes as sent, so nothing needs to be parsed to be verified, except where the TSIG
record starts: it is the last of the additional section. In a transfer the first and the last message must be signed,
and no more than 99 in a row may lack one (section 5.3.1); each signature also covers the unsigned messages before it.
What a transfer brought is used only after its last signature was found good.

An error about our signature comes back unsigned (the server couldn't sign what it can't verify), so anybody could have
sent it; it is believed, since all that it can do is to make us complain. An unsigned message never counts as success.
"""

import base64
import time
from typing import Any, TypeAlias

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rdtypes.ANY.TSIG
import dns.tsig

from fencepost.adapters.dns_wire import Head, read_records
from fencepost.core.dns_numbers import TSIG, Malformed

FUDGE_S = 300
UNSIGNED_MAX = 99
SIGNATURE_BYTES_MAX = 400
"""Room to keep for a signature: two names of up to 255 bytes are unheard of; key names of 128 bytes fit."""

TSIG_ERRORS = {16: "BADSIG", 17: "BADKEY", 18: "BADTIME", 22: "BADTRUNC"}
"""Names of the errors in a TSIG record (RFC 8945 section 3)."""


_Verified: TypeAlias = tuple[object, bytes]


def now_s() -> int:
    """Seconds since 1970: signatures hold for five minutes around it (RFC 8945 section 5.2.3)."""
    return int(time.time())


class SignatureError(Exception):
    """A server's word on our signature (``BADSIG``, ``BADKEY``, ``BADTIME``, ``BADTRUNC``).

    ``ahead_s`` is by how many seconds our clock is ahead of the server's (negative: behind), where BADTIME tells.
    """

    def __init__(self, error: str, ahead_s: int | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.ahead_s = ahead_s


class Unverified(Exception):  # noqa: N818  a verdict on bytes from outside
    """A message's signature is missing or wrong: it is not from the server that shares our key."""


class Signer:
    """One key: signs requests and verifies what answers them."""

    def __init__(self, name: str, algorithm: str, secret: str) -> None:
        """``secret`` is base64. Raises ``ValueError`` for an unknown algorithm or a secret that isn't base64."""
        raw = base64.b64decode(secret, validate=True)
        self._key = dns.tsig.Key(dns.name.from_text(name), raw, dns.name.from_text(algorithm))
        if self._key.algorithm not in dns.tsig.mac_sizes or self._key.algorithm == dns.tsig.GSS_TSIG:
            raise ValueError(f"unknown TSIG algorithm {algorithm}")
        # RFC 8945 section 4.2: the record up to its data; section 4.3.3: what is digested beside message and times.
        self._head = (self._key.name.to_wire() or b"") + b"\x00\xfa\x00\xff\x00\x00\x00\x00"
        self._algorithm = self._key.algorithm.to_wire() or b""
        self._digested = self._key.name.to_digestable() + b"\x00\xff\x00\x00\x00\x00"
        self._digested += self._key.algorithm.to_digestable()

    def sign(self, message: bytes, *, request_mac: bytes = b"") -> tuple[bytes, bytes]:
        """The message with its TSIG record, and the signature that its answer's signature will cover.

        ``request_mac`` is the request's, when an answer is signed.
        """
        times = now_s().to_bytes(6, "big") + FUDGE_S.to_bytes(2, "big")
        context = self._begun(request_mac)
        context.update(message)
        context.update(self._digested + times + b"\x00\x00\x00\x00")
        mac: bytes = context.sign()
        data = self._algorithm + times + len(mac).to_bytes(2, "big") + mac + message[:2] + b"\x00\x00\x00\x00"
        count = (int.from_bytes(message[10:12], "big") + 1).to_bytes(2, "big")
        return message[:10] + count + message[12:] + self._head + len(data).to_bytes(2, "big") + data, mac

    def validate(self, message: bytes, start: int, mac: bytes, context: object, *, several: bool) -> _Verified:
        """Verify the TSIG record at ``start``; the context that the next message of a stream continues, and its MAC.

        Raises :class:`SignatureError` or :class:`Unverified`.
        """
        found = self._usual(message, start)
        try:
            if found is not None:
                return self._verified(message, start, mac, context if several else None, found, several=several)
            owner, used = dns.name.from_wire(message, start)
            data = start + used + 10
            rdata = dns.rdata.from_wire(dns.rdataclass.ANY, dns.rdatatype.TSIG, message, data, len(message) - data)
            if not isinstance(rdata, dns.rdtypes.ANY.TSIG.TSIG):
                raise Unverified("its signature can't be read")
            if rdata.error:
                raise SignatureError(TSIG_ERRORS.get(rdata.error, f"error {rdata.error}"), _ahead(rdata))
            now = now_s()
            context = dns.tsig.validate(  # type: ignore[no-untyped-call]
                message, self._key, owner, rdata, now, mac, start, context, several
            )
        except (dns.exception.DNSException, ValueError) as error:
            raise Unverified(f"its signature doesn't verify ({type(error).__name__})") from error
        return context, rdata.mac

    def _usual(self, message: bytes, start: int) -> tuple[bytes, bytes, bytes] | None:
        """Time with fudge, MAC and original id of a TSIG record by our key, without an error, made about now.

        None for any other: dnspython is to say what is the matter with it. One that isn't counted among the additional
        records (section 5.1 wants it there) is such another.
        """
        at = start + len(self._head) + 2
        times = at + len(self._algorithm)
        if message[start : at - 2] != self._head or message[at:times] != self._algorithm:
            return None
        size = int.from_bytes(message[times + 8 : times + 10], "big")
        end = times + 10 + size
        if (
            end + 6 != len(message)
            or int.from_bytes(message[at - 2 : at], "big") != end + 6 - at
            or message[end + 2 :] != b"\x00\x00\x00\x00"
            or message[10:12] == b"\x00\x00"
        ):
            return None
        ahead = now_s() - int.from_bytes(message[times : times + 6], "big")
        if abs(ahead) > int.from_bytes(message[times + 6 : times + 8], "big"):
            return None
        return message[times : times + 8], message[times + 10 : end], message[end : end + 2]

    def _verified(
        self, message: bytes, start: int, mac: bytes, context: Any, found: tuple[bytes, bytes, bytes], *, several: bool
    ) -> _Verified:
        """:meth:`validate` for a usual record. Raises ``dns.tsig.BadSignature``."""
        times, signature, original = found
        first = context is None
        if first:
            context = self._begun(mac)
        count = (int.from_bytes(message[10:12], "big") - 1).to_bytes(2, "big")
        context.update(original + message[2:10] + count)
        context.update(memoryview(message)[12:start])
        context.update(self._digested + times + b"\x00\x00\x00\x00" if first else times)
        context.verify(signature)
        return self._begun(signature) if several else None, signature

    def _begun(self, mac: bytes) -> Any:
        """A digest that begins with the signature before, if there is one (RFC 8945 section 4.3.1)."""
        context = dns.tsig.get_context(self._key)  # type: ignore[no-untyped-call]
        if mac:
            context.update(len(mac).to_bytes(2, "big") + mac)
        return context


def _ahead(rdata: dns.rdtypes.ANY.TSIG.TSIG) -> int | None:
    """By how much our clock is ahead, in seconds: BADTIME's answer holds our time and the server's, in 48 bits each.

    The server's stands in "other data" (RFC 8945 section 5.2.3).
    """
    if TSIG_ERRORS.get(rdata.error) != "BADTIME" or len(rdata.other) != 6:
        return None
    return int(rdata.time_signed) - int.from_bytes(rdata.other, "big")


class Verifier:
    """Verifies the messages that answer one signed request, in order."""

    def __init__(self, signer: Signer, mac: bytes, *, several: bool = False) -> None:
        self._signer = signer
        self.mac = mac
        """The signature that the next message's will cover: the request's, then that of the last signed message."""
        self._several = several
        self._context: object = None
        self._unsigned = 0

    def check(self, message: bytes, head: Head, at: int, known: dict[int, bytes]) -> bool:
        """Whether this message is signed, and well. ``at`` is where its answer section ends.

        Raises :class:`SignatureError`, :class:`Unverified` or :class:`~fencepost.adapters.dns_wire.Malformed`.
        """
        rest = head.counts[2] + head.counts[3]
        if rest:
            _, at = read_records(message, at, rest - 1, known)
            (record,), end = read_records(message, at, 1, known)
            if record[1] == TSIG:
                if end != len(message):
                    raise Malformed("bytes follow the signature")
                self._context, self.mac = self._signer.validate(
                    message, at, self.mac, self._context, several=self._several
                )
                self._unsigned = 0
                return True
        if self._context is not None:
            self._unsigned += 1
            if self._unsigned > UNSIGNED_MAX:
                raise Unverified(f"more than {UNSIGNED_MAX} messages in a row are unsigned")
            self._context.update(message)  # type: ignore[attr-defined]  # dnspython's HMAC context
        return False
