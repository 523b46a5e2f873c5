"""An API on a store and a DNS provider in memory, which can be taken away."""

import asyncio
import http.client
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs
from patience import patient

from fencepost.core.fence import Generation, Marker
from fencepost.core.instant import SECOND, Duration
from fencepost.core.record_set import content
from fencepost.core.store import Head, Order, Plan, Row
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.core.zone import Live
from fencepost.ports import HistoryRow, Inputs, Unavailable
from fencepost.roles import configuration
from fencepost.roles.api import run_api
from fencepost.settings import Region, load
from fencepost.settings.schema import HostPort, Secret
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore

SAMPLE = Path(__file__).parents[2] / "src/fencepost/dev/sample.toml"
NAME = "api.example.test"
VALUE = content(["127.0.1.1", "127.0.1.2"], 5)
ORDER = Order("o-1", "withdraw", "API.example.test.", by="ops", reason="moved away")


async def pause(length: Duration) -> None:
    await asyncio.sleep(length / SECOND)


class Store(ReferenceStore):
    """A store that can be taken away, or made to hang."""

    def __init__(self) -> None:
        numbers = itertools.count()
        super().__init__("beef" * 8, lambda: f"{next(numbers):08x}", pause)
        self.gone = False
        self.hangs = False

    async def inputs(self) -> Inputs:
        if self.gone:
            raise Unavailable("the store file is gone", where="demo.db", hint="start the planner")
        if self.hangs:
            await asyncio.Event().wait()
        return await super().inputs()


class Dns(ReferenceDns):
    """A provider that can be taken away."""

    gone = False

    async def read(self) -> Collection[str]:
        if self.gone:
            raise Unavailable("no answer within 2 s", where="127.0.0.1:5300")
        return await super().read()

    def names(self) -> Iterable[str]:
        return super().names()


class World:
    """A region's store and DNS with one endpoint live, and an API on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        sample = load(SAMPLE, {})
        api = structs.replace(sample.api, listen=HostPort("127.0.0.1", 0), token=Secret(str(folder / "api.token")))
        nowhere = structs.replace(sample.dns, listen=HostPort("127.0.0.1", 1))
        self.region: Region = structs.replace(sample, api=api, dns=nowhere)
        self.store = Store()
        self.domain = ReferenceDomain("example.test")
        self.dns = Dns(self.domain, pause)
        self.port = 0

    async def fill(self) -> None:
        await configuration.put(self.store, self.region)
        members = tuple(Member(key, "a", State.IN, 1, healthy=True, served=True) for key in VALUE.a)
        await self.store.put_membership("web", 0, msgspec.json.encode(Membership("web", 1, members=members)))
        row = Row.of(NAME, Generation(0, 1), VALUE, families="4")
        snapshot = (await self.store.inputs()).snapshot
        head = await self.store.publish(Plan(await self.store.head(), 1, snapshot, (row,)))
        assert isinstance(head, Head)
        self.domain.set(Live(NAME, Marker.of("demo", head.mark, row.generation, VALUE, None, 1), VALUE.a, (), 5))
        await self.store.note([HistoryRow("fenced", NAME, "enactor/a", "plan 20, live is 21", time.time_ns())])

    def listens(self, place: HostPort, ready: asyncio.Event) -> None:
        self.port = place.port
        ready.set()

    def run(self, work: Callable[["World"], Awaitable[None]], *, store: bool = True) -> None:
        """Do ``work`` while the API serves."""

        async def serving() -> None:
            await self.fill()
            ready = asyncio.Event()
            task = asyncio.create_task(
                run_api(
                    self.region,
                    self.store if store else None,
                    {"example.test": self.dns},
                    self.folder,
                    ready=lambda place: self.listens(place, ready),
                )
            )
            try:
                await ready.wait()
                await work(self)
            finally:
                task.cancel()
                await asyncio.wait([task])

        asyncio.run(asyncio.wait_for(serving(), patient(30)))

    async def call(
        self, path: str, method: str = "GET", body: bytes | None = None, token: str | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """One request."""

        def calling() -> tuple[int, bytes, dict[str, str]]:
            link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
            link.request(method, path, body, {"authorization": f"Bearer {token}"} if token is not None else {})
            reply = link.getresponse()
            found = reply.status, reply.read(), {key.lower(): value for key, value in reply.getheaders()}
            link.close()
            return found

        return await asyncio.to_thread(calling)

    async def json(self, path: str) -> Any:
        status, body, _ = await self.call(path)
        assert status == 200, body
        return json.loads(body)

    async def anew(self) -> None:
        """Wait for a document that was begun after this was called: the last one is served for a while."""
        made = (await self.json("/status"))["at"]
        async with asyncio.timeout(patient(20)):
            while (await self.json("/status"))["at"] == made:  # noqa: ASYNC110  it is made when it is asked for
                await asyncio.sleep(0.05)

    def token(self) -> str:
        return (self.folder / "api.token").read_text().strip()
