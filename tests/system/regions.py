"""A real region for tests.

`fencepost up` with every role as a process, on free loopback ports, in a folder of its own.
"""

import asyncio
import contextlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import dns.message
import dns.query
import dns.rdatatype
from called import warm
from free_ports import free_port
from grounds import PROVIDERS, STORES, TEMPLATE, place_secrets
from patience import Patience, patient

from fencepost import assembly
from fencepost.adapters.store_sqlite.writer import WriteLock
from fencepost.core.fence import Marker
from fencepost.ports import PortError, StorePort
from fencepost.roles.process import run as run_process
from fencepost.settings import Region, load

T = TypeVar("T")
FENCEPOST = Path(sys.executable).with_name("fencepost")

ROLES = (
    "dns",
    "planner",
    "enactor/a",
    "enactor/b",
    "enactor/c",
    "checker/a",
    "checker/b",
    "checker/c",
    "janitor",
    "api",
)

LOOKS = ("status", "plan", "explain", "history")
"""Commands that change nothing, and are answered from what the roles have come to know."""
FLEET_LOOKS = ("hosts", "instances")
LOOKS_AFTER_S, MAKING_S = 0.4, 0.2
"""A document that is 0.3 s old is served as it is, and making one takes a moment; so do the roles with a new file.
Its age is the same on every machine, that moment is not."""
ACTS = (
    *("adopt", "apply", "drain", "enact", "keep", "pause"),
    *("reload", "repair", "resume", "rollback", "withdraw"),
)
"""Commands that wait until DNS shows what they asked for: ten seconds unless told."""
FLEET_ACTS = ("cordon", "drain", "terminate")
STARTS_S = 0.15
"""So long a command takes to load. Looks are many: they are forked from a process that has loaded, and wait so long."""


