"""Keeps the write-ahead log short: one process of a region copies it into the file, from a thread of its own.

All others never do (``wal_autocheckpoint = 0``), so no commit of theirs ever waits for it. While this process is down
the log grows; nothing else suffers.
"""

import logging
import threading
from pathlib import Path

from fencepost.adapters.store_sqlite.database import Database
from fencepost.ports import PortError

log = logging.getLogger(__name__)
LOOK_EACH_S = 0.5
COPY_FROM_BYTES = 4 * 1024 * 1024
"""From this size on the log is copied, waiting for nobody; it starts over at the next commit that meets no reader."""
INSIST_FROM_BYTES = 64 * 1024 * 1024
"""From this size on (readers never left it alone) writers are held up for at most 0.1 s each time, to start it over."""


class Checkpoints:
    """The thread that does it."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_name(path.name + "-wal")
        self._database = Database(path, create=False)
        self._stop = threading.Event()
        self._done = 0
        self._thread = threading.Thread(target=self._run, name="store-checkpoints", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; blocks for as long as a checkpoint takes."""
        self._stop.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        said = ""
        while not self._stop.wait(LOOK_EACH_S):
            try:
                self._look()
                said = ""
            except PortError as problem:
                if str(problem) != said:
                    said = str(problem)
                    log.warning("the store's log can't be copied into its file: %s", problem)
        self._database.close()

    def _look(self) -> None:
        self._database.glance()
        try:
            found = self._log.stat()
        except OSError:
            return
        # The log keeps its size when it starts over, so its time is looked at too: nothing new, nothing to do.
        if found.st_size < COPY_FROM_BYTES or found.st_mtime_ns == self._done:
            return
        self._database.checkpoint("TRUNCATE" if found.st_size >= INSIST_FROM_BYTES else "PASSIVE")
        self._done = found.st_mtime_ns
