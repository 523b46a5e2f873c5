"""An agent's hands: what a failing disk or driver does half-way, and what is answered meanwhile."""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import pytest

from fencepost.core.capacity.host import HostMemory, HostSettings
from fencepost.core.capacity.messages import (
    Answer,
    Check,
    FromHost,
    Instance,
    InstanceSet,
    NetworkOrder,
    NetworkState,
    Order,
    ToHost,
)
from fencepost.core.capacity.token import Token
from fencepost.ports import Misconfigured, Unavailable
from fencepost.roles.fleet import agent as agent_role
from fencepost.roles.fleet.agent import Agent
from fencepost.roles.fleet.agent_memory import MemoryFile
from fencepost.roles.fleet.agent_server import AgentServer
from fencepost.roles.fleet.wire import Wire

T = Token(1, 1, 1)


class Disk(MemoryFile):
    """One that may be full."""

    full = False

    def write(self, memory: HostMemory) -> None:
        """As always, or not."""
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(memory)


class Hands:
    """A driver whose doings can be held up, and fail."""

    def __init__(self) -> None:
        self.runs: set[str] = set()
        self.starts: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.unavailable = False
        self.unsure: set[str] = set()
        self.ended: Callable[[str], None] = lambda _: None

    async def running(self) -> Collection[str]:
        """What runs."""
        return set(self.runs)

    async def start(self, instance: Instance) -> None:
        """Start, surely or not."""
        self.starts.append(instance.id)
        self.runs.add(instance.id)
        if instance.id in self.unsure:
            raise Unavailable("who knows")

    async def stop(self, id: str) -> None:  # noqa: A002  the port's word
        """Stop once the gate is open."""
        await self.gate.wait()
        self.runs.discard(id)

    async def network(self, states: Sequence[NetworkState]) -> None:
        """Fail if told to."""
        if self.unavailable:
            raise Unavailable(f"no room for {len(states)}")

    def cause(self, id: str) -> str:  # noqa: A002  the port's word
        """Made up."""
        return f"exit code 3: {id} has no port"

    def on_end(self, told: Callable[[str], None]) -> None:
        """Keep whom to tell."""
        self.ended = told


class Scene:
    """An agent under way, with a clock that only the test moves."""

    def __init__(self, folder: Path) -> None:
        self.now = 100
        self.hands = Hands()
        self.disk = Disk(folder, "h1")
        self.agent = Agent(HostSettings("h1", fresh_for=30), self.disk, self.hands, lambda: self.now)

    async def ask(self, message: ToHost) -> FromHost:
        """One question, answered."""
        answer: asyncio.Future[FromHost] = asyncio.get_running_loop().create_future()
        self.agent.told(message, answer.set_result)
        return await asyncio.wait_for(answer, 10)

    async def check(self, token: Token = T) -> Answer:
        """A check, answered."""
        found = await self.ask(Check("h1", token))
        assert isinstance(found, Answer)
        return found

    async def order(self, version: int, *ids: str) -> Order:
        """An order with a stamp of now."""
        seen = await self.check()
        return Order("h1", T, seen.boot, seen.stamp, InstanceSet(version, tuple(map(Instance, ids))))

    async def until_down(self, id_: str) -> None:
        """Wait until it is told that this one alone doesn't run."""
        async with asyncio.timeout(10):
            while True:
                if (await self.check()).down == (id_,):
                    return
                await asyncio.sleep(0.01)

    async def silent(self, message: ToHost) -> bool:
        """Whether a question gets no answer, with everything that can be done done."""
        said: list[FromHost] = []
        self.agent.told(message, said.append)
        await asyncio.sleep(0.05)
        return not said


def test_why_it_ended_is_told_with_it(tmp_path: Path) -> None:
    """The driver knows, or the agent itself where it couldn't start it; people read it, and no rule does."""

    async def play(scene: Scene) -> None:
        await scene.ask(await scene.order(1, "web-1.1"))
        scene.hands.ended("web-1.1")
        await scene.until_down("web-1.1")
        assert (await scene.check()).causes == ("exit code 3: web-1.1 has no port",)

    played(tmp_path, play)


def played(folder: Path, play: Callable[[Scene], Awaitable[None]]) -> None:
    """Run a play."""

    async def main() -> None:
        scene = Scene(folder)
        task = asyncio.create_task(scene.agent.run())
        try:
            await play(scene)
        finally:
            task.cancel()
            scene.disk.close()

    asyncio.run(main())


def test_what_cant_be_written_counts_as_never_come(tmp_path: Path) -> None:
    """A full disk: no new token and no order is answered, nothing is started; the known token is. What the order would
    have started isn't when it comes again, as it may run elsewhere by then ("A memory that can't be written" in
    docs/concepts/leases.md).
    """

    async def play(scene: Scene) -> None:
        order = await scene.order(1, "web-1.1")
        scene.disk.full = True
        assert await scene.silent(order)
        assert await scene.silent(Check("h1", Token(2, 1, 1)))
        assert scene.hands.starts == []
        assert (await scene.check()).version == 0
        scene.disk.full = False
        answer = await scene.ask(order)
        assert isinstance(answer, Answer)
        assert (answer.version, answer.down, answer.unable) == (1, ("web-1.1",), "")
        await scene.ask(await scene.order(2, "web-1.1", "web-2.1"))
        assert scene.hands.starts == ["web-2.1"]

    played(tmp_path, play)


