"""Break-glass repair: the one write a person makes without planner, enactors or store.

It is fenced like every other (it requires exactly what it read), and its marker carries a hold, so that nothing undoes
it before its release. In October 2025 the repair tools assumed a working enactor; this one needs a provider and nothing
else.
"""

from msgspec import structs

from fencepost.core.fence import NEVER, Foreign, Generation, Hold, Marker, hold_epoch
from fencepost.core.instant import Instant
from fencepost.core.record_set import Content, content, ports_of
from fencepost.core.store import Row
from fencepost.core.zone import Change, Live


def repair(
    live: Live, row: Row | None, value: Content, *, owner: str, store: str, now: Instant, until_s: int = 0
) -> Change:
    """The change that puts ``value`` in place of what stands, held until released (or until ``until_s``).

    ``row`` is the newest row if the store answers; ``store`` the four digits to sign with when no marker stands. A
    family that ``value`` doesn't speak of keeps its addresses. ``now`` is nanoseconds since 1970. Raises ``ValueError``
    if the name is another owner's, or nothing would be left to answer.
    """
    if isinstance(live.marker, Foreign) or (live.marker is not None and live.marker.owner != owner):
        raise ValueError(f"{live.name} belongs to another owner: {live.marker.owner or 'unknown'}")
    kept = Content(value.a or live.a, value.aaaa or live.aaaa, value.weights, value.ttl, value.srv)
    if kept.empty:
        raise ValueError("a repair needs at least one address")
    if (kept.a, kept.aaaa) != (value.a, value.aaaa):
        kept = Content(kept.a, kept.aaaa, (), value.ttl)
        if value.srv is not None:
            others = dict.fromkeys(kept.addresses, value.srv.ports[0])
            others |= ports_of(live.content()) | ports_of(value)
            kept = content(kept.addresses, value.ttl, value.srv.service, others)
    if live.strange_service(kept):
        kept = structs.replace(kept, srv=None)  # the addresses come first; a stranger's SRV records stay a stranger's
    stood = live.marker.generation if live.marker is not None else NEVER
    known = row.generation if row is not None else NEVER
    epoch = hold_epoch("repair", max(stood.epoch, known.epoch), now)
    number = stood.number if live.marker is not None else known.number
    signed = live.marker.store if live.marker else store
    hold = Hold("repair", epoch, until_s)
    marker = Marker.of(owner, signed, Generation(epoch, number), kept, hold, 1)
    if Marker.parse(marker.encode()) != marker:
        raise ValueError(f"no marker can say generation {marker.generation} with these addresses, TTL and end")
    return Change(live.name, live, marker, kept, ("4" if kept.a else "") + ("6" if kept.aaaa else ""))
