"""``fencepost run agent`` as a real process: what its death, a lost disk and a full one do to what it runs."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from agents import SLEEPER, AgentProcess, StandInApi, alive, until

from fencepost.adapters.processes import find
from fencepost.core.capacity.messages import Answer, Check, Instance, InstanceSet, Newer, Order
from fencepost.core.capacity.token import Token

HOST = {"host": "h1", "zone": "a", "room": 1, "addresses": []}


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentProcess]:
    """An agent that listens; its instances are ended with the test."""
    api = StandInApi()
    found = AgentProcess(tmp_path / "h1", api)
    found.start()
    yield found
    found.end()
    marked = find(f"FENCEPOST_INSTANCE_FOLDER={tmp_path / 'h1' / 'instances'}", "FENCEPOST_INSTANCE=")
    for carriers in marked.values():
        for pid in (*carriers.leaders, *carriers.others):
            os.kill(pid, signal.SIGKILL)
    api.close()


def test_instances_outlive_their_agent_and_are_taken_over(agent: AgentProcess) -> None:
    """kill -9: the next agent finds what runs by pid and start time, starts nothing again, and tells what is down."""
    assert agent.order(1, "web-1.1", "web-2.1").down == ()
    one, two = agent.pid("web-1.1"), agent.pid("web-2.1")
    agent.end(signal.SIGKILL)
    assert alive(one)
    os.killpg(two, signal.SIGKILL)
    until(lambda: not alive(two))
    before = agent.folder / "memory"
    remembered = before.read_bytes()
    agent.start()
    again = agent.check()
    assert (again.version, again.down) == (1, ("web-2.1",))
    assert alive(one)
    assert agent.pid("web-1.1") == one
    assert remembered != before.read_bytes(), "what is down was written before it was told"
    assert agent.order(2, "web-1.1", "web-2.1", "web-2.2").down == ("web-2.1",)
    assert agent.pid("web-1.1") == one
    assert agent.order(3).down == ()
    assert not alive(one)


def test_a_taken_over_instance_that_ends_is_noticed(agent: AgentProcess) -> None:
    """It is no child of the new agent, so nobody sends it SIGCHLD; a pidfd tells."""
    agent.order(1, "web-1.1")
    pid = agent.pid("web-1.1")
    agent.end(signal.SIGTERM)
    assert alive(pid)
    agent.start()
    assert agent.check().down == ()
    os.killpg(pid, signal.SIGKILL)
    until(lambda: agent.check().down == ("web-1.1",))


def test_an_instance_started_in_its_agents_last_moment_is_found(agent: AgentProcess) -> None:
    """Nobody wrote its pid down; its environment tells whose it is."""
    agent.order(1, "web-1.1")
    pid = agent.pid("web-1.1")
    agent.end(signal.SIGKILL)
    (agent.folder / "instances" / "web-1.1" / "process.json").unlink()
    agent.start()
    assert agent.check().down == ()
    agent.order(2)
    assert not alive(pid)


def test_another_process_with_the_pid_of_an_instance_is_left_alone(agent: AgentProcess) -> None:
    """A pid comes round again; the start time tells."""
    agent.order(1, "web-1.1")
    pid, noted = agent.pid("web-1.1"), agent.folder / "instances" / "web-1.1" / "process.json"
    text = noted.read_text()
    agent.end(signal.SIGKILL)
    os.killpg(pid, signal.SIGKILL)
    until(lambda: not alive(pid))
    stranger = subprocess.Popen(SLEEPER, start_new_session=True)
    try:
        noted.write_text(text.replace(f'"pid":{pid}', f'"pid":{stranger.pid}'))
        agent.start()
        assert agent.check().down == ("web-1.1",)
        agent.order(2)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_memory_gone_is_a_new_incarnation_that_stops_what_runs(agent: AgentProcess) -> None:
    """A disk replaced: nobody may take this for the host that was granted something."""
    agent.order(1, "web-1.1")
    seen, pid = agent.check(), agent.pid("web-1.1")
    agent.end()
    (agent.folder / "memory").unlink()
    agent.start()
    again = agent.check(whole=True)
    assert again.incarnation != seen.incarnation
    assert (again.version, again.set) == (0, InstanceSet())
    assert not alive(pid)


def test_a_damaged_memory_counts_as_gone_and_is_kept_aside(agent: AgentProcess) -> None:
    """Half of it may say anything, so none of it is believed."""
    seen = agent.check()
    agent.end()
    memory = agent.folder / "memory"
    memory.write_bytes(memory.read_bytes()[:-1])
    agent.start()
    assert agent.check().incarnation != seen.incarnation
    assert (agent.folder / "memory.damaged").exists()


def test_tokens_outlive_the_agent(agent: AgentProcess) -> None:
    """What was acknowledged before a crash is refused after it."""
    agent.token = Token(4, 1, 1)
    agent.check()
    agent.end()
    agent.start()
    assert agent.ask(Check("h1", Token(3, 9, 9))) == Newer("h1", Token(4, 1, 1))
    assert isinstance(agent.datagram(Check("h1", Token(4, 1, 1))), Answer)


def test_an_order_stamped_before_the_agents_death_is_refused_after(agent: AgentProcess) -> None:
    """It was meant for an agent that knew what ran."""
    seen = agent.check()
    agent.end()
    agent.start()
    late = Order("h1", agent.token, seen.boot, seen.stamp, InstanceSet(1, (Instance("web-1.1", command=SLEEPER),)))
    answer = agent.ask(late)
    assert isinstance(answer, Answer)
    assert answer.version == 0
    assert not (agent.folder / "instances" / "web-1.1").exists()


def test_network_state_and_environment_reach_the_instance(agent: AgentProcess) -> None:
    """It reads one file, which its environment names."""
    script = "import os, time; print(*[f'{k}={v}' for k, v in sorted(os.environ.items()) if k[:5] == 'FENCE'], flush=1)"
    agent.order(1, "web-1.1", command=(sys.executable, "-c", f"{script}; time.sleep(600)"))
    place = agent.folder / "instances" / "web-1.1"
    said = until(lambda: (place / "log").read_text())
    assert f"FENCEPOST_NETWORK={place / 'network.json'}" in said
    assert "FENCEPOST_INSTANCE=web-1.1 " in said
    assert "FENCEPOST_INSTANCE_PORT=80" in said
    answer = agent.network(("web-1.1", 3, "d", b'{"peers": []}'), ("web-9.1", 1, "d", b"{}"))
    assert (answer.has, answer.unknown) == ((("web-1.1", 3, "d"),), ("web-9.1",))
    assert (place / "network.json").read_bytes() == b'{"peers": []}'
    (place / "network.json").unlink()
    agent.end()
    agent.start()
    agent.check()
    assert (place / "network.json").read_bytes() == b'{"peers": []}', "put in place again at each start"


def test_what_cant_be_started_is_down(agent: AgentProcess) -> None:
    """No such program, and no way out of the agent's folder by a name."""
    agent.order(1, "web-1.1", "../web-2.1", command=("/nowhere/at/all",))
    until(lambda: set(agent.check().down) == {"web-1.1", "../web-2.1"})
    found = agent.check()
    why = dict(zip(found.down, found.causes, strict=True))
    assert why["web-1.1"] == "couldn't be started: /nowhere/at/all: No such file or directory"
    assert "is no name for an attempt" in why["../web-2.1"]
    assert not (agent.folder / "web-2.1").exists()


