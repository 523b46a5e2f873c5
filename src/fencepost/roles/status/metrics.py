"""The status document as Prometheus metrics. What is unknown is left out, so that no alert takes it for 0."""

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from fencepost.roles.status.document import Status

LEASES = ("held", "suspect", "lapsed")
INSTANCES = ("waiting", "pending", "ready", "ending")
GAUGES = {
    "room": "How many more instances its held hosts take.",
    "placing": "Whether instances may be placed.",
    "mass": "Whether so many hosts fell silent at once that no lease lapses.",
    "in_flight": "Checks that are out.",
    "limit": "How many may be.",
    "backlog": "Hosts that wait for a check, those in flight included.",
    "told_seconds": "Age of these numbers.",
}
COUNTERS = {
    "checks": "Checks sent since its manager's start.",
    "answers": "Answers to them.",
    "granted": "Leases granted.",
    "lapses": "Leases that ran out.",
    "orders": "Orders sent.",
}
Sample = tuple[tuple[str, ...], float | int | None]


class StatusCollector(Collector):
    """One document's metrics."""

    def __init__(self, status: Status) -> None:
        self.status = status

    def collect(self) -> Iterator[Any]:
        """Every family."""
        status = self.status
        yield gauge("info", "What this is.", ("region", "version"), [((status.region, status.version), 1)])
        words = ("ok", "working", "attention")
        yield gauge(
            "verdict",
            "1 for the verdict that holds.",
            ("verdict",),
            [((word,), int(word == status.verdict)) for word in words],
        )
        yield gauge("plan", "Number of the newest plan.", (), [((), status.plan)])
        yield gauge("problems", "Problems by id.", ("id", "needs_person"), counted(status))
        yield counter("fenced", "Writes refused because something newer was live.", (), [((), status.fenced)])
        ages = {"store": status.ages.store_s, "dns": status.ages.dns_s, "observer": status.ages.observer_s}
        yield gauge("age_seconds", "How old each source is.", ("source",), [((k,), v) for k, v in ages.items()])
        if status.observed is not None:
            yield counter("looks", "Whole looks of the observer.", (), [((), status.observed.looks)])
            yield counter("unanswered", "Its questions without an answer.", (), [((), status.observed.unanswered)])
        yield from self.promises()
        yield from self.endpoints()
        yield from self.pools()
        yield from self.roles()
        yield from self.stages()
        yield from self.fleet()

    def stages(self) -> Iterator[Any]:
        """Of the fleet's work, by name."""
        found = self.status.stages
        yield gauge("stage_waiting", "What waits in it.", ("stage",), [((s.stage,), s.waiting) for s in found])
        yield gauge("stage_bound", "How much may wait in it.", ("stage",), [((s.stage,), s.bound) for s in found])
        yield gauge("stage_rate", "What it gets done a second.", ("stage",), [((s.stage,), s.rate_s) for s in found])
        yield gauge(
            "stage_oldest_seconds",
            "How long the oldest has waited.",
            ("stage",),
            [((s.stage,), s.oldest_s) for s in found],
        )

    def fleet(self) -> Iterator[Any]:
        """By shard."""
        fleet = self.status.fleet
        if fleet is None:
            return

        def of(*names: str) -> list[Sample]:
            return [((str(each.shard), name), getattr(each, name)) for each in fleet.shards for name in names]

        def each_of(name: str) -> list[Sample]:
            field = "told_s" if name == "told_seconds" else name
            return [((str(each.shard),), getattr(each, field)) for each in fleet.shards]

        yield gauge("fleet_hosts", "Hosts by lease; held counts suspect ones.", ("shard", "lease"), of(*LEASES))
        yield gauge("fleet_instances", "Instances by state.", ("shard", "state"), of(*INSTANCES))
        for name, what in GAUGES.items():
            yield gauge(f"fleet_{name}", what, ("shard",), each_of(name))
        for name, what in COUNTERS.items():
            yield counter(f"fleet_{name}", what, ("shard",), each_of(name))
        yield gauge("fleet_calibrated_seconds", "Age of the calibration.", (), [((), fleet.calibrated_s)])

    def promises(self) -> Iterator[Any]:
        """As seen from outside."""
        found = self.status.promises.items()
        yield counter("promise_checks", "Times checked.", ("promise",), [((n,), p.times_checked) for n, p in found])
        yield counter("promise_violations", "Times broken.", ("promise",), [((n,), p.times_broken) for n, p in found])
        yield counter(
            "promise_unsure",
            "Times it looked broken and couldn't be told.",
            ("promise",),
            [((n,), p.times_unsure) for n, p in found],
        )

    def endpoints(self) -> Iterator[Any]:
        """By name."""
        found = self.status.endpoints
        yield gauge(
            "generation", "Number of the live generation.", ("endpoint",), [((e.name,), e.generation) for e in found]
        )
        yield gauge("epoch", "Epoch of the live generation.", ("endpoint",), [((e.name,), e.epoch) for e in found])
        yield gauge(
            "endpoint_addresses",
            "Addresses in DNS.",
            ("endpoint",),
            [((e.name,), None if e.addresses is None else len(e.addresses)) for e in found],
        )
        yield gauge(
            "as_planned",
            "Whether DNS holds the newest row.",
            ("endpoint",),
            [((e.name,), None if e.as_planned is None else int(e.as_planned)) for e in found],
        )
        yield counter(
            "emptied_by_others_seconds",
            "How long other writers left callers without an address.",
            ("endpoint",),
            [((e.name,), e.emptied_by_others_s) for e in found],
        )

    def pools(self) -> Iterator[Any]:
        """By name and state."""
        found = self.status.pools
        states = ("in", "dead", "kept", "out", "pending", "drained")
        yield gauge(
            "targets",
            "Targets by state; `in` counts the kept ones.",
            ("pool", "state"),
            [((p.name, s), getattr(p, "in_" if s == "in" else s)) for p in found for s in states],
        )
        for name, what in (("budget", "Removal budget left"), ("max_out", "Most that may be out"), ("min_in", "Floor")):
            yield gauge(name, f"{what}, in weight.", ("pool",), [((p.name,), getattr(p, name)) for p in found])
        yield gauge("fail_open", "Removals are stopped.", ("pool",), [((p.name,), p.panic) for p in found])

    def roles(self) -> Iterator[Any]:
        """By name."""
        found = self.status.roles
        yield gauge(
            "role_up",
            "Whether it runs and says it is well.",
            ("role",),
            [((r.name,), int(r.state == "up")) for r in found],
        )
        yield gauge(
            "role_seen_seconds", "Age of its last sign of life.", ("role",), [((r.name,), r.seen_s) for r in found]
        )
        yield counter("restarts", "Times started again.", ("role",), [((r.name,), r.restarts) for r in found])


def counted(status: Status) -> list[Sample]:
    """Problems by id and by whether a person is needed."""
    found: dict[tuple[str, ...], int] = {}
    for problem in status.problems:
        key = (problem.id, str(problem.needs_person).lower())
        found[key] = found.get(key, 0) + 1
    return list(found.items())


def gauge(name: str, what: str, labels: tuple[str, ...], samples: list[Sample]) -> GaugeMetricFamily:
    """A value that goes up and down."""
    family = GaugeMetricFamily(f"fencepost_{name}", what, labels=labels)
    fill(family, samples)
    return family


def counter(name: str, what: str, labels: tuple[str, ...], samples: list[Sample]) -> CounterMetricFamily:
    """A value that only rises, until its process starts anew."""
    family = CounterMetricFamily(f"fencepost_{name}", what, labels=labels)
    fill(family, samples)
    return family


def fill(family: GaugeMetricFamily | CounterMetricFamily, samples: list[Sample]) -> None:
    """Add what is known."""
    for labels, value in samples:
        if value is not None:
            family.add_metric(labels, value)


def exposition(status: Status) -> bytes:
    """The metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StatusCollector(status))
    return generate_latest(registry)
