"""A region with a fleet on SQLite, its API in a thread of its own, and the command line called beside it."""

import asyncio
import contextlib
import json
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from called import call
from free_ports import free_port
from patience import patient

from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.adapters.store_sqlite.fleet import SqliteFleetStore
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.rows import FleetRow, HostRow, InstanceRow, ShardRow, kind_of
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.api import run_api
from fencepost.settings import Region, load

T = TypeVar("T")
TEXT = """\
[region]
name = "eu-1"
zones = ["a", "b"]
[dns]
provider = "embedded"
domain = "example.test"
listen = "127.0.0.1:{dns}"
[api]
listen = "127.0.0.1:{api}"
[fleet]
driver = "none"
[pool.web]
probe = "http://:8080/healthz"
[pool.web.launch]
[[endpoint]]
name = "web.example.test"
pool = "web"
"""


class FleetRegion:
    """The region of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / "region.toml"
        path.write_text(TEXT.format(dns=free_port(), api=free_port()))
        self.region: Region = load(path, {})
        self.do(self._make)
        self.life = self.do(lambda store: store.rows("shard")).life
        self.put(ShardRow(1, 1, "m1", 1, 1, self.life))

    async def _make(self, _: FleetStorePort) -> None:
        store = SqliteStore.open(self.region.store.path, create=True)
        await store.inputs()
        await store.close()

    def do(self, work: Callable[[FleetStorePort], Coroutine[Any, Any, T]]) -> T:
        """Something done with the fleet's rows."""

        async def whole() -> T:
            store = SqliteFleetStore.open(self.region.store.path, create=True)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(whole())

    def put(self, *rows: FleetRow) -> None:
        """Write rows over what there is."""

        async def work(store: FleetStorePort) -> None:
            proof = await store.prove(1, [(kind_of(row), row.key) for row in rows])
            changes = [Change(row, at.revision if at else 0) for row, at in zip(rows, proof.rows, strict=True)]
            written = await store.commit(None, [tuple(changes)])
            assert written is not None
            assert all(written.applied)

        self.do(work)

    def held(self, name: str, zone: str = "a", room: int = 4) -> HostRow:
        """A host that instances may be placed at."""
        return HostRow(
            name, zone, "192.0.2.1:7700", room, given(name, room), 1, 7, "held", self.life, 5, 6, reported=True
        )

    def instances(self) -> dict[str, InstanceRow]:
        """All instances' rows."""
        page = self.do(lambda store: store.rows("instance"))
        return {at.row.instance: at.row for at in page.rows if isinstance(at.row, InstanceRow)}

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``fencepost fleet …`` in the region's folder."""
        return call(*words, cwd=self.folder, USER="ops")

    def json(self, *words: str) -> Any:
        """A command's document."""
        done = self.call(*words, "--json")
        return done.returncode, json.loads(done.stdout)

    @contextlib.contextmanager
    def api(self) -> Iterator[None]:
        """The API, serving."""
        ready, loop = threading.Event(), asyncio.new_event_loop()

        async def serving() -> None:
            fleet = SqliteFleetStore.open(self.region.store.path)
            try:
                await run_api(self.region, None, None, self.folder, ready=lambda _: ready.set(), fleet=fleet)
            finally:
                await fleet.close()

        task = loop.create_task(serving())

        def run() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
            loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert ready.wait(patient(20))
            yield
        finally:
            loop.call_soon_threadsafe(task.cancel)
            thread.join(patient(20))


def given(name: str, room: int) -> tuple[str, ...]:
    """As many addresses as there is room, other ones for each of the hosts h1, h2 …."""
    number = int(name[1:]) if name[1:].isdigit() else 0
    return tuple(f"10.{number}.{place // 250}.{place % 250 + 1}" for place in range(room))
