"""Asking a Route 53 with a real SDK: boto3, without retries, so that each answer is seen as it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from fencepost.dev.route53 import Route53Server, Route53Settings, running

DOMAIN = "example.test"


class Asked:
    """A zone of a stand-in, and an SDK client for it."""

    def __init__(self, server: Route53Server, zone_id: str) -> None:
        self.server = server
        self.zone_id = zone_id
        self.client = client(server.url)

    def change(self, *changes: tuple[str, dict[str, Any]], comment: str = "") -> dict[str, Any]:
        """One ChangeBatch; its ChangeInfo."""
        return changed(self.client, self.zone_id, *changes, comment=comment)

    def listed(self, **begin: str) -> list[dict[str, Any]]:
        """Every record set but the zone's own SOA and NS."""
        return listed(self.client, self.zone_id, **begin)


def client(url: str, key: str = "any", attempts: int = 1) -> Any:
    """A Route 53 client of the SDK."""
    config = Config(retries={"total_max_attempts": attempts, "mode": "standard"}, connect_timeout=5, read_timeout=5)
    return boto3.client(
        "route53",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key="secret",
        config=config,
    )


def changed(sdk: Any, zone_id: str, *changes: tuple[str, dict[str, Any]], comment: str = "") -> dict[str, Any]:
    """One ChangeBatch; its ChangeInfo."""
    batch: dict[str, Any] = {"Changes": [{"Action": action, "ResourceRecordSet": each} for action, each in changes]}
    if comment:
        batch["Comment"] = comment
    found: dict[str, Any] = sdk.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch=batch)["ChangeInfo"]
    return found


def listed(sdk: Any, zone_id: str, **begin: str) -> list[dict[str, Any]]:
    """Every record set but the zone's own SOA and NS, by pages as the SDK turns them."""
    pages = sdk.get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone_id, **begin)
    found = [each for page in pages for each in page["ResourceRecordSets"]]
    return [each for each in found if each["Type"] not in ("SOA", "NS") or each["Name"].count(".") > 2]


def record(name: str, kind: str, *values: str, ttl: int | None = 60, **more: Any) -> dict[str, Any]:
    """A record set as the SDK takes and gives it; the name is below the domain, "" for the domain itself."""
    whole: dict[str, Any] = {"Name": f"{name}.{DOMAIN}." if name else f"{DOMAIN}.", "Type": kind, **more}
    if ttl is not None:
        whole["TTL"] = ttl
    if values:
        whole["ResourceRecords"] = [{"Value": value} for value in values]
    return whole


@contextmanager
def asked(**settings: Any) -> Iterator[Asked]:
    """A stand-in with one zone, not throttled unless told."""
    settings = {"requests_per_s": None, "zones": (DOMAIN,), **settings}
    with running(Route53Settings(**settings)) as server:
        yield Asked(server, server.create_zone(DOMAIN))


@contextmanager
def refused(code: str, *texts: str) -> Iterator[None]:
    """What is done in the block is refused with this code, and these texts in this order, all of them, in brackets."""
    with pytest.raises(ClientError) as caught:
        yield
    error = caught.value.response["Error"]
    assert error["Code"] == code, error
    if texts:
        assert error["Message"] == f"[{', '.join(texts)}]"
