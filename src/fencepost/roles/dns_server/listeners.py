"""Who wants to be told of changes: the roles say so in their signs of life, and the server's NOTIFY list follows."""

import asyncio
import logging
from typing import Protocol

from fencepost.ports import Misconfigured, PortError, StorePort

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""A role that isn't told yet asks for the serial by itself meanwhile, each second."""


class Notifier(Protocol):
    """What is told of the list."""

    def set_notify(self, targets: tuple[str, ...]) -> None:
        """Replace the list of ``host:port``."""


async def tell_whom_to_notify(store: StorePort, server: Notifier) -> None:
    """Keep the list as the store has it, until cancelled. While the store is away the last known list stands."""
    known: tuple[str, ...] = ()
    while True:
        try:
            told = tuple(sorted({each for beat in await store.beats() for each in beat.notify.split()}))
        except PortError as error:
            log.debug("NOTIFY list not read: %s", error)
            told = known
        if told != known:
            known = told
            try:
                server.set_notify(known)
            except Misconfigured as error:
                log.warning("a role asked for NOTIFY in vain: %s", error)
        await asyncio.sleep(LOOK_S)