class RunningRegion:
    """A region that runs while the ``with`` block does."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "demo",
        owner: str = "",
        edit: Callable[[str], str] = str,
        targets: bool = True,
        on: str = "embedded+sqlite",
    ) -> None:
        self.folder = folder
        self.config = folder / "region.toml"
        self.provider, _, self.store = on.partition("+")
        self.dns_port, self.api_port, self.target_port = free_port(), free_port(), free_port()
        given = {"name": name, "owner": owner or name, "dns": self.dns_port, "more": free_port()}
        provider, store = PROVIDERS[self.provider].format(**given), STORES[self.store].format(**given)
        text = TEMPLATE.format(**given, provider=provider, store=store, api=self.api_port, target=self.target_port)
        self.config.write_text(edit(text))
        place_secrets(folder, folder / ".fencepost" / name, self.provider, self.store)
        self.region: Region = load(str(self.config))
        self.state = assembly.state_folder(self.region)
        self.targets = targets
        self.environment: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self.changed_at = float("-inf")

    def start(self, ready_s: float = 20.0) -> Self:
        """Start every role and wait until both endpoints are answered."""
        command = [str(FENCEPOST), "up", "--config", str(self.config)] + (["--sample"] if self.targets else [])
        with (self.folder / "up.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | self.environment,
            )
        self.until(
            lambda: all(self.addresses(e.name) for e in self.region.endpoints), ready_s, "every endpoint is answered"
        )
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextlib.contextmanager
    def provider_alone(self) -> Iterator[None]:
        """The DNS provider by itself, every role of the region dead."""
        process = multiprocessing.get_context("spawn").Process(target=run_provider, args=(str(self.config),))
        process.start()
        try:
            yield
        finally:
            process.terminate()
            process.join(10)

    def stop(self) -> None:
        """End the region, stopped processes included."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(patient(20))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def fencepost(self, *words: str, ok: tuple[int, ...] = (0,), timeout: float = 30.0) -> str:
        """Run a command for this region; its stdout. Fails the test if its exit code isn't among ``ok``.

        A look comes no sooner after a change than a person's would: the roles take a moment, a longer one if busy.
        """
        timeout = patient(timeout)
        acts = words[0] in ACTS or (words[0] == "fleet" and words[1] in FLEET_ACTS)
        if acts and "--timeout" not in words:
            words = (*words, "--timeout", f"{patient(10):.0f}s")
        if words[0] in LOOKS:
            time.sleep(max(0.0, self.changed_at + LOOKS_AFTER_S + patient(MAKING_S) - time.monotonic()))
        if words[0] in LOOKS or words[1:2] in [(each,) for each in FLEET_LOOKS]:
            time.sleep(STARTS_S)
            done = warm().call([*words, "--config", str(self.config)], self.folder, os.environ, timeout)
        else:
            done = self._run([*words, "--config", str(self.config)], timeout)
        if words[0] not in LOOKS:
            self.changed_at = time.monotonic()
        assert done.returncode in ok, (
            f"fencepost {' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done.stdout

    def _run(self, words: Sequence[str], timeout: float) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(FENCEPOST), *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def fencepost_alone(self, *words: str, timeout: float = 60.0) -> str:
        """Run a command that names its files itself; its stdout."""
        done = self._run(words, patient(timeout))
        assert done.returncode == 0, (
            f"fencepost {' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done.stdout

    def fencepost_says(self, *words: str, timeout: float = 60.0) -> str:
        """Run a command for this region, however it ends; all that it says."""
        done = subprocess.run(
            [str(FENCEPOST), *words, "--config", str(self.config)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=patient(timeout),
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return done.stdout

    def reopen(self, *, store: str) -> None:
        """Read region.toml again, after it was changed to this kind of store while nothing ran."""
        self.store = store
        self.region = load(str(self.config))

    def processes(self) -> dict[str, dict[str, Any]]:
        """What the supervisor says of each process."""
        return json.loads((self.state / "processes.json").read_text())["processes"]  # type: ignore[no-any-return]

    def pid(self, role: str) -> int:
        """A role's process id, waited for if it is being started again."""
        found: list[int] = []

        def runs() -> bool:
            pid = self.processes()[role]["pid"]
            found.extend([] if pid is None else [pid])
            return pid is not None

        self.until(runs, 10, f"{role} runs")
        return found[0]

    def signal(self, role: str, number: int) -> int:
        """Send a role a signal; its pid. None is stopped inside a write to the store: that would stop all writers."""
        pid, lock = self.pid(role), WriteLock(Path(self.region.store.path))
        os.kill(pid, number)
        while number == signal.SIGSTOP:
            while not stands_still(pid):
                time.sleep(0.0005)
            if self.store != "sqlite" or lock.holder() != pid:
                break
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.005)
            os.kill(pid, signal.SIGSTOP)
        return pid

    def stop_before_commit(self, zone: str, ttl: int) -> int:
        """Stop a zone's enactor right before it writes this TTL, which the others then write; its pid."""
        stalled = self.pid(f"enactor/{zone}")
        drill = self.state / "drills" / f"stop-before-Commit.enactor-{zone}"
        drill.parent.mkdir()
        drill.touch()
        others = [f"enactor/{other}" for other in "abc" if other != zone]
        for other in others:  # or they may be faster, and nothing be left to write
            self.signal(other, signal.SIGSTOP)
        self.change_ttl(ttl)
        self.until(lambda: stands_still(stalled), 20, f"enactor/{zone} is stopped right before its write")
        for other in others:
            self.signal(other, signal.SIGCONT)
        self.until(lambda: all(self.ttl(e.name) == ttl for e in self.region.endpoints), 10, f"ttl {ttl} is live")
        return stalled

    def ask(self, name: str, kind: str = "A", timeout: float = 1.0) -> dns.message.Message:
        """Ask the region's DNS server over UDP."""
        query = dns.message.make_query(name, kind)
        return dns.query.udp(query, "127.0.0.1", timeout=timeout, port=self.dns_port)

    def addresses(self, name: str, kind: str = "A") -> list[str]:
        """The addresses a caller gets; none also while nobody answers."""
        try:
            answer = self.ask(name, kind)
        except (OSError, dns.exception.Timeout):
            return []
        return sorted(
            str(rdata) for rrset in answer.answer if rrset.rdtype == dns.rdatatype.from_text(kind) for rdata in rrset
        )

    def marker(self, name: str) -> Marker | None:
        """The marker that stands, None if there is none or nobody answers."""
        try:
            answer = self.ask(f"_fencepost.{name}", "TXT")
        except (OSError, dns.exception.Timeout):
            return None
        for rrset in answer.answer:
            for rdata in rrset:
                return Marker.parse(tuple(rdata.strings))
        return None

    def until(self, what: Callable[[], Any], within_s: float, words: str) -> None:
        """Wait until something holds; the test fails with ``words`` if it doesn't in time.

        It rests as long as a look takes: a command takes 0.2 s of CPU, which what is waited for needs more.
        """
        patience = Patience(within_s)
        while True:
            began = time.monotonic()
            try:
                if what():
                    return
            except (OSError, KeyError, json.JSONDecodeError, dns.exception.Timeout):
                pass
            if patience.over():
                raise AssertionError(f"not within {within_s} s: {words}\n{self.log()}")
            time.sleep(min(0.5, max(0.05, time.monotonic() - began)))

    def log(self) -> str:
        """The end of what `up` and its roles said."""
        lines = [(self.folder / "up.log").read_text()[-3000:]] if (self.folder / "up.log").exists() else []
        for path in sorted(self.state.glob("*.log")):
            lines.append(f"--- {path.name}\n{path.read_text()[-1200:]}")
        return "\n".join(lines)

    def with_store(self, work: Callable[[StorePort], Coroutine[Any, Any, T]]) -> T:
        """Do something with the region's store, as one of its roles would."""

        async def doing() -> T:
            store = assembly.open_store(self.region)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(doing())

    def history(self, *kinds: str) -> list[Any]:
        """The history's rows of these kinds; none while there is no store."""

        async def read(store: StorePort) -> list[Any]:
            return [row for row in await store.history(most=5000) if not kinds or row.kind in kinds]

        try:
            return self.with_store(read)
        except PortError:
            return []

    def ttl(self, name: str) -> int:
        """The TTL that callers get; 0 while nobody answers."""
        try:
            return max((rrset.ttl for rrset in self.ask(name).answer), default=0)
        except (OSError, dns.exception.Timeout):
            return 0

    def newer_plan(self, seconds: int) -> None:
        """A plan that changes every endpoint's TTL, made and enacted."""
        self.change_ttl(seconds)
        self.until(
            lambda: all(self.ttl(e.name) == seconds for e in self.region.endpoints), 10, f"ttl {seconds} is live"
        )

    def newer_plan_of(self, name: str, seconds: int) -> None:
        """A plan of which one endpoint's part is known to be enacted."""
        self.change_ttl(seconds)
        self.until(lambda: self.ttl(name) == seconds, 10, f"{name} has ttl {seconds}")

    def change_ttl(self, seconds: int) -> None:
        """Have the planner make a plan that changes every endpoint: the quickest change there is."""
        from msgspec.structs import replace

        from fencepost.roles import configuration

        async def put(store: StorePort) -> None:
            loaded = configuration.decode((await store.inputs()).config)
            assert loaded is not None
            endpoints = tuple(replace(e, ttl_s=seconds) for e in loaded.region.endpoints)
            await configuration.put(store, replace(loaded.region, endpoints=endpoints))

        self.with_store(put)

    def converged(self) -> bool:
        """Whether every endpoint's marker names the newest plan's row and all addresses stand."""

        async def newest(store: StorePort) -> dict[str, Any]:
            _, rows = await store.newest_rows(None)
            return {row.name: row for row in rows}

        rows = self.with_store(newest)
        for endpoint in self.region.endpoints:
            marker, row = self.marker(endpoint.name), rows.get(endpoint.name)
            if marker is None or row is None or (marker.generation, marker.digest) != (row.generation, row.digest):
                return False
            if row.hold is None and self.addresses(endpoint.name) != sorted(row.content.a):
                return False
        return True


def run_provider(config: str) -> None:
    """Be a region's DNS provider: the embedded server, or what its sample runs beside its roles."""
    region = load(config)
    if region.dns.provider == "embedded":
        assembly.make_tsig_key(region)
    mains = {"dns": assembly.dns_main(region)} if region.dns.provider == "embedded" else assembly.stand_ins_of(region)
    ((name, main),) = mains.items()
    sys.exit(run_process(name, main, assembly.state_folder(region)))


def state_of(pid: int) -> str:
    """A process's state letter, as ps shows it: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def stands_still(pid: int) -> bool:
    """Whether every thread of a process is stopped. Right after SIGSTOP one may go on for a moment."""
    stats = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def epoch_of(text: str) -> int:
    """The epoch that a command's output names."""
    found = re.search(r"epoch (\d+)", text)
    assert found, text
    return int(found[1])
