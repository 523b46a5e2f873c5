"""What plans are made from: configuration, membership, overrides, orders. Each function runs inside a transaction.

Each change raises the snapshot counter in the same transaction, so a snapshot's number says exactly what it holds. The
counter stands in the head's row, and whoever changes an input takes that row's lock first. Carrying out an order is no
such change: it comes with a new head, and the two together name what was read.
"""

from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from fencepost.adapters.store_bodies import decoded
from fencepost.adapters.store_postgresql.plans import encode, head_and_snapshot, locked_head
from fencepost.adapters.store_postgresql.session import Session
from fencepost.core.store import Head, Order
from fencepost.ports import Inputs, Refused

_decode_order = msgspec.json.Decoder(Order).decode


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """Inputs, and the head they were read beside."""

    head: Head
    inputs: Inputs


def read(session: Session, known: Snapshot | None) -> Snapshot:
    """The inputs now: ``known`` itself if nothing changed since."""
    head, snapshot = head_and_snapshot(session)
    if known is not None and known.head.store == head.store and known.inputs.snapshot == snapshot:
        # Only orders that a plan carried out can differ. The configuration may have megabytes: it isn't read again.
        return known if known.head == head else Snapshot(head, replace(known.inputs, orders=_orders(session)))
    config = session.one("SELECT body FROM config")
    pools = session.rows("SELECT pool, version, body FROM membership")
    return Snapshot(
        head,
        Inputs(
            snapshot,
            config[0] if config else b"",
            MappingProxyType({pool: (version, body) for pool, version, body in pools}),
            MappingProxyType(dict(session.rows("SELECT name, body FROM override"))),
            _orders(session),
        ),
    )


def unchanged(session: Session, known: Snapshot) -> bool:
    """Whether nothing has changed since, orders included."""
    return head_and_snapshot(session) == (known.head, known.inputs.snapshot)


def _orders(session: Session) -> tuple[Order, ...]:
    waiting = session.rows("SELECT id, body FROM waiting_order ORDER BY seq")
    return tuple(decoded("waiting_order", name, _decode_order, body) for name, body in waiting)


def changed(session: Session) -> None:
    """Count a change of the inputs, and wake who waits for it."""
    session.execute("UPDATE head SET snapshot = snapshot + 1")
    session.notify_plans()


def put_order(session: Session, order: Order) -> None:
    """Queue an order; nothing if it waits already or was carried out. ``Refused`` if that id is another order's."""
    locked_head(session)
    body = encode(order)
    waiting = session.one("SELECT body FROM waiting_order WHERE id = %s", (order.id,))
    if waiting is not None and waiting[0] != body:
        raise Refused(f"order {order.id} is another one already", hint="give each order an id of its own")
    if waiting is not None or session.one("SELECT 1 FROM carried_out WHERE id = %s", (order.id,)):
        return
    session.execute("INSERT INTO waiting_order (id, body) VALUES (%s, %b)", (order.id, body))
    changed(session)


def put_config(session: Session, body: bytes, expected: bytes) -> bool:
    """Compare-and-set on the loaded configuration; whether it was the expected one (b"": none)."""
    locked_head(session)
    stored = session.one("SELECT body FROM config")
    if (stored[0] if stored is not None else b"") != expected:
        return False
    if body != expected:
        session.execute(
            "INSERT INTO config VALUES (1, %b) ON CONFLICT (one) DO UPDATE SET body = excluded.body", (body,)
        )
        changed(session)
    return True


def membership(session: Session, pool: str) -> tuple[int, bytes]:
    """A pool's (version, JSON); (0, b"") before the first."""
    found = session.one("SELECT version, body FROM membership WHERE pool = %s", (pool,))
    return (found[0], found[1]) if found else (0, b"")


def put_membership(session: Session, pool: str, expected: int, body: bytes) -> bool:
    """Compare-and-set on the pool's version; whether it was the expected one."""
    locked_head(session)
    found = session.one("SELECT version FROM membership WHERE pool = %s", (pool,))
    if (found[0] if found else 0) != expected:
        return False
    session.execute(
        "INSERT INTO membership VALUES (%s, %s, %b)"
        " ON CONFLICT (pool) DO UPDATE SET version = excluded.version, body = excluded.body",
        (pool, expected + 1, body),
    )
    changed(session)
    return True
