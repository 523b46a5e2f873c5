"""A region that launches instances, whole: ``fencepost up`` and agents as processes, instances as tiny servers.

What is asked for by ``fencepost fleet launch`` comes to be in DNS, whoever is killed meanwhile, and no attempt is ever
started twice: each leaves a file when it starts. One number isn't the real one: a new target waits a second before it
may serve, where a region waits 30.
"""

import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fleet_region import FleetRegion, Witness
from patience import patient
from regions import FENCEPOST

from fencepost.core.instant import SECOND
from fencepost.roles.fleet.following import linger_of


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetRegion]:
    """Four hosts with room for two each."""
    with FleetRegion(tmp_path_factory.mktemp("fleet"), 4) as running:
        yield running


def once(region: FleetRegion) -> None:
    """Assert that nothing was ever started twice."""
    assert not [name for name in region.starts() if name.endswith(".again")]


def where(region: FleetRegion, name: str) -> tuple[str, str, str]:
    """An instance's attempt, its host and its address."""
    row = region.instances()[name]
    return row.id, row.host, row.address


def test_what_is_launched_is_in_dns_with_nothing_done_by_hand(region: FleetRegion) -> None:
    """From one command to an answer that serves, in both failure zones; never one that isn't ready."""
    with Witness(region) as witness:
        names = region.launch(3, wait=True)
        region.settled()
    assert witness.wrong == []
    assert witness.looks
    rows = region.instances()
    assert {rows[name].zone for name in names} == {"a", "b"}
    for address in region.standing():
        socket.create_connection((address, region.target_port), 5).close()
    once(region)


def test_a_launch_without_room_is_refused_and_a_cordoned_host_takes_nothing(region: FleetRegion) -> None:
    """Exit code 3 with the words "insufficient capacity"; room for one more on each host that isn't cordoned."""
    free = next(host for host, row in (region.hosts_rows() or {}).items() if not row.set.instances)
    said = json.loads(region.fencepost("fleet", "launch", "web", "--count", "9", "--json", ok=(3,)))
    assert "insufficient capacity" in said["error"]["what"]
    region.fencepost("fleet", "cordon", free, "--yes")
    (name,) = region.launch(1, wait=True)
    assert where(region, name)[1] != free
    region.fencepost("resume", free)
    region.fencepost("fleet", "terminate", name, "--yes")
    region.settled()
    assert region.instances()[name].state == "ended"


def test_a_drained_host_is_left_make_before_break(region: FleetRegion) -> None:
    """The old one serves until the new one does, however long that takes to be well; then DNS first, then the process.

    An attempt whose network state is acknowledged isn't served yet: that alone must not end the one before it.
    """
    name = min(name for name, row in region.instances().items() if row.state == "placed")
    old, host, address = where(region, name)
    region.slow.touch()
    with Witness(region) as witness:
        region.fencepost("fleet", "drain", host, "--yes")
        region.until(lambda: where(region, name)[0] in region.running().keys() - {old}, 20, "it runs elsewhere too")
        new, _, elsewhere = where(region, name)
        time.sleep(linger_of(region.region) / SECOND + 1)
        assert old in region.running()
        assert address in region.standing()
        assert elsewhere not in region.standing()
        region.slow.unlink()
        region.until(lambda: elsewhere in region.standing(), 30, "the new one is answered")
        region.until(lambda: address not in region.standing(), 30, "the old one isn't any more")
        assert old in region.running(), "callers' caches still have it"
        region.until(lambda: old not in region.running(), 60, "it is stopped")
    assert new in region.running()
    assert witness.wrong == []
    region.fencepost("resume", host)
    region.settled()
    once(region)


def test_a_host_that_falls_silent_is_given_up_and_stops_its_old_copy_when_it_is_back(region: FleetRegion) -> None:
    """SIGSTOP beyond the lease: elsewhere once that is over; SIGCONT: the old one ends, and DNS never has it again."""
    name = max(name for name, row in region.instances().items() if row.state == "placed")
    old, host, address = where(region, name)
    with Witness(region) as witness:
        os.kill(region.agents[host].pid, signal.SIGSTOP)
        region.until(lambda: where(region, name)[0] != old and where(region, name)[1] != host, 30, "it is elsewhere")
        new, _, elsewhere = where(region, name)
        region.until(lambda: elsewhere in region.standing() and address not in region.standing(), 30, "DNS has it")
        assert old in region.running(), "whoever is cut off can't be stopped"
        os.kill(region.agents[host].pid, signal.SIGCONT)
        region.until(lambda: old not in region.running(), 20, "the old copy is stopped")
        assert address not in region.standing()
    assert witness.wrong == []
    region.settled()
    assert new in region.running()
    once(region)


