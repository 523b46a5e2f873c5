"""The sample, whose targets are launched on six hosts: leases, deaths, launches, and starting again."""

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import damage
import pytest
from free_ports import free_port
from regions import RunningRegion

from fencepost.dev.sample import sample_text

NAME = "api.example.test"
SIX = [f"127.0.{zone}.{number}" for zone in (1, 2, 3) for number in (1, 2)]
HOSTS = ["a1", "a2", "b1", "b2", "c1", "c2"]


def sample(folder: Path, renew: str = "10s") -> RunningRegion:
    """The sample on free ports."""
    text = sample_text().replace('renew = "10s"', f'renew = "{renew}"')
    for port in ("5300", "5301", "5302"):
        text = re.sub(rf"\b{port}\b", str(free_port()), text)
    region = RunningRegion(folder, edit=lambda _: text)
    assert region.region.dns.listen is not None
    region.dns_port = region.region.dns.listen.port
    return region


@pytest.fixture
def region(tmp_path: Path) -> Iterator[RunningRegion]:
    """The sample as it stands, ready."""
    with sample(tmp_path) as running:
        running.until(lambda: told_ready(running), 40, "it is ready")
        yield running


def fleet(region: RunningRegion, what: str) -> dict[str, dict[str, Any]]:
    """What a command tells of hosts or instances, by name or address."""
    rows = json.loads(region.fencepost("fleet", what, "--json"))[what]
    return {str(row["address" if what == "instances" else "host"]): row for row in rows}


def told_ready(region: RunningRegion) -> bool:
    """Whether this run has said that it is ready."""
    return "ready in" in (region.folder / "up.log").read_text()


def test_each_target_is_an_instance_that_outlives_its_hosts_agent(region: RunningRegion) -> None:
    """Six leases, six attempts placed and their network acknowledged; all agents' death takes nothing along."""
    assert re.search(r"6 targets, 6 agents$", (region.folder / "up.log").read_text(), re.MULTILINE)
    hosts, instances = fleet(region, "hosts"), fleet(region, "instances")
    assert sorted(hosts) == HOSTS
    assert {row["lease"] for row in hosts.values()} == {"held"}
    assert sorted(instances) == SIX
    assert {(row["state"], row["attempt"]) for row in instances.values()} == {("ready", 1)}
    assert {(row["zone"], row["address"][6]) for row in instances.values()} == {("a", "1"), ("b", "2"), ("c", "3")}
    assert len({row["host"] for row in instances.values()}) == 6
    before = {name: region.pid(f"target/{name}") for name in SIX}
    ports = {name: row["at"] for name, row in hosts.items()}
    region.signal("agents", signal.SIGKILL)

    def asked_again() -> bool:
        found = fleet(region, "hosts")
        return all(found[name]["at"] != at and found[name]["lease"] == "held" for name, at in ports.items())

    region.until(asked_again, 30, "the agents are started again, elsewhere, and are asked there")
    assert {name: region.pid(f"target/{name}") for name in SIX} == before
    region.until(lambda: attempts(region) == {name: attempt(row) for name, row in instances.items()}, 20, "all stand")
    assert region.addresses(NAME) == SIX
    assert not region.history("kept", "removed")


def attempt(row: dict[str, Any]) -> tuple[Any, ...]:
    """What is not to change by itself."""
    return row["instance"], row["host"], row["attempt"], row["state"]


def attempts(region: RunningRegion) -> dict[str, tuple[Any, ...]]:
    """What runs where, as the rows say."""
    return {address: attempt(row) for address, row in fleet(region, "instances").items()}


