"""What docs/start/bind-knot-powerdns.md tells people to write into their server, word for word, on a running server.

Only places, the secret and the port are put in; around them stands what any server needs to run beside others.
"""

import asyncio
import base64
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from dns_scene import change, standing
from free_ports import free_port
from servers import PDNS_SCHEMA, Served, powerdns, running

from fencepost.adapters import dns_rfc2136
from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.core.instant import SECOND
from fencepost.core.record_set import NOTHING
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured
from fencepost.settings.notify import places_by_zone

PAGE = Path(__file__).parents[2] / "docs/start/bind-knot-powerdns.md"
DOMAIN = "example.com"
KEY = "fencepost-eu1"
SECRET = base64.b64encode(b"a secret that only tests know 01").decode()
ZONE = f"""$ORIGIN {DOMAIN}.
$TTL 300
@ IN SOA ns.{DOMAIN}. admin.{DOMAIN}. 1 3600 600 86400 60
@ IN NS ns.{DOMAIN}.
ns IN A 127.0.0.1
"""


def blocks(heading: str) -> list[str]:
    """The code blocks below a heading of the page."""
    text = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def tool(name: str, package: str) -> str:
    """A program of Debian's."""
    program = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None:
        pytest.skip(f"{name} is not installed (Debian: apt-get install {package})")
    return program


def told(number: int, ports: Sequence[int]) -> str:
    """A block of the page's section on NOTIFY, with places on this machine in it; without ports, none."""
    text = blocks("Being told of changes")[number] if ports else ""
    for at, port in enumerate(ports):
        text = re.sub(rf"192\.0\.2\.{7 + at}(:| port |@)5353", rf"127.0.0.1\g<1>{port}", text)
    assert "192.0.2" not in text
    return text


@contextmanager
def bind(folder: Path, notify: Sequence[int] = ()) -> Iterator[int]:
    """BIND, with the page's zone."""
    program, port = tool("named", "bind9"), free_port()
    (block,) = blocks("BIND")
    block = block.replace("};\n};", "};\n" + told(1, notify) + "};")
    (folder / "example.com.zone").write_text(ZONE)
    (folder / "key").write_text(f'key "{KEY}" {{ algorithm hmac-sha256; secret "{SECRET}"; }};\n')
    (folder / "named.conf").write_text(
        f'controls {{ }};\noptions {{ directory "{folder}"; pid-file none; session-keyfile none; lock-file none;\n'
        f"listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no; dnssec-validation no; }};\n"
        + block.replace("/etc/bind/fencepost-eu1.key", str(folder / "key"))
    )
    with running([program, "-g", "-n", "1", "-c", str(folder / "named.conf")], folder, port, DOMAIN):
        yield port


@contextmanager
def knot(folder: Path, notify: Sequence[int] = ()) -> Iterator[int]:
    """Knot, with the page's key, acl and zone."""
    program, port = tool("knotd", "knot"), free_port()
    (block,) = blocks("Knot")
    (folder / "example.com.zone").write_text(ZONE)
    (folder / "knot.conf").write_text(
        f"server:\n  rundir: {folder}\n  listen: 127.0.0.1@{port}\nlog:\n  - target: stderr\n    any: info\n"
        f"database:\n  storage: {folder}\n  journal-db-max-size: 64M\n"
        f"template:\n  - id: default\n    storage: {folder}\n    journal-max-usage: 32M\n"
        + told(2, notify)
        + block.replace("(as in tsig.key)", SECRET)
        + told(3, notify)
    )
    with running([program, "-c", str(folder / "knot.conf")], folder, port, DOMAIN):
        yield port


@contextmanager
def power(folder: Path, notify: Sequence[int] = ()) -> Iterator[int]:
    """PowerDNS, with the page's settings and commands."""
    program, port = tool("pdns_server", "pdns-server"), free_port()
    settings, commands = blocks("PowerDNS")
    settings, commands = settings + told(4, notify), commands + told(5, notify)
    database = folder / "pdns.sqlite3"
    if not PDNS_SCHEMA.exists():
        pytest.skip("PowerDNS has no SQLite backend (Debian: apt-get install pdns-backend-sqlite3)")
    sqlite3(database, PDNS_SCHEMA.read_text())
    (folder / "pdns.conf").write_text(
        settings.replace("/var/lib/powerdns/pdns.sqlite3", str(database))
        + f"local-address=127.0.0.1\nlocal-port={port}\nsocket-dir={folder}\nwrite-pid=no\nguardian=no\ndaemon=no\n"
    )
    for line in commands.replace("(as in tsig.key)", SECRET).replace("192.0.2.0/24", "127.0.0.0/8").splitlines():
        words = line.split()
        done = subprocess.run(
            [tool(words[0], "pdns-server"), f"--config-dir={folder}", *words[1:]], capture_output=True, check=False
        )
        assert done.returncode == 0, (line, done.stderr.decode())
    with running([program, f"--config-dir={folder}"], folder, port, DOMAIN):
        yield port


