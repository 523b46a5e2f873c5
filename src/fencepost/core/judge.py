"""The one rule for stale: what an enactor may do about an endpoint, given what stands there and the newest row.

===========================  ==========================================================================================
what stands                  verdict
===========================  ==========================================================================================
another's marker or records  FOREIGN: write nothing, say so; also where the row's service is another's
marker older than the row    WRITE the row
no marker                    WRITE the row if the name is empty or holds a set of ours; else ASK a person to adopt it
marker equal, same digest    DONE; or HEAL records that drifted, SRV records and their hosts too
marker newer, or equal with  LEAVE it to the planner, which adopts it; but HEAL a hold from its marker's content, and
another digest               anything at exactly the generation and digest that the local file remembers
row unknown, or contested    LEAVE; HEAL as above
===========================  ==========================================================================================

A row is unknown when the store can't be reached or holds none: that never means withdrawn (a withdrawal is a row and
leaves a marker). Healing never changes the generation; writing under a marker's generation anything but what its digest
names would publish old content as new.
"""

from enum import Enum

from msgspec import Struct

from fencepost.core.fence import Foreign, Generation, Hold, Marker, digest
from fencepost.core.record_set import NOTHING, Content, record_digest
from fencepost.core.store import Row
from fencepost.core.zone import Change, Live, lacks_family, withdraws


class Kind(Enum):
    """What an enactor does about an endpoint."""

    WRITE = "write"
    HEAL = "heal"
    DONE = "done"
    LEAVE = "leave"
    FOREIGN = "foreign"
    ASK = "ask"


class Remembered(Struct, frozen=True, gc=False):
    """The newest whole set of an endpoint that an enactor wrote, or read and found to match its marker's digest."""

    generation: Generation
    digest: str
    content: Content
    families: str
    hold: Hold | None = None


class Pair(Struct, frozen=True, gc=False):
    """One endpoint as a pass sees it: DNS first, then the row. ``row`` is None when unknown.

    ``ours`` are digests (:func:`~fencepost.core.record_set.record_digest`) of address sets that kept rows or the local
    file know as ours; looked up only where an unmarked set stands.
    """

    live: Live
    row: Row | None
    remembered: Remembered | None = None
    ours: frozenset[str] = frozenset()


class Judgement(Struct, frozen=True, gc=False):
    """The verdict, the change to send if it is WRITE or HEAL, and a word for people on the others."""

    kind: Kind
    change: Change | None = None
    why: str = ""


DONE = Judgement(Kind.DONE)
CONTESTED = "two stores with this owner replace each other"


def judge(pair: Pair, owner: str) -> Judgement:
    """The verdict on one endpoint (the table above)."""
    live, row, marker = pair.live, pair.row, pair.live.marker
    if live.other:
        return Judgement(Kind.FOREIGN, why=f"a {live.other[0]} record stands at this name")
    if isinstance(marker, Foreign):
        return Judgement(Kind.FOREIGN, why=f"its owner is {marker.owner!r}" if marker.owner else "an unreadable marker")
    if marker is not None and marker.owner != owner:
        return Judgement(Kind.FOREIGN, why=f"its owner is {marker.owner!r}")
    if row is not None and row.contested:
        return restore(pair, marker, CONTESTED) if marker else Judgement(Kind.LEAVE, why=CONTESTED)
    if marker is None:
        return unmarked(pair, owner)
    if row is None:
        return restore(pair, marker, "no row known")
    if stale(marker, row):
        return write(live, row, owner)
    if same(marker, row):
        return mend(live, row, owner)
    return restore(pair, marker, "the marker is newer than the newest row: the planner adopts it")


def mend(live: Live, row: Row, owner: str) -> Judgement:
    """What stands is the row's by its marker: heal what isn't as it says.

    Beside a CNAME nothing can be written, so if that alone is wrong it is told and not tried for ever.
    """
    value = row.content
    if live.holds(value):
        return DONE
    return hindered(live, value) or write(live, row, owner, heal=True)


def hindered(live: Live, value: Content) -> Judgement | None:
    """The verdict where only records beside the endpoint are astray, and none of them can be put right."""
    astray = live.astray(value)
    bar = live.barred(astray)
    if bar is None or not live.verified() or any(live.barred((label,)) is None for label in astray):
        return None
    return Judgement(Kind.FOREIGN, why=f"a {bar[1]} record stands at {bar[0]}.{live.name}")


