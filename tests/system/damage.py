"""What careless hands and dying machines do to a running region, whatever provider and store it is built on."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import boto3
import dns.query
import dns.tsigkeyring
import dns.update
from grounds import postgresql_server
from regions import RunningRegion

from fencepost import assembly


def by_hand(region: RunningRegion, name: str, *, marker: bool = False, addresses: bool = False, add: str = "") -> None:
    """Delete a name's marker or addresses, or add an address: unfenced, with the region's own rights."""
    if region.provider == "route53-dev":
        by_console(region, name, marker=marker, addresses=addresses, add=add)
    else:
        by_nsupdate(region, name, marker=marker, addresses=addresses, add=add)


def by_nsupdate(region: RunningRegion, name: str, *, marker: bool, addresses: bool, add: str) -> None:
    """A plain UPDATE without prerequisites, as nsupdate would send it, with the region's own key."""
    key = assembly.tsig_key(region.region)
    update = dns.update.UpdateMessage(
        "example.test", keyring={dns.name.from_text(key.name): dns.tsig.Key(key.name, key.secret, key.algorithm)}
    )
    if marker:
        update.delete(f"_fencepost.{name}.", "TXT")
    if addresses:
        update.delete(f"{name}.", "A")
    if add:
        update.add(f"{name}.", 5, "A", add)
    assert dns.query.tcp(update, "127.0.0.1", port=region.dns_port, timeout=5).rcode() == 0


def by_console(region: RunningRegion, name: str, *, marker: bool, addresses: bool, add: str) -> None:
    """What AWS's console does: it reads, and replaces what it read."""
    client = route53(region)
    zone = client.list_hosted_zones()["HostedZones"][0]["Id"]
    for _ in range(20):  # an enactor may write in between: then it reads again, as a person would
        sets = client.list_resource_record_sets(HostedZoneId=zone)["ResourceRecordSets"]
        by_name = {(each["Name"], each["Type"]): each for each in sets}
        changes: list[dict[str, Any]] = []
        stood, mark = by_name.get((f"{name}.", "A")), by_name.get((f"_fencepost.{name}.", "TXT"))
        if marker and mark:
            changes.append({"Action": "DELETE", "ResourceRecordSet": mark})
        if addresses and stood:
            changes.append({"Action": "DELETE", "ResourceRecordSet": stood})
        if add:
            kept = [] if addresses or not stood else stood["ResourceRecords"]
            values = [*kept, {"Value": add}]
            made = {"Name": f"{name}.", "Type": "A", "TTL": 5, "ResourceRecords": values}
            changes.append({"Action": "CREATE" if addresses else "UPSERT", "ResourceRecordSet": made})
        with contextlib.suppress(client.exceptions.InvalidChangeBatch, client.exceptions.PriorRequestNotComplete):
            client.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})
            return
    raise AssertionError("the console's change was never taken")


def route53(region: RunningRegion) -> Any:
    """A client of the stand-in."""
    url = region.region.dns.option("endpoint")
    return boto3.client(
        "route53", endpoint_url=url, region_name="us-east-1", aws_access_key_id="any", aws_secret_access_key="any"
    )


def delete_rows(region: RunningRegion) -> None:
    """Delete every plan's rows from the store, behind its back."""
    tables = ("newest", "spent", "row" if region.store == "sqlite" else "plan_row")
    if region.store == "postgresql":
        database = database_of(region)
        postgresql_server().sql(database, *(f"DELETE FROM fencepost.{table}" for table in tables))
        return
    with sqlite3.connect(region.region.store.path, timeout=10) as db:
        for table in tables:
            db.execute(f"delete from {table}")


def lose_store(region: RunningRegion) -> None:
    """Lose the store with all that is in it, under the running roles; an empty one can be made in its place."""
    if region.store == "postgresql":
        name = database_of(region)
        server = postgresql_server()
        server.sql("postgres", f"DROP DATABASE {name} WITH (FORCE)", f"CREATE DATABASE {name} TEMPLATE template0")
        return
    store = Path(region.region.store.path)
    for path in store.parent.glob(store.name + "*"):
        if not path.name.endswith(".lock"):
            path.unlink(missing_ok=True)  # who closes last takes the log and its index away


def take_store_away(region: RunningRegion) -> None:
    """The store can't be reached any more; what it holds is kept somewhere."""
    if region.store == "postgresql":
        name = database_of(region)
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        server = postgresql_server()
        server.sql("postgres", f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false", ended)
        return
    store = Path(region.region.store.path)
    away = store.with_name("away")
    away.mkdir()
    for path in store.parent.glob(store.name + "*"):
        if not path.name.endswith(".lock"):
            path.rename(away / path.name)


def database_of(region: RunningRegion) -> str:
    """The region's database, by its dsn."""
    words = (region.folder / "postgresql.dsn").read_text().split()
    return next(word.removeprefix("dbname=") for word in words if word.startswith("dbname="))


def remembered(region: RunningRegion, name: str) -> bool:
    """Whether every enactor's local file knows an endpoint."""

    def knows(path: Path) -> bool:
        rows = looked_up(path, "select 1 from known where name = ?", name)
        return bool(rows)

    return all(knows(region.state / f"enactor-{zone}.known") for zone in "abc")


def looked_up(path: Path, question: str, *values: str) -> list[tuple[Any, ...]]:
    """What an enactor's local file holds; nothing while it hasn't been made. It is never made by looking."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=10)) as db:
            return db.execute(question, values).fetchall()
    except sqlite3.OperationalError:
        return []
