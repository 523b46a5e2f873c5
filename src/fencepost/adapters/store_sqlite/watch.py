"""Wakes whoever waits for a change: a thread with a connection of its own, which looks when the log was written to.

The kernel tells of that (:mod:`.log_writes`); where it can't, the thread looks each 100 ms. Never more often, however
much is written. Mostly the header of the log's index tells: every commit changes it. Where it can't be read, SQLite
tells a connection whether another one has committed since it last looked (``PRAGMA data_version``, 6 µs). The
connection is not the one that writes, so this process's own writes are noticed too. It has a thread of its own since
even this may block: for
instance while a process is stopped amid recovering the log.

Most commits are signs of life and reports, and most waiters only care for plans and inputs; so after a commit the head
and the input snapshot are looked at too. A file that goes, comes back or is replaced counts as a change, once.
"""

import asyncio
import os
import threading
import time
from pathlib import Path

from fencepost.adapters.store_sqlite import plans
from fencepost.adapters.store_sqlite.database import Database, writes_here
from fencepost.adapters.store_sqlite.log_writes import LogWrites
from fencepost.adapters.store_sqlite.writer import WriteLock
from fencepost.adapters.store_waiting import Changes
from fencepost.ports import PortError

LOOK_EACH_S = 0.1
"""How often it is looked while changes come, or where the kernel doesn't tell of them."""
LOOK_LEAST_S = 1.0
"""How often it is looked while nothing is told of."""
SOON_S = 0.03
"""From the first write of a commit to looking for it: most are done by then, and others that come at once with it."""


class Watch(Changes):
    """What changed in the store, and who waits for it; one event loop's."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._database = Database(path, create=False)
        self._path = path
        self._log = WriteLock(path)
        self._writes = LogWrites(path)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

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
            self.loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._look, name="store-watch", daemon=True)
            self._thread.start()

    async def close(self) -> None:
        """End the thread and every wait."""
        self._stop.set()
        self._writes.stop()
        self.note(plans_too=True)
        if self._thread is None:
            self._writes.close()
        else:  # which closes them itself
            await asyncio.to_thread(self._thread.join, 1.0)

    def _look(self) -> None:
        before: object = None
        planned_before: object = None
        glance: object = None
        while not self._stop.is_set():
            busy, looked = self._busy(), time.monotonic()
            last, glance = glance, self.glance()
            if glance is not None and glance == last:
                self._rest(looked, busy=busy)
                continue
            changed = glance is not None and last is not None  # another header is another commit: no need to ask
            if not changed:
                now = self.seen()
                changed, before = now != before, now
            if changed:
                planned = self.planned()
                told = self.tell(plans_too=planned != planned_before)
                planned_before = planned
                if not told:
                    break
            self._rest(looked, busy=busy)
        self._database.close()
        self._writes.close()

    def _busy(self) -> bool:
        """Whether somebody is writing: what was told of already may become a commit without being told of again."""
        return self._log.taken() or writes_here(self._path)

    def _rest(self, looked: float, *, busy: bool) -> None:
        """Wait until it is to be looked again, having looked at this moment, while somebody was writing if ``busy``."""
        if busy or not self._writes.watching():
            time.sleep(LOOK_EACH_S)
        elif self._writes.wait(LOOK_LEAST_S) and not self._stop.is_set():
            time.sleep(max(SOON_S, looked + LOOK_EACH_S - time.monotonic()))
        self._writes.hear()
