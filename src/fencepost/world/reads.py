"""What reading is: what a part's mirror holds afterwards, what its local file keeps, and that it then thinks."""

from msgspec import structs

from fencepost.core import judge as judging
from fencepost.core.events import DnsRead, Event
from fencepost.core.judge import Remembered
from fencepost.core.record_set import record_digest
from fencepost.core.store import Row, Tables
from fencepost.core.traffic.dns_planner import DnsPlanner
from fencepost.core.zone import Live
from fencepost.world.model import Move
from fencepost.world.region import BETWEEN_HOLDS_S, Shared, Slot, advance, placed


def has_read_dns(label: str, slot: Slot, shared: Shared, event: str = "") -> Move:
    """The part knows what stands in DNS now, and so does its local file; a planner then asks what was enacted."""
    if shared.enacted and isinstance(slot.decider, DnsPlanner):
        slot = slot._replace(mirror=structs.replace(slot.mirror, enacted=shared.enacted[slot.store]))
    if slot.file:
        slot = keep(slot, recollect(slot.file, slot.mirror.dns))
    return thought(label, slot, DnsRead(), shared)._replace(event=event)


def keep(slot: Slot, file: tuple[Remembered | None, ...]) -> Slot:
    """The part with another local file; the first copy is made where that may be put back."""
    first = tuple(old or new for old, new in zip(slot.first, file, strict=True)) if slot.first else ()
    return slot._replace(file=file, first=first)


def thought(label: str, slot: Slot, event: Event, shared: Shared) -> Move:
    """The part thinks about an answer; if it decides to place a hold, time passes."""
    told = advance(slot, event, shared.now)
    if placed(told.pending, slot.mirror) > shared.tick:
        shared = structs.replace(shared, tick=shared.tick + BETWEEN_HOLDS_S)
    return Move(label, told, shared)


def newest_rows(tables: Tables, domain: tuple[Live, ...]) -> tuple[Row | None, ...]:
    """Each endpoint's newest row."""
    return tuple(tables.newest(live.name) for live in domain)


def recollect(file: tuple[Remembered | None, ...], domain: tuple[Live, ...]) -> tuple[Remembered | None, ...]:
    """The local file after a read of DNS."""
    return tuple(judging.remember(live, "4") or known for live, known in zip(domain, file, strict=True))


def known_sets(tables: Tables, slot: Slot, at: int) -> frozenset[str]:
    """Digests of the address sets that kept rows or the local file know, where an unmarked set was seen."""
    live, known = slot.mirror.dns[at], slot.file[at]
    if live.marker is not None or live.empty:
        return frozenset()
    sets = {record_digest(row.content.a, row.content.aaaa) for row in tables.rows if row.name == live.name}
    return frozenset(sets | ({record_digest(known.content.a, known.content.aaaa)} if known else set()))
