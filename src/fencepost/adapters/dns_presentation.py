"""Names and data as text, as zone files and providers' APIs write them, and as on the wire (RFC 1035 section 5.1)."""

import re
from socket import AF_INET, AF_INET6, inet_pton

from fencepost.core.dns_numbers import join_strings

_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"|([^\s"]+)', re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:([0-9]{3})|(.))", re.DOTALL)
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\')


def quoted(strings: tuple[bytes, ...]) -> str:
    """The strings of one TXT record, each in quotes."""
    return " ".join('"' + "".join(chr(byte) if byte in _PLAIN else _escaped(byte) for byte in s) + '"' for s in strings)


def unquoted(text: str) -> bytes:
    """TXT data from text in quotes (words without quotes are taken too). Raises ``ValueError`` for what is none."""
    found = []
    for match in _STRING.finditer(text.encode()):
        inner = match[2] if match[1] is None else match[1]
        found.append(_ESCAPE.sub(_unescaped, inner))
    return join_strings(tuple(found))


def packed(rtype: str, text: str) -> bytes:
    """The data of one A, AAAA or TXT record; of other types only what tells two apart. Raises ``ValueError``."""
    if rtype in ("A", "AAAA"):
        try:
            return inet_pton(AF_INET if rtype == "A" else AF_INET6, text)
        except OSError:
            raise ValueError(f"{text!r} is no address of type {rtype}") from None
    return unquoted(text) if rtype == "TXT" else text.encode()


def wire_name(text: str) -> bytes:
    """A name on the wire. One with escapes, or that no message could carry, comes out as one that is nobody's."""
    labels = [label.encode() for label in text.removesuffix(".").split(".")]
    return b"".join(bytes((min(len(label), 255),)) + label for label in labels) + b"\0"


def _escaped(byte: int) -> str:
    return f"\\{chr(byte)}" if byte in b'"\\' else f"\\{byte:03}"


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes((int(match[1]),)) if match[1] is not None else match[2]
