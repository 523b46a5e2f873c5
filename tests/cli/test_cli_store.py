"""``fencepost store``: a copy brings the fleet, too, and a store that was set back can be told so."""

import asyncio
import json
from pathlib import Path

from called import call

from fencepost.adapters.store_sqlite.fleet import SqliteFleetStore
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.rows import HostRow

REGION = """\
[region]
name = "eu-1"
zones = ["a", "b"]
[store]
path = "{name}.db"
[dns]
provider = "embedded"
domain = "example.test"
[pool.web]
probe = "http://:8080/healthz"
[pool.web.targets]
a = ["192.0.2.1"]
b = ["192.0.2.2"]
[[endpoint]]
name = "web.example.test"
pool = "web"
"""


def life_and_hosts(path: Path, *more: str) -> tuple[str, list[str]]:
    """The life of a store that is there, and its hosts once these are in."""

    async def go() -> tuple[str, list[str]]:
        store = SqliteFleetStore.open(path, create=True)
        for name in more:
            assert await store.commit(None, [(Change(HostRow(name, "a", "192.0.2.9:1"), 0),)]) is not None
        page = await store.rows("host")
        await store.close()
        return page.life, [found.row.key for found in page.rows]

    return asyncio.run(go())


def test_a_copy_brings_the_fleet_too(tmp_path: Path) -> None:
    """Hosts are there in the second store, in a life of its own."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(REGION.format(name=name))
    life, _ = life_and_hosts(tmp_path / "one.db", "host-1", "host-2")
    done = call("store", "copy", "one.toml", "two.toml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["fleet_rows"] == 2
    other, hosts = life_and_hosts(tmp_path / "two.db")
    assert (hosts, other != life) == (["host-1", "host-2"], True)
    life_and_hosts(tmp_path / "one.db", "host-3")
    again = call("store", "copy", "one.toml", "two.toml", cwd=tmp_path)
    assert "1 row of the fleet brought now; its leases count as unknown there" in again.stdout


def test_a_store_that_was_set_back_is_told_so(tmp_path: Path) -> None:
    """Asked first, since nothing is placed for a while; then another life, the same rows, and a line of history."""
    (tmp_path / "one.toml").write_text(REGION.format(name="one"))
    life, _ = life_and_hosts(tmp_path / "one.db", "host-1")
    asked = call("store", "restamp", "--config", "one.toml", cwd=tmp_path)
    assert asked.returncode != 0
    assert "add --yes" in asked.stderr
    assert life_and_hosts(tmp_path / "one.db") == (life, ["host-1"])
    done = call("store", "restamp", "--config", "one.toml", "--yes", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    new = json.loads(done.stdout)["life"]
    assert new != life
    assert life_and_hosts(tmp_path / "one.db") == (new, ["host-1"])
    history = call("history", "--config", "one.toml", cwd=tmp_path)
    assert f"the fleet's leases count as unknown from now on: life {new[:4]}" in " ".join(history.stdout.split())
