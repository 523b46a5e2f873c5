"""The table itself: made, described, known again, and judged.

*Origin.* A table restored from a backup is a new table with the old items. Taken at its word it would give out numbers
of plans a second time, carry out orders again, and go back to an older configuration. So the root names the table it
was made in, by the ARN and the id that AWS gives each table anew, and whoever reads it compares. If they differ, the
planner begins a new store in it, with an identity of its own; that is a lost store, which planner and enactors know how
to meet. The others say until then that the store is away. Nothing is taken from a copy.

A process asks for ARN and id when it starts, each five minutes, whenever the table was seen missing, and when it hasn't
looked at the root for ten seconds. To restore under the same name the old table must go first, for minutes: a process
that runs sees it missing, and one that was stopped finds that it hasn't looked.

*Global tables.* A store needs one place where a compare-and-set is decided. In a global table with eventual consistency
(MREC, the default) each Region decides by itself and the last writer wins: two Regions can both win. Such a table is
refused. With strong consistency (MRSC) the trouble is gone, and everything but a fleet's rows works on it: else no
transaction is used, which MRSC tables don't take, no TTL and no index. But a replica has an ARN of its own, so all
roles of a region must use the table in one and the same AWS Region, and are told so. Safety at the records never rests
on any replica: DNS itself is the fence, and a store that fell behind is a lost store, which adopts what the markers
say.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.client import Client
from fencepost.adapters.store_dynamodb.faults import ExistsError, TableMissingError
from fencepost.ports import Misconfigured, PortError, Unavailable

KEYS = (("pk", "HASH", "S"), ("sk", "RANGE", "S"))
MADE_WITHIN_S = 30.0
LOOK_WHILE_MADE_S = 0.5
DESCRIBE_EACH_S = 300.0
DESCRIBE_AFTER_S = 10.0
"""A process that hasn't asked for so long may have slept through a restore."""
_KEY_HINT = "fencepost's tables have the keys pk and sk, both text; name another table under [store]"


class TableFinding(Struct, frozen=True, gc=False):
    """What is to be said of a table: ``refused`` (fencepost won't use it), ``warning`` or ``good``."""

    verdict: Literal["refused", "warning", "good"]
    what: str
    hint: str = ""


class Described(Struct, frozen=True, gc=False):
    """Which table this is: AWS's name of the resource, the id of this very table, and where it has replicas."""

    arn: str
    id: str
    replicas: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """What a root names that was made in it."""
        return f"{self.arn} {self.id}"

    def replicates(self, origin: str) -> bool:
        """Whether a root from there came by replication: the same table's replica in another AWS Region."""
        arn = origin.partition(" ")[0].split(":")
        return arn != self.arn.split(":") and arn[3:4] != [] and arn[3] in self.replicas


class Table:
    """One table: described when needed, and made where there is none if ``create``."""

    def __init__(self, client: Client, *, create: bool) -> None:
        self.client = client
        self.create = create
        self._described: Described | None = None
        self._described_at = self._asked_at = 0.0
        self._describing = asyncio.Lock()

    async def described(self) -> Described:
        """Which table this is. Raises ``Unavailable`` or ``Misconfigured``, also for a table that can't be used."""
        async with self._describing:
            known, now = self._described, time.clock_gettime(time.CLOCK_BOOTTIME)  # goes on while a host sleeps
            slept, self._asked_at = now - self._asked_at >= DESCRIBE_AFTER_S, now
            if known is None or slept or now - self._described_at >= DESCRIBE_EACH_S:
                try:
                    known = self._described = await self._ready()
                    self._described_at = self._asked_at = time.clock_gettime(time.CLOCK_BOOTTIME)
                except Unavailable:
                    if known is None:  # else requests themselves tell whether the table can be used
                        raise
            return known

    def forget(self) -> None:
        """The table was seen missing: the next one may be another."""
        self._described = None

    async def _ready(self) -> Described:
        deadline = time.monotonic() + MADE_WITHIN_S
        while True:
            try:
                found = await self._describe()
            except TableMissingError:
                if not self.create:
                    raise faults.missing(self.client.where) from None
                await self._make()
                found = await self._describe_made()
            status = found.get("TableStatus")
            if status in ("ACTIVE", "UPDATING"):
                refuse(found, self.client.where)
                regions = tuple(sorted(str(one.get("RegionName")) for one in found.get("Replicas") or ()))
                return Described(str(found.get("TableArn", "")), str(found.get("TableId", "")), regions)
            if status != "CREATING" or time.monotonic() >= deadline or not self.create:
                raise _not_ready(str(status), self.client.where)
            await asyncio.sleep(LOOK_WHILE_MADE_S)

    async def _describe(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = (await self.client.call("describe_table", TableName=self.client.table))["Table"]
        return found

    async def _describe_made(self) -> Mapping[str, Any]:
        try:
            return await self._describe()
        except TableMissingError:  # DescribeTable may be a little behind
            return {"TableStatus": "CREATING"}

    async def _make(self) -> None:
        with contextlib.suppress(ExistsError):  # another planner was first
            await self.client.call(
                "create_table",
                TableName=self.client.table,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind, _ in KEYS],
                AttributeDefinitions=[{"AttributeName": name, "AttributeType": of} for name, _, of in KEYS],
            )


