"""One manager of a million hosts: what it costs while nothing happens, how fast it decides, and how soon another has
taken over after a crash.

    python -m bench.host_manager [decider] [takeover] [million]       (all: about ten minutes, most of them the last)

*Decider*: answers of 4,096 hosts a batch, among a million: admission is asked who is next, told who answered, in any
order, and the lease decider decides what each answer is worth; CPU time of this process. Each host has answered before,
so that these are renewals: hosts that are first heard of after a take-over are told of apart. Each is counted once,
though two deciders decide about it.

*Take-over*: a shard of 250,000 among a million hosts, SQLite. A manager holds it, another stands by; the first is
killed (kill -9), and a process that answers for all hosts notes when it is first asked under the next epoch, which is
when rows are loaded and every host is in line, and when it was asked about the last one.

*Million*: ``fencepost run host-manager`` with a million held hosts, each renewed once in 180 s over real sockets. CPU
time is the manager's alone, from /proc, once the renewals are spread; the hosts answer from another process.
"""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import tell
from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.adapters.store_sqlite.fleet import SqliteFleetStore
from fencepost.assembly.fleet_key import fleet_key, make_fleet_key
from fencepost.core.admission import Admission, AdmissionSettings, next_renewal, phase
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import (
    Answered,
    Due,
    Facts,
    HostsRead,
    Lease,
    Renew,
    ShardRead,
    ShardWritten,
    Tick,
    WriteShard,
    lease_settings,
)
from fencepost.core.capacity.messages import Answer, Check
from fencepost.core.capacity.rows import CalibrationRow, HostRow
from fencepost.core.instant import MILLISECOND, SECOND
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, Wire
from fencepost.settings.schema import Secret

HOSTS = int(os.environ.get("BENCH_HOSTS", "1000000"))
RENEW_S = int(os.environ.get("BENCH_RENEW_S", "180"))
SETTLE = float(os.environ.get("BENCH_SETTLE", "2"))
"""Periods that are waited before the cost of a manager is measured: renewals are spread after two."""
STEADY_S = float(os.environ.get("BENCH_STEADY_S", "60"))
BATCH = 4096
SHARDS = 4
TICKS = os.sysconf("SC_CLK_TCK")
COMMAND = str(Path(sys.executable).parent / "fencepost")
TEXT = """\
[region]
name = "eu-1"
zones = ["a", "b", "c"]
[dns]
provider = "embedded"
domain = "example.test"
[store]
path = "{folder}/region.db"
[fleet]
driver = "none"
shards = {shards}
renew = "{renew}s"
key = {{ file = "{folder}/fleet.key" }}
[pool.web]
probe = "http://:8080/healthz"
[pool.web.launch]
[[endpoint]]
name = "web.example.test"
pool = "web"
"""


def held(number: int, place: str, life: str) -> HostRow:
    """A host that holds its lease, with nothing on it."""
    name, drawn = f"host-{number:07}.eu1.example", 2**62 + number
    born = (2**61 + number, 2**60 + number)
    addresses = tuple(f"10.{number >> 14 & 255}.{number >> 6 & 255}.{(number & 63) * 4 + each}" for each in range(4))
    return HostRow(name, "abc"[number % 3], place, 4, addresses, 17, drawn, "held", life, *born, reported=True)


# Hosts.


class Hosts:
    """Answers for all of them, in a process of its own. Says what it saw when it is asked on stdin."""

    def __init__(self, key: str) -> None:
        self.wire = Wire(fleet_key(Secret(file=key)))
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.udp.bind(("127.0.0.1", 0))
        self.answers = self.epoch = self.asked = 0
        self.first_s = self.last_s = 0.0
        self.seen = bytearray(HOSTS)

    def serve(self) -> None:
        """Answer until killed."""
        receive, send, clock = self.udp.recvfrom, self.udp.sendto, time.clock_gettime_ns
        while True:
            data, whence = receive(DATAGRAM_BYTES)
            found = self.wire.open_to_host(data)
            if found is None or not isinstance(found[1], Check):
                continue
            request, check = found
            number, token = int(check.host[5:12]), check.token
            state = (2**60 + number, clock(time.CLOCK_BOOTTIME), 2**61 + number, 0)
            send(self.wire.pack("from host", request, Answer(check.host, token, *state), DATAGRAM_BYTES), whence)
            self.answers += 1
            if token.epoch > self.epoch:
                self.epoch, self.asked, self.first_s = token.epoch, 0, time.monotonic()
                self.seen = bytearray(HOSTS)
            if token.epoch == self.epoch and not self.seen[number]:
                self.seen[number] = 1
                self.asked += 1
                self.last_s = time.monotonic()

    def talk(self) -> None:
        """Say where they are, and after each line what was seen."""
        print(self.udp.getsockname()[1], flush=True)
        for _ in sys.stdin:
            seen = {"answers": self.answers, "epoch": self.epoch, "asked": self.asked}
            print(json.dumps(seen | {"first_s": self.first_s, "last_s": self.last_s}), flush=True)
        os._exit(0)


