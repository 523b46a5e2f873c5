"""``fencepost dev agents``: many hosts at one port, which decide as real ones and misbehave as told."""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from agents import StandInApi, until
from msgspec import json

from fencepost.assembly.fleet_key import fleet_key
from fencepost.core.capacity.host import HostMemory
from fencepost.core.capacity.messages import Answer, Check, FromHost, Instance, InstanceSet, Newer, Order, ToHost
from fencepost.core.capacity.token import Token
from fencepost.dev.agent_memories import AgentMemories
from fencepost.dev.agents import ManyHosts, addresses_of, names_of
from fencepost.dev.crowded import Crowded
from fencepost.ports import Unavailable
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, Wire
from fencepost.settings.schema import Secret

T = Token(1, 1, 1)


class Many:
    """The process, and a manager's socket."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        for name in ("fleet.key", "api.token"):
            if not (folder / name).exists():
                with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                    file.write(secrets.token_urlsafe(32))
        self.wire = Wire(fleet_key(Secret(file=str(folder / "fleet.key"))))
        command = [str(Path(sys.executable).parent / "fencepost"), "dev", "agents", "--listen", "127.0.0.1:0", "--json"]
        command += ["--zones", "a,b,c", "--state", str(folder), *flags]
        with (folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        self.said = json.decode(self.process.stdout.readline())
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.udp.connect(("127.0.0.1", int(self.said["at"].rpartition(":")[2])))

    def ask(self, message: ToHost, within_s: float = 20.0) -> FromHost | None:
        """One question by datagram."""
        self.udp.settimeout(within_s)
        self.udp.send(self.wire.pack("to host", 9, message, DATAGRAM_BYTES))
        try:
            found = self.wire.open_from_host(self.udp.recv(DATAGRAM_BYTES))
        except TimeoutError:
            return None
        assert found is not None
        return found[1]

    def check(self, host: str, token: Token = T) -> Answer:
        """A check, answered."""
        found = self.ask(Check(host, token))
        assert isinstance(found, Answer)
        return found

    def end(self, number: int = signal.SIGKILL) -> None:
        """End it."""
        self.udp.close()
        self.process.send_signal(number)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def many(folder: Path, *flags: str) -> Iterator[Many]:
    """The process, ended at the end."""
    found = Many(folder, *flags)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.end()


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in place whole: one that was cut off for a moment could be read so, and be of the same tick after."""
    new = path.with_suffix(".next")
    new.write_bytes(content)
    new.replace(path)


def test_each_host_decides_for_itself_and_remembers_over_a_kill(tmp_path: Path) -> None:
    """The very decider of real agents: tokens, sets and what ended outlive the process."""
    with many(tmp_path, "--hosts", "30") as hosts:
        assert hosts.said["hosts"] == 30
        seen = hosts.check("h00003")
        assert hosts.check("h00004").incarnation != seen.incarnation
        wanted = InstanceSet(1, (Instance("web-1.1"),))
        taken = hosts.ask(Order("h00003", T, seen.boot, seen.stamp, wanted))
        assert isinstance(taken, Answer)
        assert (taken.version, taken.down) == (1, ())
        hosts.check("h00005", Token(3, 1, 1))
        hosts.end(signal.SIGKILL)
    with many(tmp_path, "--hosts", "30") as hosts:
        again = hosts.check("h00003")
        assert (again.version, again.down, again.incarnation) == (1, (), seen.incarnation)
        assert again.boot != seen.boot
        assert hosts.ask(Check("h00005", T)) == Newer("h00005", Token(3, 1, 1))
        assert hosts.ask(Check("h00030", T), within_s=0.2) is None


def test_they_misbehave_as_the_control_file_says(tmp_path: Path) -> None:
    """Deaf, ended, restarted, and on an empty disk: without a restart, and taken back as well."""
    control = tmp_path / "control"
    with many(tmp_path, "--hosts", "9", "--deaf", "h00000", "--control", str(control)) as hosts:
        assert hosts.ask(Check("h00000", T), within_s=0.2) is None
        seen, other = hosts.check("h00003"), hosts.check("h00004")
        hosts.ask(Order("h00003", T, seen.boot, seen.stamp, InstanceSet(1, (Instance("web-1.1"),))))
        wish = {"deaf": ["zone:b"], "ended": ["web-1.1"], "restarted": ["h00005"], "lost": ["h00006"]}
        five, six = hosts.check("h00005"), hosts.check("h00006")
        write_whole(control, json.encode(wish))
        until(lambda: hosts.check("h00003").down == ("web-1.1",))
        assert hosts.ask(Check("h00004", T), within_s=0.2) is None
        until(lambda: hosts.check("h00005").boot != five.boot)
        assert hosts.check("h00005").incarnation == five.incarnation
        assert hosts.check("h00006").incarnation != six.incarnation
        assert hosts.check("h00000").version == 0
        write_whole(control, b"{}")
        until(lambda: hosts.ask(Check("h00004", T), within_s=0.2) is not None)
        assert hosts.check("h00004").boot == other.boot
        write_whole(control, b'{"deaf": "all"}')
        until(lambda: "changes nothing" in (tmp_path / "log").read_text())


