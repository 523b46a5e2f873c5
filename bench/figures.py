"""What the benchmarks measured, and what we promise: figures by name, and one goal for each promise.

A benchmark tells its figures one by one: each is a line on the terminal at once, and, under ``python -m bench``, a
line of JSON for the list of goals at the end. Each benchmark is a process of its own, so that memory figures are its
own.
"""

import json
import os
from pathlib import Path

import msgspec

FILE = "FENCEPOST_BENCH_FIGURES"
"""The environment variable that names the file which figures are added to."""


def tell(name: str, value: float, unit: str, words: str = "") -> None:
    """Print a figure, and keep it for the goals."""
    digits = 0 if abs(value) >= 1_000 else 1 if abs(value) >= 100 else 3
    print(f"  {name:58}{value:>13,.{digits}f} {unit:10} {words}".rstrip(), flush=True)
    path = os.environ.get(FILE)
    if path:
        with Path(path).open("a") as file:
            file.write(json.dumps({"name": name, "value": value}) + "\n")


def told(path: Path) -> dict[str, float]:
    """Every figure told so far, the last of each name."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {each["name"]: each["value"] for each in map(json.loads, lines)}


class Goal(msgspec.Struct, frozen=True):
    """A promise about one figure: at most ``limit``, or at least if ``least``. ``bench`` says who measures it."""

    bench: str
    words: str
    figure: str
    limit: float
    unit: str
    least: bool = False

    def met(self, value: float) -> bool:
        """Whether a figure keeps the promise."""
        return value >= self.limit if self.least else value <= self.limit

    def line(self, figures: dict[str, float]) -> str:
        """Goal, figure, met or not."""
        bound = f"{'≥' if self.least else '≤'} {self.limit:,g} {self.unit}"
        value = figures.get(self.figure)
        if value is None:
            return f"  {self.words:58}{bound:>20}{'':>14}  not measured"
        return f"  {self.words:58}{bound:>20}{value:>14,.4g}  {'met' if self.met(value) else 'NOT MET'}"


MANY = "100,000 names"
GOALS = (
    Goal("death_to_gone", "decision to gone from UDP answers, p99", "decision to gone, p99", 300, "ms"),
    Goal(
        "many_names",
        "100,000 names: cold read and compare",
        f"{MANY}: enactor: cold read and compare, CPU s",
        3,
        "s CPU",
    ),
    Goal("many_names", "100,000 names: memory of that, peak", f"{MANY}: enactor: cold, peak MB", 230, "MB"),
    Goal(
        "many_names", "100,000 names: warm pass, serial unchanged", f"{MANY}: enactor: warm pass, CPU ms", 5, "ms CPU"
    ),
    Goal("many_names", "100,000 names: 200 endpoints changed", f"{MANY}: enactor: 200 changes, CPU ms", 100, "ms CPU"),
    Goal(
        "many_names", "one change at 100,000 names ÷ at 1,000 names", "one change, 100,000 names ÷ 1,000 names", 2, "×"
    ),
    Goal("dns_answers", "answers per CPU second, 100 names", "ours: answers per CPU second", 10_000, "/s", least=True),
    Goal("dns_answers", "answers per CPU second ÷ those of dnslib's server", "ours ÷ dnslib", 5, "×", least=True),
    Goal("dns_answers", "p99 at half load ÷ Knot's at the same rate", "p99 at half load, ours ÷ Knot", 3, "×"),
    Goal(
        "fleet_agents",
        "many hosts: checks answered per CPU second",
        "many agents: checks per CPU second, known token",
        15_000,
        "/s",
        least=True,
    ),
    Goal("secondary", "Knot as our secondary shows a change", "a change at Knot as our secondary, longest", 1, "s"),
    Goal(
        "octodns_bind", "BIND: cold read and compare ÷ octoDNS", "cold read and compare ÷ octoDNS's plan", 1 / 25, "×"
    ),
    Goal("octodns_bind", "BIND: memory of that ÷ octoDNS's", "peak ÷ octoDNS's", 1 / 3, "×"),
    Goal(
        "octodns_bind",
        "BIND: 1 % planned and enacted ÷ octoDNS",
        "1 % planned and enacted ÷ octoDNS's plan and apply",
        1 / 25,
        "×",
    ),
    Goal("octodns_bind", "BIND: warm pass", "100,000 names on BIND: warm pass, CPU ms", 5, "ms CPU"),
    Goal("octodns_bind", "BIND: peak of a role, 300,000 records", "peak of a role, MB", 600, "MB"),
    Goal(
        "octodns_bind",
        "BIND: three enactors ÷ a bare loop",
        "three enactors' endpoints a second ÷ a bare loop's",
        0.8,
        "×",
        least=True,
    ),
    Goal("route53_many", "Route 53: first batches ÷ the least", "Route 53: batches ÷ the least", 1.1, "×"),
    Goal("sample_region", "sample region ready", "ready", 3, "s"),
    Goal("sample_region", "sample region idle", "idle, all roles", 5, "% of core"),
    Goal("sample_region", "sample region memory", "memory, all roles", 200, "MB PSS"),
    Goal("sample_region", "fencepost --help", "fencepost --help, wall", 250, "ms"),
    Goal("sample_region", "fencepost status", "fencepost status, wall", 250, "ms"),
    Goal("store_postgresql", "PostgreSQL: a plan of 10,000 rows", "postgresql, 10,000 rows: first plan", 1_000, "ms"),
    Goal(
        "store_postgresql",
        "PostgreSQL: reading one change, 100,000 rows ÷ 1,000",
        "postgresql: reading one change, 100,000 rows ÷ 1,000 rows",
        2,
        "×",
    ),
    Goal(
        "fleet_store",
        "SQLite: renewals persisted, in host order",
        "sqlite: renewals persisted a second",
        100_000,
        "/s",
        least=True,
    ),
    Goal(
        "fleet_store",
        "PostgreSQL: renewals persisted, in host order",
        "postgresql: renewals persisted a second",
        20_000,
        "/s",
        least=True,
    ),
    Goal("fleet_store", "SQLite: 250,000 hosts read at take-over", "sqlite: a shard read at take-over", 4, "s"),
    Goal("fleet_store", "PostgreSQL: 250,000 hosts read at take-over", "postgresql: a shard read at take-over", 4, "s"),
    Goal("explorer", "explorer", "states a second, least of four regions", 100_000, "/CPU s", least=True),
    Goal("explorer", "explorer, two million states", "large: bytes a state", 150, "B"),
    Goal("explorer", "October 2025 as it was, found", "October 2025 as it was, found", 0.5, "s CPU"),
    Goal(
        "admission", "admission: decisions, 4,096 a batch", "admission: decisions a second", 1e7, "/CPU s", least=True
    ),
    Goal("admission", "admission: memory, a million hosts", "admission: memory for a million hosts", 200, "MB"),
    Goal(
        "admission",
        "admission: a million hosts renewed each 180 s",
        "admission: a million hosts, looks each 10 ms",
        2,
        "% of core",
    ),
    Goal("admission", "fleet collapse: drain ÷ the best", "fleet collapse: drain ÷ the best", 1.05, "×"),
    Goal("admission", "fleet collapse: calls a host", "fleet collapse: calls a host", 1.1, ""),
    Goal("admission", "fleet collapse: echo of renewals, cv", "fleet collapse: renewals' cv, the hour after", 0.1, ""),
    Goal("admission", "fleet collapse: the worst misjudgement", "fleet collapse: worst misjudgement", 1.15, "×"),
    Goal(
        "host_manager",
        "host manager: a million hosts, one renewal in 180 s",
        "host manager: CPU of a million hosts",
        50,
        "% of core",
    ),
    Goal("host_manager", "host manager: memory of that", "host manager: memory of a million hosts", 1000, "MB"),
    Goal(
        "host_manager",
        "host manager: deciding, a million hosts",
        "host manager: decisions for a million hosts",
        2,
        "% of core",
    ),
    Goal(
        "host_manager",
        "host manager: decisions, 4,096 a batch",
        "host manager: decisions a second",
        1e7,
        "/CPU s",
        least=True,
    ),
    Goal("host_manager", "host manager: 250,000 hosts taken over", "host manager: crash to all in line", 10, "s"),
    Goal("host_manager", "host manager: leases lapsed by that", "host manager: leases lapsed by the crash", 0, ""),
    Goal("simulator", "simulator: moves", "swarm: moves a second", 50_000, "/CPU s", least=True),
    Goal("simulator", "simulator: region", "swarm: region seconds a CPU second", 2_000, "s/CPU s", least=True),
    Goal("replay", "replay, 100,000 hosts as it was", "100,000 hosts as it was: CPU", 4, "s CPU"),
    Goal("replay", "the same: memory", "100,000 hosts as it was: peak", 150, "MB"),
    Goal("replay", "replay, 100,000 hosts, every guard", "100,000 hosts, every guard: CPU", 4, "s CPU"),
    Goal("replay", "replay, a million hosts as it was", "a million hosts as it was: CPU", 15, "s CPU"),
    Goal("replay", "the same: memory", "a million hosts as it was: peak", 400, "MB"),
    Goal("replay", "ablation at 10,000 hosts", "ablation, 10,000 hosts", 30, "s"),
)