def answer_for(key: str) -> None:
    """The process of the hosts."""
    hosts = Hosts(key)
    threading.Thread(target=hosts.talk, daemon=True).start()
    hosts.serve()


class Answering:
    """The process of the hosts, from outside."""

    def __init__(self, folder: Path) -> None:
        words = [sys.executable, "-m", "bench.host_manager", "answer", str(folder / "fleet.key")]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.place = f"127.0.0.1:{self.process.stdout.readline().strip()}"

    def seen(self) -> Any:
        """What it saw."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def until(self, asked: int, epoch: int, most_s: float) -> Any:
        """Wait until so many were asked under an epoch, at least this one."""
        ends = time.monotonic() + most_s
        while time.monotonic() < ends:
            seen = self.seen()
            if seen["epoch"] >= epoch and seen["asked"] >= asked:
                return seen
            time.sleep(0.2)
        raise TimeoutError(f"{asked} hosts of epoch {epoch}: {self.seen()}")


# Processes.


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid: int, what: str) -> float:
    """Of a process: ``VmRSS`` or ``VmHWM``."""
    return int(Path(f"/proc/{pid}/status").read_text().split(f"{what}:")[1].split()[0]) / 1024


@contextlib.contextmanager
def manager(folder: Path, shards: int) -> Any:
    """``fencepost run host-manager`` for shard 1; killed at the end."""
    path = folder / f"region-{shards}.toml"
    path.write_text(TEXT.format(folder=folder, shards=shards, renew=RENEW_S))
    words = [COMMAND, "run", "host-manager", "--shard", f"1/{shards}", "--config", str(path)]
    process = subprocess.Popen(words, cwd=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def filled(folder: Path, place: str) -> None:
    """A store with all hosts' rows, and a calibration."""
    store = SqliteFleetStore.open(folder / "region.db", create=True)
    try:
        life = (await store.rows("host")).life
        for at in range(0, HOSTS, 10_000):
            rows = [(Change(held(number, place, life), 0),) for number in range(at, min(HOSTS, at + 10_000))]
            await store.commit(None, rows)
        calibration = CalibrationRow("hosts", 128, 5 * MILLISECOND, 60 * MILLISECOND, 20_000.0, time.time_ns())
        await store.commit(None, [(Change(calibration, 0),)])
    finally:
        await store.close()


async def not_held(folder: Path) -> int:
    """How many hosts hold no lease."""
    store = SqliteFleetStore.open(folder / "region.db")
    try:
        page = await store.rows("host")
        return sum(not (isinstance(at.row, HostRow) and at.row.held(page.life)) for at in page.rows)
    finally:
        await store.close()


# Measurements.


