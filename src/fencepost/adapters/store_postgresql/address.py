"""Where the database is, as the dsn says: what to connect with, and what may be said of it.

A dsn is libpq's connection string or URI. It may hold a password, so it is kept out of every text: what people are told
is host, port, database and user. Where it says nothing of time limits, ours apply, since libpq's own are none.
"""

import ipaddress
import re

import psycopg
from psycopg import conninfo, sql

from fencepost.ports import Misconfigured

SCHEMA = "fencepost"
SCHEMA_MOST_BYTES = 50
"""Names have 63 bytes, and those of the three channels have a few more than the schema's."""
CONNECT_WITHIN_S = 5
DEAD_AFTER_S = 10
"""Silence of the network for so long ends a connection."""

LIMITS = {
    "connect_timeout": str(CONNECT_WITHIN_S),
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": str(DEAD_AFTER_S * 1000),
    "application_name": "fencepost",
}
_SEARCH_PATH = re.compile(r"(?:-c\s*|--)search[_-]path=((?:\\.|\S)+)")


class Address:
    """What a dsn says; ``wrong`` is what is wrong with it, if anything. Its repr holds no secret."""

    def __init__(self, dsn: str) -> None:
        self.wrong: Misconfigured | None = None
        self.schema = SCHEMA
        self.user = ""
        self.database = ""
        self.where = "postgresql"
        self.many = False
        self.warned = False
        self._given: dict[str, str] = {}
        try:
            given = conninfo.conninfo_to_dict(dsn)
        except psycopg.Error:  # its text quotes parts of the dsn
            self.wrong = Misconfigured(
                "the dsn can't be read",
                where="[store] dsn",
                hint="write postgresql://USER@HOST:PORT/DATABASE or host=HOST dbname=DATABASE user=USER",
            )
            return
        self._given = {key: str(value) for key, value in given.items() if value is not None}
        self._read()

    def _read(self) -> None:
        given = self._given
        host = given.get("host") or given.get("hostaddr") or "the default socket"
        port = f":{given['port']}" if "port" in given else ""
        self.user = given.get("user", "")
        self.database = given.get("dbname", self.user)
        self.where = f"postgresql {host}{port}/{self.database}"
        self.many = "," in host or given.get("target_session_attrs", "any") != "any"
        chosen = _SEARCH_PATH.search(given.get("options", ""))
        if chosen is not None:
            self.schema = chosen[1].replace("\\", "").split(",")[0].strip('"')
        if any(not _port(each) for each in given.get("port", "").split(",") if each.strip()):
            self.wrong = Misconfigured(
                f"the dsn's port is {given['port']}, which no port can be",
                where="[store] dsn",
                hint="write a number from 1 to 65535, or leave it out for 5432",
            )
        if not self.schema or "\0" in self.schema or len(self.schema.encode()) > SCHEMA_MOST_BYTES:
            self.wrong = Misconfigured(
                f"the schema's name in the dsn's search_path has no or more than {SCHEMA_MOST_BYTES} bytes",
                where="[store] dsn",
                hint="choose a shorter one",
            )

    def __repr__(self) -> str:
        return f"<{self.where}, schema {self.schema}>"

    @property
    def conninfo(self) -> str:
        """What to connect with: a secret."""
        return conninfo.make_conninfo("", **{**LIMITS, **self._given})

    @property
    def is_here(self) -> bool:
        """Whether every server that it names is surely on this machine: on loopback, or at a socket in a folder."""
        named = (self._given.get("hostaddr") or self._given.get("host", "")).split(",")
        return self.wrong is None and all(
            each.startswith("/") or each == "localhost" or _loopback(each) for each in named
        )

    @property
    def search_path(self) -> str:
        """The one schema that names are looked up in."""
        return f"{quoted(self.schema)}, pg_temp"

    @property
    def plans(self) -> str:
        """The channel on which changes of head and inputs are told."""
        return f"{self.schema}:plans"

    @property
    def fleet(self) -> str:
        """The channel on which changes of fleet rows are told."""
        return f"{self.schema}:fleet"

    @property
    def told(self) -> str:
        """The channel on which everything else is told: reports, signs of life, history."""
        return f"{self.schema}:told"


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _port(text: str) -> bool:
    """Whether libpq takes it for a port: a number, with blanks around it or none."""
    return bool(re.fullmatch(r"\s*\+?[0-9]{1,9}\s*", text)) and 1 <= int(text) <= 65535


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return sql.Identifier(name).as_string(None)
