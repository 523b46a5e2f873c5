"""One trace, two worlds: what a simulated walk did to DNS and store, done again on the real ones, step by step.

The trace is read from its file and walked again; each operation that reached the provider or the store is carried out
by the RFC 2136 adapter on our own server, and by the SQLite store. Each must come to the same: applied or refused,
published or outrun, deleted or not, and the same records and rows afterwards.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from dns_scene import DOMAIN
from dns_stages import ServerStage
from msgspec import structs
from servers import KEY_NAME, KEY_SECRET, Served, embedded

from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.core.effects import Commit, DeleteRow, Publish
from fencepost.core.store import Head, Order, Row
from fencepost.core.zone import Live
from fencepost.simulator import trace
from fencepost.simulator.scenarios import SCENARIOS, Scenario
from fencepost.simulator.walk import Operation
from fencepost.world.region import OWNER

KINDS = tuple(kind for kind in SCENARIOS["swarm"].kinds if kind not in ("store-restored", "foreign-marker"))
"""A store set back is another file, and a foreign marker here is one without any text: neither is an operation."""
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the module."""
    with embedded(tmp_path_factory.mktemp("embedded")) as running:
        yield running


def plain(row: Row) -> Row:
    """A row without what each store stamps by itself."""
    return structs.replace(row, store="", nonce="")


class RealRegion:
    """The embedded server and SQLite stores; heads of the walk are translated to those of the real store."""

    def __init__(self, stage: ServerStage, port: Rfc2136Dns, folder: Path) -> None:
        self.stage = stage
        self.port = port
        self.folder = folder
        self.stores: list[SqliteStore] = []
        self.heads: dict[Head, Head] = {}
        self.nonces: dict[str, str] = {}

    async def new_store(self, head: Head) -> None:
        """The first store, or one in place of a lost one."""
        store = SqliteStore.open(self.folder / f"{len(self.stores)}.db", create=True)
        self.stores.append(store)
        self.heads[head] = await store.head()

    async def does(self, operation: Operation) -> None:
        """One operation: the outcome must be the walk's."""
        kind, argument, outcome = operation
        store = self.stores[-1]
        match argument:
            case Commit(batch=batch):
                SEEN[f"commit {outcome}"] += 1
                assert await self.port.commit(batch) is outcome
            case Publish(plan=plan):
                head = await store.publish(structs.replace(plan, expected=self.heads[plan.expected]))
                SEEN[f"publish {outcome is not None}"] += 1
                assert (head is None) is (outcome is None)
                if head is not None:
                    assert (head.number, head.inputs) == (outcome.number, outcome.inputs)
                    self.heads[outcome] = head
                    self.nonces[outcome.nonce] = head.nonce
            case DeleteRow(name=name, generation=generation, nonce=nonce):
                SEEN[f"delete {outcome}"] += 1
                assert await store.delete_row(name, generation, self.nonces[nonce]) is outcome
            case Live() as live:
                SEEN["hand"] += 1
                await self.stage.hand(live)
            case Order() as order:
                await store.put_order(order)
            case Head() as head:
                SEEN[kind] += 1
                await self.new_store(head)

    async def agrees(self, domain: tuple[Live, ...], rows: tuple[Row, ...]) -> None:
        """DNS and newest rows are what they are in the walk."""
        await self.port.read()
        for live in domain:
            assert self.port.live(live.name) == live
        _, newest = await self.stores[-1].newest_rows(None)
        first: dict[str, Row] = {}
        for row in rows:
            first.setdefault(row.name, row)
        assert {row.name: plain(row) for row in newest} == {name: plain(row) for name, row in first.items()}


@pytest.mark.parametrize(("name", "seed"), [("bad-hands", 4), ("race", 2), ("outage", 0)])
def test_real_adapters_come_to_the_same(name: str, seed: int, served: Served, tmp_path: Path) -> None:
    """Nothing is modelled twice unless it is compared: DNS and store as simulated behave as the real ones do."""
    scenario: Scenario = SCENARIOS[name]
    path = tmp_path / "trace.jsonl"
    upsets = tuple(upset for upset in scenario.upsets(seed) if upset.kind in KINDS)
    trace.record(path, seed, scenario, upsets)
    steps: list[tuple[Operation, tuple[Live, ...], tuple[Row, ...]]] = []
    with path.open() as file:
        simulation = trace.simulation_of(trace.header_of(file.readline()))

    def step(operation: Operation) -> None:
        shared = simulation.walk.shared
        steps.append((operation, shared.domain, shared.tables.rows))

    trace.replay(path, step, simulation)
    stage = ServerStage(served)
    settings = Rfc2136Settings(("127.0.0.1", served.port), DOMAIN, KEY_NAME, KEY_SECRET, OWNER)

    async def act() -> None:
        port = Rfc2136Dns(settings)
        real = RealRegion(stage, port, tmp_path)
        try:
            await real.stage.hand(*(Live(live.name) for live in steps[0][1]))
            await real.new_store(Head("0001"))
            for number, (operation, domain, rows) in enumerate(steps):
                if number % 10 == 0 and operation[0] not in ("wiped",):
                    await real.agrees(domain, rows)
                await real.does(operation)
            await real.agrees(simulation.walk.shared.domain, simulation.walk.shared.tables.rows)
        finally:
            await port.close()
            for store in real.stores:
                await store.close()

    stage.run(act)
    assert len(steps) > 20


def test_what_was_compared_happened() -> None:
    """Applied and refused commits, plans that were outrun, deletions, hands, a lost store."""
    assert {"commit True", "commit False", "publish True", "delete True", "hand"} <= set(SEEN), SEEN