def taken_over(folder: Path, hosts: Answering) -> None:
    """From kill -9 until the next one has every host in line, and until it has asked them all."""
    with manager(folder, SHARDS) as first:
        before = hosts.until(HOSTS // SHARDS * 98 // 100, 1, 180)
        time.sleep(3)
        asked = hosts.seen()["asked"]
        with manager(folder, SHARDS) as second:
            time.sleep(5)
            killed = time.monotonic()
            first.kill()
            seen = hosts.until(1, before["epoch"] + 1, 120)
            tell("host manager: crash to all in line", seen["first_s"] - killed, "s", f"{asked:,} hosts of {HOSTS:,}")
            seen = hosts.until(asked, before["epoch"] + 1, 180)
            tell("host manager: crash to all asked", seen["last_s"] - killed, "s")
            tell("host manager: memory of a shard's manager", memory_mb(second.pid, "VmRSS"), "MB")
    tell("host manager: leases lapsed by the crash", asyncio.run(not_held(folder)), "")


def million(folder: Path, hosts: Answering) -> None:
    """A manager that holds them all, while nothing happens."""
    epoch = hosts.seen()["epoch"]
    begun = time.monotonic()
    with manager(folder, 1) as process:
        seen = hosts.until(HOSTS, epoch + 1, 600)
        words = f"{HOSTS:,} hosts, the first asked after {seen['first_s'] - begun:.1f} s"
        tell("host manager: start until all were asked", seen["last_s"] - begun, "s", words)
        tell("host manager: CPU for that", cpu_s(process.pid), "s CPU")
        # Renewals are spread over a period that begins up to two after the last answer.
        time.sleep(max(0.0, seen["first_s"] + SETTLE * RENEW_S - time.monotonic()))
        answers, cpu, at = hosts.seen()["answers"], cpu_s(process.pid), time.monotonic()
        time.sleep(STEADY_S)
        took = time.monotonic() - at
        rate, cpu = (hosts.seen()["answers"] - answers) / took, cpu_s(process.pid) - cpu
        tell("host manager: renewals a second", rate, "/s", f"{HOSTS:,} hosts in {RENEW_S} s")
        tell("host manager: CPU of a million hosts", 100 * cpu / took, "% of core", f"load {os.getloadavg()[0]:.1f}")
        tell("host manager: memory of a million hosts", memory_mb(process.pid, "VmRSS"), "MB")
        tell("host manager: the same, peak", memory_mb(process.pid, "VmHWM"), "MB")


class Deciding:
    """Both deciders of a manager that holds all hosts, in virtual time; the hosts answer at once."""

    def __init__(self, hosts: int, limit: int) -> None:
        self.now = 1000 * RENEW_S * SECOND
        self.chance, self.shuffled = np.random.default_rng(1), 0.0
        settings = lease_settings("bench", 1, 1, RENEW_S * SECOND)
        self.renew = settings.renew
        self.leases = HostLeases(settings)
        slow = 60 * MILLISECOND
        self.admission = Admission(AdmissionSettings(limit, 5 * MILLISECOND, slow, slow, SECOND), hosts)
        leases, ids = self.leases, np.arange(hosts)
        leases.on(Tick(), self.now)
        leases.on(ShardRead("life", None), self.now)
        (written,) = leases.on(ShardRead("life", None), self.now)
        assert isinstance(written, WriteShard)
        leases.on(ShardWritten(written.row), self.now)
        ones, false = np.ones(hosts, np.int64), np.zeros(hosts, np.bool_)
        words = ones.astype(np.uint64)
        lease = np.full(hosts, Lease.HELD, np.int8)
        facts = Facts(ids, ones, words, lease, words, words, ones * 0, ~false, ones * 0, false)
        leases.on(HostsRead("life", hosts, facts), self.now)
        due = self.now + phase(ids, self.renew)
        leases.hosts.ends[:] = due - self.renew + settings.lease
        self.admission.renew(ids, due, leases.hosts.ends)
        self.epoch = leases.owner.epoch
        self.same, self.one, self.none, self.false = words, ones, ones * 0, false

    def answer(self, ids: Any) -> None:
        """These hosts answer: as their rows say."""
        count = len(ids)
        same, one, none, false = self.same[:count], self.one[:count], self.none[:count], self.false[:count]
        stamp, epoch = np.full(count, self.now), np.full(count, self.epoch)
        self.event = Answered(ids, epoch, one, same, same, stamp, same, none, false)

    def round(self) -> int:
        """One turn: who is next, and what their answers are worth, in the order in which they come."""
        ids, _ = self.admission.take(self.now)
        if not len(ids):
            return 0
        begun = time.process_time()
        self.chance.shuffle(ids)
        self.shuffled += time.process_time() - begun
        self.leases.on(Due(ids), self.now)
        self.answer(ids)
        self.now += MILLISECOND
        self.admission.answered(ids, self.now)
        for effect in self.leases.on(self.event, self.now):
            if isinstance(effect, Renew):
                due = next_renewal(phase(effect.ids, self.renew), self.now, self.renew)
                self.admission.renew(effect.ids, due, effect.deadline)
        return len(ids)


def in_batches(deciding: Deciding, what: str) -> None:
    """Decisions a CPU second while each host is asked once, 4,096 a batch."""
    done = rounds = 0
    begun, shuffled = time.process_time(), deciding.shuffled
    while done < HOSTS:
        deciding.now += RENEW_S * SECOND * BATCH // HOSTS - MILLISECOND
        done, rounds = done + deciding.round(), rounds + 1
    used = time.process_time() - begun - (deciding.shuffled - shuffled)
    tell(f"host manager: {what} a second", done / used, "/CPU s", f"{done / rounds:,.0f} a batch")


def decider() -> None:
    """Decisions a CPU second in batches, and the CPU of a million renewals in 180 s, looked at each 10 ms."""
    deciding = Deciding(HOSTS, BATCH)
    in_batches(deciding, "first answers decided about")
    in_batches(deciding, "decisions")
    deciding.shuffled, looks, done, begun = 0.0, 0, 0, time.process_time()
    while looks < 3000:
        looks += 1
        deciding.now += 9 * MILLISECOND
        if looks % 50 == 0:
            deciding.leases.on(Tick(), deciding.now)
        done += deciding.round()
    used = time.process_time() - begun - deciding.shuffled
    share = 100 * used / (looks * 0.01)
    tell("host manager: decisions for a million hosts", share, "% of core", f"{done / looks * 100:,.0f} renewals/s")


def main() -> None:
    """What was asked for, or all."""
    if sys.argv[1:2] == ["answer"]:
        answer_for(sys.argv[2])
        return
    wanted = sys.argv[1:] or ["decider", "takeover", "million"]
    if "decider" in wanted:
        decider()
    if not {"takeover", "million"} & set(wanted):
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_fleet_key(Secret(file=str(folder / "fleet.key")))
        store = SqliteStore.open(folder / "region.db", create=True, checkpoints=True)
        hosts = Answering(folder)
        try:
            asyncio.run(store.inputs())
            begun = time.monotonic()
            asyncio.run(filled(folder, hosts.place))
            print(f"  {HOSTS:,} rows written in {time.monotonic() - begun:.0f} s", flush=True)
            if "takeover" in wanted:
                taken_over(folder, hosts)
            if "million" in wanted:
                million(folder, hosts)
        finally:
            hosts.process.kill()
            hosts.process.wait()


if __name__ == "__main__":
    main()