def test_how_it_ended_is_told_with_the_last_line_of_its_log(agent: AgentProcess) -> None:
    """Whoever looks at the fleet hasn't the host's log; nor are a terminal's commands in it to reach his."""
    script = "import sys; print('begun'); sys.exit('no ' + chr(27) + '[31mport' + chr(10))"
    agent.order(1, "web-1.1", command=(sys.executable, "-c", script))
    found = until(lambda: seen if (seen := agent.check()).down else None)
    assert found.causes == ("exit code 1: no  [31mport",)
    agent.end()
    agent.start()
    assert agent.check().causes == ("exit code unknown: no  [31mport",)


def test_whoever_ignores_sigterm_is_killed_and_checks_are_answered_meanwhile(agent: AgentProcess) -> None:
    """A stop that takes five seconds costs no lease: the check in between is answered, with the set of before."""
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
    agent.order(1, "web-1.1", command=(sys.executable, "-c", stubborn))
    pid = agent.pid("web-1.1")
    until(lambda: (agent.folder / "instances" / "web-1.1" / "log").read_text())
    seen = agent.check()
    agent.datagram(Order("h1", agent.token, seen.boot, seen.stamp, InstanceSet(2)), within_s=0.2)
    between = agent.datagram(Check("h1", agent.token))
    assert isinstance(between, Answer)
    assert (between.version, alive(pid)) == (1, True)
    until(lambda: not alive(pid))
    until(lambda: agent.check().version == 2)


