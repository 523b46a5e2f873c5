"""The sample region as `make up` starts it: seconds until it is ready, what it costs when nothing happens, how much
memory.

    python -m bench.sample_region [seconds]

The sample's own file with other ports, in a new folder. CPU and memory are of every process that `fencepost up`
keeps, the supervisor, the screen and the six hosts' agents with them; the six stand-in targets are counted apart.
Memory is the sum of PSS: what several processes share counts once. Then `fencepost --help` and `fencepost status`,
seven starts each.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "system"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "cli"))

from free_ports import free_port
from regions import FENCEPOST, RunningRegion

from bench.figures import tell
from fencepost.dev.sample import sample_text

STARTS = 7


def cpu_s(pid: int) -> float:
    """Time on a CPU of a process's threads so far, to the nanosecond: ``stat`` counts in ticks and misses the short."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def pss_mb(pid: int) -> float:
    """A process's share of the memory it uses."""
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) / 1024


def sample(_: str = "") -> str:
    """The sample's file, its ports changed for free ones."""
    text = sample_text()
    for port in ("5300", "5301", "5302"):
        text = re.sub(rf"\b{port}\b", str(free_port()), text)
    return text


def start_up(words: tuple[str, ...], folder: Path) -> tuple[list[float], float]:
    """Milliseconds until a command has ended, in order, and the median of its CPU milliseconds."""
    walls, cpus = [], []
    for _ in range(STARTS):
        began = time.monotonic()
        child = subprocess.Popen([FENCEPOST, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, words
        walls.append((time.monotonic() - began) * 1e3)
        cpus.append((usage.ru_utime + usage.ru_stime) * 1e3)
    return sorted(walls), statistics.median(cpus)


def processes(region: RunningRegion) -> dict[str, int]:
    """Every process of the region by name."""
    assert region.process is not None
    found = {name: each["pid"] for name, each in region.processes().items() if each["pid"]}
    children = Path(f"/proc/{region.process.pid}/task/{region.process.pid}/children").read_text().split()
    return {**found, "up": region.process.pid, "supervisor": int(children[0])}


def idle(pids: dict[str, int], seconds: float) -> None:
    """What each kind of process costs while nothing happens."""
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    share = {name: (cpu_s(pid) - before[name]) / took * 100 for name, pid in pids.items()}
    memory = {name: pss_mb(pid) for name, pid in pids.items()}
    kinds = sorted({name.partition("/")[0] for name in pids})
    for kind in kinds:
        ours = [name for name in pids if name.partition("/")[0] == kind]
        print(
            f"    {kind:12}{len(ours):3}{sum(share[n] for n in ours):8.2f} %{sum(memory[n] for n in ours):9.1f} MB PSS"
        )
    roles = [name for name in pids if not name.startswith("target/")]
    tell("idle, all roles", sum(share[name] for name in roles), "% of core", f"over {took:.0f} s, targets not counted")
    tell("memory, all roles", sum(memory[name] for name in roles), "MB PSS", f"{len(roles)} processes")
    tell("idle, the stand-in targets", sum(share.values()) - sum(share[name] for name in roles), "% of core")


def main() -> None:
    """Measure and print."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_RUNTIME_DIR"] = name  # the notes that commands find a running region by
        region = RunningRegion(folder, edit=sample)
        assert region.region.dns.listen is not None
        region.dns_port = region.region.dns.listen.port
        try:
            region.start()
            region.until(lambda: "ready in" in region.log(), 20, "ready")
            found = re.search(r"ready in ([\d.]+) s", (folder / "up.log").read_text())
            assert found
            tell("ready", float(found[1]), "s", "as `up` says it: every endpoint and the API answer")
            region.until(region.converged, 10, "converged")
            time.sleep(5)  # the first seconds are start, not idling
            idle(processes(region), seconds)
            config = ("--config", str(region.config))
            for words, title in ((("--help",), "fencepost --help"), (("status", *config), "fencepost status")):
                walls, cpu = start_up(words, folder)
                slowest = f"quickest of {STARTS}; median {walls[STARTS // 2]:,.0f}, slowest {walls[-1]:,.0f}"
                tell(f"{title}, wall", walls[0], "ms", slowest)
                tell(f"{title}, CPU", cpu, "ms", "median")
        finally:
            region.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
