"""The tables and their version, and the steps from an older version to this one.

A row counts only if a plan names it. ``newest`` and ``spent`` are kept beside ``plan_row`` so that neither a reader nor
the janitor ever walks all rows: one change costs the same among a thousand endpoints as among a hundred thousand.

Names compare byte by byte (collation "C"): the order is the same everywhere, and no index depends on the version of the
C library's locales. Rows that are replaced all the time leave room in their page (fillfactor), so that a change stays
in it and touches no index.
"""

import secrets
from collections.abc import Mapping

import psycopg

from fencepost.adapters.store_postgresql import faults, founding
from fencepost.adapters.store_postgresql.address import quoted
from fencepost.adapters.store_postgresql.session import EVERY_ROW_S, Session
from fencepost.ports import Misconfigured

SCHEMA_VERSION = 2
_NAME = 'text COLLATE "C"'
_COUNTED = "bigint GENERATED ALWAYS AS IDENTITY"

_FIRST = (
    # One row. `snapshot` is the input snapshot counter; `origin` the server it was made on (see founding).
    f"""CREATE TABLE head (
        one integer PRIMARY KEY CHECK (one = 1), store {_NAME} NOT NULL, number bigint NOT NULL, nonce {_NAME} NOT NULL,
        inputs bigint NOT NULL, snapshot bigint NOT NULL, origin {_NAME} NOT NULL
    ) WITH (fillfactor = 10)""",
    # The chain of heads. `rows` counts the plan's rows that are still kept.
    f"""CREATE TABLE plan (
        seq {_COUNTED} PRIMARY KEY, number bigint NOT NULL, nonce {_NAME} NOT NULL UNIQUE,
        inputs bigint NOT NULL, rows integer NOT NULL, why bytea NOT NULL
    )""",
    "CREATE INDEX plan_without_rows ON plan (seq) WHERE rows = 0",
    f"""CREATE TABLE plan_row (
        id {_COUNTED} PRIMARY KEY, plan bigint NOT NULL, name {_NAME} NOT NULL, epoch bigint NOT NULL,
        number bigint NOT NULL, body bytea NOT NULL
    )""",
    "CREATE UNIQUE INDEX plan_row_of_name ON plan_row (name, plan)",
    f"CREATE TABLE newest (name {_NAME} PRIMARY KEY, row bigint NOT NULL, plan bigint NOT NULL)",
    "CREATE INDEX newest_of_plan ON newest (plan)",
    "CREATE TABLE spent (row bigint PRIMARY KEY)",
    "CREATE TABLE config (one integer PRIMARY KEY CHECK (one = 1), body bytea NOT NULL)",
    f"CREATE TABLE membership (pool {_NAME} PRIMARY KEY, version bigint NOT NULL, body bytea NOT NULL)",
    f"CREATE TABLE override (name {_NAME} PRIMARY KEY, body bytea NOT NULL)",
    # Of each override's id that ever stood here: "" if a person placed it, or the lost store that it was put back from.
    f"CREATE TABLE override_origin (name {_NAME} PRIMARY KEY, lost {_NAME} NOT NULL)",
    # As of which snapshot of a lost store its overrides were put back.
    f"CREATE TABLE put_back (lost {_NAME} PRIMARY KEY, snapshot bigint NOT NULL)",
    f"CREATE TABLE waiting_order (seq {_COUNTED} PRIMARY KEY, id {_NAME} NOT NULL UNIQUE, body bytea NOT NULL)",
    f"CREATE TABLE carried_out (seq {_COUNTED} PRIMARY KEY, id {_NAME} NOT NULL UNIQUE)",
    f"""CREATE TABLE report (
        pool {_NAME} NOT NULL, zone {_NAME} NOT NULL, sequence bigint NOT NULL, body bytea NOT NULL,
        beat bytea NOT NULL, PRIMARY KEY (pool, zone)
    ) WITH (fillfactor = 50)""",
    f"""CREATE TABLE enacted (
        name {_NAME} PRIMARY KEY, epoch bigint NOT NULL, number bigint NOT NULL, role {_NAME} NOT NULL,
        at bigint NOT NULL, writes bigint NOT NULL
    )""",
    f"CREATE TABLE finding (role {_NAME} PRIMARY KEY, body bytea NOT NULL)",
    f"""CREATE TABLE history (
        id {_COUNTED} PRIMARY KEY, at bigint NOT NULL, kind {_NAME} NOT NULL, subject {_NAME} NOT NULL,
        role {_NAME} NOT NULL, text {_NAME} NOT NULL
    )""",
    f"CREATE TABLE beat (role {_NAME} PRIMARY KEY, body bytea NOT NULL) WITH (fillfactor = 50)",
    # What a store held that counts as lost, for a person to look at; only that of the last one is kept.
    f"CREATE TABLE former (store {_NAME} NOT NULL, kind {_NAME} NOT NULL, name {_NAME} NOT NULL, body bytea NOT NULL)",
)

