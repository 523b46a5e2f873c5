"""How a store of the fleet's rows that several tasks of a process share tells each of them of changes."""

import asyncio

from fleet_store import host, on_views, put

from fencepost.core.instant import MILLISECOND, SECOND
from fencepost.ports.fleet import FleetStorePort


class FleetWaitingContract:
    """A part of the suite; a subclass gives ``make``. (Of the reference each task takes a view of its own.)"""

    @on_views(2)
    async def test_who_waits_in_tasks_of_their_own_is_told_once(
        self, store: FleetStorePort, other: FleetStorePort
    ) -> None:
        """Waiting for several things at once takes a new task each time; nothing new, it must not return at once."""
        await store.wait(10 * MILLISECOND)
        await put(other, host("host-1"))
        await asyncio.ensure_future(store.wait(30 * SECOND))
        now = asyncio.get_running_loop().time
        whole = 0
        for _ in range(10):
            began = now()
            await asyncio.wait((asyncio.ensure_future(store.wait(50 * MILLISECOND)),))
            whole += now() - began >= 0.04
        assert whole >= 5

    @on_views(2)
    async def test_what_one_task_was_told_another_still_hears(
        self, store: FleetStorePort, other: FleetStorePort
    ) -> None:
        """Several tasks of a process share a store: a change that came while one was busy is told to it, too."""

        async def hears() -> None:
            await store.wait(10 * MILLISECOND)
            ready.set()
            await busy.wait()
            await store.wait(30 * SECOND)

        ready, busy = asyncio.Event(), asyncio.Event()
        hearing = asyncio.create_task(hears())
        await ready.wait()
        await store.wait(10 * MILLISECOND)
        await put(other, host("host-1"))
        await store.wait(30 * SECOND)
        busy.set()
        await asyncio.wait_for(hearing, 10)
