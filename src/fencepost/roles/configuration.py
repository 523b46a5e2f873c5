"""The loaded configuration as a row of the store: what every role follows, and what plans are made from.

A file that is merely saved changes nothing; loading it (a start, ``fencepost reload``, SIGHUP) writes the row. Revisions
rise, so that a target's absence counts as its owner's act only in a newer file than the one it was listed in.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import msgspec

from fencepost.core.instant import SECOND, Instant
from fencepost.ports import PortError, StorePort
from fencepost.settings import Region

log = logging.getLogger(__name__)


class Loaded(msgspec.Struct, frozen=True):
    """A region as loaded: its revision, when (nanoseconds since 1970), and whether its owner said yes to leaving targets."""

    region: Region
    revision: int
    loaded_at: Instant
    confirmed: bool = False


def encode(loaded: Loaded) -> bytes:
    """As it stands in the store."""
    return msgspec.json.encode(loaded)


def decode(body: bytes) -> Loaded | None:
    """What :func:`encode` wrote; None for b"" (nothing was loaded yet). Raises ``msgspec.ValidationError``."""
    return msgspec.json.decode(body, type=Loaded) if body else None


async def put(store: StorePort, region: Region, *, confirmed: bool = False) -> Loaded:
    """Make ``region`` the running configuration, unless it is already."""
    running = decode((await store.inputs()).config)
    if running is not None and running.region == region:
        return running
    loaded = Loaded(region, (running.revision if running else 0) + 1, time.time_ns(), confirmed)
    await store.put_config(encode(loaded))
    return loaded


async def keep(store: StorePort, region: Region) -> None:
    """Load ``region`` once, and again whenever the store has lost its configuration; until cancelled.

    What is put back after a loss is the newest configuration seen here, which a reload may have changed since the start.
    """
    latest: Loaded | None = None
    while True:
        try:
            if latest is None:
                latest = await put(store, region)
            running = decode((await store.inputs()).config)
            if running is None:
                log.warning("the store holds no configuration; the last known is put back")
                await store.put_config(encode(latest))
            else:
                latest = running
        except PortError as error:
            log.debug("configuration: %s", error)
            await asyncio.sleep(0.2)
            continue
        await store.wait(SECOND)


async def follow(store: StorePort, changed: Callable[[Loaded], Awaitable[None]]) -> None:
    """Call ``changed`` whenever another configuration is running; until cancelled. While the store is away, the last stands."""
    body = b""
    while True:
        try:
            config = (await store.inputs()).config
            if config and config != body:
                loaded = decode(config)
                if loaded is not None:
                    await changed(loaded)
                body = config
        except PortError as error:
            log.debug("configuration: %s", error)
            await asyncio.sleep(0.2)
            continue
        await store.wait(SECOND)