_SECOND = (
    # One row, whose lock each commit of fleet rows takes first. `snapshot` numbers those commits; `life` is the store's
    # identity when they began, and another one after each promotion or restore (see founding).
    f"""CREATE TABLE fleet (
        one integer PRIMARY KEY CHECK (one = 1), life {_NAME} NOT NULL, snapshot bigint NOT NULL
    ) WITH (fillfactor = 10)""",
    "INSERT INTO fleet SELECT 1, store, 0 FROM head",
    f"""CREATE TABLE fleet_row (
        kind {_NAME} NOT NULL, key {_NAME} NOT NULL, hash bigint NOT NULL, revision bigint NOT NULL,
        body bytea NOT NULL, PRIMARY KEY (kind, key)
    )""",
    "CREATE INDEX fleet_row_changed ON fleet_row (kind, revision, hash)",
)

STEPS: Mapping[int, tuple[str, ...]] = {0: _FIRST, 1: _SECOND}
"""What leads from version n to n + 1; version 0 is an empty schema."""
_VERSION = "CREATE TABLE schema_version (one integer PRIMARY KEY CHECK (one = 1), version integer NOT NULL)"


def prepare(session: Session, *, create: bool) -> None:
    """Look whether the tables are of this version, and with ``create`` make or migrate them; else raise.

    ``Unavailable`` where there are none and we may not make them, ``Misconfigured`` for another version.
    """
    found = version(session)
    if found == SCHEMA_VERSION:
        return
    if found > SCHEMA_VERSION or (found and not create):
        raise faults.other_version(session.address, found, SCHEMA_VERSION)
    if not create:
        raise faults.missing(session.address)
    try:
        _migrate(session)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidSchemaName) as error:
        raise faults.cannot_make(session.address, faults.told(error)) from error


def version(session: Session) -> int:
    """The version of the tables that are there, 0 for none."""
    there = session.one(
        "SELECT has_schema_privilege(relnamespace, 'USAGE')"
        " FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
        " WHERE nspname = %s AND relname = 'schema_version'",
        (session.address.schema,),
    )
    if there is None:
        return 0
    # Names in a schema that may not be used are passed over in silence, so each table would look missing.
    if not there[0]:
        raise faults.not_allowed(session.address, f"permission denied for schema {session.address.schema}")
    found = session.one("SELECT version FROM schema_version")
    return int(found[0]) if found else 0


def _migrate(session: Session) -> None:
    """All steps in one transaction, one planner after the other; a failing one leaves everything as it was."""
    schema = session.address.schema
    with session.transaction(EVERY_ROW_S):
        session.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"fencepost {schema}",))
        if session.one("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)) is None:
            session.execute(f"CREATE SCHEMA {quoted(schema)}")
        for step in range(version(session), SCHEMA_VERSION):
            _take(session, step)
        session.execute(
            "INSERT INTO schema_version VALUES (1, %s) ON CONFLICT (one) DO UPDATE SET version = excluded.version",
            (SCHEMA_VERSION,),
        )


def _take(session: Session, step: int) -> None:
    """One step; the first one draws the store's identity, too."""
    if step == 0:
        _check_encoding(session)
        session.execute(_VERSION)
    for statement in STEPS[step]:
        session.execute(statement)
    if step == 0:
        session.execute(
            "INSERT INTO head VALUES (1, %s, 0, '', 0, 0, %s)",
            (secrets.token_hex(founding.IDENTITY_BYTES), founding.here(session)),
        )


def _check_encoding(session: Session) -> None:
    found = session.one("SHOW server_encoding")
    name = found[0] if found is not None else "UTF8"
    if name != "UTF8":
        shown = name.decode() if isinstance(name, bytes) else name  # psycopg's text of a database without an encoding
        raise Misconfigured(
            f"the database's encoding is {shown}; names and reasons need UTF8",
            where=session.address.where,
            hint="make it with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
        )
