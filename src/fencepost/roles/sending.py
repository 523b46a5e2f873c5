"""An enactor's transactions on their way: several at once where the port can, else one after the other."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

from fencepost.core.store import Head
from fencepost.core.zone import Batch
from fencepost.ports import DnsPort, Pipelining, PortError, StorePort

SENDING_S = 10.0
"""Transactions are sent for so long; DNS is to be looked at now and then."""
LOOK_S = 0.25
"""How often it is looked whether the store has another plan meanwhile."""


async def sent(dns: DnsPort, parts: Sequence[Batch], store: StorePort, head: Head | None) -> Sequence[bool | PortError]:
    """What became of each transaction: as of ``DnsPort.commit``, told not raised.

    Of the first ones only, if they take long or the store has another head meanwhile; the others aren't sent.
    """
    until, news = time.monotonic() + SENDING_S, asyncio.create_task(another_plan(store, head))

    def go_on() -> bool:
        return time.monotonic() < until and not news.done()

    try:
        if len(parts) > 1 and isinstance(dns, Pipelining):
            return await dns.commit_each(parts, go_on)
        found: list[bool | PortError] = []
        for part in parts:
            if found and not go_on():
                break
            try:
                found.append(await dns.commit(part))
            except PortError as error:
                found.append(error)
        return found
    finally:
        news.cancel()  # not waited for: a store that hangs must hold up no healing


async def another_plan(store: StorePort, head: Head | None) -> None:
    """Return once the store has another head than this."""
    while True:
        await asyncio.sleep(LOOK_S)
        with contextlib.suppress(PortError):
            if await store.head() != head:
                return
