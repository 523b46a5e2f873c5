"""A whole region with a fleet: ``fencepost up``, agents as processes beside it, instances that are tiny servers."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

import dns.exception
import dns.query
import dns.zone
from agents import alive
from free_ports import free_port
from patience import Patience, patient
from regions import FENCEPOST, RunningRegion

from fencepost.assembly.places import write_secret
from fencepost.assembly.stores import fleet_store
from fencepost.core.capacity.network_state import ready
from fencepost.core.capacity.rows import FleetRow, HostRow, InstanceRow, Kind, NetworkRow, ShardRow
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort, Page

T = TypeVar("T")
INSTANCE = """\
import http.server, os, sys
id_, address, port, started = sys.argv[1:]
slow = started + ".slow"
new = os.path.exists(slow)
try:
    os.close(os.open(os.path.join(started, id_), os.O_CREAT | os.O_EXCL))
except FileExistsError:
    open(os.path.join(started, id_ + ".again"), "w").close()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if new and os.path.exists(slow) else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

http.server.HTTPServer((address, int(port)), Handler).serve_forever()
"""
"""It leaves a file by its attempt's id when it starts, and another if there was one. Started while ``started.slow``
exists, it isn't well as long as that does.
"""
FLEET = """\
[safety]
max_out = "50%"
burst = "50%"
rate = "100%/min"
ready_age = "1s"
[fleet]
renew = "{renew}"
command = ["{python}", "-S", "{script}", "{{id}}", "{{address}}", "{{port}}", "{started}"]
[pool.web.launch]
"""
NAME = "api.example.test"


class FleetRegion(RunningRegion):
    """Hosts ``h1`` ... by turns in zones a and b, each with room for two. Runs while the ``with`` block does."""

    def __init__(self, folder: Path, hosts: int, renew: str = "700ms") -> None:
        self.started, self.slow = folder / "started", folder / "started.slow"
        self.started.mkdir()
        script = folder / "instance.py"
        script.write_text(INSTANCE)
        given = {"python": sys.executable, "script": script, "started": self.started, "renew": renew}

        def edit(text: str) -> str:
            head, _, rest = text.partition("[pool.web.targets]")
            head = head.replace("drills = true", 'drills = true\nzones = ["a", "b"]').replace(
                'ttl = "5s"', 'ttl = "1s"'
            )
            return head + FLEET.format(**given) + rest[rest.index("[[endpoint]]") :]

        super().__init__(folder, name="fleet", edit=edit, targets=False)
        for name in ("fleet.key", "api.token"):
            write_secret(folder / name, secrets.token_urlsafe(32))
        self.hosts = {f"h{number}": free_port() for number in range(1, hosts + 1)}
        self.agents: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, ready_s: float = 30.0) -> Self:
        """Start every role; nothing is launched, so no endpoint has an answer yet."""
        with (self.folder / "up.log").open("ab") as log:
            self.process = subprocess.Popen(
                [FENCEPOST, "up", "--config", str(self.config)],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.until(lambda: self.pid("api") and self.hosts_rows() is not None, ready_s, "the region runs")
        for host in self.hosts.keys() - self.agents.keys():
            self.start_agent(host)
        self.until(lambda: len(self.held()) == len(self.hosts), ready_s, "all hosts are held")
        self.until(self.opened, ready_s, "every host was heard of, or had the time for it, and placing begins")
        return self

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()
        for host in list(self.agents):
            self.end_agent(host)
        for pid in self.running().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # Agents.

    def start_agent(self, host: str) -> None:
        """Start a host's agent."""
        number = int(host[1:])
        words = ["run", "agent", "--host", host, "--zone", "ab"[number % 2], "--room", "2"]
        words += ["--listen", f"127.0.0.1:{self.hosts[host]}", "--state", str(self.folder / host)]
        for each in range(1, 5):
            words += ["--address", f"127.0.{number}.{each}"]
        with (self.folder / f"{host}.log").open("ab") as log:
            command = [str(FENCEPOST), *words, "--config", str(self.config)]
            self.agents[host] = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

    def end_agent(self, host: str, how: int = signal.SIGKILL) -> int:
        """End a host's agent; its exit code. Its instances go on."""
        agent = self.agents.pop(host)
        agent.send_signal(how)
        if how != signal.SIGKILL:
            agent.send_signal(signal.SIGCONT)
        return agent.wait(patient(30))

    # What stands, and what runs.

    def fleet(self, work: Callable[[FleetStorePort], Coroutine[Any, Any, T]]) -> T:
        """Something done with the fleet's rows."""

        async def doing() -> T:
            store = fleet_store(self.region)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(doing())

    def page(self, kind: Kind) -> Page:
        """All rows of a kind. Raises a ``PortError``."""
        return self.fleet(lambda store: store.rows(kind))

    def rows(self, kind: Kind) -> dict[str, FleetRow]:
        """All rows of a kind, by key. Raises a ``PortError``."""
        return {at.row.key: at.row for at in self.page(kind).rows}

    def hosts_rows(self) -> dict[str, HostRow] | None:
        """All hosts' rows; None while there is no store."""
        try:
            return {key: row for key, row in self.rows("host").items() if isinstance(row, HostRow)}
        except PortError:
            return None

    def held(self) -> list[str]:
        """Hosts on which something can be placed."""
        return [name for name, row in (self.hosts_rows() or {}).items() if row.lease == "held" and row.reported]

    def opened(self) -> bool:
        """Whether instances may be placed in this life of the store."""
        return all(isinstance(row, ShardRow) and row.open for row in self.rows("shard").values())

    def instances(self) -> dict[str, InstanceRow]:
        """All instances' rows."""
        return {key: row for key, row in self.rows("instance").items() if isinstance(row, InstanceRow)}

    def running(self) -> dict[str, int]:
        """The attempts that run, with their pids; of one that runs twice the id is given with its pid."""
        found: dict[str, int] = {}
        script = str(self.folder / "instance.py")
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            pid = int(path.parent.name)
            if len(words) > 3 and words[2] == script and alive(pid):
                found[words[3] if words[3] not in found else f"{words[3]} ({pid})"] = pid
        return found

    def starts(self) -> set[str]:
        """What was ever started, by the files that it left; ``….again`` for what was started twice."""
        return {path.name for path in self.started.iterdir()}

    # Asking.

    def launch(self, count: int, **more: Any) -> list[str]:
        """``fencepost fleet launch web``; the names."""
        words = ["fleet", "launch", "web", "--count", str(count), "--json"]
        for flag, value in more.items():
            words += [f"--{flag}"] if value is True else [f"--{flag}", str(value)]
        found: list[str] = json.loads(self.fencepost(*words))["instances"]
        return found

    def agree(self) -> bool:
        """Whether rows, processes and DNS say the same, and nothing is under way."""
        instances, hosts, processes = self.instances(), self.hosts_rows() or {}, self.running()
        if any(row.state not in ("placed", "ended") or row.old != ("", "") for row in instances.values()):
            return False
        placed = {row.id: row for row in instances.values() if row.state == "placed"}
        sets = {each.id for row in hosts.values() for each in row.set.instances}
        addresses = sorted(row.address for row in placed.values())
        return set(placed) == sets == set(processes) and self.standing() == addresses

    def standing(self) -> list[str]:
        """The addresses that the name has, by a zone transfer: while one ramps up an answer is a draw by weight."""
        try:
            zone = dns.zone.from_xfr(dns.query.xfr("127.0.0.1", "example.test", port=self.dns_port, lifetime=5))
            found = zone.get_rdataset(NAME.partition(".")[0], "A")
        except (OSError, dns.exception.DNSException):
            return []
        return sorted(str(rdata) for rdata in found or ())

    def differs(self) -> str:
        """What :meth:`agree` looks at, for whoever wonders."""
        instances = {row.id: (row.state, row.host, row.address, row.why) for row in self.instances().values()}
        hosts = {name: (row.lease, sorted(row.set.ids)) for name, row in (self.hosts_rows() or {}).items()}
        return f"rows {instances}\nhosts {hosts}\nprocesses {self.running()}\nDNS {self.standing()}"

    def settled(self, within_s: float = 60) -> None:
        """Wait until all agree; the test fails with what differs."""
        patience = Patience(within_s)
        while not self.agree():
            assert not patience.over(), f"{self.differs()}\n{self.log()}"
            time.sleep(0.1)


