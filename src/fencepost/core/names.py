"""Domain names in the one form everything here compares: lower case, no final dot, ASCII.

DNS compares names without regard to case (RFC 4343), people write them with or without the final dot, outside ASCII
(RFC 5891), and Route 53 hands a wildcard back as ``\\052.example.com`` (external-dns #264, #3028: two spellings of one
name never converge). So each name is brought to one form once, at the edge, and is a plain ``str`` from there on.

Only that one escape is read: the octal ``\\052`` of Route 53 would be the digit 4 by RFC 1035, section 5.1, where
escapes are decimal, so other escapes mean one thing here and another there.

What can't be brought to that form is refused with a reason. A reader of someone else's domain takes a name that is
refused here for a foreign one: we never publish such names, so it can't be ours.
"""

import re
from collections.abc import Iterable

LABEL_MAX = 63
"""Bytes in one label (RFC 1035, 2.3.4)."""

NAME_MAX = 253
"""Characters of a name without its final dot; on the wire that is 255 bytes, lengths and the root counted (RFC 1035,
2.3.4)."""

MARKER_LABEL = "_fencepost"
"""First label of the record that says who owns an endpoint and which generation is live."""

WILDCARD_LABEL = "_wildcard"
"""Stands for ``*`` in a marker's name. ``_fencepost.*.x`` would be no wildcard but a name with a star inside (RFC 4592,
2.1.1), which some providers refuse, and ``*.x`` would not answer for it either way."""

# One label: letters, digits, hyphen, underscore. The wildcard may only be the whole first label (RFC 4592).
_LABEL = r"[a-z0-9_-]{1,63}"
_PLAIN = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_DOTS = re.compile("[.。．｡]")


def normalise(name: str) -> str:
    """Give the one form of a name: lower case, no final dot, IDNA encoded, ``\\052`` read as ``*``.

    Takes 0.7 µs for a name that is plain ASCII already, since whole domains of 100,000 names pass through here.

    Raises ValueError, whose text is the reason, for what is no usable name.
    """
    if name.isascii():
        plain = name.lower().removesuffix(".")
        if len(plain) <= NAME_MAX and _PLAIN.fullmatch(plain):
            return plain
    return _normalise_slowly(name)


def marker_name(name: str) -> str:
    """Give the name of an endpoint's marker: ``_fencepost.`` before it, or ``_fencepost._wildcard.x`` for ``*.x``.

    ``name`` is normalised. Raises ValueError if the marker's name would be too long (external-dns #3757), or if the
    name is one that markers themselves use.
    """
    first = name.partition(".")[0]
    if first in (MARKER_LABEL, WILDCARD_LABEL):
        raise ValueError(f'begins with "{first}", which is kept for markers')
    rest = f"{WILDCARD_LABEL}{name[1:]}" if first == "*" else name
    marker = f"{MARKER_LABEL}.{rest}"
    if len(marker) > NAME_MAX:
        most = NAME_MAX - (len(marker) - len(name))
        raise ValueError(f"is {len(name)} characters long, and its marker {marker[:24]}… would not fit: at most {most}")
    return marker


def in_domain(name: str, domain: str) -> bool:
    """Say whether a name is the domain itself or below it; both normalised."""
    return name == domain or name.endswith("." + domain)


def longest_domain(name: str, domains: Iterable[str]) -> str | None:
    """Give the longest of the domains that a name lies in, or None; all normalised. The longest is the one
    delegated."""
    known = domains if isinstance(domains, (set, frozenset, dict)) else frozenset(domains)
    rest = name
    while True:
        if rest in known:
            return rest
        dot = rest.find(".")
        if dot < 0:
            return None
        rest = rest[dot + 1 :]


def _normalise_slowly(name: str) -> str:
    """Read what isn't plain: wildcards as Route 53 writes them, other scripts; and find reasons for bad names."""
    if len(name) > 4 * NAME_MAX:
        raise ValueError(f"is {len(name)} characters long; a name has at most {NAME_MAX}")
    labels = _DOTS.split(name)
    if len(labels) > 1 and labels[-1] == "":
        labels.pop()
    if labels == [""]:
        raise ValueError("is empty")
    plain = ".".join([_label(label, first=index == 0 and len(labels) > 1) for index, label in enumerate(labels)])
    if len(plain) > NAME_MAX:
        raise ValueError(f"is {len(plain)} characters long; a name has at most {NAME_MAX}")
    return plain


def _label(label: str, *, first: bool) -> str:
    if label == "":
        raise ValueError("has an empty label (two dots together, or one at the start)")
    if label in ("*", r"\052"):
        if not first:
            raise ValueError("has a wildcard that is not the first label before a domain")
        return "*"
    text = label.lower() if label.isascii() else _ace(label)
    if not text:
        raise ValueError("has a label that nothing is left of: IDNA maps it away")
    if len(text) > LABEL_MAX:
        raise ValueError(f"has a label of {len(text)} bytes; a label has at most {LABEL_MAX}")
    if not re.fullmatch(_LABEL, text):
        bad = next((c for c in text if not re.fullmatch(_LABEL, c)), text)
        raise ValueError(f"has the character {bad!a}; letters, digits, hyphen and underscore are usable")
    return text


def _ace(label: str) -> str:
    """Encode one label outside ASCII (IDNA 2008, mapped as browsers do by UTS 46)."""
    import idna  # here, because its tables take 20 ms to load and few regions need them

    try:
        mapped = idna.uts46_remap(label)
        return mapped if mapped.isascii() else idna.alabel(mapped).decode("ascii")
    except (idna.IDNAError, UnicodeError, IndexError) as error:
        raise ValueError(f"has a label that IDNA refuses ({str(error)[:120]})") from error
