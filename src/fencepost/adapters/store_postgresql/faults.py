"""PostgreSQL's errors as the port's, by SQLSTATE: what may pass by itself is Unavailable, what a person must mend is
Misconfigured, what can never be stored is Refused.

Awkward truth: libpq gives no SQLSTATE for an error met while connecting, only the server's text. Those texts are
matched in English; a server that answers in another language has its refusals told as Unavailable, in its own words.
"""

import psycopg

from fencepost.adapters.store_postgresql.address import Address, quoted
from fencepost.adapters.store_postgresql.bounded import StuckError
from fencepost.ports import Misconfigured, PortError, Refused, Unavailable

_KEPT = "nothing that was committed is lost, and roles go on by themselves once that is over"
AGAIN = ("40001", "40P01")
"""Serialization failure, deadlock: the transaction was undone, and may be done again as it is."""
_LOST_RIGHTS = "42501"
_READ_ONLY = "25006"
_TOO_BIG = "54"
_MISCONFIGURED_CLASSES = ("28", "3D", "3F", "42", "23", "0A")
_NOT_PASSING = (
    "password authentication failed",
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "pg_hba.conf rejects",
    "certificate",
    "is not permitted to log in",
    "does not support ssl",
    "permission denied for database",
)


def translated(error: psycopg.Error, address: Address) -> PortError:
    """The port's exception for one that the server, or the way to it, made."""
    state, text, where = error.sqlstate, told(error), address.where
    if isinstance(error, StuckError):
        return Unavailable(text, where=where, hint=f"look at the database server; {_KEPT}")
    if isinstance(error, psycopg.DataError):  # psycopg's own have no state
        return Refused(f"the database can't hold this ({text})", where=where)
    if state is None:
        return _connecting(text, str(error).lower(), address)
    if state == _LOST_RIGHTS:
        return not_allowed(address, text)
    if state == _READ_ONLY:
        return replica(address)
    if state == "57014":
        return Unavailable(f"the database didn't finish in time ({text})", where=where, hint=_KEPT)
    if state == "53100":
        return Unavailable("no space is left for the store", where=where, hint=f"free some space; {_KEPT}")
    if state[:2] == _TOO_BIG:
        return Refused(f"the database can't hold this ({text})", where=where)
    if state[:2] in _MISCONFIGURED_CLASSES:
        return damaged(address, f"{text}, {state}")
    return Unavailable(f"the store can't be used now ({text})", where=where, hint=_KEPT)


def locked(address: Address, holder: tuple[int, str] | None) -> Unavailable:
    """Another session kept a lock for all the time we had."""
    by, hint = "another session", f"look in pg_stat_activity for one that is idle in a transaction; {_KEPT}"
    if holder is not None:
        by = f"process {holder[0]} ({holder[1]})"
        hint = f"look at it in pg_stat_activity; to end it: SELECT pg_terminate_backend({holder[0]}); {_KEPT}"
    return Unavailable(f"{by} has held the store's lock for too long", where=address.where, hint=hint)


def told(error: psycopg.Error) -> str:
    """The first line of what went wrong, in the server's words; never a statement's parameters."""
    text = error.diag.message_primary or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    return first.rpartition("FATAL:")[2].strip() or first


def _connecting(text: str, low: str, address: Address) -> PortError:
    """``low`` is all that was said, in small letters: of several servers one may be down and another refuse us."""
    where = address.where
    if "does not exist" in low and ("database" in low or "role" in low):
        hint = "make the database and the user, as docs/operating/store-postgresql.md says, or mend [store] dsn"
        return Misconfigured(text, where=where, hint=hint)
    if any(each in low for each in _NOT_PASSING):
        hint = "mend user and password in the dsn, or the server's pg_hba.conf"
        return Misconfigured(f"the database refuses us ({text})", where=where, hint=hint)
    if "session is read-only" in low or "server is in hot standby" in low or "not in hot standby" in low:
        return Unavailable("no server in the dsn can be written now", where=where, hint=f"promote one; {_KEPT}")
    hint = f"does the server run, and is its port open? {_KEPT}"
    return Unavailable(f"the database can't be reached ({text})", where=where, hint=hint)


def replica(address: Address) -> PortError:
    """The server is a standby, or the role may only read."""
    hint = (
        "name the primary in the dsn (or all servers, with target_session_attrs=read-write), or mend"
        f" ALTER ROLE {quoted(address.user)} SET default_transaction_read_only"
    )
    kind = Unavailable if address.many else Misconfigured
    return kind("this database can only be read: a replica, or a read-only session", where=address.where, hint=hint)


def not_allowed(address: Address, text: str) -> Misconfigured:
    """A right is missing; the hint holds the statements that give all that a role needs."""
    schema, user = quoted(address.schema), quoted(address.user or "USER")
    hint = (
        f"as the schema's owner run: GRANT USAGE ON SCHEMA {schema} TO {user};"
        f" GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user};"
    )
    return Misconfigured(f"a right is missing ({text})", where=address.where, hint=hint)


def cannot_make(address: Address, text: str) -> Misconfigured:
    """The planner may not make the store here."""
    schema, user = quoted(address.schema), quoted(address.user or "USER")
    return Misconfigured(
        f"the store can't be made or brought to this version ({text})",
        where=address.where,
        hint="once, start the planner (or copy a store) with the dsn of the schema's owner;"
        " to make this user the owner of a new one run,"
        f" as the database's owner: CREATE SCHEMA {schema} AUTHORIZATION {user};",
    )


def missing(address: Address) -> Unavailable:
    """There are no tables, and we may not make them."""
    hint = (
        "a planner makes them, if its dsn is that of the schema's owner: start one so, once;"
        " or name the right database in [store] dsn"
    )
    return Unavailable(f"there is no store in schema {address.schema}", where=address.where, hint=hint)


def other_version(address: Address, found: int, known: int) -> Misconfigured:
    """The tables are those of another fencepost."""
    hint = (
        "run the newer fencepost that wrote it; nothing was changed"
        if found > known
        else "start this version's planner: it brings the tables to its version; nothing was changed"
    )
    what = f"the store has schema version {found}; this fencepost works with version {known}"
    return Misconfigured(what, where=address.where, hint=hint)


def damaged(address: Address, text: str) -> Misconfigured:
    """The tables hold something else than was written, or are something else."""
    hint = (
        f"run the fencepost that wrote it; else stop the region, rename the schema ({address.schema}) and start it:"
        " a new store adopts what stands in DNS"
    )
    return Misconfigured(f"the store is damaged or another version's ({text})", where=address.where, hint=hint)
