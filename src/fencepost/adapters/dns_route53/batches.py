"""One batch as Route 53 takes it: exact DELETEs of all that was seen, then CREATEs of all that is to stand.

That pair is the fence. A DELETE is refused unless name, type, TTL and every value are what stands, and a CREATE is
refused where a set stands already; the batch is applied whole or not at all. So everything that was seen is taken away
and put anew, also what stays as it was, and UPSERT is never used: it requires nothing. Whatever stood at the marker's
name is named too, so of any two writers that saw the same, one is refused.

What can't be required is the *absence* of a set that isn't created: of AAAA where only A is published. A batch may
change a set once, or by one DELETE before one CREATE (anything else is "an invalid set of changes", external-dns
#4241), so it can't be put and taken away in one batch either. What that can lead to is told in
``docs/concepts/route53.md``.

DELETEs come first, all of them: changes are looked at in order (octodns #531, cookpad/roadworker #89).

Limits are counted as Route 53 counts: each ResourceRecord of a DELETE or a CREATE once, and each character of its
value.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from fencepost.adapters.dns_route53.mirror import Mirror, Sets
from fencepost.adapters.dns_route53.names import marker_owner_of, owner_of, quote
from fencepost.adapters.dns_route53.record_sets import RecordSet, address_sets, family_of, to_api
from fencepost.core.fence import Foreign, Marker
from fencepost.core.record_set import Content
from fencepost.core.zone import Batch, Change, Live
from fencepost.ports import Refused
from fencepost.settings.providers import PROVIDERS

MARKER_TTL_S = 60
"""How long resolvers may keep a marker. We read the zone itself, so nothing depends on it."""

ROOM = PROVIDERS["route53"].room


class Exchange(Struct, frozen=True):
    """One endpoint's part of a batch: the sets it requires and takes away, and those it puts."""

    name: str
    deletes: Sets
    creates: Sets

    def left(self) -> dict[str, Sets]:
        """What stands at each of its names once it has been applied."""
        found: dict[str, list[RecordSet]] = {each.owner: [] for each in self.deletes}
        for each in self.creates:
            found.setdefault(each.owner, []).append(each)
        return {owner: tuple(sets) for owner, sets in found.items()}


def exchange_of(change: Change, mirror: Mirror, *, weighted: bool) -> Exchange:
    """The sets of one change. What was seen is spelled as listed wherever the mirror still holds it."""
    owner, marker_owner = owner_of(change.name), marker_owner_of(change.name)
    put = quote(change.marker.encode())
    creates = (
        *address_sets(owner, change.content, weighted=weighted),
        RecordSet(marker_owner, "TXT", MARKER_TTL_S, (put,)),
    )
    return Exchange(change.name, removal_of(change.seen, mirror, weighted=weighted).deletes, creates)


def removal_of(seen: Live, mirror: Mirror, *, weighted: bool) -> Exchange:
    """All that was seen at an endpoint taken away, and nothing put: for scratch names."""
    known = mirror.live(seen.name)
    deletes = (
        *_seen_family(mirror, seen, known, "A", weighted=weighted),
        *_seen_family(mirror, seen, known, "AAAA", weighted=weighted),
        *_seen_marker(mirror, seen, known, marker_owner_of(seen.name)),
    )
    return Exchange(seen.name, deletes, ())


def _seen_family(mirror: Mirror, seen: Live, known: Live, kind: str, *, weighted: bool) -> Sets:
    addresses, stood = (seen.a, known.a) if kind == "A" else (seen.aaaa, known.aaaa)
    if not addresses:
        return ()
    owner = owner_of(seen.name)
    listed = tuple(each for each in mirror.sets_at(owner) if each.type == kind)
    if addresses == stood and family_of(list(listed), kind).addresses == addresses:
        return listed
    value = Content(addresses) if kind == "A" else Content((), addresses)
    found = seen.content()
    weights = found.weights[: len(seen.a)] if kind == "A" else found.weights[len(seen.a) :]
    value = Content(value.a, value.aaaa, weights, seen.ttl)
    return address_sets(owner, value, weighted=weighted)


def _seen_marker(mirror: Mirror, seen: Live, known: Live, owner: str) -> Sets:
    if seen.marker is None:
        return ()
    if seen.marker == known.marker:
        return tuple(each for each in mirror.sets_at(owner) if each.type == "TXT")
    raw = seen.marker.raw if isinstance(seen.marker, Foreign) else (seen.marker.encode(),)
    return (RecordSet(owner, "TXT", MARKER_TTL_S, tuple(map(quote, raw))),)


def changes_of(exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
    """The changes of a batch, in the order in which they are to be sent."""
    deletes = [{"Action": "DELETE", "ResourceRecordSet": to_api(each)} for one in exchanges for each in one.deletes]
    creates = [{"Action": "CREATE", "ResourceRecordSet": to_api(each)} for one in exchanges for each in one.creates]
    return deletes + creates


def size_of(exchanges: Iterable[Exchange]) -> tuple[int, int]:
    """Records and characters, as Route 53 counts them."""
    sets = [each for one in exchanges for each in (*one.deletes, *one.creates)]
    return sum(len(each.values) for each in sets), sum(len(value) for each in sets for value in each.values)


def refuse_too_big(exchanges: Sequence[Exchange], doing: str) -> None:
    """Raise ``Refused``, with the numbers, for a batch or a record set that Route 53 wouldn't take."""
    records, characters = size_of(exchanges)
    if records > ROOM.records or characters > ROOM.characters:
        what = exchanges[0].name if len(exchanges) == 1 else f"a batch of {len(exchanges)} endpoints"
        raise Refused(
            f"{what} is too big: {records:,} records and {characters:,} characters to take away and to put; Route 53"
            f" takes {ROOM.records:,} and {ROOM.characters:,} in one batch",
            where=doing,
            hint="spread its addresses over more endpoints" if len(exchanges) == 1 else "split the batch",
            unchanged=True,
        )
    for one in exchanges:
        per: dict[str, int] = {}
        for each in one.creates:
            per[each.type] = per.get(each.type, 0) + len(each.values)
        kind, most = max(per.items(), key=lambda item: item[1])
        text = max((len(value) for each in one.creates for value in each.values), default=0)
        if most > ROOM.per_set or text > ROOM.text:
            had, held = (
                (f"{most} {kind} records", f"{ROOM.per_set} in a set")
                if most > ROOM.per_set
                else (f"a value of {text:,} characters", f"{ROOM.text:,}")
            )
            raise Refused(
                f"{one.name} is too big: it would have {had}; Route 53 takes {held}",
                where=doing,
                hint="spread its addresses over more endpoints",
                unchanged=True,
            )


def told(batch: Batch) -> str:
    """A batch for people: the first endpoint's step, and how many more."""
    first = batch[0]
    stood = first.seen.marker
    before = str(stood.generation) if isinstance(stood, Marker) else "none"
    more = f" and {len(batch) - 1} more" if len(batch) > 1 else ""
    return f"the write of {first.name}, gen {before} -> {first.marker.generation}{more}"