def stale(marker: Marker, row: Row) -> bool:
    """Whether what is live is older than the row."""
    return marker.generation < row.generation


def same(marker: Marker, row: Row) -> bool:
    """Whether marker and row are one set: equal generation and digest."""
    return marker.generation == row.generation and marker.digest == row.digest


def settled(live: Live, row: Row, owner: str) -> bool:
    """Whether the judge would say DONE: the quick way for the many that need nothing."""
    marker = live.marker
    return (
        isinstance(marker, Marker)
        and same(marker, row)
        and marker.owner == owner
        and live.holds(row.content)
        and not live.other
        and not row.contested
    )


def plain(live: Live, row: Row) -> bool:
    """Whether live and row alone decide, so that ``remembered`` and ``ours`` needn't be looked up."""
    if live.marker is None:
        return live.empty and not row.contested
    return isinstance(live.marker, Marker) and stale(live.marker, row) and not row.contested


def unmarked(pair: Pair, owner: str) -> Judgement:
    """No marker: create it over nothing or over a set of ours; anything else may be somebody's, and is asked about."""
    live, row = pair.live, pair.row
    if row is None:
        return Judgement(Kind.LEAVE, why="no marker, and no row known")
    if live.empty:
        return write(live, row, owner)
    standing = record_digest(live.a, live.aaaa)
    if standing in pair.ours or (standing == row.adopt and takes_over(row)):
        return write(live, row, owner)
    return Judgement(Kind.ASK, why=f"unmarked records that are not known as ours: {', '.join(live.a + live.aaaa)}")


def takes_over(row: Row) -> bool:
    """Whether a row adopts what it names: as it stands, so that no address changes, or by the word of a hold."""
    return row.hold is not None or record_digest(row.content.a, row.content.aaaa) == row.adopt


def restore(pair: Pair, marker: Marker, why: str) -> Judgement:
    """Without a row to go by, put back what the marker itself, or the local file, knows to belong to it.

    A hold's marker carries its content, so that a repair made while everything else was dead heals too.
    """
    live, known = pair.live, pair.remembered
    if live.verified():
        if live.holds(live.content()):
            return Judgement(Kind.LEAVE, why=why)
        if (told := hindered(live, live.content())) is not None:
            return told
    value = None
    if withdraws(marker):
        value = NOTHING
    elif marker.content is not None:
        value = marker.content
    elif known is not None and recalls(known, marker):
        value = known.content
    if value is None or digest(value, marker.hold) != marker.digest:
        return Judgement(Kind.LEAVE, why=f"{why}; its records don't match the marker and nothing here remembers them")
    healed = Marker.of(marker.owner, marker.store, marker.generation, value, marker.hold, marker.writes + 1)
    families = ("4" if value.a else "") + ("6" if value.aaaa else "")
    return Judgement(Kind.HEAL, Change(live.name, live, healed, value, families), why)


def recalls(known: Remembered, marker: Marker) -> bool:
    """Whether the local file's set is the very one the marker names."""
    return known.generation == marker.generation and known.digest == marker.digest


def remember(live: Live, families: str) -> Remembered | None:
    """What to keep of an endpoint as read: only a set that matches its marker's digest.

    Records altered by hand and then emptied must not come back altered.
    """
    if not isinstance(live.marker, Marker) or not live.verified():
        return None
    marker = live.marker
    return Remembered(marker.generation, marker.digest, live.content(), families, marker.hold)


def write(live: Live, row: Row, owner: str, *, heal: bool = False) -> Judgement:
    """The change that puts the row in place of exactly what stands.

    A row that would leave a published family without an address is refused here too, whoever made it.
    """
    if lacks_family(row.content, row.families) and not row.withdrawn:
        return Judgement(Kind.LEAVE, why="refused: the row has no address in a published family")
    if strange := live.strange_service(row.content):
        return Judgement(Kind.FOREIGN, why=strange)
    if not row.writable(owner):
        return Judgement(Kind.LEAVE, why="refused: no marker can say the row's addresses, TTL and hold")
    old = live.marker if isinstance(live.marker, Marker) else None
    writes = old.writes + 1 if old is not None and old.generation == row.generation else 1
    marker = Marker.of(owner, row.store, row.generation, row.content, row.hold, writes)
    return Judgement(Kind.HEAL if heal else Kind.WRITE, Change(live.name, live, marker, row.content, row.families))
