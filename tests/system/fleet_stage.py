"""A fleet's managers, its API and very many hosts as real processes, on a PostgreSQL that the test may take away."""

import asyncio
import contextlib
import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self, TypeVar

from agents import until
from delaying import DelayingProxy
from free_ports import free_port
from patience import Patience, patient
from postgresql import Server

from fencepost.adapters.store_postgresql.fleet import PostgresqlFleetStore
from fencepost.assembly.places import write_secret
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.rows import CalibrationRow, HostRow, InstanceRow, ShardRow
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort

T = TypeVar("T")
FENCEPOST = str(Path(sys.executable).with_name("fencepost"))
TICKS = os.sysconf("SC_CLK_TCK")
TAKEN_UP = "control.json is taken up\n"
TEXT = """\
[region]
name = "outage"
zones = ["a", "b", "c"]
[dns]
provider = "embedded"
domain = "example.test"
listen = "127.0.0.1:{dns}"
[store]
kind = "postgresql"
dsn = {{ file = "postgresql.dsn" }}
[api]
listen = "127.0.0.1:{api}"
token = {{ file = "api.token" }}
[fleet]
renew = "{renew}"
driver = "none"
[pool.web]
probe = "tcp://:8080"
[pool.web.launch]
[pool.batch]
probe = "tcp://:8081"
[pool.batch.launch]
[[endpoint]]
name = "web.example.test"
pool = "web"
"""
Lease = tuple[str, int, int]
"""What a host's row says of its lease: state, number and nonce."""


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class FleetStage:
    """Processes by name. Nothing is started by itself; :meth:`close` ends all that was."""

    def __init__(self, folder: Path, server: Server, renew: str) -> None:
        self.folder = folder
        self.server = server
        self.database = server.database()
        self.proxy = DelayingProxy(server.port)
        self._numbers = itertools.count(1)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.api_port, self.dns_port = free_port(), free_port()
        self.config, self.control = folder / "region.toml", folder / "control.json"
        self.config.write_text(TEXT.format(dns=self.dns_port, api=self.api_port, renew=renew))
        write_secret(folder / "postgresql.dsn", server.dsn(self.database, port=self.proxy.port))
        for name in ("fleet.key", "api.token"):
            write_secret(folder / name, secrets.token_urlsafe(32))
        self.control.write_text("{}")

    # Processes.

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start ``fencepost ...`` under a name."""
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [FENCEPOST, *words, "--config", str(self.config)]
            self.processes[name] = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self.processes[name]

    def role(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a role under a name, which begins with the role's."""
        return self.start(name, "run", name.rstrip("0123456789").rstrip("-"), *words)

    def begin(self) -> None:
        """The planner, which founds the store, and the API."""
        self.role("planner")
        until(self.founded, 30)
        self.role("api")

    def founded(self) -> bool:
        """Whether there is a store."""
        try:
            self.snapshot()
        except PortError:
            return False
        return True

    def manage(self) -> str:
        """One more manager of the shard: it owns it if nobody does, else it stands by; its name."""
        name = f"host-manager-{next(self._numbers)}"
        self.role(name)
        return name

    def end_managers(self) -> None:
        """End all of them, in order."""
        for name in [name for name in self.processes if name.startswith("host-manager")]:
            assert self.end(name, signal.SIGINT) == 0

    def owner(self) -> str:
        """Which manager owns the shard, as its row and their logs say; "" while none does."""
        word = f"shard 1 is ours, epoch {self.shard().epoch}\n"
        owners = [name for name in self.processes if name.startswith("host-manager") and word in self.log(name)]
        return owners[0] if owners else ""

    def taken_over(self, epoch: int, within_s: float = 60) -> str:
        """Wait until a manager that runs owns the shard in a later epoch than this one; its name."""
        found: str = until(lambda: self.shard().epoch > epoch and self.owner(), within_s)
        return found

    def agents(self, hosts: int, *words: str) -> None:
        """Start so many hosts."""
        listen = f"127.0.0.1:{free_port()}"
        state = str(self.folder / "agents")
        more = ("--listen", listen, "--state", state, "--control", str(self.control), *words)
        self.start("agents", "dev", "agents", "--hosts", str(hosts), *more)

    def end(self, name: str, how: int = signal.SIGKILL) -> int:
        """End a process; its exit code."""
        process = self.processes.pop(name)
        process.send_signal(how)
        return process.wait(patient(30))

    def close(self) -> None:
        """End everything."""
        for name in list(self.processes):
            with contextlib.suppress(ProcessLookupError):
                self.end(name)
        self.proxy.close()

    def log(self, name: str) -> str:
        """What a process said."""
        return (self.folder / f"{name}.log").read_text()

    def wish(self, **wish: Any) -> None:
        """How the hosts misbehave from now on: they do when this returns."""
        said = self.log("agents").count(TAKEN_UP)
        new = self.control.with_suffix(".next")
        new.write_text(json.dumps(wish))
        new.replace(self.control)
        until(lambda: self.log("agents").count(TAKEN_UP) > said)

    def counts(self) -> dict[str, int]:
        """How often the hosts were asked and answered."""
        found: dict[str, int] = json.loads((self.folder / "control.json.counts").read_bytes())
        return found

    def cpu(self) -> dict[str, float]:
        """CPU seconds used so far: of each process, and of all of PostgreSQL's that run now."""
        used = {name: cpu_s(each.pid) for name, each in self.processes.items()}
        with contextlib.suppress(AssertionError, OSError):
            children = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text().split()
            used["postgresql"] = cpu_s(self.server.pid) + sum(map(cpu_s, map(int, children)))
        return used

    # The rows, read past the proxy.

    def do(self, work: Callable[[FleetStorePort], Coroutine[Any, Any, T]]) -> T:
        """Something done with the fleet's rows."""

        async def whole() -> T:
            store = PostgresqlFleetStore.open(self.server.dsn(self.database))
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(whole())

    def hosts(self) -> dict[str, HostRow]:
        """All hosts' rows."""
        page = self.do(lambda store: store.rows("host"))
        return {at.row.host: at.row for at in page.rows if isinstance(at.row, HostRow)}

    def leases(self) -> dict[str, Lease]:
        """What stands of each lease."""
        return {name: (row.lease, row.number, row.nonce) for name, row in self.hosts().items()}

    def instances(self) -> dict[str, InstanceRow]:
        """All instances' rows."""
        page = self.do(lambda store: store.rows("instance"))
        return {at.row.instance: at.row for at in page.rows if isinstance(at.row, InstanceRow)}

    def shard(self) -> ShardRow:
        """The shard's row."""
        (at,) = self.do(lambda store: store.rows("shard")).rows
        assert isinstance(at.row, ShardRow)
        return at.row

    def changed_hosts(self, since: int) -> int:
        """How many hosts' rows were written after a snapshot."""
        question = f"SELECT count(*) FROM fencepost.fleet_row WHERE kind = 'host' AND revision > {since}"
        ((count,),) = self.server.sql(self.database, question)
        assert isinstance(count, int)
        return count

    def snapshot(self) -> int:
        """The newest snapshot. Raises a ``PortError``."""
        return self.do(lambda store: store.rows("shard")).snapshot

    def calibrated(self, row: CalibrationRow) -> None:
        """Write a calibration."""

        async def work(store: FleetStorePort) -> None:
            at = (await store.prove(1, [("calibration", row.name)])).rows[0]
            written = await store.commit(None, [(Change(row, at.revision if at else 0),)])
            assert written is not None
            assert written.applied == (True,)

        self.do(work)

    def all_held(self, count: int, within_s: float) -> float:
        """Wait until so many hosts are held, and nothing is known to be missing; how long that took."""
        begun = time.monotonic()

        def held() -> bool:
            rows = self.hosts().values()
            return len(rows) == count and all(row.lease == "held" and row.reported and not row.left for row in rows)

        patience = Patience(within_s)
        while not held():
            assert not patience.over(), f"not held within {within_s} s\n{self.said()}"
            time.sleep(0.2 if count < 1000 else 1)
        return time.monotonic() - begun

    def said(self) -> str:
        """The end of every log."""
        paths = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text()[-1500:]}" for path in paths)

    # The API.

    def post(self, what: str, body: Any, timeout: float = 30) -> tuple[int, Any]:
        """A request; its status and document."""
        link = HTTPConnection("127.0.0.1", self.api_port, timeout=timeout)
        token = (self.folder / "api.token").read_text().strip()
        try:
            link.request("POST", f"/v1/fleet/{what}", json.dumps(body), {"Authorization": f"Bearer {token}"})
            answer = link.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            link.close()

    def say(self, word: str, hosts: Sequence[str]) -> None:
        """A person's word about hosts."""
        for at in range(0, len(hosts), 500):
            status, said = self.post(word, {"names": hosts[at : at + 500]})
            assert status == 202, said

    def launch(self, count: int, key: str, pool: str = "web") -> tuple[int, str, list[str]]:
        """A launch: its status, the kind of refusal ("" for none), and the instances' names.

        Pool ``batch`` stands behind no name, so it may have more than an answer holds.
        """
        status, said = self.post("launch", {"pool": pool, "count": count, "key": key})
        return status, said.get("error", {}).get("kind", ""), said.get("instances", [])

    def placed(self, names: Sequence[str], within_s: float) -> None:
        """Wait until these instances are placed."""
        until(lambda: all(row and row.state == "placed" for row in map(self.instances().get, names)), within_s)


class Watched(threading.Thread):
    """Samples a number every so often, for rates: pairs of time and number."""

    def __init__(self, what: Callable[[], int], every_s: float = 0.2) -> None:
        super().__init__(daemon=True)
        self.what, self.every_s = what, every_s
        self.samples: list[tuple[float, int]] = []
        self.over = threading.Event()

    def run(self) -> None:
        """Until it is over."""
        while not self.over.wait(self.every_s):
            with contextlib.suppress(Exception):
                self.samples.append((time.monotonic(), self.what()))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join(10)
