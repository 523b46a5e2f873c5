"""A person's standing words about targets, zones and pools, as they lie in the store, and which pools they speak of;
and those of a lost store that are to be put back into the one in its place.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from fencepost.core.instant import Instant
from fencepost.core.traffic.membership import Override, OverrideKind
from fencepost.core.traffic.operator_word import FREEZING
from fencepost.ports import Misconfigured, Overrides, PutBack
from fencepost.roles.bodies import read_body

PUT_BACK = "put back after the store was lost"
"""The reason of an override whose own reason was lost with its store."""


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

    @property
    def place(self) -> tuple[str, str, str, bool]:
        """Words with the same place speak of the same targets, and one replaces the other."""
        return (self.pool, self.target, self.zone, self.what in FREEZING)

    @property
    def unsigned(self) -> "StoredOverride":
        """The word without who said it and why."""
        return replace(self, by="", reason="")


class KeptWords(msgspec.Struct, frozen=True):
    """The overrides that ``store`` held at ``snapshot``, unsigned, in a region of this ``owner``."""

    owner: str
    store: str
    snapshot: int
    words: tuple[StoredOverride, ...]


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


def kept(owner: str, found: Overrides) -> KeptWords:
    """What to remember of what the store holds; words that can't be read aren't kept."""
    words = sorted((word.unsigned for word in readable(found.words)[0]), key=lambda word: word.id)
    return KeptWords(owner, found.store, found.snapshot, tuple(words))


def outlived(lost: KeptWords, found: Overrides, by: str, now: Instant) -> PutBack:
    """What of a lost store's words is to stand in the new one, of which ``found`` was read; ``by`` puts them back.

    Not those that have ended, nor those in whose place a person has already put another word.
    """
    present = {word.id: word for word in readable(found.words)[0]}
    taken = {word.place for word in present.values()}
    words = {}
    for word in lost.words:
        if word.until and now >= word.until:
            continue
        there = present.get(word.id)
        if there is not None and there.unsigned == word.unsigned:
            words[word.id] = found.words[word.id]  # put back by another enactor: signed by it, and so it stays
        elif there is not None or word.place not in taken:
            words[word.id] = encode(replace(word, by=by, reason=PUT_BACK))
    return PutBack(found.store, found.snapshot, lost.store, lost.snapshot, words)
