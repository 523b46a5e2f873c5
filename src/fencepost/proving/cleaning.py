"""Taking the scratch names away again: wholly, marker included, and only what the races wrote.

A tombstone, which is how an endpoint is withdrawn, would stay for ever; so ports have ``remove``, as exact as a commit.
A write that was under way when a run was interrupted may still arrive: what was empty is looked at once more.
"""

import asyncio

from fencepost.core.fence import Marker
from fencepost.core.zone import Live
from fencepost.ports import DnsPort, PortError, Removing
from fencepost.proving.scene import NETWORK, OWNER, Within, refresh

TRIES = 5
SETTLE_S = 1.0
"""How long a write that was under way may take to arrive."""


def ours(live: Live) -> bool:
    """Whether what stands at a scratch name can only be what a race wrote."""
    theirs = live.marker is not None and not (isinstance(live.marker, Marker) and live.marker.owner == OWNER)
    strange = any(not address.startswith(NETWORK) for address in live.a) or live.aaaa or live.other
    return not theirs and not strange


async def clean(port: DnsPort, names: tuple[str, ...], within: Within, *, settle: bool = False) -> tuple[str, ...]:
    """Remove what stands at the names; what remains, a line each: the name, what stands there, and why it stays.

    ``settle`` waits for writes that may still be under way. Raises nothing: trouble is a reason to give.
    """
    if settle:
        await asyncio.sleep(SETTLE_S)
    why = ""
    for attempt in range(TRIES):
        if attempt:
            await asyncio.sleep(SETTLE_S * attempt / TRIES)
        try:
            await refresh(port, names, within)
            left = [live for live in map(port.live, names) if live != Live(live.name)]
            if not isinstance(port, Removing):
                return tuple(
                    f"{live.name}: {_shown(live)} (this provider's adapter can't remove a name)" for live in left
                )
            removable = [live for live in left if ours(live)]
            if not removable:
                return tuple(f"{live.name}: {_shown(live)} (not what a race wrote)" for live in left)
            for live in removable:
                await within(port.remove(live))
            why = "it changed each time before it could be removed"
        except PortError as error:
            why = str(error)
    left = [live for live in map(port.live, names) if live != Live(live.name)]
    known = tuple(f"{live.name}: {_shown(live)} ({why})" for live in left)
    return known or (f"{' and '.join(names)}: perhaps, they couldn't be read ({why})",)


def _shown(live: Live) -> str:
    kinds = [*live.other, *("A " + address for address in live.a), *("AAAA " + address for address in live.aaaa)]
    return ", ".join([*kinds, *([f"TXT at _fencepost.{live.name}"] if live.marker is not None else [])])
