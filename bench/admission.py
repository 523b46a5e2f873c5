"""Admission: decisions a second, what a million renewals cost, memory; and the fleet's collapse at full size.

    python -m bench.admission

One decision is one host's renewal: taken, answered and put down for the next one. All figures are CPU time of one
process.
"""

import resource
import time

import numpy as np

from bench.figures import tell
from fencepost.core.admission import Admission, AdmissionSettings, first_renewal, next_renewal
from fencepost.core.instant import HOUR, MILLISECOND, SECOND
from fencepost.simulator.fleet_collapse.scenario import BASE, VARIANTS, run_variant

HOSTS = 1_000_000
BATCH = 4_096
PERIOD = 180 * SECOND


def ready(limit: int) -> Admission:
    """A million hosts that hold leases, granted all at once."""
    settings = AdmissionSettings(
        limit, 40 * MILLISECOND, 184 * MILLISECOND, 276 * MILLISECOND, 10 * SECOND, limit_most=limit
    )
    admission = Admission(settings, HOSTS)
    hosts = np.arange(HOSTS)
    admission.renew(hosts, first_renewal(hosts, np.ones(HOSTS, np.int64), 0, PERIOD), 3 * PERIOD)
    return admission


def walked(admission: Admission, start: int, lasts: int, tick: int) -> tuple[int, int, float]:
    """Renewals by a manager that looks once a tick: how many, in how many looks, and CPU seconds."""
    count, looks, now = 0, 0, start
    began = time.process_time()
    while now < start + lasts:
        now += tick
        ids, _ = admission.take(now)
        admission.answered(ids, now + MILLISECOND)
        admission.renew(ids, next_renewal(admission.due(ids), now + MILLISECOND, PERIOD), now + 3 * PERIOD)
        count, looks = count + len(ids), looks + 1
    return count, looks, time.process_time() - began


def taken_and_answered() -> float:
    """Decisions a CPU second with everyone in line: taken and answered, in batches."""
    admission = ready(BATCH)
    admission.drop(np.arange(HOSTS))
    admission.acquire(np.arange(HOSTS), 0)
    began, count = time.process_time(), 0
    while len(ids := admission.take(count)[0]):
        admission.answered(ids, count + 1)
        count += len(ids)
    return count / (time.process_time() - began)


def main() -> None:
    """Speed, cost, memory, then the collapse and its variants."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    admission = ready(BATCH * 4)
    count, looks, spent = walked(admission, PERIOD, PERIOD, BATCH * PERIOD // HOSTS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    words = f"{count:,} renewals, {count // looks:,} a batch"
    tell("admission: decisions a second", 2 * count / spent, "/CPU s", f"{words}; taken and answered, put down anew")
    tell("admission: whole renewals a second", count / spent, "/CPU s", words)
    tell("admission: taken and answered a second", taken_and_answered(), "/CPU s", "everyone in line")
    tell("admission: memory for a million hosts", (peak - before) / 1024, "MB", "peak, above the process's own")
    now = 2 * PERIOD
    for tick in (5, 10, 20):
        count, looks, spent = walked(admission, now, 30 * SECOND, tick * MILLISECOND)
        now += 30 * SECOND
        words = f"a look each {tick} ms, {count // looks:,} a batch"
        tell(f"admission: a million hosts, looks each {tick} ms", 100 * spent / 30, "% of core", words)
    run = run_variant(BASE, 100_000, 0, HOUR)
    tell("fleet collapse: drain ÷ the best", run.drain_ratio or float("inf"), "×", "100,000 hosts, as calibrated")
    tell("fleet collapse: calls a host", run.sends_per_host, "")
    tell("fleet collapse: renewals' cv, the hour after", run.renewal_cv or float("inf"), "")
    ratios = []
    for variant in VARIANTS.values():
        if variant is not BASE:
            ratios.append(run_variant(variant, 100_000, 0).drain_ratio or float("inf"))
            tell(f"fleet collapse, {variant.name}: drain ÷ the best", ratios[-1], "×", variant.meaning)
    tell("fleet collapse: worst misjudgement", max(ratios), "×")


if __name__ == "__main__":
    main()