def test_a_disk_that_takes_nothing_leaves_new_words_unanswered_and_the_lease_alone(agent: AgentProcess) -> None:
    """What can't be remembered isn't answered, and that is said; the token that is known needs no disk."""
    agent.order(1, "web-1.1")
    known, hindrance = agent.token, agent.folder / "memory.new"
    hindrance.mkdir()
    newer = Check("h1", Token(2, 1, 1))
    assert agent.datagram(newer, within_s=0.3) is None
    seen = agent.datagram(Check("h1", known))
    assert isinstance(seen, Answer)
    order = Order("h1", known, seen.boot, seen.stamp, InstanceSet(2))
    assert agent.datagram(order, within_s=0.3) is None
    assert alive(agent.pid("web-1.1"))
    assert agent.log.read_text().count("can't be written") == 1
    hindrance.rmdir()
    answer = agent.datagram(newer)
    assert isinstance(answer, Answer)
    assert (answer.token, answer.version, answer.boot) == (newer.token, 1, seen.boot)
    until(lambda: "does what it is told again" in agent.log.read_text())


def test_a_host_that_nobody_asks_registers_again(tmp_path: Path) -> None:
    """A lost store forgets hosts, and nobody knows them but themselves; one that is asked keeps still."""
    api = StandInApi(renew_s=0.5)
    agent = AgentProcess(tmp_path / "h1", api)
    try:
        agent.start()
        until(lambda: len(api.bodies) >= 3)
        path, body = api.bodies[0]
        assert body["hosts"][0].pop("incarnation") == 0  # its memory is made once the API has said R
        at = f"127.0.0.1:{agent.port}"
        assert (path, body) == ("/v1/fleet/hosts", {"hosts": [{**HOST, "at": at}]})
        assert all(after - before >= 1.0 for before, after in pairwise(api.times)), "two renewals at least"
        assert agent.log.read_text().count(f"isn't asked: nothing comes to {at}") == 1, "said once, not each time"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            until(
                lambda: (
                    stranger.sendto(bytes(40), ("127.0.0.1", agent.port))
                    and "isn't sealed with the key that is here" in agent.log.read_text()
                )
            )
        count, silent = len(api.bodies), 1  # one may be on its way
        asked, asked_until = time.monotonic(), time.monotonic() + 2.5
        while asked < asked_until:
            agent.check()
            before, asked = asked, time.monotonic()
            silent += int((asked - before) / 0.9)  # a test that stands still for two renewals asks nobody meanwhile
        assert len(api.bodies) <= count + silent
    finally:
        agent.end()
        api.close()


def test_an_agent_that_knows_no_lease_answers_nobody_until_the_api_says_it(tmp_path: Path) -> None:
    """It might take its lease for longer than its managers do. Once told, it knows it without the API."""
    api = StandInApi()
    api.refusals = [(503, "1")]
    api.answers.clear()
    agent = AgentProcess(tmp_path / "h1", api)
    try:
        agent.start()
        assert agent.datagram(Check("h1", agent.token), within_s=0.2) is None
        api.answers.set()
        assert agent.check().version == 0
        agent.end()
        api.refusals = [(503, "30")] * 100
        agent.start()
        assert agent.check().version == 0
    finally:
        agent.end()
        api.close()


def test_one_folder_has_one_agent(agent: AgentProcess) -> None:
    """Two would answer for one host with two memories."""
    second = AgentProcess(agent.folder, agent.api)
    second.start()
    assert second.process is not None
    assert second.process.wait() == 2
    assert "another agent uses this folder" in second.log.read_text()
