"""The promises, judged by what a caller of DNS sees. Pure: looks come in, counts and violations come out.

A look reads an endpoint's marker, its addresses, and its marker again; it counts only if the two readings of the marker
agree. All that this has to go by is that our own writers change records and marker together: what they wrote always
matches the digest that its marker states, and every write of theirs changes the marker (its generation or its count of
writes). So records that don't match an unmoved marker were changed by somebody else, and are counted apart.

``never_empty``     broken if a published family has no address and the marker's digest names just that: we published it
``never_backward``  suspected if a marker's generation is below the last enacted (see :mod:`fencepost.core.promises`)
``never_torn``      suspected if another generation's addresses, known from earlier looks, stand beside a marker
``hold_stands``     suspected if a hold is gone from the marker and the store's row has no release that ended it

Looks are samples: a marker that is deleted by hand and made anew between two of them looks like a marker that fell, and
somebody who puts an older set of ours back in the very second after a write looks like a torn write. So the last three
are only suspected here, and judged by :mod:`fencepost.roles.status.promise_replay` from what the DNS server says that
happened in between. Where it can't be told, that is counted apart (``unsure``): neither broken nor held.

SRV records of an endpoint that has them are written with its addresses and stated by its marker, so they are judged
alike: missing, they leave who asks for the service without an answer; others than stated were altered, by somebody
else. But the witness isn't asked about them, so an earlier generation's set beside a marker that has just moved is
counted as unsure, never as torn; and the hosts that they name aren't looked at.

Awkward truth. What happens and is undone between two looks isn't suspected, so it isn't found either. A weighted answer
is a subset drawn by the server, so of it only "nothing foreign in it" can be told.
"""

from collections.abc import Sequence

from msgspec import Struct, field, structs

from fencepost.core.differences import Difference
from fencepost.core.fence import Foreign, Generation, Marker, digest
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.promises import Memory, destroy, enact, undoes
from fencepost.core.record_set import Content
from fencepost.core.service import Service, claimed, service_of
from fencepost.core.store import Row
from fencepost.core.zone import Live, withdraws
from fencepost.roles.status.promise_replay import SKEW, Base, Suspicion, verdict

WATCHED = ("hold_stands", "never_backward", "never_empty", "never_torn")
"""The promises that can be judged from outside."""

BROKEN = " broken: "
"""Between a promise and what was seen, in a line of the history."""

KNOWN_SETS = 4
"""So many sets of an endpoint, seen whole, are remembered for telling a torn read."""

CLOSE: Duration = 2 * SECOND
"""Records of a coming generation, seen under the marker before, are a torn write if its marker follows this soon."""

VIOLATIONS_KEPT = 100

SUSPECTED_MOST = 1000
"""More suspicions at once aren't looked into: they count as unsure."""


class Watched(Struct, frozen=True, gc=False):
    """An endpoint to look at: the families its owner publishes ("4", "6", "46"), and its newest row if it is known."""

    name: str
    families: str
    row: Row | None = None


class Seen(Struct, frozen=True, gc=False):
    """One whole look: marker, addresses (canonical, in numeric order) with their TTL, marker again.

    ``service`` is what stands at the service that the marker names; None where it names none, or nobody asked.
    """

    before: Marker | Foreign | None
    a: tuple[str, ...]
    aaaa: tuple[str, ...]
    ttl: int
    after: Marker | Foreign | None
    service: Service | None = None

    def live(self, name: str) -> Live:
        """As the core knows it. Of a weighted set these are the addresses of one answer."""
        return Live(name, self.after, self.a, self.aaaa, self.ttl)


class Broken(Struct, frozen=True, gc=False):
    """A promise seen broken: what was seen, and when (nanoseconds since 1970)."""

    promise: str
    on: str
    what: str
    at: Instant


