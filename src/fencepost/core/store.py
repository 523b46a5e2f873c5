"""Versioned rows and one compare-and-set on a head: the reference semantics of a store.

A plan is a set of rows, one for each endpoint it changes, keyed by the plan's nonce, and a head that names the plan.
Rows count only if the chain of heads names their nonce: a writer that died between its rows and the head has published
nothing, and two writers can't make one generation with two contents. The head carries the store's identity, drawn when
the store is made, so that a wiped or replaced store is never mistaken for the one a writer read before.

Orders (a person's withdrawal, rollback, release, adoption) wait in the store until a planner carries them out; the plan
that does so spends them in the same compare-and-set, so none is done twice.
"""

from functools import lru_cache
from typing import Literal, Self, TypeAlias

from msgspec import Struct, structs

from fencepost.core.fence import TTL_MAX, Generation, Hold, Marker, digest
from fencepost.core.instant import Instant
from fencepost.core.record_set import NOTHING, Content, is_canonical

CONTESTED_AT = 3
"""So many times another store of one owner may replace our enacted row; then a person must say which store counts."""


class Row(Struct, frozen=True, gc=False):
    """What one endpoint should answer, as of the plan ``generation.number``.

    ``store`` and ``nonce`` are stamped when it is published: the four digits its marker will carry, and its plan's
    nonce. ``inputs`` is the input snapshot it was made from; ``released`` the highest hold id that a release has ended;
    ``replaced`` how often another store's marker replaced an enacted row of this one; ``adopt`` the digest of the one
    unmarked record set it may take over ("" = none). ``by``, ``reason`` and ``made_at`` (nanoseconds since 1970) are
    for people and never enter DNS.
    """

    name: str
    generation: Generation
    content: Content
    digest: str
    families: str
    hold: Hold | None = None
    store: str = ""
    nonce: str = ""
    inputs: int = 0
    released: int = 0
    replaced: int = 0
    adopt: str = ""
    by: str = ""
    reason: str = ""
    made_at: Instant = 0

    @classmethod
    def of(cls, name: str, generation: Generation, value: Content, hold: Hold | None = None, *, families: str) -> Self:
        """A row whose digest is its content's."""
        return cls(name, generation, value, digest(value, hold), families, hold)

    def writable(self, owner: str) -> bool:
        """Whether its marker says exactly this: an order's odd content (unsorted, out of range) would be unreadable."""
        return _writable(owner, self.generation, self.content, self.hold)

    @property
    def withdrawn(self) -> bool:
        """Whether this is a tombstone."""
        return self.hold is not None and self.hold.kind == "withdraw"

    @property
    def contested(self) -> bool:
        """Whether two stores with one owner fight over the endpoint, and this one has to stop."""
        return self.replaced >= CONTESTED_AT


@lru_cache(maxsize=1024)
def _writable(owner: str, generation: Generation, value: Content, hold: Hold | None) -> bool:
    """What :meth:`Row.writable` says: remembered, since most endpoints of a plan and pool have the same marker."""
    try:
        made = Marker.of(owner, "0000", generation, value, hold, 1)
        known = Marker.parse(made.encode())
        same = is_canonical(value)
    except (ValueError, OverflowError):
        return False
    return known == made and same and 0 <= value.ttl <= TTL_MAX


class Wanted(Struct, frozen=True, gc=False):
    """What the inputs ask of an endpoint: a pure function of one input snapshot.

    ``shift_since`` is when a mere capacity shift (weights only) began, nanoseconds; 0 when nothing is being gathered.
    ``back``: what came into service last had been in service before; plans call it so.
    """

    content: Content
    families: str
    shift_since: Instant = 0
    back: bool = False


OrderKind: TypeAlias = Literal["withdraw", "rollback", "release", "adopt"]


class Order(Struct, frozen=True, gc=False):
    """A person's order about one endpoint, waiting for a planner.

    ``content`` is the older plan's for a rollback; ``until_s`` the hold's expiry (seconds since 1970, 0 = until
    released); ``hold`` the epoch a release names (it ends holds up to it); ``adopt`` the digest of the exact records
    seen.
    """

    id: str
    kind: OrderKind
    name: str
    content: Content = NOTHING
    until_s: int = 0
    hold: int = 0
    adopt: str = ""
    by: str = ""
    reason: str = ""


class Head(Struct, frozen=True, gc=False):
    """The newest plan: the store's identity, the plan's number and nonce, and the input snapshot it was made from."""

    store: str
    number: int = 0
    nonce: str = ""
    inputs: int = 0

    @property
    def mark(self) -> str:
        """The four hex digits that markers carry."""
        return self.store[:4]


class Plan(Struct, frozen=True, gc=False):
    """What a planner publishes: the rows it changes, the orders it carries out, and the head it was made on."""

    expected: Head
    number: int
    inputs: int
    rows: tuple[Row, ...]
    spends: tuple[str, ...] = ()
    why: tuple[str, ...] = ()


class Tables(Struct, frozen=True, gc=False):
    """A store as one value, for the explorer and the reference. ``rows`` is newest first for each name."""

    head: Head
    rows: tuple[Row, ...] = ()
    wanted: tuple[tuple[str, Wanted], ...] = ()
    orders: tuple[Order, ...] = ()
    inputs: int = 0

    def newest(self, name: str) -> Row | None:
        """The newest row of an endpoint; None means unknown, never withdrawn."""
        return next((row for row in self.rows if row.name == name), None)


def stamped(plan: Plan, nonce: str) -> tuple[Head, tuple[Row, ...]]:
    """The head and rows that publishing ``plan`` under ``nonce`` makes."""
    head = Head(plan.expected.store, plan.number, nonce, plan.inputs)
    return head, tuple(structs.replace(row, store=head.mark, nonce=nonce, inputs=plan.inputs) for row in plan.rows)


def publish(tables: Tables, plan: Plan, nonce: str) -> Tables | None:
    """The store after the plan, or None if its head has moved: nothing changed, and the plan is to be thrown away."""
    if tables.head != plan.expected:
        return None
    head, rows = stamped(plan, nonce)
    orders = tuple(order for order in tables.orders if order.id not in plan.spends)
    return structs.replace(tables, head=head, rows=rows + tables.rows, orders=orders)


def delete_row(tables: Tables, name: str, generation: Generation, nonce: str) -> Tables | None:
    """The store without one row, or None if no row of that generation has that nonce.

    The nonce matters: after a wiped store the same generation may come again, and it isn't the row the janitor judged.
    """
    kept = tuple(
        row for row in tables.rows if not (row.name == name and row.generation == generation and row.nonce == nonce)
    )
    return structs.replace(tables, rows=kept) if len(kept) < len(tables.rows) else None
