"""Overrides (drain, keep, pause): placed, ended, read alone, and put back from what enactors remember of a lost store.

Enactors come to a new store one after the other, and one that was stopped may come days later. So the store remembers
of each id that ever stood here where it came from: from a person ("") or from a lost store (its identity). An id that
is known and doesn't stand was resumed here, and stays so. That is one small row for each id ever used; it isn't cleaned
up, since it can't be known when the last enactor has come.
"""

import sqlite3
from collections.abc import Sequence
from types import MappingProxyType

from fencepost.adapters.store_sqlite.inputs import changed
from fencepost.adapters.store_sqlite.plans import head_and_snapshot
from fencepost.ports import Overrides, PutBack


def put(db: sqlite3.Connection, name: str, body: bytes) -> None:
    """Place or replace an override."""
    _place(db, name, body, "")
    changed(db)


def _place(db: sqlite3.Connection, name: str, body: bytes, lost: str) -> None:
    db.execute("INSERT OR REPLACE INTO override VALUES (?, ?)", (name, body))
    db.execute("INSERT OR REPLACE INTO override_origin VALUES (?, ?)", (name, lost))


def drop(db: sqlite3.Connection, name: str) -> bool:
    """End an override; whether there was one."""
    if db.execute("DELETE FROM override WHERE name = ?", (name,)).rowcount == 0:
        return False
    changed(db)
    return True


def read(db: sqlite3.Connection, known: Overrides | None) -> Overrides:
    """The overrides alone; ``known`` itself if no input changed since."""
    head, snapshot = head_and_snapshot(db)
    if known is not None and (known.store, known.snapshot) == (head.store, snapshot):
        return known
    return Overrides(head.store, snapshot, MappingProxyType(dict(db.execute("SELECT name, body FROM override"))))


def put_back(db: sqlite3.Connection, back: PutBack) -> Sequence[str] | None:
    """Place what a lost store held; the ids that changed, or None if the inputs aren't those seen any more."""
    head, snapshot = head_and_snapshot(db)
    if (head.store, snapshot) != (back.into, back.seen):
        return None
    before = db.execute("SELECT snapshot FROM put_back WHERE lost = ?", (back.lost,)).fetchone()
    if before is not None and before[0] >= back.snapshot:
        return ()
    db.execute("INSERT OR REPLACE INTO put_back VALUES (?, ?)", (back.lost, back.snapshot))
    origins = dict(db.execute("SELECT name, lost FROM override_origin"))
    stand = dict(db.execute("SELECT name, body FROM override"))
    done = [name for name in stand if origins.get(name) == back.lost and name not in back.words]
    db.executemany("DELETE FROM override WHERE name = ?", ((name,) for name in done))
    for name, body in back.words.items():
        ours = origins.get(name) == back.lost and name in stand and stand[name] != body
        if name not in origins or ours:
            _place(db, name, body, back.lost)
            done.append(name)
    if done:
        changed(db)
    return sorted(done)