class Past(Struct):
    """What earlier looks at an endpoint leave behind.

    ``marker`` is the last one that stood still through a look, ``families`` what was published under it, ``whole``
    whether its records have been seen to match it. ``known`` are sets seen whole. ``strange`` is an address set that
    didn't match its marker, with that marker and the time, and ``before_strange`` the look before. ``services`` are SRV
    sets seen as stated, ``strange_service`` one that wasn't, with its marker. ``vanished`` is the
    suspicion about a hold that is gone, until the row is known. ``doubted`` is the marker at which a torn write is
    suspected already. ``empty_since`` is 0 while callers get an answer. ``serial`` and ``row`` were known before and at
    the last look; ``earlier`` is the look before that, ``before`` the one before the marker came.
    """

    memory: Memory = field(default_factory=Memory)
    marker: Marker | None = None
    families: str = ""
    whole: bool = False
    known: tuple[tuple[Generation, tuple[str, ...], tuple[str, ...]], ...] = ()
    strange: tuple[Marker, tuple[str, ...], tuple[str, ...], Instant] | None = None
    before_strange: Base | None = None
    services: tuple[Service, ...] = ()
    strange_service: tuple[Marker, Service] | None = None
    vanished: Suspicion | None = None
    doubted: Marker | None = None
    empty_since: Instant = 0
    emptied_ns: Duration = 0
    looked_at: Instant = 0
    last: Seen | None = None
    serial: int = -1
    row: Row | None = None
    earlier: Base | None = None
    before: Base | None = None

    def base(self, name: str) -> Base | None:
        """The last look as a beginning for a replay. Of a weighted set that fits its marker: the whole of it."""
        if self.last is None:
            return None
        return Base(whole(name, self.last, drawn=self.whole), self.serial, self.memory, self.row)


