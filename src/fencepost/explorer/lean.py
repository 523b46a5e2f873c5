"""What can't matter is forgotten, so that far fewer states say the same: sound reductions, each with its reason.

Two worlds become one only if every step of one can be matched by the other (after steps of its own that touch nothing
shared). ``tests/promises/test_explorer.py`` checks that too: with and without them the same shared states are reached.

- *Counters of one endpoint.* Cursor, limit and refusals of an enactor decide which endpoints share a transaction, and
  failures how long a timer runs. With one endpoint there is one transaction, and a timer may fire at any time anyway.
- *An outrun planner.* A planner that read a head which is no more can only be refused: a head never comes back, since
  numbers rise and each store has its own identity. It is as good as one that starts over.
- *A spent write.* Without a hand that takes markers away, each applied write makes a marker higher in (generation,
  write count), so what a write had seen never comes back once it has changed. The write will be refused: it is as good
  as refused; in flight, as good as lost. The same goes for an enactor that goes on from an old read of DNS; also from a
  torn one, unless hands change records: its marker was the newest once, and these records will never stand beside it.
- *Older rows* are read only where an unmarked set stands, for rollback, and by the janitor.
- *Local files* are read only where records don't match their marker, or lost it: by a careless hand.
- *When a row was made* matters for how long the janitor keeps it; the explored one keeps nothing.
"""

from collections import Counter

from msgspec import structs

from fencepost.core import zone
from fencepost.core.effects import Commit, Publish, ReadDns, ReadHead, ReadRows
from fencepost.core.fence import Marker
from fencepost.core.store import Head, Row, Tables
from fencepost.core.traffic.dns_enactor import DnsEnactor
from fencepost.core.traffic.dns_planner import DnsPlanner
from fencepost.core.zone import Batch
from fencepost.world.faults import Fault
from fencepost.world.region import NOTHING_READ, Shape, Shared, Slot, enactor, fresh
from fencepost.world.tears import Rest

HANDS_ON_MARKERS = (Fault.MARKER_DELETED, Fault.BOTH, Fault.UNMARKED, Fault.STRANGER)
HANDS_ON_RECORDS = (Fault.EMPTIED, Fault.MARKER_DELETED, Fault.ALTERED, Fault.UNMARKED, Fault.STRANGER)
READERS_OF_OLD_ROWS = (Fault.MARKER_DELETED, Fault.UNMARKED, Fault.STRANGER, Fault.TORN, Fault.ROLLBACK)


class Lean:
    """The reductions that a shape allows; ``on=False`` allows none. ``sometimes`` counts the spent writes seen."""

    def __init__(self, shape: Shape, *, on: bool = True) -> None:
        self.on = on
        self.single = shape.endpoints == 1
        self.at_once = shape.at_once
        torn = shape.may(Fault.TORN) and shape.may(*HANDS_ON_RECORDS)
        self.spends = self.single and not shape.may(*HANDS_ON_MARKERS) and not torn
        self.old_rows = shape.janitors > 0 or shape.may(*READERS_OF_OLD_ROWS)
        self.files = shape.may(*HANDS_ON_RECORDS, Fault.TORN)
        self.sometimes: Counter[str] = Counter()

    def shared(self, shared: Shared) -> Shared:
        """The shared part without what no step can tell."""
        if not self.on:
            return shared
        flight = shared.flight
        if self.spends and flight:
            flight = tuple(batch for batch in flight if not self.spent(batch, shared))
        return structs.replace(shared, stores=tuple(self.store(tables) for tables in shared.stores), flight=flight)

    def store(self, tables: Tables) -> Tables:
        """A store without times, and without older rows if none is read."""
        rows: list[Row] = []
        for row in tables.rows:
            if self.old_rows or all(newer.name != row.name for newer in rows):
                rows.append(row if not row.made_at else structs.replace(row, made_at=0))
        return structs.replace(tables, rows=tuple(rows))

    def slot(self, slot: Slot, shared: Shared) -> Slot:
        """A part without what no step can tell, given what is shared now."""
        if not self.on:
            return slot
        if isinstance(slot.decider, DnsEnactor):
            return self.enactor(slot, shared)
        if isinstance(slot.decider, DnsPlanner):
            return self.planner(slot, slot.decider, shared)
        return slot

    def enactor(self, slot: Slot, shared: Shared) -> Slot:
        """An enactor: no counters, no file, no spent write, as far as the shape allows."""
        if not self.files and any(slot.file):
            slot = slot._replace(file=(None,) * len(slot.file), first=(None,) * len(slot.first))
        if self.single:
            slot = slot._replace(decider=enactor(self.at_once))
        if self.spends:
            old = isinstance(slot.pending, ReadRows) and slot.mirror.dns != shared.domain
            if old or (isinstance(slot.pending, Commit) and self.spent(slot.pending.batch, shared)):
                slot = slot._replace(mirror=NOTHING_READ, pending=ReadDns())
        return slot

    def planner(self, slot: Slot, decider: DnsPlanner, shared: Shared) -> Slot:
        """A planner: starts over if another was first."""
        pending = slot.pending
        head: Head | None = pending.plan.expected if isinstance(pending, Publish) else decider.head
        if isinstance(pending, Rest) and pending.what == "head":
            head = pending.head
        if not isinstance(pending, ReadHead) and head != shared.stores[slot.store].head:
            self.sometimes["outrun"] += isinstance(pending, Publish)
            return fresh(slot)
        if isinstance(pending, Publish):
            rows = tuple(structs.replace(row, made_at=0) for row in pending.plan.rows)
            slot = slot._replace(pending=Publish(structs.replace(pending.plan, rows=rows)))
        if decider.failures:
            slot = slot._replace(decider=structs.replace(decider, failures=0))
        return slot

    def spent(self, batch: Batch, shared: Shared) -> bool:
        """Whether a write can't apply any more."""
        for change in batch:
            live = next(live for live in shared.domain if live.name == change.name)
            if not zone.exact(live, change):
                newer = isinstance(live.marker, Marker) and live.marker.generation > change.marker.generation
                self.sometimes["fenced" if newer else "drifted"] += 1
                return True
        return False

    def stirred(self, before: Shared, after: Shared) -> bool:
        """Whether a step may have outdated what other parts hold."""
        if not self.on:
            return False
        heads = any(old.head != new.head for old, new in zip(before.stores, after.stores, strict=True))
        return heads or (self.spends and before.domain != after.domain)
