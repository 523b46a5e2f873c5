"""The DNS planner: turns inputs, orders and what stands in DNS into numbered plans.

A pass reads the head, then the inputs, then DNS, and publishes by compare-and-set on that head. The order of the first
two is why no plan is ever made from older inputs than its predecessor's: who published the head had read his inputs
before, and ours are read after. A refused plan is thrown away, never renumbered: its number would then say newer than
its content is. Any number of planners may run.

The planner also *adopts*. A marker of ours above the newest row (a repair made without the store, a wiped or restored
store), or equal with another digest, is something that stands and that no row knows: the planner publishes above it,
with the marker's content while its hold stands and no newer one is in the store, else with what is wanted now. Taking
the number without the content would undo the repair; taking nothing would leave every enactor waiting.

What stands without a marker waits for a person's order to adopt it, which names the exact records seen. Adopting
changes no address: the row that takes them over has what stands for its content, and stays until a marker shows that it
has been enacted. Only then does the next plan go on to what is wanted. A row that asked for that at once would have the
enactors overwrite the records in the very write that first marks them as ours.

Rollback, withdrawal and repair are *holds*: content that a level-based planner would otherwise undo at its next pass. A
hold ends by a release that names it (or a later one), by its time, or is replaced by a later hold.
"""

from typing import NamedTuple

from msgspec import Struct, structs

from fencepost.core.effects import Effect, Publish, ReadDns, ReadHead, ReadInputs, Survey, Wake
from fencepost.core.events import (
    DnsRead,
    Event,
    Failed,
    Failure,
    HeadRead,
    InputsRead,
    Outrun,
    Published,
    Standing,
    Surveyed,
    Woke,
)
from fencepost.core.fence import NEVER, Generation, Hold, Marker, hold_epoch, plausible
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND, Duration, Instant
from fencepost.core.jitter import jitter
from fencepost.core.record_set import NOTHING, Content, record_digest
from fencepost.core.store import Head, Order, Plan, Row, Wanted
from fencepost.core.zone import lacks_family

BLANK = Head("")
SHOWN_MOST = 6
"""So many addresses a plan's line names; of more it says how many."""


class PlannerSettings(Struct, frozen=True, gc=False):
    """``gather`` is how long capacity shifts are collected; removals, repairs and orders never wait.

    ``idle``, ``retry``, ``retry_most`` and ``misconfigured`` are as for the enactor.
    """

    name: str
    owner: str
    gather: Duration = 30 * SECOND
    idle: Duration = SECOND
    retry: Duration = 50 * MILLISECOND
    retry_most: Duration = 2 * SECOND
    misconfigured: Duration = MINUTE


