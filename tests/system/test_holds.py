"""Repair, rollback and withdrawal stand until their own release, whatever dies, wakes or is lost."""

import json
import signal
from pathlib import Path

import pytest
from callers import Callers
from damage import lose_store
from grounds import EVERYWHERE
from patience import patient
from regions import RunningRegion

API, WWW = "api.example.test", "www.example.test"
WHY = ("--reason", "a test")


@pytest.mark.parametrize("on", EVERYWHERE)
def test_a_repair_made_with_everything_else_dead_stands_until_resume(tmp_path: Path, on: str) -> None:
    """October 2025: the repair tools assumed a working enactor. This one needs the provider and nothing else."""
    region = RunningRegion(tmp_path, on=on)
    with region.provider_alone():
        region.until(lambda: region.ask("example.test", "SOA").answer, 10, "the provider answers")
        region.fencepost("repair", API, "--address", "203.0.113.9", "--yes", *WHY)
        assert region.addresses(API) == ["203.0.113.9"]
    with region:
        region.until(lambda: region.addresses(WWW), 10, "the rest is published")
        for ttl in (21, 22, 23):
            region.newer_plan_of(WWW, ttl)
            assert region.addresses(API) == ["203.0.113.9"]
        lose_store(region)
        before = region.marker(API)
        region.until(
            lambda: (m := region.marker(API)) is not None and before is not None and m.store != before.store,
            10,
            "adopted anew",
        )
        assert region.addresses(API) == ["203.0.113.9"], "a repair outlives the store"
        region.fencepost("resume", API, "--yes")
        region.until(lambda: len(region.addresses(API)) == 6, 10, "released")
        marker = region.marker(API)
        assert marker is not None
        assert marker.hold is None


@pytest.mark.parametrize("on", EVERYWHERE)
def test_a_withdrawn_endpoint_stays_withdrawn_when_an_enactor_wakes_with_the_old_row(tmp_path: Path, on: str) -> None:
    """A withdrawal leaves a tombstone: without it, the sleeper would bring the endpoint back with no hand in error."""
    with RunningRegion(tmp_path, on=on) as region, Callers(region.dns_port, [API, WWW]) as callers:
        region.stop_before_commit("a", 20)
        region.fencepost("withdraw", WWW, "--confirm", WWW, *WHY)
        assert region.addresses(WWW) == []
        region.signal("enactor/a", signal.SIGCONT)
        region.until(
            lambda: any(row.by == "enactor/a" for row in region.history("fenced")), 10, "the sleeper is fenced"
        )
        region.newer_plan_of(API, 90)
        assert region.addresses(WWW) == []
        marker = region.marker(WWW)
        assert marker is not None
        assert marker.hold is not None
        assert marker.hold.kind == "withdraw"
    callers.fine()


@pytest.mark.parametrize("on", EVERYWHERE)
def test_a_rollback_outlives_the_store(tmp_path: Path, on: str) -> None:
    """The hold and its content stand in the marker: a new store adopts them."""
    with RunningRegion(tmp_path, on=on) as region:
        region.newer_plan(31)
        old = region.marker(API)
        region.newer_plan(32)
        assert old is not None
        region.fencepost("rollback", str(old.generation.number), API, "--yes", *WHY)
        region.until(lambda: region.ttl(API) == 31, 10, "rolled back")
        region.newer_plan_of(WWW, 33)
        assert region.ttl(API) == 31
        before = region.marker(API)
        lose_store(region)
        region.until(
            lambda: (m := region.marker(API)) is not None and before is not None and m.store != before.store,
            10,
            "adopted anew",
        )
        assert region.ttl(API) == 31
        region.newer_plan_of(WWW, 34)
        assert region.ttl(API) == 31
        region.fencepost("resume", API, "--yes")
        region.until(lambda: region.ttl(API) == 34, 10, "released")


def test_a_repair_destroyed_before_anybody_knew_of_it_is_nobodys_broken_promise(tmp_path: Path) -> None:
    """No planner has seen the repair when a hand deletes it; the newest row is back before the observer looks again.

    Two looks say that a hold vanished and a generation fell; the DNS server says that a hand did it.
    """

    def promises() -> dict[str, dict[str, int | bool | None]]:
        document = json.loads(region.fencepost("status", "--json", ok=(0, 1)))
        found: dict[str, dict[str, int | bool | None]] = document["promises"]
        return found

    with RunningRegion(tmp_path) as region:
        region.until(lambda: promises()["never_backward"]["times_checked"], 10, "the observer looks")
        region.signal("planner", signal.SIGSTOP)
        region.fencepost("repair", API, "--address", "203.0.113.9", "--yes", *WHY)
        region.until(lambda: promises()["hold_stands"]["times_checked"], 10, "the observer saw the repair")
        region.fencepost("dev", "wipe", API, "--both")
        region.until(lambda: len(region.addresses(API)) > 1, 10, "an enactor wrote the newest row")
        region.signal("planner", signal.SIGCONT)
        region.newer_plan(21)
        seen = promises()["never_backward"]["times_checked"] or 0
        region.until(lambda: (promises()["never_backward"]["times_checked"] or 0) > seen + 4, 10, "looked at again")
        for name in ("hold_stands", "never_backward"):
            assert promises()[name]["held"] is True, promises()
            assert promises()[name]["times_unsure"] == 0
        assert region.process is not None
        region.process.send_signal(signal.SIGINT)
        assert region.process.wait(patient(20)) == 0, "`up` tells no broken promise"
