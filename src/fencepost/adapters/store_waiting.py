"""Waiting for a store to change: what every store's watch does once it knows of a change.

A watch belongs to one event loop, and learns of changes in a thread or a task of its own. It counts them, those of
plans and inputs apart, and wakes whoever waits. A :class:`Waiter` is one task's view: it is told of every change since
its own last wait, so none is missed between two of them.
"""

import asyncio
import weakref
from collections.abc import Coroutine
from typing import Any

from fencepost.core.instant import SECOND, Duration


class Changes:
    """The base of a store's watch. A subclass says how looking begins, and calls :meth:`note` or :meth:`tell`.

    ``loop`` is set before a thread begins to look.
    """

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.changes = 0
        self.plan_changes = 0
        self.waiting: set[asyncio.Future[None]] = set()
        self.waiting_for_plans: set[asyncio.Future[None]] = set()

    def start(self) -> None:
        """Begin to look, if that hasn't begun."""
        raise NotImplementedError

    def note(self, *, plans_too: bool) -> None:
        """There is a change: count it, and wake who waits. On the loop."""
        self.count(plans_too=plans_too)
        self.wake(plans_too=plans_too)

    def tell(self, *, plans_too: bool) -> bool:
        """Note a change from another thread; False if the loop is gone.

        Counted first and waiters looked at second, while a waiter stands there first and looks at the count second: one
        of the two sees the other.
        """
        assert self.loop is not None  # noqa: S101  as above
        self.count(plans_too=plans_too)
        if not self.waiting and not (plans_too and self.waiting_for_plans):
            return True
        try:
            self.loop.call_soon_threadsafe(lambda: self.wake(plans_too=plans_too))
        except RuntimeError:
            return False
        return True

    def count(self, *, plans_too: bool) -> None:
        """Count a change."""
        self.changes += 1
        self.plan_changes += plans_too

    def wake(self, *, plans_too: bool) -> None:
        """Wake who waits for any change, and with ``plans_too`` who waits for plans and inputs."""
        for changed in self.waiting | (self.waiting_for_plans if plans_too else set()):
            if not changed.done():
                changed.set_result(None)


class Waiter:
    """One task's view of a watch: it is told of every change since its own last wait, whoever else waits."""

    def __init__(self, watch: Changes, *, reports: bool) -> None:
        self._watch = watch
        self._reports = reports
        self._told = 0

    async def wait(self, most: Duration) -> None:
        """Return when something has changed since the last call returned, at the latest after ``most`` nanoseconds."""
        watch = self._watch
        watch.start()
        changed = asyncio.get_running_loop().create_future()
        waiting = watch.waiting if self._reports else watch.waiting_for_plans
        waiting.add(changed)
        try:
            if self._now() == self._told:
                await asyncio.wait((changed,), timeout=most / SECOND)
        finally:
            waiting.discard(changed)
            changed.cancel()
        self._told = self._now()

    def _now(self) -> int:
        return self._watch.changes if self._reports else self._watch.plan_changes


class TaskWaiters:
    """A waiter for each task that asks: what one task was told of, another still has to hear.

    It is the task that *calls*, not the one that then waits: who waits for several things at once lets a new task wait
    for each, and none of those has been told of anything yet.
    """

    def __init__(self, watch: Changes) -> None:
        self._watch = watch
        self._waiters: weakref.WeakKeyDictionary[asyncio.Task[object], Waiter] = weakref.WeakKeyDictionary()

    def wait(self, most: Duration) -> Coroutine[Any, Any, None]:
        """As :meth:`Waiter.wait`, for plans and inputs or whatever the watch counts as such."""
        task = asyncio.current_task()
        assert task is not None  # who calls this runs in one  # noqa: S101
        waiter = self._waiters.get(task)
        if waiter is None:
            waiter = self._waiters[task] = Waiter(self._watch, reports=False)
        return waiter.wait(most)
