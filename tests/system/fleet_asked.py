"""The fleet's API on rows in memory, asked without a network, with a store that can be away or lose its answers."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.core.capacity.fleet_store import Change, Claim, Group
from fencepost.core.capacity.rows import FleetRow, HostRow, InstanceRow, Kind, ShardRow, kind_of
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import HistoryRow, Unavailable
from fencepost.ports.fleet import FleetStorePort, Page, Proof, Written
from fencepost.roles.api import NotAllowed, failed
from fencepost.roles.fleet.launching import Clocks
from fencepost.roles.fleet.requests import FleetApi
from fencepost.settings import Region, judge
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows

TEXT = """\
[region]
name = "eu-1"
zones = ["a", "b", "c"]
[dns]
provider = "embedded"
domain = "example.test"
[fleet]
command = ["/bin/web", "{address}:{port}"]
[pool.web]
probe = "http://:8080/healthz"
[pool.web.launch]
[pool.front]
probe = "http://:8080/healthz"
[pool.front.launch]
[[endpoint]]
name = "www.example.test"
pool = "front"
[pool.fixed]
probe = "http://:8080/healthz"
[pool.fixed.targets]
a = ["192.0.2.1"]
"""
TOKEN = "sesame"


def region() -> Region:
    """A region with a pool that is launched and one that isn't."""
    found = judge(TEXT, "/etc/fencepost/region.toml", {}).region
    assert found is not None
    return found


class Weather:
    """A fleet's store that can be away, or write and lose the answer."""

    def __init__(self, store: FleetStorePort) -> None:
        self.store = store
        self.away = False
        self.lose = 0

    def look(self) -> None:
        if self.away:
            raise Unavailable("the store file is gone", where="demo.db", hint="start the planner")

    async def rows(self, kind: Kind, shard: int | None = None, since: int = 0) -> Page:
        self.look()
        return await self.store.rows(kind, shard, since)

    async def prove(self, shard: int, places: Sequence[tuple[Kind, str]]) -> Proof:
        self.look()
        return await self.store.prove(shard, places)

    async def commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        self.look()
        written = await self.store.commit(claim, groups)
        if self.lose:
            self.lose -= 1
            raise Unavailable("no answer within 5 s", where="demo.db")
        return written

    async def wait(self, most: Duration) -> None:
        """Nobody here waits."""

    async def close(self) -> None:
        """Whoever made the store lets go of it."""


async def sleep(_: Duration) -> None:
    """Time here is what the test says."""


class Asked:
    """The API, its store, and clocks that stand still unless moved: ``now`` moves both, ``wall`` the wall's alone."""

    def __init__(self, store: FleetStorePort | None = None) -> None:
        self.held = ReferenceRows("life-1")
        self.store = Weather(store or ReferenceFleet(self.held, sleep))
        self.region = region()
        self.now = 1_000 * SECOND
        self.wall = 0
        self.history: list[HistoryRow] = []
        self.api = self.fresh()

    def fresh(self) -> FleetApi:
        """Another API process on the same rows."""
        numbers = itertools.count(len(self.history) * 1000 + 7)
        draws = Clocks(
            lambda: self.now + self.wall, lambda: self.now, lambda: next(numbers) * 0x9E3779B97F4A7C15 % 2**64
        )
        return FleetApi(lambda: self.region, self.store, self.allow, self.note, draws)

    def allow(self, request: Any) -> None:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise NotAllowed("a change takes the token")

    async def note(self, row: HistoryRow) -> None:
        self.history.append(row)

    async def put(self, *rows: FleetRow) -> None:
        """Write rows over what there is."""
        for row in rows:
            proof = await self.store.store.prove(1, [(kind_of(row), row.key)])
            at = proof.rows[0]
            written = await self.store.store.commit(None, [(Change(row, at.revision if at else 0),)])
            assert written is not None
            assert written.applied == (True,)

    async def open(self, *hosts: HostRow) -> None:
        """An open shard, and hosts."""
        life = (await self.store.store.rows("shard")).life
        await self.put(ShardRow(1, 1, "m1", 1, 1, life), *hosts)

    async def instances(self) -> dict[str, InstanceRow]:
        """All instances' rows."""
        page = await self.store.store.rows("instance")
        return {at.row.instance: at.row for at in page.rows if isinstance(at.row, InstanceRow)}

    async def call(
        self, path: str, body: object = None, *, token: str = TOKEN, raw: bytes | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        """One request: a POST if there is a body."""
        from starlette.applications import Starlette

        from fencepost.ports import PortError

        app = Starlette(routes=list(self.api.routes()), exception_handlers={PortError: failed})
        sent: list[dict[str, Any]] = []
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else b""
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET" if body is None and raw is None else "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"authorization", f"Bearer {token}".encode())],
            "client": ("127.0.0.1", 1),
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
        return sent[0]["status"], json.loads(b"".join(part.get("body", b"") for part in sent[1:])), headers


def held(name: str, zone: str = "a", room: int = 4, life: str = "life-1") -> HostRow:
    """A host that instances may be placed at."""
    return HostRow(name, zone, "127.0.0.1:9", room, given(name, room), 1, 7, "held", life, 5, 6, reported=True)


def given(name: str, room: int) -> tuple[str, ...]:
    """As many addresses as there is room, other ones for each of the hosts h1, h2 …."""
    number = int(name[1:]) if name[1:].isdigit() else 0
    return tuple(f"10.{number}.{place // 250}.{place % 250 + 1}" for place in range(room))
