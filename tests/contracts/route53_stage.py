"""The stage for Route 53: the adapter on the strict stand-in, and a hand with boto3, AWS's own client."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import boto3
import pytest
import uvloop
from dns_scene import DOMAIN, OWNER

from fencepost.adapters.dns_route53 import Route53Dns, Route53Settings
from fencepost.adapters.dns_route53.names import marker_owner_of, owner_of, quote
from fencepost.core.fence import Marker
from fencepost.core.zone import Live
from fencepost.dev.route53 import Route53Server, limits, running
from fencepost.dev.route53 import Route53Settings as StandInSettings

T = TypeVar("T")
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI-not-a-secret"}
ENVIRONMENT = CREDENTIALS | {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nowhere"}


@cache
def _session() -> Any:
    return boto3.Session(aws_access_key_id="HAND", aws_secret_access_key="h", region_name="us-east-1")


class Serves(Protocol):
    """What a stage asks of a server: where it is, and its zone's id."""

    @property
    def url(self) -> str:
        """Its endpoint."""
        ...

    def create_zone(self, name: str) -> str:
        """A zone's id; made if it isn't there."""
        ...


class Hand:
    """Another writer, without any fence."""

    def __init__(self, server: Serves) -> None:
        self.client: Any = _session().client("route53", endpoint_url=server.url)
        self.zone_id = server.create_zone(DOMAIN)

    def sets(self) -> list[dict[str, Any]]:
        """Every record set but the apex's SOA and NS."""
        found = [
            each
            for page in self.client.get_paginator("list_resource_record_sets").paginate(HostedZoneId=self.zone_id)
            for each in page["ResourceRecordSets"]
        ]
        return [each for each in found if each["Type"] not in ("SOA", "NS") or each["Name"] != f"{DOMAIN}."]

    def at(self, *owners: str) -> list[dict[str, Any]]:
        """The sets of these names."""
        found: list[dict[str, Any]] = []
        for owner in owners:
            page = self.client.list_resource_record_sets(HostedZoneId=self.zone_id, StartRecordName=owner)
            found += [each for each in page["ResourceRecordSets"] if each["Name"] == owner]
        return [each for each in found if each["Type"] not in ("SOA", "NS") or each["Name"] != f"{DOMAIN}."]

    def change(self, deletes: list[dict[str, Any]], creates: list[dict[str, Any]]) -> None:
        """One batch, or as many as its size takes."""
        changes: list[dict[str, Any]] = [{"Action": "DELETE", "ResourceRecordSet": each} for each in deletes]
        changes += [{"Action": "CREATE", "ResourceRecordSet": each} for each in creates]
        batches: list[list[dict[str, Any]]] = [[]]
        records = characters = 0
        for each in changes:
            values = [one["Value"] for one in each["ResourceRecordSet"].get("ResourceRecords", ())]
            records, characters = records + len(values), characters + sum(map(len, values))
            if records > limits.BATCH_RECORDS_MOST or characters > limits.BATCH_CHARACTERS_MOST:
                batches.append([])
                records, characters = len(values), sum(map(len, values))
            batches[-1].append(each)
        for batch in filter(None, batches):
            self.client.change_resource_record_sets(HostedZoneId=self.zone_id, ChangeBatch={"Changes": batch})

    def set(self, *lives: Live) -> None:
        """Make these endpoints stand exactly so."""
        owners = [owner for live in lives for owner in (owner_of(live.name), marker_owner_of(live.name))]
        wanted = [each for live in lives for each in sets_of(live)]
        if len(owners) > 20:
            standing = [each for each in self.sets() if each["Name"] in set(owners)]
        else:
            standing = self.at(*owners)
        self.change(standing, wanted)

    def clear(self) -> None:
        """Nothing but the apex's own."""
        self.change(self.sets(), [])


def simple(owner: str, kind: str, ttl: int, *values: str, **more: Any) -> dict[str, Any]:
    """A record set as the API takes it."""
    return {"Name": owner, "Type": kind, "TTL": ttl, "ResourceRecords": [{"Value": each} for each in values]} | more


def sets_of(live: Live) -> list[dict[str, Any]]:
    """An endpoint's sets, in the simple form."""
    owner, found = owner_of(live.name), []
    if live.marker is not None:
        raw = (live.marker.encode(),) if isinstance(live.marker, Marker) else live.marker.raw
        found.append(simple(marker_owner_of(live.name), "TXT", 60, *map(quote, raw)))
    for kind, addresses in (("A", live.a), ("AAAA", live.aaaa)):
        if addresses:
            found.append(simple(owner, kind, live.ttl, *addresses))
    if live.other:
        found.append(simple(owner, "CNAME", 60, "elsewhere.example."))
    return found


class Route53Stage:
    """Ports on a running stand-in; each of its own, as on hosts of their own, unless given a folder to share."""

    def __init__(self, server: Any) -> None:
        """``server`` is a :class:`Serves`; tests that make faults need the stand-in."""
        self.server = server
        self.by_hand = Hand(server)
        self._ports: list[Route53Dns] = []

    def settings(self, **changed: Any) -> Route53Settings:
        """What a port is told: to list anew at each read, at once."""
        told: dict[str, Any] = {"requests": 1000.0, "look_each": 0, "endpoint": self.server.url}
        return Route53Settings(DOMAIN, OWNER, **(told | changed))

    def port(self, **changed: Any) -> Route53Dns:
        """As the contract says."""
        made = Route53Dns(self.settings(**changed))
        self._ports.append(made)
        return made

    def sleeping(self, slept: list[float], **changed: Any) -> Route53Dns:
        """A port whose pauses take no time, and are listed, seconds."""

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            await asyncio.sleep(0)

        made = Route53Dns(self.settings(**changed), sleep=sleep)
        self._ports.append(made)
        return made

    def shared(self, folder: Path, **changed: Any) -> Route53Dns:
        """A port that shares a folder with others."""
        return self.port(folder=folder, **changed)

    async def hand(self, *lives: Live) -> None:
        """As the contract says."""
        await asyncio.to_thread(self.by_hand.set, *lives)

    def run(self, act: Callable[[], Awaitable[T]]) -> T:
        """As the contract says."""

        async def whole() -> T:
            try:
                return await act()
            finally:
                for port in self._ports:
                    await port.close()
                self._ports.clear()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # what the roles run on
            return runner.run(whole())


@pytest.fixture(scope="module")
def server() -> Iterator[Route53Server]:
    """One stand-in for a module, not throttled."""
    with running(StandInSettings(requests_per_s=None, zones=(DOMAIN,))) as found:
        yield found


@pytest.fixture
def stage(server: Route53Server, monkeypatch: pytest.MonkeyPatch) -> Route53Stage:
    """Ports on that server, with nothing left of the test before."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    server.faults.clear()
    made = Route53Stage(server)
    made.by_hand.clear()
    server.calls.clear()
    return made
