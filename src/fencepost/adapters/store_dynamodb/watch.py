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
from fencepost.adapters.store_waiting import Changes
from fencepost.ports import PortError

LOOK_EACH_S = 1.0


class Watch(Changes):
    """What changed in the store, and who waits for it; one event loop's."""

    def __init__(self, roots: Roots) -> None:
        super().__init__()
        self._roots = roots
        self._task: asyncio.Task[None] | None = None
        self._seen: object = None
        roots.told = self.told

    def told(self, root: Root) -> None:
        """This process has changed the root to this."""
        self.noted((root.identity, root.revision))

    async def standing(self) -> tuple[str, int]:
        """What differs after each change: the store's identity, and a number that rises."""
        root = await self._roots.read()
        return root.identity, root.revision

    def noted(self, seen: object) -> None:
        """Wake who waits, if this is another state than the one known."""
        if seen != self._seen:
            self._seen = seen
            self.note(plans_too=True)

    def wrote(self) -> None:
        """Something has changed, or may have: for those who wait for reports too."""
        self.note(plans_too=False)

    def start(self) -> None:
        """Begin to look, if that hasn't begun."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while True:
            began = time.monotonic()
            try:
                identity, revision = await self.standing()
                seen: object = (identity, revision)
                if isinstance(self._seen, tuple) and self._seen[0] == identity and self._seen[1] > revision:
                    seen = self._seen  # read before a change that this process has made since
            except (PortError, TableMissingError) as problem:
                seen = type(problem)
            self.noted(seen)
            self.wrote()
            await asyncio.sleep(max(0.0, LOOK_EACH_S - (time.monotonic() - began)))

    async def close(self) -> None:
        """End looking, and every wait."""
        self.count(plans_too=True)
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.wake(plans_too=True)
