"""What a careless or hostile hand destroys heals by itself, within ten seconds, in a real region."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from damage import by_hand, delete_rows, lose_store, remembered, take_store_away
from grounds import EVERYWHERE
from regions import RunningRegion

NAME = "api.example.test"
WITHIN_S = 10


@pytest.fixture(scope="module", params=EVERYWHERE)
def region(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[RunningRegion]:
    """One region for the hands that leave it whole again; on each provider and store."""
    with RunningRegion(tmp_path_factory.mktemp("region"), on=request.param) as running:
        yield running


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
    by_hand(region, NAME, marker=marker, addresses=addresses, add=add)
    region.until(lambda: whole(region), WITHIN_S, "healed")
    after = region.marker(NAME)
    assert after is not None
    assert after.generation >= before.generation


def test_plan_rows_deleted_from_the_store_come_back(region: RunningRegion) -> None:
    """The store is no one's single point: the planner plans anew above what stands."""
    before = region.marker(NAME)
    delete_rows(region)
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
    lose_store(region)
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


@pytest.mark.parametrize("on", EVERYWHERE)
def test_an_endpoint_emptied_while_the_store_is_away_and_all_enactors_restarted_heals(tmp_path: Path, on: str) -> None:
    """The store may sit behind the very endpoint that is empty: the enactors' local files are enough."""
    with RunningRegion(tmp_path, on=on) as region:
        region.until(region.converged, 10, "converged")
        region.until(lambda: remembered(region, NAME), 10, "the local files know the endpoint")
        region.signal("planner", signal.SIGSTOP)
        take_store_away(region)
        for zone in "abc":
            region.signal(f"enactor/{zone}", signal.SIGKILL)
        by_hand(region, NAME, addresses=True)
        region.until(lambda: len(region.addresses(NAME)) == 6, WITHIN_S, "healed without a store")