class PromiseWatch:
    """Judges looks at many endpoints of one owner."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.past: dict[str, Past] = {}
        self.checked: dict[str, int] = dict.fromkeys(WATCHED, 0)
        self.broken: dict[str, int] = dict.fromkeys(WATCHED, 0)
        self.unsure: dict[str, int] = dict.fromkeys(WATCHED, 0)
        self.violations: list[Broken] = []
        self.suspected: list[Suspicion] = []
        """What :meth:`settle` waits to be called for."""
        self.looks = 0
        self.moved = 0
        self.altered = 0
        self._told: set[tuple[str, str, Marker]] = set()

    def forget_but(self, names: frozenset[str]) -> None:
        """Drop what is remembered of endpoints that nobody watches any more."""
        for name in [name for name in self.past if name not in names]:
            del self.past[name]
        self._told = {told for told in self._told if told[1] in names}

    def emptied_ns(self, name: str, now: Instant) -> Duration:
        """How long another writer's emptying has left callers of an endpoint without an address, until now."""
        past = self.past.get(name)
        if past is None:
            return 0
        return past.emptied_ns + (max(0, now - past.empty_since) if past.empty_since else 0)

    def observe(self, endpoint: Watched, seen: Seen, now: Instant, serial: int = -1) -> bool:
        """Judge one look; whether the endpoint is worth another look soon.

        ``now`` is nanoseconds since 1970; ``serial`` is one that the domain had before the look began, -1 if unknown.
        """
        if seen.before != seen.after:
            self.moved += 1
            return True
        self.looks += 1
        past = self.past.setdefault(endpoint.name, Past())
        past.earlier = past.base(endpoint.name)
        past.looked_at, past.last, past.serial, past.row = now, seen, serial, endpoint.row
        marker = seen.after
        if isinstance(marker, Foreign) or (marker is not None and marker.owner != self.owner):
            self._refilled(past, now)
            return False
        if marker is None:
            return self._unmarked(endpoint, past, seen, now)
        self.checked["never_backward"] += 1
        self.checked["hold_stands"] += past.memory.held is not None
        if marker != past.marker:
            self._succeeds(endpoint, past, marker, seen, now)
        self._judge_vanished(endpoint, past)
        again = self._judge_set(endpoint, past, marker, seen, now)
        return self._judge_service(endpoint.name, past, marker, seen, now) or again

    def settle(self, suspicion: Suspicion, differences: Sequence[Difference] | None) -> None:
        """Judge what was suspected by what happened since its base; None if that can't be had."""
        found = verdict(suspicion, differences, self.owner)
        if found == "unsure":
            self.unsure[suspicion.promise] += 1
            return
        self.checked[suspicion.promise] += 1
        past = self.past.get(suspicion.name)
        if found == "broken":
            self._break(suspicion.promise, suspicion.name, suspicion.marker, suspicion.at, suspicion.what)
        elif suspicion.promise == "never_torn" and past is not None and past.doubted == suspicion.marker:
            self.altered += 1

    def _suspect(self, suspicion: Suspicion) -> None:
        """Leave it to :meth:`settle`, which counts the check."""
        self.checked[suspicion.promise] -= 1
        if len(self.suspected) < SUSPECTED_MOST:
            self.suspected.append(suspicion)
        else:
            self.unsure[suspicion.promise] += 1

    def _unmarked(self, endpoint: Watched, past: Past, seen: Seen, now: Instant) -> bool:
        """Our writers never take a marker away. What may be remembered falls as the promises say."""
        past.memory = destroy(past.memory, seen.live(endpoint.name), endpoint.row)
        if past.marker is None or withdraws(past.marker):
            return False
        self.checked["never_empty"] += 1
        if _missing(past.families, seen):
            past.empty_since = past.empty_since or now
        else:
            self._refilled(past, now)
        return True

    def _succeeds(self, endpoint: Watched, past: Past, marker: Marker, seen: Seen, now: Instant) -> None:
        """Another marker than at the last look: its generation and its hold follow those remembered."""
        memory, name, row = past.memory, endpoint.name, endpoint.row
        if marker.generation < memory.enacted:
            what = f"generation {marker.generation} is live after {memory.enacted}"
            self._suspect(Suspicion("never_backward", name, marker, what, now, past.earlier, row))
        if memory.held is not None and past.vanished is None and undoes(memory, marker, now + SKEW):
            held = memory.held
            what = f"the {held.kind} of epoch {held.id} is gone and was not released"
            past.vanished = Suspicion("hold_stands", name, marker, what, now, past.earlier, row)
        past.memory, _ = enact(memory, seen.live(name), now)
        past.marker, past.whole, past.before, past.doubted = marker, False, past.earlier, None

    def _judge_vanished(self, endpoint: Watched, past: Past) -> None:
        """A hold that is gone is judged once the row that came after it is known: the row says what was released."""
        row, vanished = endpoint.row, past.vanished
        if row is not None and row.released > past.memory.released:
            past.memory = structs.replace(past.memory, released=row.released)
        if vanished is None or row is None or row.generation < vanished.marker.generation:
            return
        past.vanished = None
        held = vanished.base.memory.held if vanished.base else None
        if held is not None and held.id > past.memory.released:
            self._suspect(structs.replace(vanished, newest=row))

    def _judge_set(self, endpoint: Watched, past: Past, marker: Marker, seen: Seen, now: Instant) -> bool:
        """Whether the addresses are those the marker stands for."""
        fits = matches(marker, seen)
        published = expected(endpoint, past, marker, seen)
        if published:
            self.checked["never_empty"] += 1
        missing = _missing(published, seen)
        if missing and not fits:
            past.empty_since = past.empty_since or now
            return True
        if missing and fits:
            families = " and ".join(f"IPv{each}" for each in missing)
            self._break(
                "never_empty",
                endpoint.name,
                marker,
                now,
                f"generation {marker.generation} was published without an address for {families}",
            )
        self._refilled(past, now)
        self.checked["never_torn"] += 1
        if fits:
            self._is_whole(endpoint, past, marker, seen, now)
            return False
        if not past.whole and _published_before(past, marker, seen):
            if past.doubted != marker:
                past.doubted = marker
                what = f"an earlier generation's addresses stand beside the marker of {marker.generation}"
                self._suspect(Suspicion("never_torn", endpoint.name, marker, what, now, past.before, endpoint.row))
        elif past.strange is None or past.strange[:3] != (marker, seen.a, seen.aaaa):
            self.altered += 1
            past.strange, past.before_strange = (marker, seen.a, seen.aaaa, now), past.earlier
        return True

    def _judge_service(self, name: str, past: Past, marker: Marker, seen: Seen, now: Instant) -> bool:
        """Whether the SRV records beside it are those that the marker states."""
        value, stands = claimed(marker), seen.service
        wanted = service_of(name, value) if value is not None else None
        if wanted is None or stands is None or not wanted.records:
            return False
        self.checked["never_empty"] += 1
        if not stands.records:
            past.empty_since = past.empty_since or now
            return True
        if stands == wanted:
            self.checked["never_torn"] += 1
            past.strange_service = None
            if wanted not in past.services:
                past.services = (*past.services, wanted)[-KNOWN_SETS:]
            return False
        if past.strange_service != (marker, stands):
            moved = past.services[-1:] != (wanted,) and stands in past.services
            if moved:
                self.unsure["never_torn"] += 1
            else:
                self.checked["never_torn"] += 1
                self.altered += 1
            past.strange_service = (marker, stands)
        return True

    def _is_whole(self, endpoint: Watched, past: Past, marker: Marker, seen: Seen, now: Instant) -> None:
        """Remember a set that matches its marker; what was strange before it may now turn out to have been torn."""
        value = marker.content or Content(seen.a, seen.aaaa, (), seen.ttl)
        if past.strange is not None:
            (before, a, aaaa, at), past.strange = past.strange, None
            if before.generation < marker.generation and (a, aaaa) == (value.a, value.aaaa) and now - at < CLOSE:
                what = f"the addresses of {marker.generation} stood beside the marker of {before.generation}"
                self._suspect(
                    Suspicion("never_torn", endpoint.name, marker, what, now, past.before_strange, endpoint.row)
                )
        past.whole, past.before, past.before_strange = True, None, None
        past.families = ("4" if value.a else "") + ("6" if value.aaaa else "")
        entry = (marker.generation, value.a, value.aaaa)
        if entry not in past.known:
            past.known = (*past.known, entry)[-KNOWN_SETS:]

    def _refilled(self, past: Past, now: Instant) -> None:
        """Callers get an answer (again)."""
        if past.empty_since:
            past.emptied_ns += max(0, now - past.empty_since)
            past.empty_since = 0

    def _break(self, promise: str, name: str, marker: Marker, now: Instant, what: str) -> None:
        """Count a violation; the same one is told once however long it lasts."""
        if (promise, name, marker) in self._told:
            return
        if len(self._told) < 10 * VIOLATIONS_KEPT:
            self._told.add((promise, name, marker))
        self.broken[promise] += 1
        if len(self.violations) < VIOLATIONS_KEPT:
            self.violations.append(Broken(promise, name, what, now))


