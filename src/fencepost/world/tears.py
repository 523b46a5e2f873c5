"""Reads that aren't one moment: what a provider or a store without snapshot reads would answer.

A zone transfer (RFC 5936) is one version of the domain, and an incremental one (RFC 1995) leads to one; a transaction
of the store reads one version too. Where names are listed and then fetched, page by page or one query each, a writer
comes in between: records of one plan are read beside the marker of another, or one endpoint as it was before a
transaction and the next as it was after it.

Here each record set is a read of its own, in the order of names (records before marker) or the other way round. From
the store the head is read, then the rows; the number of the input snapshot, then what is wanted, then the orders; an
endpoint's newest row, then the sets known as ours. Rows that are newer than the head do no harm: the plan is outrun.
"""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import structs

from fencepost.core.effects import Effect, ReadDns, ReadHead, ReadInputs, ReadRows
from fencepost.core.events import Event, HeadRead, InputsRead, RowsRead
from fencepost.core.store import Head, Tables
from fencepost.core.zone import Live
from fencepost.world.faults import Fault
from fencepost.world.model import Move
from fencepost.world.reads import has_read_dns, known_sets, newest_rows, thought
from fencepost.world.region import Mirror, Shared, Slot

Piece: TypeAlias = tuple[int, str]
"""An endpoint's place and what is read of it: "marker", "records", or "marker again"."""
ORDERS: tuple[tuple[str, ...], ...] = (("records", "marker"), ("marker", "records"))
"""How an endpoint's record sets may be read one after the other."""
CAREFUL: tuple[tuple[str, ...], ...] = (("marker", "records", "marker again"),)
"""How an adapter is to read where it has no reads of one moment: from the start again, if the marker is another."""


class Rest(Effect, frozen=True, gc=False):
    """The read under way: of what (an effect's name), and the pieces that are still to be read; ``head`` once read.

    What was read lies in the mirror already.
    """

    what: str
    pieces: tuple[Piece, ...]
    head: Head | None = None
    inputs: int = 0


def begun(slot: Slot, shared: Shared) -> Iterator[Move]:
    """The first piece of a read that is to be torn, if the part is about to read and such reads are."""
    budget = dict(shared.budget)
    rests = []
    if budget.get(Fault.TORN) and isinstance(slot.pending, ReadDns):
        places = range(len(shared.domain))
        blank = structs.replace(slot.mirror, dns=tuple(Live(live.name) for live in shared.domain))
        for kinds in ORDERS:
            pieces = tuple((at, kind) for at in places for kind in kinds)
            rests.append((slot._replace(mirror=blank), Rest("dns", pieces)))
    if budget.get(Fault.TORN_STORE):
        match slot.pending:
            case ReadHead():
                rests.append((slot, Rest("head", ((0, "head"), (0, "rows")))))
            case ReadInputs():
                wanted = tuple((at, "wanted") for at in range(len(shared.domain)))
                rests.append((slot, Rest("inputs", ((0, "number"), *wanted, (0, "orders")))))
            case ReadRows():
                places = range(len(shared.domain))
                blank = structs.replace(slot.mirror, rows=(None,) * len(places), ours=(frozenset(),) * len(places))
                pieces = tuple((at, kind) for at in places for kind in ("row", "ours"))
                rests.append((slot._replace(mirror=blank), Rest("rows", pieces)))
    for reader, rest in rests:
        yield went_on(reader, shared, rest)


def went_on(slot: Slot, shared: Shared, rest: Rest) -> Move:
    """One more piece of a read; after the last one the part thinks."""
    (at, kind), left = rest.pieces[0], rest.pieces[1:]
    tables = shared.stores[slot.store]
    if kind == "marker again":
        if slot.mirror.dns[at].marker != shared.domain[at].marker:
            again = slot._replace(mirror=structs.replace(slot.mirror, dns=()), pending=ReadDns())
            return Move("sees another marker, and starts over", again, shared, event="torn read noticed")
    elif rest.what == "dns":
        slot = slot._replace(mirror=structs.replace(slot.mirror, dns=with_piece(slot.mirror.dns, shared, at, kind)))
    elif kind == "head":
        rest = structs.replace(rest, head=tables.head)
    elif kind == "number":
        rest = structs.replace(rest, inputs=tables.inputs)
    else:
        slot = slot._replace(mirror=from_store(slot, shared, at, kind))
    label = f"reads {shared.domain[at].name}'s {kind}" if rest.what in ("dns", "rows") else f"reads the {kind}"
    if left:
        return Move(label, slot._replace(pending=structs.replace(rest, pieces=left)), shared)
    if rest.what == "dns":
        return has_read_dns(label, slot, shared, "torn read" if slot.mirror.dns != shared.domain else "")
    return thought(label, slot, answer(rest), shared)._replace(event=torn(slot, tables, rest))


def with_piece(read: tuple[Live, ...], shared: Shared, at: int, kind: str) -> tuple[Live, ...]:
    """What was read of the domain, with one piece more."""
    now = shared.domain[at]
    if kind == "marker":
        live = structs.replace(read[at], marker=now.marker)
    else:
        live = structs.replace(now, marker=read[at].marker)
    return read[:at] + (live,) + read[at + 1 :]


def from_store(slot: Slot, shared: Shared, at: int, kind: str) -> Mirror:
    """The mirror with one piece more from the store."""
    tables, mirror = shared.stores[slot.store], slot.mirror
    match kind:
        case "rows":
            return structs.replace(mirror, rows=newest_rows(tables, shared.domain))
        case "wanted":
            return structs.replace(mirror, wanted=(*mirror.wanted, tables.wanted[at]))
        case "orders":
            return structs.replace(mirror, orders=tables.orders)
        case "row":
            rows = (*mirror.rows[:at], tables.newest(shared.domain[at].name), *mirror.rows[at + 1 :])
            return structs.replace(mirror, rows=rows)
        case _:
            ours = (*mirror.ours[:at], known_sets(tables, slot, at), *mirror.ours[at + 1 :])
            return structs.replace(mirror, ours=ours)


def answer(rest: Rest) -> Event:
    """What the part is told once all is read."""
    if rest.head is not None:
        return HeadRead(rest.head)
    return InputsRead(rest.inputs) if rest.what == "inputs" else RowsRead()


def torn(slot: Slot, tables: Tables, rest: Rest) -> str:
    """Whether something was written between the pieces, as far as that can be told at the end."""
    if rest.what == "head":
        return "torn store read" if rest.head != tables.head else ""
    if rest.what == "inputs":
        return "torn store read" if (rest.inputs, slot.mirror.wanted) != (tables.inputs, tables.wanted) else ""
    return ""
