"""Names that a record may use, from words that weren't made for it: "web, zone b" to "web-zone-b"."""

import re
from collections.abc import Iterable

MOST = 100

_OTHER = re.compile(r"[^a-z0-9.]+")


def slug(words: str) -> str:
    """Small letters, digits and dots, hyphens for all else, at most a hundred; "x" if nothing is left."""
    return _OTHER.sub("-", words.lower()).strip("-.")[:MOST].strip("-.") or "x"


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Each once, in the order they come."""
    return tuple(dict.fromkeys(names))
