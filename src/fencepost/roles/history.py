"""Lines of history: what a role did or found, for people. Nothing decides by them: a store that is away loses them."""

import logging
from collections.abc import Sequence

from fencepost.ports import HistoryRow, PortError, StorePort

log = logging.getLogger(__name__)


async def tell(store: StorePort, rows: Sequence[HistoryRow]) -> None:
    """Log the lines, and write them if the store takes them now."""
    for row in rows:
        log.info("%s %s", row.on, row.text)
    await note(store, rows)


async def note(store: StorePort, rows: Sequence[HistoryRow]) -> None:
    """Write lines, none or more, if the store takes them now."""
    if not rows:
        return
    try:
        await store.note(rows)
    except PortError as error:
        log.debug("history not stored: %s", error)
