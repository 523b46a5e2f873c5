"""Reading on while UPDATEs are under way.

A writer that reads back only after its last answer leaves the server without work of its own meanwhile; and several
writers come to do so at the same time, for a server with many UPDATEs before it answers all of them late. So of many
UPDATEs what the first ones wrote is read, over a connection of its own, while the others are answered.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fencepost.adapters.dns_session import NotOffered
from fencepost.ports import PortError

T = TypeVar("T")

EACH = 4
"""So many answers are worth a reading. Reading seldom costs more in the end than reading often: what is left to be
read then is read when nothing else is left to do."""


async def read_along(
    send: Callable[[Callable[[], None]], Awaitable[T]], count: int, read: Callable[[], Awaitable[object]]
) -> T:
    """What ``send`` gives, which calls what it is given at each of ``count`` answers; ``read`` is called meanwhile.

    Never for the last few answers: the reading back that comes after them has to be. A reading that fails is the last,
    and isn't told: that one fails too, or makes up for it.
    """
    heard, enough = 0, asyncio.Event()

    def hear() -> None:
        nonlocal heard
        heard += 1
        if heard % EACH == 0:
            enough.set()

    async def along() -> None:
        with contextlib.suppress(PortError, NotOffered):
            while await enough.wait() and heard <= count - EACH // 2:
                enough.clear()
                await read()

    reading = asyncio.create_task(along())
    try:
        answer = await send(hear)
        heard = count
        enough.set()
        await reading
        return answer
    finally:
        if reading.cancel():
            await asyncio.gather(reading, return_exceptions=True)