class Witness(threading.Thread):
    """Looks at DNS, then at the rows, again and again: each address must be one of an attempt that was ready by then.

    ``wrong`` are those that weren't, ``seen`` all that were ever answered.
    """

    def __init__(self, region: FleetRegion) -> None:
        super().__init__(daemon=True)
        self.region = region
        self.wrong: list[str] = []
        self.seen: dict[str, float] = {}
        self.ready: set[str] = set()
        self.looks = 0
        self.over = threading.Event()

    def run(self) -> None:
        """Until it is over."""
        while not self.over.wait(0.02):
            answered = self.region.addresses(NAME)
            at = time.monotonic()
            try:
                self.learn()
            except PortError:
                continue
            self.looks += 1
            self.seen.update(dict.fromkeys(answered, at))
            self.wrong += [address for address in answered if address not in self.ready]

    def learn(self) -> None:
        """Which addresses are those of attempts whose network was ever ready."""
        hosts = self.region.hosts_rows() or {}
        page = self.region.page("network")
        fit = {
            at.row.id
            for at in page.rows
            if isinstance(at.row, NetworkRow) and at.row.host in hosts and ready(at.row, hosts[at.row.host], page.life)
        }
        self.ready |= {row.address for row in self.region.instances().values() if row.id in fit}

    def __enter__(self) -> Self:
        self.learn()  # what was ready before, though it may not be so any more when the thread has its first turn
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join(20)
