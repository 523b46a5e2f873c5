"""What stands in the hosted zone as last listed: the record sets themselves, and each endpoint made of them.

The sets are kept as they were listed, because an exact DELETE repeats them: TTLs that differ between families, odd
spellings, identifiers. An endpoint's :class:`~fencepost.core.zone.Live` is what the core knows of them. It has one TTL
and no form, so where sets aren't as their own marker says (TTLs that differ, weights altered, the other form), it shows
a TTL of 0, which is nobody's: so the drift is seen, and healed.

A page of the listing replaces what lies in its range. A write of ours, or of another role on this host, is newer than
a page that was asked for before it, and is left alone by it.
"""

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, structs

from fencepost.adapters.dns_route53.names import endpoint_of, listing_key, marker_owner_of, owner_of, unquote
from fencepost.adapters.dns_route53.record_sets import Family, RecordSet, family_of
from fencepost.core.fence import Foreign, Marker
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.zone import Live

Sets = tuple[RecordSet, ...]
_CLOCK_STEP: Duration = 60 * SECOND
"""A write so much newer than a page that is being taken in was dated by a clock that has been set back since."""


class Page(Struct, frozen=True):
    """A piece of the listing: every set of the names from ``start`` ("" = the first) up to ``following``, exclusive.

    ``following`` is "" if nothing follows. ``asked`` is when it was asked for, nanoseconds since 1970.
    """

    start: str
    following: str
    asked: Instant
    sets: Sets

    def owners(self) -> dict[str, Sets]:
        """The sets by name."""
        found: dict[str, list[RecordSet]] = {}
        for each in self.sets:
            found.setdefault(each.owner, []).append(each)
        return {owner: tuple(sets) for owner, sets in found.items()}


