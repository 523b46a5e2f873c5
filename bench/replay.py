"""The replay of October 2025: CPU and memory of 100,000 and of a million hosts, sixteen hours each; the ablation.

    python -m bench.replay          about half a minute

Each is run by the command itself, as people run it; CPU and peak memory are the process's and its children's, from the
kernel.
"""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench.figures import tell

FENCEPOST = Path(sys.executable).with_name("fencepost")


def run(*words: str) -> tuple[float, float, float]:
    """CPU seconds, peak MB of the largest process, and seconds, of one command."""
    child = os.fork()
    if child == 0:
        began = time.monotonic()
        done = subprocess.run([str(FENCEPOST), "replay", *words, "--json"], stdout=subprocess.DEVNULL, check=False)
        took = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        Path(os.environ["BENCH_REPLAY"]).write_text(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss / 1000} {took}")
        os._exit(done.returncode)
    _, status = os.waitpid(child, 0)
    assert status == 0, words
    cpu_s, peak, took = map(float, Path(os.environ["BENCH_REPLAY"]).read_text().split())
    return cpu_s, peak, took


def main() -> None:
    """All of it."""
    for name, words in (
        ("100,000 hosts as it was", ()),
        ("100,000 hosts, every guard", ("--guards", "production", "--dns-outage", "2h37m")),
        ("a million hosts as it was", ("--hosts", "1000000")),
    ):
        cpu_s, peak, _ = run(*words)
        tell(f"{name}: CPU", cpu_s, "s CPU", "start-up included")
        tell(f"{name}: peak", peak, "MB")
    cpu_s, _, took = run("--ablate")
    tell("ablation, 10,000 hosts", took, "s", f"{cpu_s:.0f} s CPU")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.environ["BENCH_REPLAY"] = str(Path(folder) / "used")
        main()
