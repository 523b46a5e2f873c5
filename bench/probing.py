"""What a probe costs: CPU of a prober that asks 10,000 targets each 10 s, against a cheap server in another process.

python -m bench.probing [--targets 10000] [--interval 10] [--seconds 20] [--loop uvloop|asyncio] [--kind http|tcp]
[--sick]

Prints probes a second (whole, and the most in any second), the share of a core, microseconds a probe, results by
verdict, how late the loop ran, and what is left in TIME_WAIT. With `--decide` the results go to the real `Checker`
decider, as in the role. With `--sick` the target never answers, so each probe runs into its timeout. The share is CPU
time of this process over wall time; the server's isn't in it.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import uvloop

from fencepost.adapters.probe import MS, ProbeSettings, ProbeTarget
from fencepost.adapters.probe import ProbeResult as Raw
from fencepost.adapters.probe_kinds import open_prober
from fencepost.core.events import Woke
from fencepost.core.traffic.health import Checker, Probed, PublishReport, Restarted, TargetsListed
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.verdict import ProbeResult
from fencepost.roles.checker.lag import LagSampler


def time_wait(port: int) -> int:
    """Sockets in TIME_WAIT with that port at either end."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] == "06" and f"{port:04X}" in (row[1][-4:], row[2][-4:]) for row in rows)


async def measure(options: argparse.Namespace, port: int) -> None:
    """Probe for a while and print the figures."""
    interval_ns = options.interval * 1_000 * MS
    settings = ProbeSettings(options.kind, port, "/healthz", interval_ns, min(2_000 * MS, interval_ns // 2))
    keys = [f"127.{1 + (n >> 16)}.{n >> 8 & 255}.{n & 255}" for n in range(1, options.targets + 1)]
    checker = Checker("a", "web", HealthSettings(interval_ns=interval_ns, timeout_ns=settings.timeout_ns))
    checker.on(Restarted(), time.time_ns())
    checker.on(TargetsListed(tuple(keys)), time.time_ns())
    seen: Counter[str] = Counter()
    batches = bodies = 0
    latency_ns = worst_lag_ns = 0

    def on_results(results: list[Raw]) -> None:
        nonlocal batches, latency_ns, bodies
        batches += 1
        for _, ok, cause, took_ns, _ in results:
            seen["passed" if ok else cause] += 1
            latency_ns += took_ns
        if options.decide:
            known = tuple(ProbeResult(key, ok, cause, load) for key, ok, cause, _, load in results if ok is not None)
            effects = checker.on(Probed(known), time.time_ns()) + checker.on(Woke(), time.time_ns())
            bodies += sum(isinstance(effect, PublishReport) for effect in effects)

    def on_lag(p99_ns: int) -> None:
        nonlocal worst_lag_ns
        worst_lag_ns = max(worst_lag_ns, p99_ns)

    prober = open_prober(settings, on_results, salt="a")
    prober.set_targets(ProbeTarget(key, key) for key in keys)
    lag = LagSampler(on_lag)
    lag.start()
    began, cpu = time.monotonic(), time.process_time()
    prober.start()
    marks = []
    while (now := time.monotonic() - began) < options.seconds:
        marks.append((now, prober.sent))
        await asyncio.sleep(0.02)
    spent, wall, sent = time.process_time() - cpu, time.monotonic() - began, prober.sent
    waiting = time_wait(port)
    prober.stop()
    lag.stop()
    peak, allowed = peak_rate(marks), 1.1 * options.targets / options.interval
    mean_ms = latency_ns / max(sum(seen.values()), 1) / MS
    print(f"{options.loop}: {sent} {options.kind} probes in {wall:.1f} s, {sent / wall:.0f}/s")
    print(f"  at most {peak:.0f} in any second (1.1 x N/interval = {allowed:.0f})")
    print(
        f"  CPU {spent / wall:.1%} of a core, {spent / sent * 1e6:.0f} µs a probe; {batches} batches, {bodies} bodies"
    )
    print(f"  mean latency {mean_ms:.2f} ms; loop lag p99 at most {worst_lag_ns / MS:.1f} ms")
    print(f"  results {dict(seen)}; TIME_WAIT {waiting}")


def peak_rate(marks: Sequence[tuple[float, int]]) -> float:
    """The most probes sent within any one second, from (time, sent so far)."""
    best, first = 0.0, 0
    for at, sent in marks:
        while at - marks[first][0] > 1.01:
            first += 1
        best = max(best, (sent - marks[first][1]) / max(at - marks[first][0], 1.0))
    return best


def main() -> None:
    """Start a target, measure, end the target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--interval", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    parser.add_argument("--kind", choices=("http", "tcp"), default="http")
    parser.add_argument("--decide", action="store_true")
    parser.add_argument("--sick", action="store_true")
    options = parser.parse_args()
    target = subprocess.Popen(
        [sys.executable, "-m", "fencepost.dev.target", "0.0.0.0"], stdout=subprocess.PIPE, text=True
    )
    try:
        port = int(target.stdout.readline()) if target.stdout else 0
        if options.sick:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/fail?for=1h&how=silent").close()
        run = uvloop.run if options.loop == "uvloop" else asyncio.run
        run(measure(options, port))
    finally:
        target.terminate()
        target.wait()


if __name__ == "__main__":
    main()
