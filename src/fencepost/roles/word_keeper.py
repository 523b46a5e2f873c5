"""An enactor's memory of overrides (drain, keep, pause): it reads them whenever the store's inputs changed, keeps them
in its local file, and puts them back into a store that stands where another stood.

One task an enactor, whatever the number of its domains. It sleeps on the store as its deciders do, so a change costs
one small read, and silence next to nothing. What is kept doesn't say who placed a word and why: that is the store's.

Which word stands is decided in the store, in one transaction (:class:`fencepost.ports.PutBack`): three enactors come at
once, or one of them days later, and a person may have placed or resumed something there in between.

Awkward truth: what was placed or resumed in the moment before the loss, before any enactor looked (a tenth of a
second), is lost. An enactor that was stopped through the loss of two stores in a row remembers the first as of when it
was stopped; of what it knows, an id that the newest store never had is put back, even if it was resumed in the second.
A copy of the store that is put back keeps its identity: it is taken at its word.
"""

import logging
import time

from msgspec.structs import replace

from fencepost.core.instant import MINUTE, SECOND, Duration
from fencepost.ports import HistoryRow, Overrides, PortError, StorePort
from fencepost.roles.history import tell
from fencepost.roles.local_file import LocalFile
from fencepost.roles.loop import Condition
from fencepost.roles.overrides import PUT_BACK, KeptWords, StoredOverride, kept, outlived, readable

log = logging.getLogger(__name__)

LOOK_EACH: Duration = MINUTE
"""So often the local file is looked after where nothing changes: it may have been damaged and begun anew."""
RETRY: Duration = SECOND


class WordKeeper:
    """The memory of one enactor, ``name``, of a region of ``owner``. A file of another owner's is none."""

    def __init__(self, name: str, owner: str, store: StorePort, file: LocalFile) -> None:
        self.name = name
        self.owner = owner
        self.store = store
        self.file = file
        self.found: Overrides | None = None
        known = file.recall_words()
        self.kept: KeptWords | None = known if known is not None and known.owner == owner else None

    async def run(self, condition: Condition) -> None:
        """Keep and put back, until cancelled. While the store is away what is kept stays."""
        waiter = self.store.waiter()
        while True:
            wait = LOOK_EACH
            try:
                await self.look()
                condition.now("overrides", None)
            except PortError as error:
                condition.now("overrides", error)
                log.debug("overrides: %s", error)
                wait = RETRY
            await waiter.wait(wait)

    async def look(self) -> None:
        """Read what stands, after putting back what a lost store held, and keep it. Raises ``PortError``."""
        found = await self.store.overrides(self.found)
        while self.kept is not None and self.kept.store != found.store:
            if await self.put_back(self.kept, found):
                self.kept = replace(self.kept, store=found.store, snapshot=found.snapshot)
            found = await self.store.overrides(found)
        if found is not self.found or self.kept is None:
            self.found, self.kept = found, kept(self.owner, found)
        there = self.file.recall_words()
        if there is None or replace(there, snapshot=self.kept.snapshot) != self.kept:
            self.file.keep_words(self.kept)

    async def put_back(self, lost: KeptWords, found: Overrides) -> bool:
        """Have the new store hold what the lost one did; False if it has changed since it was read."""
        back = outlived(lost, found, self.name, time.time_ns())
        changed = await self.store.put_back(back)
        if changed is None:
            return False
        log.warning("store %s isn't %s; %d overrides put back or ended", back.into[:4], back.lost[:4], len(changed))
        words = {word.id: word for word in (*readable(found.words)[0], *lost.words)}
        lines = [self.line(words[name], back=name in back.words) for name in changed if name in words]
        once = {(line.on, line.text): line for line in lines}  # one word has a slot in each pool of its address
        await tell(self.store, list(once.values()))
        return True

    def line(self, word: StoredOverride, *, back: bool) -> HistoryRow:
        """A line of history about a word that was put back, or ended since a newer memory says so."""
        how = PUT_BACK if back else "ended: it had been resumed before the store was lost"
        return HistoryRow("operator", word.on, self.name, f"{word.what} {how}", time.time_ns())