def test_they_register_with_the_api(tmp_path: Path) -> None:
    """All of them, with zones by turns, and before they know how long a lease is they answer nobody."""
    api = StandInApi(renew_s=2)
    api.refusals = [(429, "1")]
    api.answers.clear()
    try:
        with many(tmp_path, "--hosts", "600", "--room", "2", "--join", api.url) as hosts:
            assert hosts.ask(Check("h00000", T), within_s=0.2) is None
            api.answers.set()
            until(lambda: len(api.bodies) == 3)
            found = [each for _, body in api.bodies[1:] for each in body["hosts"]]
            assert len({each["host"] for each in found}) == 600
            assert [each["zone"] for each in found[:4]] == ["a", "b", "c", "a"]
            assert found[0]["at"] == hosts.said["at"]
            assert found[1]["addresses"] == ["127.64.0.2", "127.64.0.3"]
            assert api.times[1] - api.times[0] >= 1, "Retry-After is obeyed"
            assert set(api.tokens) == {f"Bearer {(tmp_path / 'api.token').read_text()}"}
            assert hosts.check("h00000").version == 0
    finally:
        api.close()


class Disk(AgentMemories):
    """One that may be full."""

    full = False

    def write(self, memories: Mapping[str, HostMemory]) -> None:
        """As always, or not."""
        if self.full:
            raise Unavailable("the disk is full")
        super().write(memories)


def test_a_disk_that_takes_nothing_leaves_new_words_unanswered(tmp_path: Path) -> None:
    """One file for all, and the same rule: what can't be remembered isn't answered."""

    async def play() -> None:
        memories = Disk(tmp_path)
        hosts = ManyHosts(memories, names_of(3, ("a",)), 1, 30)
        said: list[FromHost] = []
        hosts.told(Check("h00000", T), said.append)
        assert not said, "written down first"
        hosts.round()
        assert len(said) == 1

        memories.full = True
        hosts.told(Check("h00000", Token(2, 1, 1)), said.append)
        hosts.told(Check("h00000", Token(2, 1, 1)), said.append)
        hosts.told(Check("h00001", T), said.append)
        hosts.round()
        assert len(said) == 1
        memories.full = False
        hosts.told(Check("h00000", T), said.append)
        assert isinstance(said[-1], Answer)
        assert said[-1].token == T, "the newer one counts as never come"
        memories.close()

    asyncio.run(play())


def test_slow_answers_have_their_mean_and_get_slower_past_the_knee() -> None:
    """Below capacity the mean is what was asked for; past it less is done a second than at it."""
    calm = Crowded(0.04, 64, seed=1)
    times = [calm.done_at(at / 500) - at / 500 for at in range(20_000)]
    assert sum(times) / len(times) == pytest.approx(0.04, rel=0.05)
    assert (sum((each - 0.04) ** 2 for each in times) / len(times)) ** 0.5 == pytest.approx(0.04, rel=0.1)
    done = []
    for rate in (1_500, 6_000):
        crowd = Crowded(0.04, 64, seed=1)
        ends = [crowd.done_at(at / rate) for at in range(10 * rate)]
        done.append(sum(1 for each in ends if 5 < each < 10) / 5)
    assert done[0] == pytest.approx(1_500, rel=0.05)
    assert done[1] < 0.8 * done[0]


def test_names_and_addresses_are_those_of_nobody() -> None:
    """Instances of stand-ins are given loopback addresses, so that whoever probes them gets nowhere else."""
    assert list(names_of(2, ("a", "b")).items()) == [("h00000", "a"), ("h00001", "b")]
    assert next(iter(addresses_of(10_000, 4))) == "127.64.156.64"
    assert list(addresses_of((1 << 20) - 1, 4))[-1] == "127.127.255.255"
