"""Wakes whoever waits for a change: one task that reads the root each second.

DynamoDB tells nobody of a change (its streams come late and need a reader of their own), so the root is read: one
strongly consistent read of a small item a second for each process that waits. What this process itself changes wakes
its waiters at once. A store that goes, comes back or is another one counts as a change, once.

Reports, beats and history don't touch the root, and looking for them would cost a read for each checker and pool: who
waits for *any* change (``reports``) is woken at each look instead. It may have changed.
"""

import asyncio
import contextlib
import time

from fencepost.adapters.store_dynamodb.faults import TableMissingError
from fencepost.adapters.store_dynamodb.root import Root, Roots
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import PortError

LOOK_EACH_S = 1.0


class Watch:
    """What changed in the store, and who waits for it; one event loop's."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._task: asyncio.Task[None] | None = None
        self._seen: object = None
        self.changes = 0
        self.plan_changes = 0
        self.waiting: set[asyncio.Future[None]] = set()
        self.waiting_for_plans: set[asyncio.Future[None]] = set()
        roots.told = self.told

    def told(self, root: Root) -> None:
        """This process has changed the root to this."""
        self._note((root.identity, root.revision))

    def _note(self, seen: object) -> None:
        if seen != self._seen:
            self._seen = seen
            self.plan_changes += 1
            self._wake(self.waiting_for_plans)
            self.wrote()

    def wrote(self) -> None:
        """Something has changed, or may have: for those who wait for reports too."""
        self.changes += 1
        self._wake(self.waiting)

    @staticmethod
    def _wake(waiting: set[asyncio.Future[None]]) -> None:
        for changed in waiting:
            if not changed.done():
                changed.set_result(None)

    def start(self) -> None:
        """Begin to look, if that hasn't begun."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while True:
            began = time.monotonic()
            try:
                root = await self._roots.read()
                seen: object = (root.identity, root.revision)
                if isinstance(self._seen, tuple) and self._seen[0] == root.identity and self._seen[1] > root.revision:
                    seen = self._seen  # read before a change that this process has made since
            except (PortError, TableMissingError) as problem:
                seen = type(problem)
            self._note(seen)
            self.wrote()
            await asyncio.sleep(max(0.0, LOOK_EACH_S - (time.monotonic() - began)))

    async def close(self) -> None:
        """End looking, and every wait."""
        self.changes += 1
        self.plan_changes += 1
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._wake(self.waiting)
        self._wake(self.waiting_for_plans)


class Waiter:
    """One task's view of a watch: it is told of every change since its own last wait, whoever else waits."""

    def __init__(self, watch: Watch, *, reports: bool) -> None:
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
