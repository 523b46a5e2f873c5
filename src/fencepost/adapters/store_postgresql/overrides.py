"""Overrides (drain, keep, pause): placed, ended, read alone, and put back from what enactors remember of a lost store.

Enactors come to a new store one after the other, and one that was stopped may come days later. So the store remembers
of each id that ever stood here where it came from: from a person ("") or from a lost store (its identity). An id that
is known and doesn't stand was resumed here, and stays so. That is one small row for each id ever used; it isn't cleaned
up, since it can't be known when the last enactor has come.
"""

from collections.abc import Sequence
from types import MappingProxyType

from fencepost.adapters.store_postgresql.inputs import changed
from fencepost.adapters.store_postgresql.plans import head_and_snapshot, locked_head
from fencepost.adapters.store_postgresql.session import Session
from fencepost.ports import Overrides, PutBack


def put(session: Session, name: str, body: bytes) -> None:
    """Place or replace an override."""
    locked_head(session)
    _place(session, name, body, "")
    changed(session)


def _place(session: Session, name: str, body: bytes, lost: str) -> None:
    session.execute(
        "INSERT INTO override VALUES (%s, %b) ON CONFLICT (name) DO UPDATE SET body = excluded.body", (name, body)
    )
    session.execute(
        "INSERT INTO override_origin VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET lost = excluded.lost",
        (name, lost),
    )


def drop(session: Session, name: str) -> bool:
    """End an override; whether there was one."""
    locked_head(session)
    if session.execute("DELETE FROM override WHERE name = %s", (name,)) == 0:
        return False
    changed(session)
    return True


def read(session: Session) -> Overrides:
    """The overrides alone."""
    head, snapshot = head_and_snapshot(session)
    words = dict(session.rows("SELECT name, body FROM override"))
    return Overrides(head.store, snapshot, MappingProxyType(words))


def unchanged(session: Session, known: Overrides) -> bool:
    """Whether no input has changed since."""
    head, snapshot = head_and_snapshot(session)
    return (known.store, known.snapshot) == (head.store, snapshot)


def put_back(session: Session, back: PutBack) -> Sequence[str] | None:
    """Place what a lost store held; the ids that changed, or None if the inputs aren't those seen any more."""
    head, snapshot = locked_head(session)
    if (head.store, snapshot) != (back.into, back.seen):
        return None
    before = session.one("SELECT snapshot FROM put_back WHERE lost = %s", (back.lost,))
    if before is not None and before[0] >= back.snapshot:
        return ()
    session.execute(
        "INSERT INTO put_back VALUES (%s, %s) ON CONFLICT (lost) DO UPDATE SET snapshot = excluded.snapshot",
        (back.lost, back.snapshot),
    )
    origins = dict(session.rows("SELECT name, lost FROM override_origin"))
    stand = dict(session.rows("SELECT name, body FROM override"))
    done = [name for name in stand if origins.get(name) == back.lost and name not in back.words]
    session.execute("DELETE FROM override WHERE name = ANY(%s)", (done,))
    for name, body in back.words.items():
        ours = origins.get(name) == back.lost and name in stand and stand[name] != body
        if name not in origins or ours:
            _place(session, name, body, back.lost)
            done.append(name)
    if done:
        changed(session)
    return sorted(done)
