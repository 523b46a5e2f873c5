"""What a drain, keep or pause speaks of: targets, a zone, a pool or the region; and its slot in the store.

One slot a scope and kind of word: a drain of a target replaces a keep of it, and leaves a pause of its zone alone.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple

from fencepost.cli.loaded import loaded_in, pools_in
from fencepost.cli.talk import Talk
from fencepost.core.traffic.membership import Member, Membership, OverrideKind
from fencepost.core.traffic.operator_word import FREEZING
from fencepost.ports import Inputs, Refused
from fencepost.roles.overrides import StoredOverride, readable
from fencepost.roles.status.ways import drained
from fencepost.settings import Region


class Scope(NamedTuple):
    """Where a word holds; ``pool`` empty is every pool, ``target`` and ``zone`` empty the whole of it."""

    pool: str = ""
    target: str = ""
    zone: str = ""

    def __str__(self) -> str:
        """Say it to a person."""
        where = self.target or (f"zone {self.zone}" if self.zone else "")
        if where:
            return f"{where} in pool {self.pool}" if self.pool and not self.target else where
        return f"pool {self.pool}" if self.pool else "the region"

    def covers(self, pool: str, member: Member) -> bool:
        """Whether a member is spoken of."""
        if self.pool not in ("", pool):
            return False
        return self.target in ("", member.key) and self.zone in ("", member.zone)


class Pools(NamedTuple):
    """The region as it runs: its configuration, membership rows, and the words that stand."""

    region: Region
    rows: dict[str, Membership]
    words: tuple[StoredOverride, ...]

    def nearer(self, scope: Scope, pool: str, member: Member) -> StoredOverride | None:
        """The drain or keep of the target itself, which a word about its zone leaves in force."""
        if scope.target:
            return None
        own = (word for word in self.words if word.what not in FREEZING and word.target == member.key)
        return next((word for word in own if word.pool in ("", pool)), None)

    def moves(self, scopes: list[Scope], pool: str, member: Member) -> bool:
        """Whether a drain or keep on these scopes would be what holds for a member."""
        return any(scope.covers(pool, member) and self.nearer(scope, pool, member) is None for scope in scopes)


async def pools(talk: Talk) -> Pools:
    """Read them. Raises ``Refused`` for a region that has never run."""
    inputs: Inputs = await talk.within(talk.store.inputs(), "the store")
    loaded = loaded_in(inputs)
    if loaded is None:
        raise Refused("this region has never run; it has no pools yet", where=talk.region.path, hint="fencepost up")
    return Pools(loaded.region, pools_in(inputs), words_in(inputs.overrides))


def words_in(overrides: Mapping[str, bytes]) -> tuple[StoredOverride, ...]:
    """The words that haven't ended, by what they are on; one that can't be read is no word (`status` names it)."""
    now = time.time_ns()
    found, _ = readable(overrides)
    return tuple(
        sorted((word for word in found if not word.until or word.until > now), key=lambda word: (word.on, word.what))
    )


def slot(kind: OverrideKind, scope: Scope) -> str:
    """The key under which a word stands in the store."""
    return f"{'freeze' if kind in FREEZING else 'force'}:{scope.pool}:{scope.target}:{scope.zone}"


async def place(talk: Talk, known: Pools, kind: OverrideKind, scope: Scope, why: str, ends: int) -> StoredOverride:
    """Put a word into the store, in place of any other of its sort on the same scope."""
    name = slot(kind, scope)
    word = StoredOverride(name, kind, scope.pool, scope.target, scope.zone, talk.by, why, ends, time.time_ns())
    for other in known.words:
        same = Scope(other.pool, other.target, other.zone) == scope and (other.what in FREEZING) == (kind in FREEZING)
        if same and other.id != name:
            await talk.within(talk.store.drop_override(other.id), "the store")
    from fencepost.roles.overrides import encode

    await talk.within(talk.store.put_override(name, encode(word)), "the store")
    await talk.tell_history(str(scope), str(kind), why)
    return word


def target_scopes(known: Pools, addresses: tuple[str, ...]) -> list[Scope]:
    """Each address in each pool that has it. Raises ``Refused`` for one that no pool has."""
    import ipaddress

    found: list[Scope] = []
    for text in addresses:
        try:
            address = str(ipaddress.ip_address(text))
        except ValueError:
            raise Refused(
                f"{text!r} is no address", hint="name targets by their address, or a zone with --zone"
            ) from None
        having = [
            Scope(pool, address) for pool, row in known.rows.items() if any(m.key == address for m in row.members)
        ]
        if not having:
            listed = sorted({member.key for row in known.rows.values() for member in row.members})
            raise Refused(f"no pool has {address}", hint=f"known targets: {', '.join(listed[:12])}")
        found += having
    return found


def zone_scope(known: Pools, zone: str, pool: str = "") -> Scope:
    """A failure zone. Raises ``Refused`` if there is none of that name."""
    if zone not in known.region.zones:
        raise Refused(f"there is no zone {zone!r}", hint=f"zones are {', '.join(known.region.zones)}")
    return Scope(pool, "", zone)


class Effect(NamedTuple):
    """What draining does to a pool, in targets. ``least`` is min_in as it comes out for this pool."""

    pool: str
    leaving: tuple[Member, ...]
    stay: int
    of: int
    least: int
    under: bool
    empties: bool


def effect_of_drain(known: Pools, scopes: list[Scope]) -> list[Effect]:
    """What taking these out of service does, a pool at a time."""
    found = []
    for pool, row in sorted(known.rows.items()):
        settings = next((each for each in known.region.pools if each.name == pool), None)
        if settings is None or not any(scope.covers(pool, m) for m in row.members for scope in scopes):
            continue
        effect = drained(settings, row, {m.key for m in row.members if known.moves(scopes, pool, m)})
        found.append(Effect(pool, *effect))
    return found
