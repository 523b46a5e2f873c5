"""Lines of history: what a role did or found, for people. Nothing decides by them: a store that is away loses them."""

import logging
from collections.abc import Sequence

from fencepost.core.instant import Instant
from fencepost.ports import HistoryRow, PortError, StorePort

log = logging.getLogger(__name__)


async def tell(store: StorePort, rows: Sequence[HistoryRow]) -> None:
    """Log the lines, and write them if the store takes them now.

    They are one entry of the log: a batch has some fifty, and an entry costs more than all else about a line.
    """
    if rows:
        log.info("%s", "\n".join([f"{row.on} {row.text}" for row in rows]))
    await note(store, rows)


async def note(store: StorePort, rows: Sequence[HistoryRow]) -> None:
    """Write lines, none or more, if the store takes them now."""
    if not rows:
        return
    try:
        await store.note(rows)
    except PortError as error:
        log.debug("history not stored: %s", error)


class Following:
    """The history as it comes, over the loss of its store too.

    Lines are counted by their store. One made anew counts from 1, and so does a copy put back from where it was made:
    what was seen last says nothing there. ``after`` is the last line that was seen before, ``since`` a time.
    Where the newest line of all is still the same one, time and text included, nothing came.
    """

    def __init__(self, store: StorePort, since: Instant, after: int = 0, last: Instant = 0) -> None:
        self.store = store
        self.since = since
        self.seen = after
        self.last = last
        self.identity = ""
        self._newest: Sequence[HistoryRow] = ()

    async def new(self, most: int) -> Sequence[HistoryRow]:
        """The lines that came since the last call, oldest first; at most the newest ``most``. Raises ``PortError``."""
        newest = tuple(await self.store.history(most=1))
        if newest and newest == self._newest:
            return ()  # so it is at most calls, and one question is enough
        identity = (await self.store.head()).store
        if self.identity not in ("", identity):
            self.seen = 0
        self.identity = identity
        rows = await self.store.history(after=self.seen, since=self.since, most=most)
        if not rows and await self._fell_back():
            self.seen, self.since = 0, max(self.since, self.last + 1)
            rows = await self.store.history(since=self.since, most=most)
        self.seen = max([self.seen, *(row.id for row in rows)])
        self.last = max([self.last, *(row.at for row in rows)])
        self._newest = newest
        return rows

    async def _fell_back(self) -> bool:
        """Whether the store's newest line is older than the last one seen: this is a copy of it."""
        newest = await self.store.history(most=1) if self.seen else ()
        return self.seen > 0 and (not newest or newest[-1].id < self.seen)
