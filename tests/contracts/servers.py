"""Name servers for the contract suite, on free loopback ports: BIND, Knot and PowerDNS as processes, ours in a thread.

Each serves ``example.test`` from a small zone file, takes updates and transfers with one TSIG key, and sends NOTIFY to
one port that a test may listen on.
"""

import asyncio
import base64
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from free_ports import free_port

from fencepost.roles.dns_server import DnsServer, DnsServerSettings

DOMAIN = "example.test"
KEY_NAME = "fencepost-test"
READER = "fencepost-reader"  # may transfer, may not update
KEY_SECRET = base64.b64encode(b"a secret that only tests know 01").decode()
STARTS_WITHIN_S = 20.0

ZONE = f"""$ORIGIN {DOMAIN}.
$TTL 300
@ IN SOA ns.{DOMAIN}. admin.{DOMAIN}. 1 3600 600 86400 60
@ IN NS ns.{DOMAIN}.
@ IN MX 10 mail.{DOMAIN}.
ns IN A 127.0.0.1
mail IN A 127.0.0.2
"""


class Served(msgspec.Struct, frozen=True):
    """A running server: where it listens, and where it sends NOTIFY."""

    kind: str
    port: int
    notify_port: int
    directory: str


@contextmanager
def bind(
    directory: Path,
    *,
    zone: str = ZONE,
    options: str = "",
    extra: str = "",
    controls: str = "",
    port: int = 0,
    threads: int = 1,
) -> Iterator[Served]:
    """A BIND primary; ``options`` are further global options, ``extra`` the domain's, ``controls`` who may use rndc.
    ``port`` is a free one by default; ``threads`` are named's (its own default: one a core)."""
    program = shutil.which("named", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None:
        pytest.skip("BIND is not installed (Debian: apt-get install bind9)")
    served = Served("bind", port or free_port(), free_port(), str(directory))
    (directory / "example.test.zone").write_text(zone)
    (directory / "named.conf").write_text(f"""
key "{KEY_NAME}" {{ algorithm hmac-sha256; secret "{KEY_SECRET}"; }};
key "{READER}" {{ algorithm hmac-sha256; secret "{KEY_SECRET}"; }};
controls {{ {controls} }};
options {{
  directory "{directory}"; pid-file none; session-keyfile none; lock-file none;
  listen-on port {served.port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
  recursion no; dnssec-validation no; notify explicit; notify-delay 0; {options}
}};
zone "{DOMAIN}" {{
  type primary; file "example.test.zone"; journal "example.test.jnl";
  update-policy {{ grant {KEY_NAME} zonesub ANY; }}; allow-transfer {{ key {KEY_NAME}; key {READER}; }};
  also-notify {{ 127.0.0.1 port {served.notify_port}; }}; {extra}
}};
""")
    with running([program, "-g", "-n", str(threads), "-c", str(directory / "named.conf")], directory, served.port):
        yield served


@contextmanager
def knot(directory: Path, *, zone: str = ZONE) -> Iterator[Served]:
    """A Knot DNS primary."""
    program = shutil.which("knotd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None:
        pytest.skip("Knot is not installed (Debian: apt-get install knot)")
    served = Served("knot", free_port(), free_port(), str(directory))
    (directory / "example.test.zone").write_text(zone)
    (directory / "knot.conf").write_text(f"""
server:
  rundir: {directory}
  listen: 127.0.0.1@{served.port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
log:
  - target: stderr
    any: info
database:
  storage: {directory}
  journal-db-max-size: 64M
key:
  - id: {KEY_NAME}
    algorithm: hmac-sha256
    secret: {KEY_SECRET}
  - id: {READER}
    algorithm: hmac-sha256
    secret: {KEY_SECRET}
remote:
  - id: listener
    address: 127.0.0.1@{served.notify_port}
acl:
  - id: ours
    key: {KEY_NAME}
    action: [transfer, update]
  - id: reader
    key: {READER}
    action: transfer
zone:
  - domain: {DOMAIN}
    storage: {directory}
    file: example.test.zone
    acl: [ours, reader]
    notify: listener
    zonefile-sync: -1
    journal-content: changes
    journal-max-usage: 32M
""")
    with running([program, "-c", str(directory / "knot.conf")], directory, served.port):
        yield served


PDNS_SCHEMA = Path("/usr/share/doc/pdns-backend-sqlite3/schema.sqlite3.sql")


@contextmanager
def powerdns(
    directory: Path, *, zone: str = ZONE, options: str = "", meta: Mapping[str, tuple[str, ...]] | None = None
) -> Iterator[Served]:
    """A PowerDNS primary on its SQLite backend; ``options`` are further lines of its configuration, ``meta`` other
    values of the domain's metadata.

    ``only-notify=`` spares the domain's own name servers its NOTIFY, and so itself the question where they are: before
    each NOTIFY it asks the host's resolver for each of them, and holds meanwhile the one lock under which it answers
    whatever comes over TCP. Where no resolver answers for them, that was nearly all the time an UPDATE took. Whom
    ALSO-NOTIFY names is told all the same.
    """
    program = shutil.which("pdns_server", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None or not PDNS_SCHEMA.exists():
        pytest.skip("PowerDNS is not installed (Debian: apt-get install pdns-server pdns-backend-sqlite3)")
    served = Served("powerdns", free_port(), free_port(), str(directory))
    _fill_powerdns(directory / "pdns.sqlite3", zone, _powerdns_meta(served) | dict(meta or {}))
    (directory / "pdns.conf").write_text(f"""
local-address=127.0.0.1
local-port={served.port}
socket-dir={directory}
launch=gsqlite3
gsqlite3-database={directory}/pdns.sqlite3
gsqlite3-pragma-journal-mode=WAL
gsqlite3-pragma-synchronous=0
xfr-cycle-interval=3600
primary=yes
only-notify=
dnsupdate=yes
query-cache-ttl=0
negquery-cache-ttl=0
zone-cache-refresh-interval=0
write-pid=no
guardian=no
daemon=no
distributor-threads=1
max-tcp-connections=200
{options}
""")
    with running([program, f"--config-dir={directory}"], directory, served.port):
        yield served


def _powerdns_meta(served: Served) -> dict[str, tuple[str, ...]]:
    """Who may do what in the domain, how its serial rises, who is told."""
    return {
        "TSIG-ALLOW-DNSUPDATE": (KEY_NAME,),
        "ALLOW-DNSUPDATE-FROM": ("127.0.0.0/8",),
        "TSIG-ALLOW-AXFR": (KEY_NAME, READER),
        "SOA-EDIT-DNSUPDATE": ("INCREASE",),
        "NOTIFY-DNSUPDATE": ("1",),
        "ALSO-NOTIFY": (f"127.0.0.1:{served.notify_port}",),
    }


def _fill_powerdns(path: Path, zone: str, meta: Mapping[str, tuple[str, ...]]) -> None:
    """The database, as ``pdnsutil`` would have made it: one domain, two keys, who may do what."""
    rows = []
    owner = DOMAIN
    for line in zone.splitlines():
        if not line.strip() or line.startswith("$"):
            continue
        words = line.split()
        if not line[0].isspace():
            label = words.pop(0)
            owner = DOMAIN if label == "@" else f"{label}.{DOMAIN}"
        ttl = int(words.pop(0)) if words[0].isdigit() else 300
        if words[0] == "IN":
            words.pop(0)
        kind, data = words[0], " ".join(words[1:])
        if kind in ("NS", "MX"):
            data = data.rstrip(".")
        prio = 0
        if kind == "MX":
            prio, data = int(data.split()[0]), data.split()[1]
        rows.append((1, owner, kind, data, ttl, prio, 1))
    with sqlite3.connect(path) as db:
        db.executescript(PDNS_SCHEMA.read_text())
        db.execute("insert into domains (id, name, type, notified_serial) values (1, ?, 'MASTER', 1)", (DOMAIN,))
        for key in (KEY_NAME, READER):
            db.execute("insert into tsigkeys (name, algorithm, secret) values (?, 'hmac-sha256', ?)", (key, KEY_SECRET))
        for kind, content in ((kind, content) for kind, contents in meta.items() for content in contents):
            db.execute("insert into domainmetadata (domain_id, kind, content) values (1, ?, ?)", (kind, content))
        db.executemany(
            "insert into records (domain_id, name, type, content, ttl, prio, auth) values (?, ?, ?, ?, ?, ?, ?)", rows
        )
    db.close()


@contextmanager
def embedded(directory: Path) -> Iterator[Served]:
    """Our own server, in a thread with a loop of its own."""
    served = Served("embedded", free_port(), free_port(), str(directory))
    settings = DnsServerSettings(
        (DOMAIN,),
        str(directory / "domain.db"),
        f"127.0.0.1:{served.port}",
        {KEY_NAME: ("hmac-sha256", KEY_SECRET)},
        notify=(f"127.0.0.1:{served.notify_port}",),
    )
    server, ready, loop = DnsServer(settings), threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        await server.start()
        ready.set()
        await stop.wait()
        await server.stop()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        assert ready.wait(STARTS_WITHIN_S), "the embedded server didn't start"
        yield served
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(STARTS_WITHIN_S)
        loop.close()


@contextmanager
def running(command: list[str], directory: Path, port: int, domain: str = DOMAIN) -> Iterator[None]:
    """The process, once it answers for the domain, until it is ended; its log is in ``directory``."""
    log = directory / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=directory)
    try:
        _wait_until_answers(process, port, log, domain)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_answers(process: subprocess.Popen[bytes], port: int, log: Path, domain: str) -> None:
    """Until the server answers for the domain with authority."""
    labels = b"".join(bytes((len(label),)) + label.encode() for label in domain.split("."))
    question = b"\0\1\0\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\6\0\1"
    until = time.monotonic() + STARTS_WITHIN_S
    with socket.socket(type=socket.SOCK_DGRAM) as asker:
        asker.settimeout(0.1)
        asker.connect(("127.0.0.1", port))
        while time.monotonic() < until:
            if process.poll() is not None:
                break
            try:
                asker.send(question)
                reply = asker.recv(4096)
                if reply[3] & 15 == 0 and reply[7]:
                    return
            except OSError:
                pass
            time.sleep(0.02)
    pytest.fail(f"{process.args!r} didn't start:\n{log.read_text(errors='replace')[-3000:]}")
