"""A host whose agent can't write its memory, whole: ``fencepost up``, agents as processes, a folder that is away."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_region import FleetRegion


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetRegion]:
    """Two hosts with room for two each."""
    with FleetRegion(tmp_path_factory.mktemp("memory"), 2) as running:
        yield running


def problems(region: FleetRegion) -> list[dict[str, Any]]:
    """What ``fencepost status`` says of hosts that can't write."""
    found = json.loads(region.fencepost("status", "--json", ok=(0, 1, 2, 3)))["problems"]
    return [each for each in found if each["id"] == "host-cannot-write"]


def test_a_host_that_cant_write_its_memory_is_said_and_left_alone_until_it_can(region: FleetRegion) -> None:
    """Its folder was removed under the sample's agent: it held its lease, refused orders, and was given instances for
    ever; one stood pending there for 22 minutes with room elsewhere, and nothing but the agent's log said why.
    """
    (first,) = region.launch(1, wait=True)
    region.settled()
    there = region.instances()[first].host
    (other,) = region.hosts.keys() - {there}
    folder, away = region.folder / there, region.folder / f"{there}.away"
    region.fencepost("fleet", "cordon", other, "--yes")
    folder.rename(away)
    (second,) = region.launch(1)
    region.until(lambda: (region.hosts_rows() or {})[there].unable, 60, "its row says that it can't write")
    region.until(lambda: region.instances()[second].state == "waiting", 60, "what it refused waits for a place")
    assert "insufficient capacity" in region.fencepost("fleet", "launch", "web", "--json", ok=(3,))
    region.fencepost("resume", other)
    region.until(lambda: f"{second}.2" in region.running(), 60, "what it refused runs elsewhere")
    assert region.instances()[second].host == other
    region.fencepost("fleet", "terminate", first, "--yes", "--confirm", "web")
    region.until(lambda: problems(region), 60, "status says it")
    (found,) = problems(region)
    assert (found["on"], found["since"] is not None) == (there, True)
    assert f"{folder}/memory can't be written: No such file or directory" in found["what"]
    assert f"{there} takes no orders since" in region.fencepost("fleet", "hosts")
    assert region.instances()[first].state == "ending", "it says nothing of having stopped it"
    assert f"{first}.1" in region.running()
    away.rename(folder)
    region.until(lambda: region.instances()[first].state == "ended", 60, "it takes orders again")
    region.until(lambda: not problems(region), 60, "status says nothing of it any more")
    assert not (region.hosts_rows() or {})[there].unable
    (third,) = region.launch(1, wait=True)
    assert region.instances()[third].host == there
    region.settled()
    assert f"{second}.1" not in region.starts()
    assert not [name for name in region.starts() if name.endswith(".again")]


def test_the_agents_log_says_once_what_is_wrong_and_that_it_is_over(region: FleetRegion) -> None:
    """For whoever looks on the host itself."""
    logs = [Path(region.folder / f"{host}.log").read_text() for host in region.hosts]
    (log,) = [each for each in logs if "can't be written" in each]
    assert log.count("memory can't be written") == 1
    assert "does what it is told again" in log
