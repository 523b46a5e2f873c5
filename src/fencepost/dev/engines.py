"""Real servers beside a sample region: BIND for its DNS, PostgreSQL for its store, each as a child of the supervisor.

An engine is prepared (a folder, a configuration, first contents), and then takes the place of the process that prepared
it, so that the supervisor's child is the server itself: killed, it is started again like any role. They listen on
loopback only, where region.toml says that they are. This is for trying out; how a server is set up for good is on the
pages about each.
"""

import base64
import contextlib
import ctypes
import hashlib
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fencepost.ports import Misconfigured, Unavailable
from fencepost.settings import Region
from fencepost.settings.secret import read_secret, read_tsig_key

PATHS = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
POSTGRES = "/usr/lib/postgresql/15/bin"
ZONE = """$ORIGIN {domain}.
$TTL 5
@ IN SOA ns admin 1 3600 600 86400 5
@ IN NS ns
ns IN A {host}
"""
NAMED = """key "{key.name}" {{ algorithm {key.algorithm}; secret "{secret}"; }};
controls {{ }};
options {{
  directory "{folder}"; pid-file none; session-keyfile none; lock-file none;
  listen-on port {port} {{ {host}; }}; listen-on-v6 {{ none; }};
  recursion no; dnssec-validation no; notify no;
}};
"""
DOMAIN = """zone "{domain}" {{
  type primary; file "{domain}.zone"; journal "{domain}.jnl";
  update-policy {{ grant {key.name} zonesub ANY; }}; allow-transfer {{ key {key.name}; }};
}};
"""


WHOSE = "fencepost-sample"
"""In a cluster that lies away from its sample: the folder of the sample's part."""


class Command(NamedTuple):
    """What to run, and as whom (None: as we are)."""

    words: Sequence[str]
    user: str | None = None


def bind(region: Region, folder: Path) -> Command:
    """BIND 9.18 with the region's domains and its key. Raises ``Misconfigured`` if it isn't installed."""
    program = installed("named", "bind9")
    place = region.dns.server
    if place is None or region.dns.key is None:
        raise Misconfigured("BIND needs a server and a key", where=region.path, hint="name both in [dns]")
    try:
        key = read_tsig_key(region.dns.key, os.environ)
    except ValueError as error:
        raise Misconfigured(str(error), where=region.path, hint="see [dns] key") from None
    folder.mkdir(parents=True, exist_ok=True)
    secret = base64.b64encode(key.secret).decode()
    text = NAMED.format(key=key, secret=secret, folder=folder.absolute(), host=place.host, port=place.port)
    for domain in region.dns.domains:
        zone = folder / f"{domain}.zone"
        if not zone.exists():
            zone.write_text(ZONE.format(domain=domain, host=place.host))
        text += DOMAIN.format(domain=domain, key=key)
    config = folder / "named.conf"
    config.touch(mode=0o600)
    if config.read_text() != text:  # written anew at each start, a full disk would leave none to start with
        config.write_text(text)
    return Command([program, "-g", "-n", "1", "-c", str(config.absolute())])


def postgresql(region: Region, folder: Path) -> Command:
    """PostgreSQL 15 for the region's store alone. Raises ``Misconfigured`` if it isn't installed.

    It refuses to run as root, and other users may not look into our folders: as root its files are kept in the system's
    folder for temporary files, as its own user. Those of samples that are gone are removed from there.
    """
    program = installed("postgres", "postgresql-15", POSTGRES)
    dsn = urlsplit(dsn_of(region))
    user = unprivileged() if os.getuid() == 0 else None
    data = folder / "data"
    if user is not None:
        name = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:12]
        data = Path(tempfile.gettempdir()) / f"fencepost-postgresql-{name}"
        clear_forgotten()
    made = folder / "made"
    if not made.exists() or not (data / "PG_VERSION").exists():
        shutil.rmtree(data, ignore_errors=True)  # left by a sample that was forgotten: its password is another
        make_cluster(data, user, str(dsn.username), str(dsn.password))
        folder.mkdir(parents=True, exist_ok=True)
        made.write_text(f"{data}\n")
        (data / WHOSE).write_text(f"{folder.absolute()}\n")
    settings = {
        "listen_addresses": str(dsn.hostname),
        "port": str(dsn.port),
        "unix_socket_directories": "",
        "logging_collector": "off",
    }
    words = [program, "-D", str(data)]
    return Command([*words, *(word for key, value in settings.items() for word in ("-c", f"{key}={value}"))], user)


