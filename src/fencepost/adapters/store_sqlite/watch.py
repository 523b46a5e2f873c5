"""Wakes whoever waits for a change: a thread with a connection of its own that looks each 50 ms.

SQLite tells a connection, for 6 µs, whether another one has committed since it last looked (``PRAGMA
data_version``). The connection is not the one that writes, so this process's own writes are noticed too. It has a
thread of its own since even this may block: for instance while a process is stopped amid recovering the log.

A file that goes, comes back or is replaced counts as a change, once.
"""

import asyncio
import threading
from pathlib import Path

from fencepost.adapters.store_sqlite.database import Database
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import PortError

LOOK_EACH_S = 0.05


class Watch:
    """Waiting for the store to change; any number of tasks of one event loop may wait."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, create=False)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changes = 0
        self._told = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def seen(self) -> object:
        """What the store looks like now: differs after every change."""
        try:
            version = self._database.data_version()
        except PortError as problem:
            return type(problem)
        return (self._database.file, version)

    async def wait(self, most: Duration) -> None:
        """Return when something has changed since the last call returned, at the latest after ``most`` nanoseconds."""
        self._start()
        if self._changes == self._told:
            changed = asyncio.get_running_loop().create_future()
            self._waiting.add(changed)
            try:
                await asyncio.wait((changed,), timeout=most / SECOND)
            finally:
                self._waiting.discard(changed)
                changed.cancel()
        self._told = self._changes

    async def close(self) -> None:
        """End the thread and every wait."""
        self._stop.set()
        self._wake()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 1.0)

    def _start(self) -> None:
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._look, name="store-watch", daemon=True)
            self._thread.start()

    def _look(self) -> None:
        before: object = None
        while not self._stop.is_set():
            now = self.seen()
            if now != before:
                before = now
                if not self._tell():
                    break
            self._stop.wait(LOOK_EACH_S)
        self._database.close()

    def _tell(self) -> bool:
        """Wake the loop's waiters; False if the loop is gone."""
        assert self._loop is not None  # set before the thread starts  # noqa: S101
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            return False
        return True

    def _wake(self) -> None:
        self._changes += 1
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)