def matches(marker: Marker, seen: Seen) -> bool:
    """Whether what was answered is the set that the marker's digest names (of a weighted set: part of it)."""
    value = marker.content
    if value is None:
        return digest(Content(seen.a, seen.aaaa, (), seen.ttl), marker.hold) == marker.digest
    if digest(value, marker.hold) != marker.digest or (seen.ttl != value.ttl and not value.empty):
        return False
    if not value.weights:
        return (seen.a, seen.aaaa) == (value.a, value.aaaa)
    return _drawn_from(seen.a, value.a) and _drawn_from(seen.aaaa, value.aaaa)


def expected(endpoint: Watched, past: Past, marker: Marker, seen: Seen) -> str:
    """The families that are published under a marker, as far as can be told.

    Without its row, and before any set was seen whole, a family that doesn't answer may be one that the owner has only
    just asked for: then only what answers is expected, unless no family answers at all.
    """
    if withdraws(marker):
        return ""
    if marker.content is not None:
        return ("4" if marker.content.a else "") + ("6" if marker.content.aaaa else "")
    row = endpoint.row
    if row is not None and (row.generation, row.digest) == (marker.generation, marker.digest):
        return row.families
    if not past.families:
        return ("4" if seen.a else "") + ("6" if seen.aaaa else "") or endpoint.families
    return "".join(each for each in endpoint.families if each in past.families)


def whole(name: str, seen: Seen, *, drawn: bool) -> Live:
    """A look as the core knows it. Where a weighted set's answer fits its marker (``drawn``), as in the marker."""
    live = seen.live(name)
    value = live.marker.content if isinstance(live.marker, Marker) else None
    if drawn and value is not None and value.weights:
        return Live(name, live.marker, value.a, value.aaaa, value.ttl)
    return live


def _missing(families: str, seen: Seen) -> str:
    return "".join(each for each, got in (("4", seen.a), ("6", seen.aaaa)) if each in families and not got)


def _drawn_from(answered: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return set(answered) <= set(whole) and bool(answered) == bool(whole)


def _published_before(past: Past, marker: Marker, seen: Seen) -> bool:
    """Whether each family's addresses are a set of ours that an earlier look saw whole, under another generation."""
    known = [entry for entry in past.known if entry[0] != marker.generation]
    return any(seen.a == a for _, a, _ in known) and any(seen.aaaa == aaaa for _, _, aaaa in known)