def clear_forgotten() -> None:
    """Remove clusters whose sample's folder is gone: forty megabytes each, which nobody else would ever remove."""
    for data in Path(tempfile.gettempdir()).glob("fencepost-postgresql-*"):
        with contextlib.suppress(OSError, ValueError):
            folder = Path((data / WHOSE).read_text().strip())
            if (folder / "made").exists() or data.is_symlink():
                continue
            running = data / "postmaster.pid"
            if not running.exists() or not Path(f"/proc/{int(running.read_text().split()[0])}").exists():
                shutil.rmtree(data, ignore_errors=True)


def make_cluster(data: Path, user: str | None, owner: str, password: str) -> None:
    """A new cluster whose superuser is ``owner``. Raises ``Misconfigured`` with what initdb says."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    if user is not None:
        shutil.chown(data, user)
    fd, file = tempfile.mkstemp()
    try:
        os.write(fd, f"{password}\n".encode())
        os.close(fd)
        if user is not None:
            shutil.chown(file, user)
        words = [installed("initdb", "postgresql-15", POSTGRES), "-D", str(data), "-U", owner]
        words += ["-A", "scram-sha-256", f"--pwfile={file}", "--no-sync", "-E", "UTF8", "--locale=C"]
        done = subprocess.run(  # noqa: S603  our own words
            words, user=user, cwd="/", check=False, capture_output=True, text=True
        )
    finally:
        os.unlink(file)
    if done.returncode:
        shutil.rmtree(data, ignore_errors=True)
        raise Misconfigured(f"initdb failed: {done.stderr.strip()}", where=str(data), hint="see what it says")


def dsn_of(region: Region) -> str:
    """The store's dsn. Raises ``Misconfigured``."""
    if region.store.dsn is None:
        raise Misconfigured("no dsn is given", where=region.path, hint="name one in [store]")
    try:
        return read_secret(region.store.dsn, os.environ)
    except ValueError as error:
        raise Misconfigured(f"dsn: {error}", where=region.path, hint="see [store] dsn") from None


ENGINES: Mapping[str, Callable[[Region, Path], Command]] = {"bind": bind, "postgresql": postgresql}
"""By the word that stands in ``stand-ins``."""


def engine(name: str, region: Region, folder: Path) -> Callable[[], Coroutine[Any, Any, None]]:
    """The main of a process that becomes the engine; its files are in ``folder/NAME``, its log beside that."""

    async def main() -> None:
        try:  # the region's folder isn't made again: it may be away
            (folder / name).mkdir(exist_ok=True)
        except OSError as error:
            raise Unavailable(f"its folder can't be made: {error.strerror}", where=str(folder / name)) from None
        command = ENGINES[name](region, folder / name)
        become(command, folder / f"{name}.log")

    return main


def become(command: Command, log: Path) -> None:
    """Put the command in the place of this process; what it says goes to the log. It ends with its parent."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(out, 1)
    os.dup2(out, 2)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if command.user is not None:
        whose = pwd.getpwnam(command.user)
        os.initgroups(command.user, whose.pw_gid)
        os.setgid(whose.pw_gid)
        os.setuid(whose.pw_uid)
        os.chdir("/")
        # A change of user takes the parent-death signal away (prctl(2), PR_SET_PDEATHSIG).
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    os.execv(command.words[0], list(command.words))  # noqa: S606  no shell is what is wanted


def unprivileged() -> str:
    """A user that isn't root and may run a server: PostgreSQL's own, else nobody."""
    names = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def installed(program: str, package: str, paths: str = PATHS) -> str:
    """Where a program is. Raises ``Misconfigured``, naming Debian's package, if it isn't installed."""
    found = shutil.which(program, path=f"{paths}:{PATHS}")
    if found is None:
        raise Misconfigured(f"{program} is not installed", hint=f"apt-get install {package}")
    return found


def store_answers(region: Region) -> bool:
    """Whether the PostgreSQL of a sample takes clients: it asks for a password (message R), and no more says that it
    is starting up (E, 57P03). PostgreSQL 15, 55.2.1. Blocks for two tenths of a second at most.
    """
    dsn = urlsplit(dsn_of(region))
    words = f"user\0{dsn.username}\0database\0{dsn.path.lstrip('/')}\0\0".encode()
    try:
        with socket.create_connection((dsn.hostname or "", dsn.port or 5432), timeout=0.2) as link:
            link.settimeout(0.2)
            link.sendall(struct.pack("!2I", len(words) + 8, 196608) + words)
            return link.recv(1) == b"R"
    except OSError:
        return False
