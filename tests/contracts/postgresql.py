"""A PostgreSQL server of the tests' own: a real one, on loopback and a free port, in a temporary folder.

PostgreSQL refuses to run as root, so under root it is run as another user that every system has. It is ended by its own
process id. Each test takes a new, empty database in it.
"""

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from free_ports import free_port

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
STARTS_WITHIN_S = 30.0
PASSWORD = "a word that nobody may see"
FAST = {"fsync": "off", "max_connections": "150", "shared_buffers": "32MB", "autovacuum": "off", "max_wal_senders": "4"}


def unprivileged() -> str | None:
    """The user that a server is run as: None (we ourselves) unless we are root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    pytest.skip("PostgreSQL can't run as root, and there is no user postgres or nobody")


class Server:
    """One server; ``dsn`` leads to a database of it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        if not (PROGRAMS / "initdb").exists():
            pytest.skip("PostgreSQL 15 is not installed (Debian: apt-get install postgresql-15)")
        self.user = unprivileged()
        self.data = folder / "data"
        self.port = free_port()
        self.settings = {**FAST, **settings}
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def initialize(self) -> None:
        """Make a cluster whose superuser is "admin"; everyone must give the password."""
        word = self.data.parent / "word"
        word.write_text(PASSWORD)
        if self.user:
            shutil.chown(word, self.user)
        self.run("initdb", "-D", str(self.data), "-U", "admin", "-A", "scram-sha-256", "--pwfile", str(word),
                 "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip

    def run(self, program: str, *words: str) -> str:
        """Run one of PostgreSQL's programs to its end; what it printed."""
        done = subprocess.run(
            [PROGRAMS / program, *words],
            user=self.user,
            cwd=self.data.parent,
            env={"PATH": "/usr/bin:/bin", "PGPASSWORD": PASSWORD, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it takes connections."""
        words = [f"{name}={value}" for name, value in self.settings.items()]
        command = [str(PROGRAMS / "postgres"), "-D", str(self.data), "-p", str(self.port), "-k", ""]
        for word in ("listen_addresses=127.0.0.1", *words):
            command += ["-c", word]
        log = (self.data.parent / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                command, user=self.user, cwd=self.data.parent, env={"LC_ALL": "C"}, stdout=log, stderr=log
            )
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until it takes connections."""
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                psycopg.connect(self.dsn("postgres")).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.data.parent / "log").read_text()
                time.sleep(0.05)
            else:
                return

    @property
    def pid(self) -> int:
        """The postmaster's process."""
        assert self._process is not None
        return self._process.pid

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it: SIGQUIT at once, as in a crash; SIGINT in order, ending its sessions."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def dsn(self, database: str, user: str = "admin", *, port: int | None = None, options: str = "") -> str:
        """The connection string of a database."""
        found = f"host=127.0.0.1 port={port or self.port} dbname={database} user={user} password='{PASSWORD}'"
        return f"{found} options='{options}'" if options else found

    def database(self) -> str:
        """A new, empty database; its name."""
        name = f"region_{next(self._numbers)}"
        self.sql("postgres", f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy")
        return name

    def sql(self, database: str, *statements: str) -> list[tuple[object, ...]]:
        """Run statements as the superuser; what the last one found."""
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


class Replica(Server):
    """A streaming replica of another server, copied from it as of now."""

    def __init__(self, folder: Path, primary: Server) -> None:
        super().__init__(folder, **primary.settings)
        self.primary = primary

    def initialize(self) -> None:
        """Copy the primary; ``--write-recovery-conf`` makes it follow."""
        self.run("pg_basebackup", "-d", self.primary.dsn("postgres"), "-D", str(self.data), "--write-recovery-conf",
                 "--checkpoint=fast", "--no-sync")  # fmt: skip

    def wait_caught_up(self) -> None:
        """Wait until it has replayed all that the primary has written."""
        ((there,),) = self.primary.sql("postgres", "SELECT pg_current_wal_flush_lsn()::text")
        self._until(f"SELECT pg_last_wal_replay_lsn() >= '{there}'::pg_lsn")

    def lag(self) -> None:
        """Receive nothing from now on. (It may have caught up by its copy alone, and be about to begin to receive.)"""
        self._until("SELECT count(*) = 1 FROM pg_stat_wal_receiver WHERE status = 'streaming'")
        self.sql("postgres", "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        self._until("SELECT count(*) = 0 FROM pg_stat_wal_receiver")

    def promote(self) -> None:
        """Make it a primary."""
        self.sql("postgres", "SELECT pg_promote(true, 30)")
        self._until("SELECT NOT pg_is_in_recovery()")

    def _until(self, question: str) -> None:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while self.sql("postgres", question) != [(True,)]:
            assert time.monotonic() < deadline, question
            time.sleep(0.02)


class Switch:
    """A port that leads to one server or another, as a floating address does.

    ``swallow`` loses all that is sent. ``cut_at`` is a statement at which one connection is cut: once it has been
    answered, so that only the answer is lost, or with ``before`` instead of passing it on.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self.swallow = False
        self.cut_at = b""
        self.before = False
        self._open: list[socket.socket] = []
        self._doomed: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def move(self, port: int) -> None:
        """Lead elsewhere; what is connected is cut off."""
        self._to = port
        self._cut()

    def close(self) -> None:
        """Let go of the port."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._cut()

    def _cut(self) -> None:
        opened, self._open = self._open, []
        for each in opened:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            try:
                there = socket.create_connection(("127.0.0.1", self._to), 5)
            except OSError:
                here.close()
                continue
            there.settimeout(None)
            self._open += [here, there]
            for one, other in ((here, there), (there, here)):
                answers = one is there
                threading.Thread(target=self._pass_on, args=(one, other, answers), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if answers and one in self._doomed:
                    break
                if not answers and self.cut_at and self.cut_at in data:
                    self._doomed.add(other)
                    self.cut_at = b""
                    if self.before:
                        break
                if not self.swallow:
                    other.sendall(data)
        for each in (one, other):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that the server's user owns; pytest's own can't be entered by another user."""
    with tempfile.TemporaryDirectory(prefix="fencepost-postgresql-") as name:
        user = unprivileged()
        if user:
            shutil.chown(name, user)
        yield Path(name)


@contextlib.contextmanager
def postgresql(**settings: str) -> Iterator[Server]:
    """A running server, gone at the end."""
    with folder() as place:
        server = Server(place, **settings)
        server.initialize()
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextlib.contextmanager
def replica(primary: Server) -> Iterator[Replica]:
    """A running replica of a server, gone at the end."""
    with folder() as place:
        server = Replica(place, primary)
        server.initialize()
        try:
            server.start()
            yield server
        finally:
            server.stop()
