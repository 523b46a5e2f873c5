"""By which clock the fleet's roles decide: the machine's time since it was started, which nobody can set.

A wall clock that jumped by an hour ended every lease of etcd #12291 and valkey #2651 at once, or let none end. What has
to do with leases, orders and pace here is told the boot-time clock; wall time is for people, and for rows kept so long.
"""

import ast
import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import pytest
from fleet_asked import Asked, held

from fencepost.core.capacity.host import HostSettings
from fencepost.core.capacity.messages import Answer, Check, FromHost, Instance, InstanceSet, NetworkState, Order, ToHost
from fencepost.core.capacity.rows import CheckpointRow
from fencepost.core.capacity.token import Token
from fencepost.core.instant import HOUR, SECOND, Instant
from fencepost.roles.fleet import agent, host_manager, manager_questions, network_manager
from fencepost.roles.fleet.agent import Agent
from fencepost.roles.fleet.agent_memory import MemoryFile

T = Token(1, 1, 1)
FLEET = Path(agent.__file__).parent
ASSEMBLY = FLEET.parents[1] / "assembly"
CLOCKS: dict[str, Callable[[], Instant]] = {
    "agent": agent.clock,
    "host-manager": host_manager.now,
    "its questions": manager_questions.clock,
    "network-manager": network_manager.now,
}
FOR_PEOPLE = {
    ("calibrating.py", "granted"): "a made-up launch's row says since when it is there",
    ("network_hands.py", "stamped"): "a stage's row says when its depth was noted",
    ("placer.py", "forget_once"): "instances that ended are kept for so long",
    ("placer.py", "turn"): "an instance's row says when it ended, and when it is tried again",
    ("requests.py", "told_by"): "the history says when a person did something",
    ("telling.py", "due"): "a note says when hosts were heard of",
    ("telling.py", "tell"): "a note says when it was written",
}
"""Where a wall clock is read, and what for. None of it is told to who decides about leases, checks and orders."""
STEADY = {"clock_gettime_ns", "CLOCK_BOOTTIME", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}


@pytest.mark.parametrize("role", CLOCKS)
def test_etcd_12291_valkey_2651_the_roles_go_by_the_time_since_the_machine_started(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended time counts too, so it isn't CLOCK_MONOTONIC either."""
    shown = {time.CLOCK_BOOTTIME: 5 * SECOND, time.CLOCK_MONOTONIC: 4 * SECOND, time.CLOCK_REALTIME: HOUR}
    monkeypatch.setattr(time, "clock_gettime_ns", shown.__getitem__)
    for wall in (HOUR, 0):
        monkeypatch.setattr(time, "time_ns", lambda wall=wall: wall)
        assert CLOCKS[role]() == 5 * SECOND


def wall_clocks(path: Path) -> Iterator[tuple[str, str]]:
    """Where a file reads a clock that can be set, called or handed on: (file, function around it, "" if none)."""
    tree = ast.parse(path.read_text())
    around = {
        id(node): function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if name not in STEADY:
                pass
            case ast.ImportFrom(module="time" | "datetime" | "fencepost.roles.clock"):
                pass
            case ast.Import(names=names) if any(each.name == "datetime" for each in names):
                pass
            case ast.ImportFrom(module="fencepost.roles", names=names) if any(each.name == "clock" for each in names):
                pass
            case _:
                continue
        yield path.name, around.get(id(node), "")


def test_etcd_12291_valkey_2651_a_wall_clock_is_read_for_people_alone() -> None:
    """Each place is listed with its reason: a clock that somebody sets must reach no decider by another way."""
    files = [*FLEET.glob("*.py"), *(ASSEMBLY / name for name in ("agents.py", "managers.py", "network_managers.py"))]
    found = [each for path in sorted(files) for each in wall_clocks(path)]
    assert sorted(set(found)) == sorted(FOR_PEOPLE)
    assert len(found) == len(FOR_PEOPLE), "twice in one function"


class NothingRuns:
    """A driver of a host without instances."""

    async def running(self) -> Collection[str]:
        """Nothing."""
        return ()

    async def start(self, instance: Instance) -> None:
        """Nobody asks for it."""
        raise NotImplementedError(instance)

    async def stop(self, id: str) -> None:  # noqa: A002  the port's word
        """Nobody asks for it."""
        raise NotImplementedError(id)

    async def network(self, states: Sequence[NetworkState]) -> None:
        """Nobody asks for it."""
        raise NotImplementedError(states)

    def cause(self, id: str) -> str:  # noqa: A002  the port's word
        """Nothing ends."""
        raise NotImplementedError(id)

    def on_end(self, told: Callable[[str], None]) -> None:
        """Nothing ends."""


async def told(host: Agent, message: ToHost) -> FromHost:
    """A message, answered."""
    answer: asyncio.Future[FromHost] = asyncio.get_running_loop().create_future()
    host.told(message, answer.set_result)
    return await asyncio.wait_for(answer, 10)


def test_etcd_12291_valkey_2651_an_order_is_obeyed_though_the_wall_clock_jumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day on between check and order, or back, on the agent as it ships: the order is as fresh as it was."""

    async def play() -> None:
        memory = MemoryFile(tmp_path, "h1")
        host = Agent(HostSettings("h1", fresh_for=HOUR), memory, NothingRuns())
        task = asyncio.ensure_future(host.run())
        try:
            for version, jump in ((1, 24 * HOUR), (2, -48 * HOUR)):
                seen = await told(host, Check("h1", T))
                assert isinstance(seen, Answer)
                wall = time.time_ns() + jump
                monkeypatch.setattr(time, "time_ns", lambda wall=wall: wall)
                await told(host, Order("h1", T, seen.boot, seen.stamp, InstanceSet(version, ())))
                seen = await told(host, Check("h1", T))
                assert isinstance(seen, Answer)
                assert seen.version == version
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            memory.close()

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.parametrize("wall", [HOUR, -HOUR])
def test_a_wall_clock_that_jumps_gives_no_live_hosts_name_away(wall: int) -> None:
    """etcd #12291: a host that had missed one check, and an API whose clock was set: its name was free at once. Counted
    is by the manager's own clock until it noted the silence, and by the API's since it read that.
    """

    async def work() -> None:
        api = Asked()
        other = {"host": "h1", "zone": "a", "at": "127.0.0.1:1", "room": 1, "addresses": [], "incarnation": 77}
        await api.open(held("h1"))
        await api.put(CheckpointRow("1/000000", "m1", api.now, ("h1",), (3,), (0,)))
        api.wall = wall
        assert (await api.call("/v1/fleet/hosts", {"hosts": [other]}))[0] == 409
        api.now += 27 * SECOND
        assert (await api.call("/v1/fleet/hosts", {"hosts": [other]}))[0] == 409
        api.now += SECOND
        assert (await api.call("/v1/fleet/hosts", {"hosts": [other]}))[0] == 200, "silent for a lease"

    asyncio.run(asyncio.wait_for(work(), 30))