class DnsPlanner(Struct, gc=False):
    """The planner's whole state: the head and the input snapshot of the pass under way."""

    settings: PlannerSettings
    head: Head = BLANK
    inputs: int = 0
    failures: int = 0

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """One step of a pass; ``now`` is nanoseconds since 1970, for a hold's epoch and expiry only."""
        match event:
            case Woke():
                return (ReadHead(),)
            case HeadRead(head=head):
                self.head = head
                return (ReadInputs(),)
            case InputsRead(inputs=inputs):
                self.inputs = inputs
                return (ReadDns(),)
            case DnsRead():
                return (Survey(),)
            case Surveyed():
                return (self.plan(event, now),)
            case Published():
                self.rest()
                return (ReadHead(),)
            case Outrun():
                self.rest()
                return (Wake(jitter(self.settings.retry, self.settings.name, self.head.number) + MILLISECOND),)
            case Failed():
                return (self.back_off(event),)
            case _:
                raise TypeError(f"a planner is never told {type(event).__name__}")

    def rest(self) -> None:
        """Forget the pass: what it read is worth nothing to the next."""
        self.head, self.inputs, self.failures = BLANK, 0, 0

    def plan(self, survey: Surveyed, now: Instant) -> Effect:
        """The next plan, or sleep if every endpoint is as wanted."""
        number = max(self.head.number, survey.highest) + 1
        rows: list[Row] = []
        spends: list[str] = []
        why: list[str] = []
        wait = self.settings.idle
        for standing in survey.standings:
            due = gathered_at(standing, self.settings.gather)
            if due > now:
                wait = min(wait, due - now)
                continue
            row = next_row(standing, self.settings.owner, number, now, self.head.mark)
            if row is None and must_wait(standing):
                continue
            spends.extend(order.id for order in standing.orders)
            if row is not None:
                rows.append(row)
                why.append(reason(standing, row))
        if not rows and not spends:
            self.rest()
            return Wake(wait)
        plan = Plan(self.head, number, self.inputs, tuple(rows), tuple(spends), tuple(why))
        self.rest()
        return Publish(plan)

    def back_off(self, event: Failed) -> Effect:
        """Wait before starting over; half is jitter."""
        failures = min(self.failures + 1, 16)
        self.rest()
        self.failures = failures
        if event.failure is Failure.MISCONFIGURED:
            return Wake(self.settings.misconfigured)
        wait = min(self.settings.retry << failures, self.settings.retry_most)
        return Wake(wait // 2 + jitter(wait // 2, self.settings.name, failures))


class Ground(NamedTuple):
    """What an endpoint's next row starts from: the highest epoch seen, the hold that stands and its content, or none.

    ``released`` is the highest hold id that a release, or its time, has ended.
    """

    epoch: int
    hold: Hold | None
    content: Content | None
    released: int


def gathered_at(standing: Standing, gather: Duration) -> Instant:
    """When an endpoint's change may be planned: 0 at once; later only for a shift of weights and nothing else.

    A shift waits for others from when it began, and from the endpoint's last row: a target that comes back over a
    minute, a tenth at a time, makes two plans and not ten.
    """
    wanted, row = standing.wanted, standing.row
    if wanted is None or row is None or standing.orders or not wanted.shift_since or needs_adoption(standing):
        return 0
    new, old = wanted.content, row.content
    shifts = (new.a, new.aaaa, new.ttl, new.srv) == (old.a, old.aaaa, old.ttl, old.srv)
    return max(wanted.shift_since, row.made_at) + gather if shifts and row.hold is None else 0


def must_wait(standing: Standing) -> bool:
    """Whether a release can't be carried out yet: what it would go back to isn't known (a store just lost, say)."""
    wanted = standing.wanted
    unknown = wanted is None or lacks_family(wanted.content, wanted.families)
    return unknown and any(order.kind == "release" for order in standing.orders)


def needs_adoption(standing: Standing) -> bool:
    """Whether a marker stands that no row knows: above the newest, or equal with another digest.

    An absent row counts as older than any marker. What the marker's owner is, :func:`next_row` has looked at before.
    """
    marker, row = standing.live.marker, standing.row
    if not isinstance(marker, Marker):
        return False
    if row is None:
        return True
    return marker.generation > row.generation or (marker.generation == row.generation and marker.digest != row.digest)


def next_row(standing: Standing, owner: str, number: int, now: Instant, mark: str) -> Row | None:
    """The endpoint's row in plan ``number``; None if it is to stay as it is.

    ``mark`` is the four digits of the store planned for. Content is a pure function of the snapshot, the orders and the
    marker: two planners that read the same make the same.
    """
    marker = standing.live.marker if isinstance(standing.live.marker, Marker) else None
    if marker is not None and (marker.owner != owner or not plausible(marker.generation, number, now)):
        return None
    row = standing.row
    if row is not None and row.contested and not any(order.kind == "adopt" for order in standing.orders):
        return None
    adopts = marker is not None and needs_adoption(standing)
    ground = standing_on(marker if adopts else None, row, standing.orders, now)
    ground = carry_out(standing.orders, ground, marker, row, now)
    made = compose(standing, ground, number, now)
    if made is None or not made.writable(owner):
        return None
    replaced = times_replaced(standing, marker, mark) if adopts else (row.replaced if row else 0)
    adoptions = [order.adopt for order in standing.orders if order.kind == "adopt"]
    if adoptions:
        made = structs.replace(made, replaced=0, adopt=adoptions[-1])
    else:
        # An adoption is spent by the commit: it stands in the row until a marker does, and in none after that.
        spent = marker is not None
        made = structs.replace(made, replaced=replaced, adopt=row.adopt if row is not None and not spent else "")
    if row is None or adopts:
        return made
    told = (row.digest, row.released, row.adopt, row.replaced)
    return made if (made.digest, made.released, made.adopt, made.replaced) != told else None


def standing_on(marker: Marker | None, row: Row | None, orders: tuple[Order, ...], now: Instant) -> Ground:
    """What stands before this pass's orders: the later of the marker's hold (if it is being adopted) and the row's."""
    epoch = max(row.generation.epoch if row else 0, marker.generation.epoch if marker else 0)
    orders = tuple(no_further(order, epoch, now) for order in orders)
    noted = row.released if row else 0
    released = max([noted, *(order.hold for order in orders if order.kind == "release")])
    hold, value = (row.hold, row.content) if row is not None and row.hold is not None else (None, None)
    if marker is not None and marker.hold is not None and (hold is None or marker.hold.id > hold.id):
        hold, value = marker.hold, marker.content
    if hold is not None and ended(hold, orders, noted, now):
        released = max(released, hold.id)
        hold, value = None, None
    return Ground(epoch, hold, value, released)


def no_further(order: Order, known: int, now: Instant) -> Order:
    """A release ends what stands or stood, never a hold to come: those get an epoch of at least this second."""
    return structs.replace(order, hold=min(order.hold, max(known, now // SECOND - 1)))


def ended(hold: Hold, orders: tuple[Order, ...], released: int, now: Instant) -> bool:
    """Whether a release that names the hold (or a later one) or its time has ended it.

    ``released`` is the highest id that releases before these ``orders`` named. That an order says "release" isn't
    enough: it may be about an earlier hold, and land after a later one has come to stand.
    """
    return hold.ended(max([released, *(order.hold for order in orders if order.kind == "release")]), now)


def carry_out(
    orders: tuple[Order, ...], ground: Ground, marker: Marker | None, row: Row | None, now: Instant
) -> Ground:
    """The ground once withdrawals and rollbacks have been placed, in the order they were given."""
    for order in orders:
        if order.kind != "withdraw" and order.kind != "rollback":
            continue
        if order.kind == "rollback" and row is not None and lacks_family(order.content, row.families):
            continue  # it would empty a family that is published today
        epoch = hold_epoch(order.kind, max(ground.epoch, marker.generation.epoch if marker else 0), now)
        value = NOTHING if order.kind == "withdraw" else order.content
        ground = ground._replace(epoch=epoch, hold=Hold(order.kind, epoch, order.until_s), content=value)
    return ground


def compose(standing: Standing, ground: Ground, number: int, now: Instant) -> Row | None:
    """The row that the ground and the inputs make; None if the inputs don't say, or would empty a published family."""
    wanted, row = standing.wanted, standing.row
    if ground.hold is not None and ground.content is not None:
        value, hold = ground.content, ground.hold
        families = row.families if row is not None and not lacks_family(value, row.families) else families_of(value)
    elif (seen := as_seen(standing)) is not None:
        value, hold, families = seen, None, families_of(seen)
    else:
        if wanted is None or lacks_family(wanted.content, wanted.families) or not wanted.families:
            return None
        value, hold, families = wanted.content, None, wanted.families
    made = Row.of(standing.name, Generation(ground.epoch, number), value, hold, families=families)
    order = standing.orders[-1] if standing.orders else None
    by, why = (order.by, order.reason) if order else (row.by, row.reason) if row and row.hold == hold else ("", "")
    return structs.replace(made, released=ground.released, by=by, reason=why, made_at=now)


def as_seen(standing: Standing) -> Content | None:
    """The unmarked records that stand, if an order (or the row that carries it out) adopts exactly these; else None."""
    live, row = standing.live, standing.row
    if live.marker is not None or live.empty:
        return None
    named = {order.adopt for order in standing.orders if order.kind == "adopt"} | {row.adopt if row is not None else ""}
    return live.content() if record_digest(live.a, live.aaaa) in named else None


def families_of(value: Content) -> str:
    """The families a content is published in, when nothing else says."""
    return ("4" if value.a else "") + ("6" if value.aaaa else "")


def times_replaced(standing: Standing, marker: Marker | None, mark: str) -> int:
    """How often another store's marker has replaced our enacted row, this time included.

    Counted in the store: kept in memory each crash would forget it, and kept in the marker both sides would stop after
    a wipe. A new store starts at zero and has enacted nothing, so it isn't the one that stops.
    """
    row = standing.row
    if row is None or marker is None:
        return 0
    foreign = marker.store != mark and row.store == mark and standing.enacted
    return row.replaced + (1 if foreign else 0)


def reason(standing: Standing, row: Row) -> str:
    """A line for people: what this row is for."""
    if row.adopt and row.hold is None and as_seen(standing) is not None:
        return f"{standing.name}: takes over what stands"
    if row.hold is not None and (standing.row is None or standing.row.hold != row.hold):
        return f"{standing.name}: {row.hold.kind}"
    if needs_adoption(standing):
        marker = standing.live.marker
        generation = marker.generation if isinstance(marker, Marker) else NEVER
        changed = moved((*standing.live.a, *standing.live.aaaa), row.content.addresses, back=False)
        return f"{standing.name}: adopts generation {generation}{f', {changed}' if changed else ''}"
    return f"{standing.name}: {difference(standing.row, row, standing.wanted)}"


def difference(old: Row | None, new: Row, wanted: Wanted | None) -> str:
    """In a few words, what a row changes for callers."""
    if old is None:
        return "as wanted"
    if old.hold is not None and new.hold is None:
        return f"{old.hold.kind} released"
    if (old.content.a, old.content.aaaa) != (new.content.a, new.content.aaaa):
        return moved(old.content.addresses, new.content.addresses, back=wanted is not None and wanted.back)
    if old.content.srv != new.content.srv:
        return f"SRV records {old.content.srv or 'none'} -> {new.content.srv or 'none'}"
    if old.content.weights != new.content.weights:
        return "a shift of weights"
    if old.content.ttl != new.content.ttl:
        return f"ttl {old.content.ttl} s -> {new.content.ttl} s"
    return "as wanted"


def moved(old: tuple[str, ...], new: tuple[str, ...], *, back: bool) -> str:
    """Every address that comes or goes, in words; of many their number and the first few.

    By what the rows say, not by the last move of the pool: several may lie between two plans. ``back``: those that come
    have been in service before.
    """
    gone, came = [each for each in old if each not in set(new)], [each for each in new if each not in set(old)]
    parts = [f"takes out {listed(gone)}"] if gone else []
    parts += [f"{'brings back' if back else 'adds'} {listed(came)}"] if came else []
    return ", ".join(parts)


def listed(addresses: list[str]) -> str:
    """Some addresses, or how many and the first."""
    if len(addresses) <= SHOWN_MOST:
        return ", ".join(addresses)
    return f"{len(addresses)} targets: {', '.join(addresses[:SHOWN_MOST])}, ..."