def sqlite3(path: Path, script: str) -> None:
    """Run a script on a new database."""
    import sqlite3

    with sqlite3.connect(path) as db:
        db.executescript(script)
    db.close()


@pytest.mark.parametrize("make", [bind, knot, power])
def test_the_page_is_enough(make: Callable[[Path], object], tmp_path: Path) -> None:
    """Create, change, withdraw, and a stale write refused, with the rights that the page gives and no more."""
    with make(tmp_path) as port:  # type: ignore[attr-defined]
        settings = Rfc2136Settings(("127.0.0.1", port), DOMAIN, KEY, SECRET, "eu-1")

        async def act() -> None:
            one, two = Rfc2136Dns(settings), Rfc2136Dns(settings)
            name = f"api.{DOMAIN}"
            try:
                await one.read()
                assert await one.commit((change(Live(name), 1, "192.0.2.1", "2001:db8::1"),))
                await two.read()
                assert two.live(name) == standing(name, 1, "192.0.2.1", "2001:db8::1")
                held = change(two.live(name), 2, "192.0.2.2", "2001:db8::2")
                assert await one.commit((change(one.live(name), 3, "192.0.2.3", "2001:db8::3"),))
                assert not await two.commit((held,))
                await two.read()
                assert two.live(name) == standing(name, 3, "192.0.2.3", "2001:db8::3")
                assert two.live(name).content() != NOTHING
            finally:
                await one.close()
                await two.close()

        asyncio.run(act())


def woken(port: int, notify: Sequence[int]) -> None:
    """Enactors that listen there, and look at no other time, see what another writes."""
    settings = Rfc2136Settings(("127.0.0.1", port), DOMAIN, KEY, SECRET, "eu-1")
    name = f"api.{DOMAIN}"

    async def act() -> None:
        writer = Rfc2136Dns(settings)
        ports = [Rfc2136Dns(msgspec.structs.replace(settings, notify=("127.0.0.1", at))) for at in notify]
        try:
            for each in (writer, *ports):
                await each.read()
            for each in ports:
                await each.listen()
            waiting = [asyncio.ensure_future(each.wait(3600 * SECOND)) for each in ports]
            await asyncio.sleep(0)
            assert await writer.commit((change(Live(name), 1, "192.0.2.1"),))
            await asyncio.wait_for(asyncio.gather(*waiting), 30)
            for each in ports:
                assert list(await each.read()) == [name]
        finally:
            for each in (writer, *ports):
                await each.close()

    asyncio.run(act())


@pytest.mark.parametrize("make", [bind, knot, power])
def test_the_page_has_three_enactors_told(
    make: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the three listens where region.toml says and the server sends (RFC 1996); none asks for the serial."""
    monkeypatch.setattr(dns_rfc2136, "POLL_S", 3600.0)
    notify = [free_port() for _ in range(3)]
    places = places_by_zone(tomllib.loads(told(0, notify))["dns"]["notify"])
    assert [place.port for _, place in places] == notify
    with make(tmp_path, notify) as port:  # type: ignore[attr-defined]
        woken(port, notify)


def test_powerdns_with_updates_turned_off(tmp_path: Path) -> None:
    """PowerDNS's own default is ``dnsupdate=no``: it refuses, with the line to write in the hint."""
    with powerdns(tmp_path, options="dnsupdate=no") as served:
        assert isinstance(served, Served)
        settings = Rfc2136Settings(("127.0.0.1", served.port), "example.test", "fencepost-test", SECRET, "eu-1")

        async def act() -> None:
            port = Rfc2136Dns(settings)
            try:
                await port.read()
                with pytest.raises(Misconfigured, match="REFUSED") as caught:
                    await port.commit((change(Live("api.example.test"), 1, "192.0.2.1"),))
                assert "dnsupdate=yes" in caught.value.hint
                assert caught.value.unchanged
            finally:
                await port.close()

        asyncio.run(act())
