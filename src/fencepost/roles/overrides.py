"""A person's standing words about targets, zones and pools, as they lie in the store, and which pools they speak of."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from fencepost.core.instant import Instant
from fencepost.core.traffic.membership import Override, OverrideKind
from fencepost.ports import Misconfigured
from fencepost.roles.bodies import read_body


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
        if self.zone and not self.target:
            return f"zone {self.zone}{f' in pool {self.pool}' if self.pool else ''}"
        return self.target or (f"pool {self.pool}" if self.pool else "the region")


def encode(override: StoredOverride) -> bytes:
    """As it stands in the store."""
    return msgspec.json.encode(override)


def decode(body: bytes) -> StoredOverride:
    """What :func:`encode` wrote. Raises ``Misconfigured``."""
    return read_body(StoredOverride, body, "an override")


def readable(bodies: Mapping[str, bytes]) -> tuple[tuple[StoredOverride, ...], dict[str, Misconfigured]]:
    """The overrides that can be read, and by its id what is wrong with each other one: those are ignored and told."""
    words, problems = [], {}
    for name, body in bodies.items():
        try:
            words.append(read_body(StoredOverride, body, f"override {name}"))
        except Misconfigured as problem:
            problems[name] = Misconfigured(f"{problem.what}; it is ignored", hint=problem.hint)
    return tuple(words), problems


def of_pool(pool: str, words: Iterable[StoredOverride]) -> Iterator[Override]:
    """The overrides that speak of a pool, as its load balancer takes them; expired ones may be among them."""
    for word in words:
        if word.pool in ("", pool):
            yield Override(word.what, word.target, word.zone, word.by, word.reason, word.until)
