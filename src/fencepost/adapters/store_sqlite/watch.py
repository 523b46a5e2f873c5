"""Wakes whoever waits for a change: a thread with a connection of its own that looks each 80 ms.

SQLite tells a connection, for 6 µs, whether another one has committed since it last looked (``PRAGMA
data_version``). The connection is not the one that writes, so this process's own writes are noticed too. It has a
thread of its own since even this may block: for instance while a process is stopped amid recovering the log.

Most commits are signs of life and reports, and most waiters only care for plans and inputs; so after a commit the head
and the input snapshot are looked at too. A file that goes, comes back or is replaced counts as a change, once.
"""

import asyncio
import os
import threading
import time
from pathlib import Path

from fencepost.adapters.store_sqlite import plans
from fencepost.adapters.store_sqlite.database import Database
from fencepost.adapters.store_sqlite.writer import WriteLock
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import PortError

LOOK_EACH_S = 0.08


class Watch:
    """What changed in the store, and who waits for it; one event loop's."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, create=False)
        self._path = path
        self._log = WriteLock(path)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.changes = 0
        self.plan_changes = 0
        self.waiting: set[asyncio.Future[None]] = set()
        self.waiting_for_plans: set[asyncio.Future[None]] = set()

    def glance(self) -> object:
        """A look at a fraction of a query's cost: while it stays the same, nothing was committed. None: can't tell.

        Every commit changes the header of the log's index (sqlite.org/walformat.html, section 2.1).
        """
        try:
            file = os.stat(self._path)
        except OSError:
            return None
        header = self._log.header()
        return (file.st_dev, file.st_ino, header) if header is not None else None

    def seen(self) -> object:
        """What the store looks like now: differs after every change."""
        try:
            version = self._database.data_version()
        except PortError as problem:
            return type(problem)
        return (self._database.file, version)

    def planned(self) -> object:
        """What plans are made of and from: the head and the input snapshot."""
        try:
            return (self._database.file, self._database.read(plans.head_and_snapshot))
        except PortError as problem:
            return type(problem)

    def wrote_inputs(self) -> None:
        """This process has just written what plans are made from: whoever waits for that here need not wait for a look.

        Called on the loop. The next look finds the same change and wakes them once more, which costs a pass.
        """
        self.plan_changes += 1
        for changed in self.waiting_for_plans:
            if not changed.done():
                changed.set_result(None)

    def start(self) -> None:
        """Begin to look, if that hasn't begun."""
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._look, name="store-watch", daemon=True)
            self._thread.start()

    async def close(self) -> None:
        """End the thread and every wait."""
        self._stop.set()
        self._count(plans_too=True)
        self._wake(plans_too=True)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 1.0)

    def _look(self) -> None:
        before: object = None
        planned_before: object = None
        glance: object = None
        while not self._stop.is_set():
            last, glance = glance, self.glance()
            if glance is not None and glance == last:
                time.sleep(LOOK_EACH_S)
                continue
            now = self.seen()
            if now != before:
                planned = self.planned()
                told = self._tell(plans_too=planned != planned_before)
                before, planned_before = now, planned
                if not told:
                    break
            time.sleep(LOOK_EACH_S)  # half the cost of waiting for the event, which at most ends 80 ms sooner
        self._database.close()

    def _tell(self, *, plans_too: bool) -> bool:
        """Count the change and wake the loop's waiters, if there are any; False if the loop is gone.

        Counted first and waiters looked at second, while a waiter stands there first and looks at the count second: one
        of the two sees the other.
        """
        assert self._loop is not None  # set before the thread starts  # noqa: S101
        self._count(plans_too=plans_too)
        if not self.waiting and not (plans_too and self.waiting_for_plans):
            return True
        try:
            self._loop.call_soon_threadsafe(lambda: self._wake(plans_too=plans_too))
        except RuntimeError:
            return False
        return True

    def _count(self, *, plans_too: bool) -> None:
        self.changes += 1
        self.plan_changes += plans_too

    def _wake(self, *, plans_too: bool) -> None:
        for changed in self.waiting | (self.waiting_for_plans if plans_too else set()):
            if not changed.done():
                changed.set_result(None)


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
