"""What the races are played on: two scratch names, four writers that know nothing of each other, and a reader.

Addresses are of 192.0.2.0/24, which is nobody's (RFC 5737); the markers' owner is nobody's region, so that no enactor
takes the names for its own.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from fencepost.core.fence import Generation, Marker
from fencepost.core.names import marker_name
from fencepost.core.record_set import content
from fencepost.core.zone import Change, Live
from fencepost.ports import DnsPort, LookingUp, Refused, Telling, Unavailable

T = TypeVar("T")
OWNER = "fencepost-prove"
"""The owner that stands in the scratch names' markers."""
LABEL = "fencepost-prove-"
"""A scratch name's first label begins so: nobody else's does."""
NETWORK = "192.0.2."
TTL_S = 30
WRITERS = 4
WRITES = 22
"""So many requests to write are made at most, removal included; half of them are to be refused."""


class Within(Protocol):
    """Waits for a call as long as its user has patience. Raises ``Unavailable`` then."""

    async def __call__(self, call: Awaitable[T], /) -> T:
        """The call's answer."""
        ...


def scratch_names(name: str) -> tuple[str, str]:
    """The two names, of the one given (normalised). Raises ``ValueError``, whose text is the reason."""
    first, _, rest = name.partition(".")
    if not first.startswith(LABEL) or len(first) == len(LABEL) or not rest:
        raise ValueError(f'must begin with "{LABEL}", so that it is nobody else\'s')
    if len(first) > 60:
        raise ValueError("has a first label over 60 characters, and a second scratch name is made from it")
    second = f"{first}-b.{rest}"
    marker_name(second)
    return name, second


async def refresh(port: DnsPort, names: tuple[str, ...], within: Within) -> None:
    """Bring a port's mirror up to date at these names; one whose reads come round in time is asked for them at once."""
    if isinstance(port, LookingUp):
        await within(port.look_up(names))
    else:
        await within(port.read())


class Scene:
    """Two scratch names and who writes at them. ``open_port`` gives a new port with an empty mirror each time."""

    def __init__(self, open_port: Callable[[], DnsPort], names: tuple[str, str], within: Within) -> None:
        self.name, self.second = names
        self.writers = [open_port() for _ in range(WRITERS)]
        self.reader = open_port()
        self._within = within
        self._number = 0

    async def close(self) -> None:
        """Let go of the ports."""
        for port in (*self.writers, self.reader):
            await port.close()

    async def read(self, *ports: DnsPort) -> None:
        """Bring these ports' mirrors up to date; without any, all writers'."""
        for port in ports or self.writers:
            await refresh(port, (self.name, self.second), self._within)

    async def standing(self) -> tuple[Live, Live]:
        """What stands at the two names, as a reader of its own sees it."""
        await self.read(self.reader)
        return self.reader.live(self.name), self.reader.live(self.second)

    async def refuse_used(self) -> None:
        """Raise ``Refused`` if anything stands at one of the names."""
        for live in await self.standing():
            if live != Live(live.name):
                hint = "take another --name, or none; if an earlier run left it:  fencepost prove --clean --name …"
                raise Refused("records stand at this name already", where=live.name, hint=hint)

    def change(self, port: DnsPort, *last: int, name: str = "") -> Change:
        """The next generation with the addresses 192.0.2.``last``, made from what a port's mirror holds."""
        self._number += 1
        value = content([f"{NETWORK}{number}" for number in last], TTL_S)
        marker = Marker.of(OWNER, "0000", Generation(0, self._number), value, None, 1)
        return Change(name or self.name, port.live(name or self.name), marker, value, "4")

    async def commit(self, port: DnsPort, *batch: Change) -> bool:
        """A commit's answer."""
        return await self._within(port.commit(batch))

    async def must(self, port: DnsPort, change: Change) -> None:
        """A write that nothing stands against. Raises ``Unavailable`` if it is refused all the same."""
        if not await self.commit(port, change):
            raise Unavailable(
                f"a write that nothing stood against was refused ({said_by(port)})",
                where=change.name,
                hint="somebody else writes at this name: take another --name",
            )


def said_by(port: DnsPort) -> str:
    """A provider's own words for its last refusal, if its port keeps them."""
    told = port.last_refusal if isinstance(port, Telling) else ""
    return told or "refused, in words that this adapter doesn't keep"