class Mirror:
    """The sets and endpoints of one hosted zone. ``weighted`` are the endpoints to be kept in the weighted form."""

    def __init__(self, domain: str, owner: str, weighted: frozenset[str] = frozenset()) -> None:
        self._apex = owner_of(domain)
        self._owner = owner
        self._weighted = weighted
        self._sets: dict[str, Sets] = {}
        self._keys: dict[str, str] = {}
        self._written: dict[str, Instant] = {}
        self._lives: dict[str, Live] = {}
        self._changed: dict[str, None] = {}
        self._unsure: dict[str, None] = {}
        self._listed: set[str] = set()

    def __len__(self) -> int:
        return len(self._sets)

    def live(self, name: str) -> Live:
        """What stands at an endpoint."""
        return self._lives.get(name) or Live(name)

    def marked(self) -> list[str]:
        """Every endpoint that has a marker."""
        return [name for name, live in self._lives.items() if live.marker is not None]

    def sets_at(self, owner: str) -> Sets:
        """The sets of a name as listed."""
        return self._sets.get(owner, ())

    def changed(self) -> tuple[str, ...]:
        """The endpoints that changed since this was last asked."""
        changed, self._changed = self._changed, {}
        return tuple(changed)

    def news(self, page: Page) -> int:
        """How many names of a page have other sets than the mirror holds."""
        return sum(self.sets_at(owner) != sets for owner, sets in page.owners().items())

    def take_page(self, page: Page) -> tuple[str, ...]:
        """Take in a page; at the end of a round, wildcards of which it can't be told whether they still stand.

        The documents say that names sort by their text with ``*`` before the dot, but list it as ``\\052``, which would
        sort after the digits. So a wildcard counts as gone only where both orders agree; else it is to be looked at,
        once no page of a round has listed it.
        """
        listed = page.owners()
        gone: list[str] = []
        self._listed |= {owner for owner in listed if "\\052" in owner}
        whole = not page.start and not page.following
        low = listing_key(page.start) if page.start else ""
        high = listing_key(page.following) if page.following else ""
        for owner, key in self._keys.items():
            if owner in listed:
                continue
            if whole or _within(key, low, high):
                if whole or "\\052" not in owner or _within(key.replace("\\052", "*"), low, high):
                    gone.append(owner)
                else:
                    self._unsure[owner] = None
        self._replace({**dict.fromkeys(gone, ()), **listed}, page.asked)
        if page.following:
            return ()
        doubtful = tuple(owner for owner in self._unsure if owner not in self._listed and owner in self._sets)
        self._unsure.clear()
        self._listed.clear()
        return doubtful

    def take_writes(self, written: Mapping[str, Sets], at: Instant) -> None:
        """Take in what a write left at these names."""
        self._replace(written, at)
        self._written |= dict.fromkeys(written, at)

    def _replace(self, sets_of: Mapping[str, Sets], asked: Instant) -> None:
        touched: dict[str, None] = {}
        for owner, sets in sets_of.items():
            written = self._written.get(owner)
            if written is not None:
                if asked < written < asked + _CLOCK_STEP:
                    continue
                del self._written[owner]
            if self._sets.get(owner, ()) == sets:
                continue
            if sets:
                self._sets[owner] = sets
                self._keys.setdefault(owner, listing_key(owner))
            else:
                del self._sets[owner], self._keys[owner]
            found = endpoint_of(owner)
            if found is not None:
                touched[found[0]] = None
        for name in touched:
            self._look_at(name)

    def _look_at(self, name: str) -> None:
        live, before = self._compose(name), self._lives.get(name)
        if live is None:
            if self._lives.pop(name, None) is not None:
                self._changed[name] = None
        elif live != before:
            self._lives[name] = live
            self._changed[name] = None

    def _compose(self, name: str) -> Live | None:
        own, marks = self.sets_at(owner_of(name)), self._marker_sets(name)
        marker = self._marker([each for each in marks if each.type == "TXT"])
        four = family_of([each for each in own if each.type == "A"], "A")
        six = family_of([each for each in own if each.type == "AAAA"], "AAAA")
        other = {each.other for each in (four, six) if each.other} | self._others(own, marks)
        if not (name in self._weighted or isinstance(marker, Marker)):
            # In our form, but nothing says that it is ours.
            other |= {f"{kind} weighted" for kind, each in (("A", four), ("AAAA", six)) if each.weights}
        if other:
            four, six = (Family() if each.other or each.weights else each for each in (four, six))
        a, aaaa = four.addresses, six.addresses
        if marker is None and not a and not aaaa and not other:
            return None
        live = Live(name, marker, a, aaaa, four.ttl if a else six.ttl, tuple(sorted(other)))
        if not live.empty and live.verified() and not self._as_its_marker_says(live, four, six):
            return structs.replace(live, ttl=0)
        return live

    def _as_its_marker_says(self, live: Live, four: Family, six: Family) -> bool:
        weights = live.content().weights or (1,) * len(live.a + live.aaaa)
        form = weights if live.name in self._weighted else ()
        return four.weights + six.weights == form and (not live.a or not live.aaaa or four.ttl == six.ttl)

    def _marker_sets(self, name: str) -> Sets:
        try:
            return self.sets_at(marker_owner_of(name))
        except ValueError:
            return ()

    def _others(self, own: Iterable[RecordSet], marks: Iterable[RecordSet]) -> set[str]:
        """Types beside which no address or no marker can stand, or which aren't ours to exchange."""
        found = {each.type for each in own if each.type == "CNAME" or (each.type == "NS" and each.owner != self._apex)}
        found |= {"CNAME at its marker" for each in marks if each.type == "CNAME"}
        return found | {f"TXT {each.odd or 'routed'}" for each in marks if each.type == "TXT" and not each.simple}

    def _marker(self, sets: Collection[RecordSet]) -> Marker | Foreign | None:
        values = [value for each in sets for value in each.values]
        if not values:
            return None
        raw = tuple(sorted(unquote(value) or (value.encode(),) for value in values))
        found = Marker.parse(raw[0]) if len(raw) == 1 else None
        if found is not None:
            return found
        owners = [each.owner for strings in raw if (each := Marker.parse(strings)) and each.owner != self._owner]
        return Foreign(owners[0] if owners else "", raw)


def _within(key: str, low: str, high: str) -> bool:
    return low <= key and (not high or key < high)
