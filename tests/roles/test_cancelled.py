"""Loops that wait for an event or a time end when they are cancelled, also in the moment in which the event comes.

``asyncio.wait_for`` of Python 3.11 answers such a cancellation with the event (cpython #86296, mended in 3.12): the
loop went round again, and what waited for its end waited for ever. ``timeout -s INT`` and systemd send SIGCONT right
behind the signal, and ``up`` took that for news.
"""

import asyncio
import contextlib
import types
from collections.abc import Awaitable, Callable

import pytest

from fencepost.cli.up import Run
from fencepost.core.capacity.placement import PlacementSettings
from fencepost.roles.fleet.agent import stop_quietly
from fencepost.roles.fleet.placer import Placer
from fencepost.roles.heartbeat import beat
from fencepost.roles.loop import Condition
from fencepost.roles.observer import Observer
from fencepost.world.reference_store import ReferenceStore

Loop = Callable[[asyncio.Event], Awaitable[None]]


async def panel(news: asyncio.Event) -> None:
    """The panel of ``up``, without a region to show."""

    async def nothing() -> None:
        pass

    fleet = types.SimpleNamespace(gone=frozenset)
    run = types.SimpleNamespace(
        news=news, ready=True, region=None, draw_panel=lambda *_: None, look=nothing, fleet=fleet
    )
    screen = types.SimpleNamespace(losing=lambda _: contextlib.nullcontext(), drawn=True)
    await Run.keep_panel(run, screen)  # type: ignore[arg-type]


async def heartbeat(changed: asyncio.Event) -> None:
    """A role's sign of life."""

    async def sleeping(_: int) -> None:
        await asyncio.sleep(0)

    condition = Condition()
    condition.changed = changed
    await beat("planner", ReferenceStore("s1", lambda: "n1", sleeping), condition)


async def observer(changed: asyncio.Event) -> None:
    """The observer, with nothing to look at."""

    async def nothing(_: object) -> list[str]:
        return []

    settings = types.SimpleNamespace(every_s=1.0)
    looks = types.SimpleNamespace(ports=(), settings=settings, _changed=changed, look_at=nothing, _due=list)
    await Observer._look_on(looks)  # type: ignore[arg-type]


async def placing(changed: asyncio.Event) -> None:
    """The placer of a manager that owns nothing, beside a store in which nothing changes."""

    async def for_ever(_: int) -> None:
        await asyncio.sleep(3600)

    manager = types.SimpleNamespace(news=changed, leases=types.SimpleNamespace(acting=False))
    store = types.SimpleNamespace(wait=for_ever)
    await Placer(PlacementSettings(), store, manager, Condition()).run()  # type: ignore[arg-type]


@pytest.mark.parametrize("turns", range(7))
@pytest.mark.parametrize("loop", [panel, heartbeat, observer, placing])
def test_cancelled_with_the_event(loop: Loop, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many turns of the event loop lie between the event and the cancellation, the loop ends."""
    monkeypatch.setattr("fencepost.roles.heartbeat.REST_S", 0.0)
    monkeypatch.setattr("fencepost.roles.fleet.placer.REST_S", 0.0)

    async def both() -> bool:
        event = asyncio.Event()
        task = asyncio.ensure_future(loop(event))
        await asyncio.sleep(0.05)  # it waits by now
        event.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=0.5)
        return task in done and task.cancelled()

    assert asyncio.run(both())


def test_cancelled_while_it_waits_for_the_end_of_what_it_cancelled() -> None:
    """One's own cancellation isn't the other's: taken for that, a host manager told to end placed on for ever."""

    async def slow_to_end() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.05)

    async def both() -> bool:
        slow = asyncio.ensure_future(slow_to_end())
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(stop_quietly(slow))
        await asyncio.sleep(0.01)
        stopping.cancel()
        await asyncio.wait([stopping, slow])
        return stopping.cancelled() and slow.cancelled()

    assert asyncio.run(both())
