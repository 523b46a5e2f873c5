"""A person's standing words about targets, zones and pools, as they lie in the store, and which pools they speak of."""

from collections.abc import Iterable, Iterator

import msgspec

from fencepost.core.instant import Instant
from fencepost.core.traffic.membership import Override, OverrideKind


class StoredOverride(msgspec.Struct, frozen=True):
    """``what`` on ``pool`` (every pool if empty), there on ``target`` or ``zone`` (the whole pool if both are empty).

    ``until`` is nanoseconds since 1970, 0 until a person resumes it; ``by`` and ``reason`` are for people.
    """

    id: str
    what: OverrideKind
    pool: str = ""
    target: str = ""
    zone: str = ""
    by: str = ""
    reason: str = ""
    until: Instant = 0
    placed_at: Instant = 0

    @property
    def on(self) -> str:
        """What it speaks of, in a word or two."""
        return (
            self.target
            or (f"zone {self.zone}" if self.zone else "")
            or (f"pool {self.pool}" if self.pool else "the region")
        )


def encode(override: StoredOverride) -> bytes:
    """As it stands in the store."""
    return msgspec.json.encode(override)


def decode(body: bytes) -> StoredOverride:
    """What :func:`encode` wrote."""
    return msgspec.json.decode(body, type=StoredOverride)


def of_pool(pool: str, bodies: Iterable[bytes]) -> Iterator[Override]:
    """The overrides that speak of a pool, as its load balancer takes them; expired ones may be among them."""
    for body in bodies:
        word = decode(body)
        if word.pool in ("", pool):
            yield Override(word.what, word.target, word.zone, word.by, word.reason, word.until)
