"""Asking a host over a connection: for what is too long for a datagram, or must not get lost on the way unnoticed."""

import asyncio
import contextlib
import secrets
from collections.abc import Collection

from fencepost.core.capacity.messages import FromHost, ToHost
from fencepost.ports import Refused, Unavailable
from fencepost.roles.fleet.wire import FRAME_BYTES, TooLong, Wire

Place = tuple[str, int]
"""An agent's address and port."""
LISTENS_S = 1.0
"""So long it is waited for a connection that says that somebody listens."""


async def ask(wire: Wire, place: Place, message: ToHost, most_s: float) -> FromHost:
    """One question, one answer, over a connection of its own.

    Raises ``Unavailable`` if no answer comes within ``most_s`` seconds (what was asked may have been done), and
    ``Refused`` for a message that is too long for any connection.
    """
    where = f"host {message.host} at {place[0]}:{place[1]}"
    request = secrets.randbits(64)
    try:
        framed = wire.pack("to host", request, message, FRAME_BYTES)
    except TooLong as error:
        raise Refused(str(error), where=where, hint="place fewer instances on it") from None
    try:
        async with asyncio.timeout(most_s):
            reader, writer = await asyncio.open_connection(*place)
            try:
                writer.write(len(framed).to_bytes(4, "big") + framed)
                await writer.drain()
                length = int.from_bytes(await reader.readexactly(4), "big")
                if length > FRAME_BYTES:
                    raise Unavailable(f"answers with {length} bytes, more than any answer has", where=where)
                found = wire.open_from_host(await reader.readexactly(length))
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except TimeoutError:
        raise Unavailable(f"no answer in {most_s:g} s", where=where) from None
    except (OSError, asyncio.IncompleteReadError) as error:
        what = "closed the connection" if isinstance(error, asyncio.IncompleteReadError) else str(error)
        raise Unavailable(what, where=where, hint="is its agent running, and has it the fleet's key?") from error
    if found is None:
        raise Unavailable("answered with something that isn't sealed with our key", where=where)
    if found[0] != request or found[1].host != message.host:
        raise Unavailable("answered something else than was asked", where=where)
    return found[1]


async def listening(places: Collection[str]) -> frozenset[str]:
    """At which of these ("address:port") somebody takes connections; a place that doesn't say within a second counts
    for empty."""

    async def listens(place: str) -> bool:
        address, _, port = place.rpartition(":")
        try:
            async with asyncio.timeout(LISTENS_S):
                _, writer = await asyncio.open_connection(address.strip("[]"), int(port))
        except (OSError, ValueError, OverflowError):
            return False
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return True

    found = await asyncio.gather(*map(listens, places))
    return frozenset(place for place, there in zip(places, found, strict=True) if there)
