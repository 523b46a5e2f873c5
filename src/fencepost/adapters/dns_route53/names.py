"""Names and texts as Route 53 writes them, brought to the core's one form at the edge, and back.

It lists names in lower case with a final dot, and any character but letters, digits, hyphen and underscore as a
backslash and three octal digits, so that a wildcard comes back as ``\\052.example.com.`` (Developer Guide, "DNS domain
name format"; external-dns #264). The same escapes are used within the quoted strings of a TXT value.
"""

import re
from functools import lru_cache

from fencepost.core.names import MARKER_LABEL, WILDCARD_LABEL, marker_name, normalise

_STRING = re.compile(r'\s*"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\([0-3][0-7]{2})|\\(.)", re.DOTALL)
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\')


def owner_of(name: str) -> str:
    """A normalised name as Route 53 lists it."""
    return (f"\\052{name[1:]}" if name.startswith("*") else name) + "."


def marker_owner_of(name: str) -> str:
    """The name of an endpoint's marker as Route 53 lists it."""
    return f"{marker_name(name)}."


@lru_cache(maxsize=1 << 16)
def endpoint_of(owner: str) -> tuple[str, bool] | None:
    """The endpoint that a listed name belongs to, and whether as its marker; None if we'd never publish such a name."""
    text, marks = owner, False
    first, _, rest = owner.partition(".")
    if first == MARKER_LABEL:
        text, marks = rest, True
        if rest.startswith((f"{MARKER_LABEL}.", "\\052.")):
            return None  # the marker of a marker, or a name with a star inside
        if rest.startswith(f"{WILDCARD_LABEL}."):
            text = f"*{rest[len(WILDCARD_LABEL) :]}"
    elif first == WILDCARD_LABEL:
        return None
    try:
        return normalise(text), marks
    except ValueError:
        return None


def listing_key(owner: str) -> str:
    """What a name is listed by: its labels reversed, each with a dot after it (API reference, ListResourceRecordSets).

    ``api-x`` therefore comes before ``api``, since a hyphen sorts before a dot, and an endpoint's marker follows its
    own records after those of other children that begin with a digit or a hyphen.
    """
    return ".".join(reversed(owner.removesuffix(".").split("."))) + "."


def quote(strings: tuple[bytes, ...]) -> str:
    """The TXT value of these strings."""
    return " ".join('"' + "".join(map(_escaped, string)) + '"' for string in strings)


def unquote(value: str) -> tuple[bytes, ...] | None:
    """The strings of a TXT value; None if it is none. ``"a""b"`` is two strings (DNSControl #2854)."""
    found, at = [], 0
    while match := _STRING.match(value, at):
        found.append(_unescape(match[1]))
        at = match.end()
    return tuple(found) if found and not value[at:].strip() else None


def _escaped(byte: int) -> str:
    if byte in _PLAIN:
        return chr(byte)
    return f"\\{chr(byte)}" if byte in b'"\\' else f"\\{byte:03o}"


def _unescape(text: str) -> bytes:
    if text.isascii() and "\\" not in text:
        return text.encode()
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 8)) if match[1] else match[2], text)
    return plain.encode("latin-1", "replace")