def _not_ready(status: str, where: str) -> PortError:
    if status == "INACCESSIBLE_ENCRYPTION_CREDENTIALS":
        hint = "give fencepost's role the use of the table's KMS key, or enable the key"
        return Misconfigured("the table's encryption key can't be used", where=where, hint=hint)
    if status.startswith("ARCHIV"):
        return Misconfigured("the table is archived", where=where, hint="restore it, or name another under [store]")
    return Unavailable(f"the table is not ready ({status})", where=where, hint="it goes on by itself once it is ACTIVE")


def refuse(table: Mapping[str, Any], where: str) -> None:
    """Raise ``Misconfigured`` for a table that fencepost must not use; ``table`` is DescribeTable's answer."""
    for finding in judged(table):
        if finding.verdict == "refused":
            raise Misconfigured(finding.what, where=where, hint=finding.hint)


def judged(table: Mapping[str, Any]) -> Sequence[TableFinding]:
    """What is to be said of a table, the worst first; ``table`` is DescribeTable's answer."""
    found = [*_keys(table), *_replicas(table), *_protection(table), *_billing(table)]
    order = ("refused", "warning", "good")
    return sorted(found, key=lambda one: order.index(one.verdict))


def _keys(table: Mapping[str, Any]) -> Sequence[TableFinding]:
    kinds = {one.get("AttributeName"): one.get("AttributeType") for one in table.get("AttributeDefinitions", ())}
    keys = tuple(
        (one["AttributeName"], one["KeyType"], kinds.get(one["AttributeName"])) for one in table.get("KeySchema", ())
    )
    if sorted(map(str, keys)) != sorted(map(str, KEYS)):
        return [TableFinding("refused", "this table is no fencepost store (its keys are others)", _KEY_HINT)]
    return []


def _replicas(table: Mapping[str, Any]) -> Sequence[TableFinding]:
    regions = ", ".join(sorted(str(one.get("RegionName")) for one in table.get("Replicas") or ()))
    version = str(table.get("GlobalTableVersion") or "")  # may stay when the last replica is gone
    if not regions and not version.startswith("2017"):
        return [TableFinding("good", "the table is in one AWS Region: its compare-and-set is decided in one place")]
    if table.get("MultiRegionConsistency") == "STRONG":
        return [
            TableFinding(
                "good",
                f"the global table ({regions}) has strong consistency",
                "let every role of this region use the same aws_region: a replica elsewhere counts as another store",
            )
        ]
    return [
        TableFinding(
            "refused",
            f"the table is a global one with eventual consistency ({regions or version}): two"
            " Regions could both win a compare-and-set, and one's plan would silently be lost",
            "remove the replicas, or name a table of one Region under [store]. No replica is needed for safety: DNS"
            " itself is the fence, and a new store adopts what stands there",
        )
    ]


def _protection(table: Mapping[str, Any]) -> Sequence[TableFinding]:
    if table.get("DeletionProtectionEnabled"):
        return [TableFinding("good", "deletion protection is on")]
    name = table.get("TableName", "TABLE")
    return [
        TableFinding(
            "warning",
            "deletion protection is off: one call deletes the store",
            f"aws dynamodb update-table --table-name {name} --deletion-protection-enabled",
        )
    ]


def _billing(table: Mapping[str, Any]) -> Sequence[TableFinding]:
    if (table.get("BillingModeSummary") or {}).get("BillingMode") == "PAY_PER_REQUEST":
        return [TableFinding("good", "capacity is on demand")]
    provisioned = table.get("ProvisionedThroughput") or {}
    reads, writes = provisioned.get("ReadCapacityUnits", 0), provisioned.get("WriteCapacityUnits", 0)
    return [
        TableFinding(
            "warning",
            f"capacity is provisioned: {reads} reads and {writes} writes a second; above that fencepost waits",
            "on-demand billing needs no setting; else see docs/operating/store-dynamodb.md for what a region needs",
        )
    ]


async def look_at_table(table: str, aws_region: str) -> Sequence[TableFinding]:
    """What is to be said of a region's table, the worst first; one DescribeTable, nothing is written.

    Raises ``Unavailable`` (also if there is no table) or ``Misconfigured`` (credentials, rights).
    """
    client = Client(table, aws_region)
    try:
        return judged((await client.call("describe_table", TableName=table))["Table"])
    except TableMissingError:
        raise faults.missing(client.where) from None
    finally:
        await client.close()
