"""A store that a person must mend first: what answers and heals needs none, so it starts and goes on."""

import asyncio
from pathlib import Path

import dns.query
import dns.rcode
import dns.tsig
import dns.update
import pytest
from regions import RunningRegion

from fencepost import assembly
from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.ports import Misconfigured

NAME = "api.example.test"


@pytest.mark.parametrize("what", ["directory", "garbage", "missing"])
def test_opening_a_store_that_cannot_be_used_raises_from_its_calls(tmp_path: Path, what: str) -> None:
    """A role opens it before it does anything else."""
    path = tmp_path / "demo.db"
    if what == "directory":
        path.mkdir()
    elif what == "garbage":
        path.write_bytes(b"no store" * 1000)
    else:
        path = tmp_path / "none" / "demo.db"

    async def go() -> None:
        store = SqliteStore.open(path)
        try:
            with pytest.raises(Misconfigured):
                await store.head()
        finally:
            await store.close()

    asyncio.run(go())


def test_a_region_starts_answers_and_heals_on_a_damaged_store(tmp_path: Path) -> None:
    """Every role ended at once and again each two seconds, and the answers of the DNS server with them."""
    region = RunningRegion(tmp_path)
    with region:
        region.until(region.converged, 10, "it has its records")
    store = Path(region.region.store.path)
    for end in ("-wal", "-shm"):
        store.with_name(store.name + end).unlink(missing_ok=True)
    store.write_bytes(b"no store" * 1000)
    with region:
        key = assembly.tsig_key(region.region)
        update = dns.update.UpdateMessage("example.test")
        update.use_tsig(dns.tsig.Key(key.name, key.secret, key.algorithm))
        update.delete(f"{NAME}.", "A")
        writes = region.marker(NAME)
        assert writes is not None
        reply = dns.query.tcp(update, "127.0.0.1", port=region.dns_port, timeout=5)
        assert reply.rcode() == dns.rcode.NOERROR
        region.until(lambda: len(region.addresses(NAME)) == 6, 20, "it is healed from what an enactor remembers")
        healed = region.marker(NAME)
        assert healed is not None
        assert healed.writes > writes.writes
        assert all(each["restarts"] == 0 for each in region.processes().values()), region.processes()
