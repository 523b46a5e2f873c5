"""What a careless or hostile hand destroys heals by itself, within ten seconds, in a real region."""

import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import dns.query
import dns.tsigkeyring
import dns.update
import pytest
from regions import RunningRegion

from fencepost import assembly

NAME = "api.example.test"
WITHIN_S = 10


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegion]:
    """One region for the hands that leave it whole again."""
    with RunningRegion(tmp_path_factory.mktemp("region")) as running:
        yield running


def by_hand(region: RunningRegion, *, marker: bool = False, addresses: bool = False, add: str = "") -> None:
    """A plain UPDATE without prerequisites, as nsupdate would send it, with the region's own key."""
    key = assembly.tsig_key(region.region)
    update = dns.update.UpdateMessage(
        "example.test", keyring={dns.name.from_text(key.name): dns.tsig.Key(key.name, key.secret, key.algorithm)}
    )
    if marker:
        update.delete(f"_fencepost.{NAME}.", "TXT")
    if addresses:
        update.delete(f"{NAME}.", "A")
    if add:
        update.add(f"{NAME}.", 5, "A", add)
    assert dns.query.tcp(update, "127.0.0.1", port=region.dns_port, timeout=5).rcode() == 0


def whole(region: RunningRegion) -> bool:
    """All six addresses, and a marker that says so."""
    marker = region.marker(NAME)
    return len(region.addresses(NAME)) == 6 and marker is not None and region.converged()


@pytest.mark.parametrize(
    ("marker", "addresses", "add"),
    [
        (False, True, ""),
        (True, False, ""),
        (True, True, ""),
        (False, True, "203.0.113.66"),
        (False, False, "203.0.113.66"),
    ],
    ids=["emptied", "marker deleted", "both", "replaced by a wrong address", "a wrong address added"],
)
def test_records_destroyed_by_another_writer_come_back(
    region: RunningRegion, marker: bool, addresses: bool, add: str
) -> None:
    """external-dns #1502 and the emptied endpoint of October 2025: healed in one pass."""
    before = region.marker(NAME)
    assert before is not None
    by_hand(region, marker=marker, addresses=addresses, add=add)
    region.until(lambda: whole(region), WITHIN_S, "healed")
    after = region.marker(NAME)
    assert after is not None
    assert after.generation >= before.generation


def test_plan_rows_deleted_from_the_store_come_back(region: RunningRegion) -> None:
    """The store is no one's single point: the planner plans anew above what stands."""
    before = region.marker(NAME)
    with sqlite3.connect(region.region.store.path, timeout=10) as db:
        for table in ("newest", "spent", "row"):
            db.execute(f"delete from {table}")
    region.signal("planner", signal.SIGKILL)
    for zone in "abc":
        region.signal(f"enactor/{zone}", signal.SIGKILL)
    region.newer_plan(77)
    region.until(lambda: whole(region), WITHIN_S, "planned anew")
    after = region.marker(NAME)
    assert before is not None
    assert after is not None
    assert after.generation > before.generation


def test_the_store_file_deleted_is_made_anew_and_adopts_what_stands(region: RunningRegion) -> None:
    """A lost store: a new identity, generations above every marker, nothing changes for callers."""
    before = region.marker(NAME)
    for path in Path(region.region.store.path).parent.glob(Path(region.region.store.path).name + "*"):
        if not path.name.endswith(".lock"):
            path.unlink()
    region.until(
        lambda: (m := region.marker(NAME)) is not None and before is not None and m.store != before.store,
        WITHIN_S,
        "adopted",
    )
    region.until(lambda: whole(region), WITHIN_S, "whole")
    after = region.marker(NAME)
    assert before is not None
    assert after is not None
    assert after.generation > before.generation


def test_an_endpoint_emptied_while_the_store_is_away_and_all_enactors_restarted_heals(tmp_path: Path) -> None:
    """The store may sit behind the very endpoint that is empty: the enactors' local files are enough."""
    with RunningRegion(tmp_path) as region:
        store = Path(region.region.store.path)
        region.until(region.converged, 10, "converged")
        known = [region.state / f"enactor-{zone}.known" for zone in "abc"]
        region.until(lambda: all(remembers(path) for path in known), 10, "the local files know the endpoint")
        region.signal("planner", signal.SIGSTOP)
        away = store.with_name("away")
        away.mkdir()
        for path in store.parent.glob(store.name + "*"):
            if not path.name.endswith(".lock"):
                path.rename(away / path.name)
        for zone in "abc":
            region.signal(f"enactor/{zone}", signal.SIGKILL)
        by_hand(region, addresses=True)
        region.until(lambda: len(region.addresses(NAME)) == 6, WITHIN_S, "healed without a store")


def remembers(path: Path) -> bool:
    """Whether a local file knows the endpoint."""
    with sqlite3.connect(path) as db:
        return bool(db.execute("select 1 from known where name = ?", (NAME,)).fetchall())
