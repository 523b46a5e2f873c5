"""What plans are made from: configuration, membership, overrides, orders. Each function runs inside a transaction.

Each change raises the snapshot counter in the same transaction, so a snapshot's number says exactly what it holds.
Carrying out an order is no such change: it comes with a new head, and the two together name what was read.
"""

import sqlite3
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from fencepost.adapters.store_bodies import decoded
from fencepost.adapters.store_sqlite.plans import encode, head_and_snapshot
from fencepost.core.store import Head, Order
from fencepost.ports import Inputs, Refused

_decode_order = msgspec.json.Decoder(Order).decode


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """Inputs, and the head they were read beside."""

    head: Head
    inputs: Inputs


def read(db: sqlite3.Connection, known: Snapshot | None) -> Snapshot:
    """The inputs now: ``known`` itself if nothing changed since."""
    head, snapshot = head_and_snapshot(db)
    if known is not None and known.head.store == head.store and known.inputs.snapshot == snapshot:
        # Only orders that a plan carried out can differ. The configuration may have megabytes: it isn't read again.
        return known if known.head == head else Snapshot(head, replace(known.inputs, orders=_orders(db)))
    config = db.execute("SELECT body FROM config").fetchone()
    pools = db.execute("SELECT pool, version, body FROM membership")
    return Snapshot(
        head,
        Inputs(
            snapshot,
            config[0] if config else b"",
            MappingProxyType({pool: (version, body) for pool, version, body in pools}),
            MappingProxyType(dict(db.execute("SELECT name, body FROM override"))),
            _orders(db),
        ),
    )


def _orders(db: sqlite3.Connection) -> tuple[Order, ...]:
    waiting = db.execute("SELECT id, body FROM waiting_order ORDER BY seq")
    return tuple(decoded("waiting_order", name, _decode_order, body) for name, body in waiting)


def changed(db: sqlite3.Connection) -> None:
    """Count a change of the inputs."""
    db.execute("UPDATE head SET snapshot = snapshot + 1")


def put_order(db: sqlite3.Connection, order: Order) -> None:
    """Queue an order; nothing if it waits already or was carried out. ``Refused`` if that id is another order's."""
    body = encode(order)
    waiting = db.execute("SELECT body FROM waiting_order WHERE id = ?", (order.id,)).fetchone()
    if waiting is not None and waiting[0] != body:
        raise Refused(f"order {order.id} is another one already", hint="give each order an id of its own")
    if waiting is not None or db.execute("SELECT 1 FROM carried_out WHERE id = ?", (order.id,)).fetchone():
        return
    db.execute("INSERT INTO waiting_order (id, body) VALUES (?, ?)", (order.id, body))
    changed(db)


def put_config(db: sqlite3.Connection, body: bytes, expected: bytes) -> bool:
    """Compare-and-set on the loaded configuration; whether it was the expected one (b"": none)."""
    stored = db.execute("SELECT body FROM config").fetchone()
    if (stored[0] if stored is not None else b"") != expected:
        return False
    if body != expected:
        db.execute("INSERT OR REPLACE INTO config VALUES (1, ?)", (body,))
        changed(db)
    return True


def membership(db: sqlite3.Connection, pool: str) -> tuple[int, bytes]:
    """A pool's (version, JSON); (0, b"") before the first."""
    found = db.execute("SELECT version, body FROM membership WHERE pool = ?", (pool,)).fetchone()
    return (found[0], found[1]) if found else (0, b"")


def put_membership(db: sqlite3.Connection, pool: str, expected: int, body: bytes) -> bool:
    """Compare-and-set on the pool's version; whether it was the expected one."""
    if membership(db, pool)[0] != expected:
        return False
    db.execute("INSERT OR REPLACE INTO membership VALUES (?, ?, ?)", (pool, expected + 1, body))
    changed(db)
    return True
