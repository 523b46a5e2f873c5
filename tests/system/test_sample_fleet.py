"""The sample whose targets are launched on six hosts: leases, deaths, and starting again."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from regions import RunningRegion

from fencepost.dev.sample import FLEET

NAME = "api.example.test"
SIX = [f"127.0.{zone}.{number}" for zone in (1, 2, 3) for number in (1, 2)]


def with_fleet(renew: str) -> Callable[[str], str]:
    """A test's region with the lines of the sample's fleet in it."""

    def edit(text: str) -> str:
        port = text.partition("http://:")[2].partition("/")[0]
        lines = "\n".join(FLEET).replace("5302", port).replace("[pool", f'renew = "{renew}"\n[pool', 1)
        head, endpoint, rest = text.partition("[[endpoint]]")
        return f"{head}{lines}\n{endpoint}{rest}"

    return edit


@pytest.fixture
def region(tmp_path: Path) -> Iterator[RunningRegion]:
    """A region whose leases last three seconds."""
    with RunningRegion(tmp_path, edit=with_fleet("1s")) as running:
        running.until(lambda: "ready in" in running.log(), 40, "it is ready")
        yield running


def fleet(region: RunningRegion, what: str) -> dict[str, dict[str, object]]:
    """What a command tells of hosts or instances, by address or name."""
    rows = json.loads(region.fencepost("fleet", what, "--json"))[what]
    return {str(row["address" if what == "instances" else "host"]): row for row in rows}


def test_each_target_is_an_instance_that_outlives_its_hosts_agent(region: RunningRegion) -> None:
    """Six leases, six attempts placed and their network acknowledged; an agent's death takes nothing along."""
    hosts, instances = fleet(region, "hosts"), fleet(region, "instances")
    assert {row["lease"] for row in hosts.values()} == {"held"}
    assert sorted(instances) == SIX
    assert {row["state"] for row in instances.values()} == {"ready"}
    assert instances["127.0.2.1"]["host"] == "b1"
    before = region.pid("target/127.0.2.1")
    region.signal("agent/b1", signal.SIGKILL)
    region.until(lambda: region.processes()["agent/b1"]["restarts"] == 1, 10, "the agent is started again")
    time.sleep(2)
    assert region.pid("target/127.0.2.1") == before
    assert fleet(region, "instances")["127.0.2.1"] == instances["127.0.2.1"]
    assert region.addresses(NAME) == SIX


def test_a_killed_target_leaves_and_is_not_back_at_once(region: RunningRegion) -> None:
    """A plain kill is to show something, so its host is told to start the next attempt after a minute."""
    time.sleep(5)  # a checker's votes count from the fifth probe on
    region.signal("target/127.0.2.1", signal.SIGKILL)
    region.until(lambda: region.addresses(NAME) == [each for each in SIX if each != "127.0.2.1"], 15, "it leaves")
    region.until(lambda: fleet(region, "instances").get("127.0.2.1") is None, 10, "its attempt is over")
    time.sleep(3)
    assert region.processes()["target/127.0.2.1"]["pid"] is None
    assert "starts it again in about 60 s" in (region.folder / "up.log").read_text()


def test_an_address_leaves_when_its_hosts_lease_lapses_though_it_answers(region: RunningRegion) -> None:
    """A host that is cut off may run an old copy for ever; nobody asks it, so nobody may serve from it."""
    time.sleep(5)
    instance = region.pid("target/127.0.3.2")
    region.signal("agent/c2", signal.SIGSTOP)
    try:
        region.until(lambda: fleet(region, "hosts")["c2"]["lease"] == "lapsed", 20, "its lease lapses")
        region.until(lambda: "127.0.3.2" not in region.addresses(NAME), 10, "the address leaves")
        assert region.pid("target/127.0.3.2") == instance, "it runs on"
    finally:
        region.signal("agent/c2", signal.SIGCONT)
    region.until(lambda: fleet(region, "hosts")["c2"]["lease"] == "held", 15, "it is heard of again")
    region.until(
        lambda: region.processes()["target/127.0.3.2"]["pid"] not in (None, instance), 20, "a new attempt runs"
    )


def test_it_starts_again_as_it_was_stopped(tmp_path: Path) -> None:
    """A second `up` finds the launch in the store, and calls nobody dead on the way."""
    region = RunningRegion(tmp_path, edit=with_fleet("10s"))
    for run in (1, 2):
        (tmp_path / "up.log").unlink(missing_ok=True)
        with region:
            region.until(lambda: "ready in" in (tmp_path / "up.log").read_text(), 40, "it is ready")
            assert sorted(fleet(region, "instances")) == SIX
            attempts = {row["attempt"] for row in fleet(region, "instances").values()}
            assert attempts == {run}, "each was started once a run"
            assert region.addresses(NAME) == SIX
    assert not region.history("kept", "removed")