def test_a_killed_target_comes_back_and_a_launched_one_joins(region: RunningRegion) -> None:
    """What ends is tried again where it was, about a minute later; what is launched besides waits until it is ready."""
    region.until(lambda: warm(region), 20, "checkers' votes count")
    before = fleet(region, "instances")["127.0.2.1"]
    region.signal("target/127.0.2.1", signal.SIGTERM)
    region.until(lambda: region.addresses(NAME) == [each for each in SIX if each != "127.0.2.1"], 20, "it leaves")
    exited = "127.0.2.1 exited; the sample starts it again in about 60 s"
    region.until(lambda: exited in (region.folder / "up.log").read_text(), 10, "up says what becomes of it")
    assert region.processes()["target/127.0.2.1"]["pid"] is None
    made = json.loads(region.fencepost("fleet", "launch", "web", "--reason", "a test", "--json"))
    region.until(lambda: set(fleet(region, "instances")) - set(SIX) - {"None", ""}, 20, "it is placed")
    (seventh,) = set(fleet(region, "instances")) - set(SIX) - {"None", ""}
    assert fleet(region, "instances")[seventh]["instance"] in json.dumps(made)
    assert seventh not in region.addresses(NAME), "it has to pass its probes first"
    region.until(lambda: seventh in region.addresses(NAME), 90, "the launched one serves")
    region.until(lambda: "127.0.2.1" in fleet(region, "instances"), 90, "the killed one is launched again")
    after = fleet(region, "instances")["127.0.2.1"]
    assert (after["instance"], after["host"], after["attempt"]) == (before["instance"], before["host"], 2)
    region.until(lambda: region.addresses(NAME) == sorted([*SIX, seventh]), 90, "all seven serve")
    another_lifetime(region, seventh)
    lost_and_found(region, seventh)


def another_lifetime(region: RunningRegion, seventh: str) -> None:
    """What was launched is in no file: a preview of another TTL must not take it for an address that left the file."""
    text = region.config.read_text()
    region.config.write_text(re.sub(r'(?m)^(ttl +)= "5s"', r'\1= "6s"', text))
    try:
        changes = json.loads(region.fencepost("plan", "--json"))["changes"]
    finally:
        region.config.write_text(text)
    assert changes, "the TTL"
    assert [(each["remove"], seventh in each["addresses"]) for each in changes] == [([], True)] * len(changes)


def lost_and_found(region: RunningRegion, seventh: str) -> None:
    """The store is lost: what was launched is in no list until its hosts have spoken, and doesn't leave for that.

    Answers are drawn by weight, and the last one's still rises: so the pool is asked, and the store's new history.
    """
    damage.lose_store(region)

    def pool() -> tuple[int, ...]:
        status = json.loads(region.fencepost("status", "--json", ok=(0, 1)))
        if status["source"] != "api" or not status["pools"]:
            return ()
        return tuple(status["pools"][0][each] for each in ("targets", "in", "pending", "out"))

    region.until(lambda: pool() == (7, 7, 0, 0), 90, "the pool has all seven again")
    assert seventh in region.fencepost("explain", NAME)
    assert not region.history("back", "removed"), "nobody was out in between"


def warm(region: RunningRegion) -> bool:
    """Whether a death would be believed: each checker has probed each target five times."""
    status = json.loads(region.fencepost("status", "--json", ok=(0, 1)))
    return all(pool["dead"] == 0 for pool in status["pools"]) and status["source"] == "api"


def test_all_hosts_silent_at_once_are_given_up_by_nobody(tmp_path: Path) -> None:
    """That looks like our own network, or one process of ours that stands still: leases last, and so do addresses."""
    with sample(tmp_path, renew="1s") as region:
        region.until(lambda: told_ready(region), 40, "it is ready")
        before = attempts(region)
        region.signal("agents", signal.SIGSTOP)
        try:
            region.until(lambda: leases(region) == {"suspect"}, 30, "all keep silent")
            time.sleep(4)  # longer than a lease
            assert "lapsed" not in leases(region)
            assert region.addresses(NAME) == SIX
        finally:
            region.signal("agents", signal.SIGCONT)
        region.until(lambda: leases(region) == {"held"}, 30, "all are heard of again")
        region.until(lambda: attempts(region) == before, 20, "and all are what they were")


def leases(region: RunningRegion) -> set[str]:
    """What leases there are."""
    return {row["lease"] for row in fleet(region, "hosts").values()}


def test_it_starts_again_as_it_was_stopped(tmp_path: Path) -> None:
    """A second `up` finds the launch in the store, and calls nobody dead on the way."""
    region = sample(tmp_path)
    for run in (1, 2):
        (tmp_path / "up.log").unlink(missing_ok=True)
        with region:
            region.until(lambda: told_ready(region), 40, "it is ready")
            assert sorted(fleet(region, "instances")) == SIX
            attempts = {row["attempt"] for row in fleet(region, "instances").values()}
            assert attempts == {run}, "each was started once a run"
            assert region.addresses(NAME) == SIX
    assert not region.history("kept", "removed")