class Trouble:
    """Kills whatever belongs to the fleet, at random moments, and starts again what nobody else does."""

    def __init__(self, region: FleetRegion, seed: int) -> None:
        self.region, self.chance = region, random.Random(seed)
        self.standby = self.stand_by()

    def stand_by(self) -> subprocess.Popen[bytes]:
        """A second manager of the one shard."""
        with (self.region.folder / "standby.log").open("ab") as log:
            command = [str(FENCEPOST), "run", "host-manager", "--config", str(self.region.config)]
            return subprocess.Popen(command, cwd=self.region.folder, stdout=log, stderr=log)

    def agent(self) -> None:
        """An agent, started again at once."""
        host = self.chance.choice(sorted(self.region.agents))
        self.region.end_agent(host)
        self.region.start_agent(host)

    def manager(self) -> None:
        """Either manager."""
        if self.chance.random() < 0.5:
            self.region.signal("host-manager/1", signal.SIGKILL)
            return
        self.standby.kill()
        self.standby.wait()
        self.standby = self.stand_by()

    def network(self) -> None:
        """The network manager."""
        self.region.signal("network-manager", signal.SIGKILL)

    def once(self) -> None:
        """One of them, after a moment."""
        time.sleep(self.chance.uniform(0, 0.5))
        ways: list[Callable[[], None]] = [self.agent, self.manager, self.network]
        self.chance.choice(ways)()


def test_whoever_is_killed_nothing_starts_twice_and_all_agree_in_the_end(region: FleetRegion) -> None:
    """Agents, two managers of one shard and the network manager, with signal 9, while instances are launched and ended.

    Nomad and kubernetes both had managers that started what ran, or forgot what they had been told to end.
    """
    trouble, ended = Trouble(region, 20251019), set()
    try:
        for _ in range(5):
            (name,) = region.launch(1, timeout=f"{patient(30):.0f}s")
            trouble.once()
            region.fencepost("fleet", "terminate", name, "--yes")
            trouble.once()
            ended.add(name)
        region.settled(60)
    finally:
        trouble.standby.terminate()
        assert trouble.standby.wait(patient(20)) == 0
    rows = region.instances()
    assert all(rows[name].state == "ended" for name in ended)
    assert sum(row.state == "placed" for row in rows.values()) == 3
    assert not [id_ for id_ in region.running() if id_.rpartition(".")[0] in ended]
    once(region)


def test_a_wiped_store_is_told_by_the_hosts_what_runs(region: FleetRegion) -> None:
    """Instances go on, are known again by their names, and nothing is placed before; then it can be launched again."""
    before, starts = region.running(), region.starts()
    region.stop()
    for path in Path(region.region.store.path).parent.glob("fleet.db*"):
        path.unlink()
    region.start(60)
    region.until(lambda: {row.id for row in region.instances().values()} == set(before), 30, "they are known again")
    region.settled()
    assert region.running() == before
    assert region.starts() == starts
    region.launch(1, wait=True)
    region.settled()
    once(region)


def test_agents_and_roles_end_cleanly_and_instances_outlive_them(region: FleetRegion) -> None:
    """SIGTERM and Ctrl-C: exit code 0, and what the agents run goes on."""
    before, process = region.running(), region.process
    assert process is not None
    process.send_signal(signal.SIGTERM)
    assert process.wait(patient(20)) == 0
    region.process = None
    how = {host: signal.SIGINT if number % 2 else signal.SIGTERM for number, host in enumerate(sorted(region.agents))}
    assert {host: region.end_agent(host, each) for host, each in how.items()} == dict.fromkeys(how, 0)
    assert region.running() == before
    log = region.log()
    assert "Traceback" not in log, log