def test_it_says_that_it_cant_write_and_finds_out_by_itself_that_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host whose folder was gone held its lease for ever, refused every order, and only its own log said why (seen
    on the sample). Nobody orders anything of a host that says so: it has to try by itself.
    """
    monkeypatch.setattr(agent_role, "AGAIN_S", 0.02)

    async def play(scene: Scene) -> None:
        assert await scene.silent(await scene.order(0)) is False
        order = await scene.order(1, "web-1.1")
        scene.disk.full = True
        assert await scene.silent(order)
        said = await scene.check()
        assert said.unable == f"{scene.disk.path} can't be written: No space left on device"
        assert (said.version, said.down, said.refused) == (0, (), ("web-1.1",))
        scene.disk.full = False
        async with asyncio.timeout(10):
            while (await scene.check()).unable:  # noqa: ASYNC110  it is told to nobody who doesn't ask
                await asyncio.sleep(0.01)
        said = await scene.check()
        assert said.refused == ()
        memory = scene.disk.read()
        assert memory is not None
        assert memory.over == {"web-1.1"}, "whoever starts the agent anew doesn't start it either"
        assert scene.hands.starts == []

    played(tmp_path, play)


def test_an_end_that_cant_be_written_is_told_at_once_and_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host with a full disk said of an instance that had died that it ran, and so its next attempt never came.

    Told it may be: whoever begins again from the memory of before finds that it doesn't run. Nobody says it to the
    agent again, so it tries to write it again by itself.
    """
    monkeypatch.setattr(agent_role, "AGAIN_S", 0.02)

    async def play(scene: Scene) -> None:
        await scene.ask(await scene.order(1, "web-1.1"))
        scene.disk.full = True
        scene.hands.runs.discard("web-1.1")
        scene.hands.ended("web-1.1")
        await scene.until_down("web-1.1")
        memory = scene.disk.read()
        assert memory is not None
        assert memory.over == frozenset(), "it isn't written"
        assert await scene.silent(Order("h1", T, scene.agent.host.boot, 100, InstanceSet(2))), "nor obeyed meanwhile"
        again = Agent(HostSettings("h1", fresh_for=30), scene.disk, Hands(), lambda: scene.now)
        scene.disk.full = False
        await again.begin()
        assert again.host.running == frozenset(), "an agent that begins here finds the same"
        async with asyncio.timeout(10):
            while (memory := scene.disk.read()) is None or "web-1.1" not in memory.over:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert scene.hands.starts == ["web-1.1"]

    played(tmp_path, play)


def test_a_driver_that_fails_half_way_is_a_death_between_two_effects(tmp_path: Path) -> None:
    """The agent begins again under another boot, and answers nothing before what it remembers is in place."""

    async def play(scene: Scene) -> None:
        await scene.ask(await scene.order(1, "web-1.1"))
        before = await scene.check()
        scene.hands.unavailable = True
        assert await scene.silent(NetworkOrder("h1", T, (NetworkState("web-1.1", 2, "d", b"{}"),)))
        assert await scene.silent(Check("h1", T)), "it would tell of a state that isn't in place"
        scene.hands.unavailable = False
        after = await scene.check()
        assert after.boot != before.boot
        assert (after.version, after.down) == (1, ())
        assert scene.hands.starts == ["web-1.1"]

    played(tmp_path, play)


def test_what_takes_longer_than_the_lease_is_not_started(tmp_path: Path) -> None:
    """An order obeyed in time, whose stops dragged on: its host may have been given up by now."""

    async def play(scene: Scene) -> None:
        await scene.ask(await scene.order(1, "web-1.1"))
        order = await scene.order(2, "web-2.1")
        scene.hands.gate.clear()
        asking = asyncio.create_task(scene.ask(order))
        await asyncio.sleep(0.02)
        meanwhile = await scene.check()
        assert (meanwhile.version, meanwhile.stamp) == (1, scene.now)
        scene.now += 30
        scene.hands.gate.set()
        await asking
        assert scene.hands.starts == ["web-1.1"]
        await scene.until_down("web-2.1")

    played(tmp_path, play)


def test_what_may_have_started_is_stopped_and_down(tmp_path: Path) -> None:
    """It must not run where it is told not to."""

    async def play(scene: Scene) -> None:
        scene.hands.unsure = {"web-1.1"}
        await scene.ask(await scene.order(1, "web-1.1", "web-2.1"))
        await scene.until_down("web-1.1")
        assert scene.hands.runs == {"web-2.1"}

    played(tmp_path, play)


def test_an_address_of_another_machine_is_told_apart_from_a_port_that_is_taken(tmp_path: Path) -> None:
    """Another port would help nothing (192.0.2.0/24 is nobody's, RFC 5737)."""

    async def story() -> None:
        hands = Agent(HostSettings("h1", fresh_for=1), MemoryFile(tmp_path, "h1"), Hands())
        with pytest.raises(Misconfigured) as refused:
            await AgentServer(Wire(bytes(32)), hands).start("192.0.2.1", 7700)
        assert refused.value.hint == "write an address of this machine (ip address lists them)"

    asyncio.run(story())


def test_an_agents_memory_is_not_begun_where_its_folders_are_away(tmp_path: Path) -> None:
    """The region's folder, unmounted: an agent that is started again waits for it, and puts nothing in its place."""
    with pytest.raises(Misconfigured, match="No such file"):
        MemoryFile(tmp_path / "hosts" / "h1", "h1")
    assert not list(tmp_path.iterdir())
    (tmp_path / "hosts").mkdir()
    MemoryFile(tmp_path / "hosts" / "h1", "h1").close()
