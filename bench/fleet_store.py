"""The fleet's rows: renewals persisted, grants written, and what a manager reads that takes a shard over.

    python -m bench.fleet_store            (about three minutes; PostgreSQL 15, and etcd if it is to be compared)

*Renewals persisted*: checkpoint rows in host order, one a block of 1,000 hosts, ten a commit, under a claim. That is
how managers persist them: no rule reads a renewal, so a host has no row of its own written for one.

*Grants*: the harder figure. Each is a host's row with its set, compared and set, in host order, 1,000 a commit, under a
claim, among a million rows.

*Take-over*: a shard of four among a million hosts, 250,000 rows read and decoded.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))

import uvloop
from msgspec.structs import replace
from postgresql import postgresql

from bench import etcd_leases
from bench.figures import tell
from fencepost.adapters.store_postgresql.fleet import PostgresqlFleetStore
from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.adapters.store_sqlite.fleet import SqliteFleetStore
from fencepost.core.capacity.fleet_store import Change, Claim, Versioned
from fencepost.core.capacity.messages import Instance, InstanceSet
from fencepost.core.capacity.rows import CheckpointRow, HostRow, ShardRow
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.paging import pages

HOSTS = 1_000_000
SHARDS = 4
BLOCK = 1_000
BLOCKS_A_COMMIT = 10
ROUNDS = 3
GRANTS = 100_000
A_COMMIT = 1_000
FILLED_AT_ONCE = 10_000


def host(number: int, life: str) -> HostRow:
    """A host as it mostly stands: held, reported, with one instance."""
    name, address = f"host-{number:07}.eu1.example", f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    one = Instance(f"web-{number}.1", "web", address, 8080, ("serve", "--port", "8080"))
    return HostRow(
        name, "abc"[number % 3], f"{address}:5303", 4, (address,), 17, 2**63 + number, "held", life, 2**62 + number,
        2**61 + number, reported=True, set=InstanceSet(5, (one,)),
    )  # fmt: skip


async def claimed(store: FleetStorePort, shard: int) -> Claim:
    """The claim on one of the shards."""
    row = ShardRow(shard, SHARDS, "bench", 1)
    written = await store.commit(None, [(Change(row, 0),)])
    assert written is not None
    return Claim(shard, "bench", 1, (await store.rows("shard")).life)


async def persisted(store: FleetStorePort, what: str, claim: Claim) -> None:
    """Renewals a second, as checkpoints of blocks."""
    blocks = [tuple(f"host-{at + n:07}.eu1.example" for n in range(BLOCK)) for at in range(0, 250_000, BLOCK)]
    seen = dict.fromkeys(range(len(blocks)), 0)
    start = time.perf_counter()
    for turn in range(ROUNDS):
        for at in range(0, len(blocks), BLOCKS_A_COMMIT):
            part = range(at, min(len(blocks), at + BLOCKS_A_COMMIT))
            ages = tuple((turn + n) % 10 for n in range(BLOCK))
            rows = [CheckpointRow(f"1/{n:06}", "bench", turn, blocks[n], ages) for n in part]
            groups = [(Change(row, seen[n]),) for n, row in zip(part, rows, strict=True)]
            written = await store.commit(claim, groups)
            assert written is not None
            assert all(written.applied)
            seen |= dict.fromkeys(part, written.snapshot)
    took = time.perf_counter() - start
    tell(f"{what}: renewals persisted a second", ROUNDS * len(blocks) * BLOCK / took, "/s")


async def filled(store: FleetStorePort, what: str, life: str) -> None:
    """A million hosts."""
    start = time.perf_counter()
    for at in range(0, HOSTS, FILLED_AT_ONCE):
        written = await store.commit(
            None, [(Change(host(number, life), 0),) for number in range(at, at + FILLED_AT_ONCE)]
        )
        assert written is not None
        assert all(written.applied)
    tell(
        f"{what}: hosts first written a second, {FILLED_AT_ONCE:,} a commit",
        HOSTS / (time.perf_counter() - start),
        "/s",
    )


async def taken_over(store: FleetStorePort, what: str) -> list[Versioned]:
    """Read a shard as managers do, twice: as found, and once more with what it lies in at hand; the rows."""
    found: list[Versioned] = []
    for how in ("", ", again"):
        found.clear()
        start, cpu = time.perf_counter(), time.process_time()
        async for page in pages(store, "host", 1):
            found.extend(page.rows)
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
        words = f"{len(found):,} of {HOSTS:,} hosts (CPU {cpu:.1f} s)"
        tell(f"{what}: a shard read at take-over{how}", took, "s", words)
    return found


async def granted(store: FleetStorePort, what: str, claim: Claim, found: list[Versioned]) -> None:
    """Grants a second, and what a reader then reads."""
    since = (await store.rows("shard")).snapshot
    start, cpu = time.perf_counter(), time.process_time()
    for at in range(0, GRANTS, A_COMMIT):
        groups = [
            (Change(replace(row, number=row.number + 1, nonce=at), seen),)
            for row, seen in found[at : at + A_COMMIT]
            if isinstance(row, HostRow)
        ]
        written = await store.commit(claim, groups)
        assert written is not None
        assert all(written.applied)
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    tell(f"{what}: grants written a second", GRANTS / took, "/s", f"(CPU {cpu / GRANTS * 1e6:.1f} µs each)")
    start = time.perf_counter()
    later = (await store.rows("host", 1, since)).rows
    assert len(later) == GRANTS
    tell(f"{what}: rows read a second that changed", GRANTS / (time.perf_counter() - start), "/s")
    since = (await store.rows("shard")).snapshot
    row, seen = later[7]
    assert isinstance(row, HostRow)
    assert await store.commit(claim, [(Change(replace(row, number=99), seen),)]) is not None
    start = time.perf_counter()
    for _ in range(100):
        assert len((await store.rows("host", 1, since)).rows) == 1
    tell(f"{what}: one change read among {HOSTS:,}", (time.perf_counter() - start) * 10, "ms")


async def each(opened: Callable[[], FleetStorePort], what: str) -> None:
    """All figures of one store."""
    store = opened()
    try:
        await store.rows("shard")
        claim = await claimed(store, 1)
        await persisted(store, what, claim)
        await filled(store, what, claim.life)
        await granted(store, what, claim, await taken_over(store, what))
    finally:
        await store.close()


def main() -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "region.db"
        planner = SqliteStore.open(path, create=True, checkpoints=True)  # in a region it is the planner that does that
        uvloop.run(each(lambda: SqliteFleetStore.open(path, create=True), "sqlite"))
        uvloop.run(planner.close())
    with postgresql(fsync="on", autovacuum="on") as server:
        dsn = server.dsn(server.database())
        uvloop.run(each(lambda: PostgresqlFleetStore.open(dsn, create=True), "postgresql"))
    beside = etcd_leases.measured()
    if beside is None:
        print("  etcd is not installed (Debian: apt-get install etcd-server): nothing to compare with")
    else:
        tell("etcd: renewals a second, one client process", beside, "/s", "(in memory, by its JSON gateway)")


if __name__ == "__main__":
    main()
