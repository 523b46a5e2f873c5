"""What the DNS tests are played on: a stage, and endpoints and changes made in a line.

A stage is a provider with the domain ``example.test``, ports on it, and a hand: another writer that changes records
without any fence.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.record_set import Content, content
from fencepost.core.zone import Change, Live
from fencepost.ports import DnsPort

T = TypeVar("T")
DOMAIN = "example.test"
OWNER = "eu-1"


class Stage(Protocol):
    """A provider under test."""

    def port(self) -> DnsPort:
        """A new port with an empty mirror; closed by :meth:`run`."""
        ...

    async def hand(self, *lives: Live) -> None:
        """Another writer makes these endpoints stand exactly so: marker, addresses, TTL, CNAME."""
        ...

    def run(self, act: Callable[[], Awaitable[T]]) -> T:
        """Run one test's coroutine in a fresh event loop, then close its ports."""
        ...


def marker(number: int, value: Content, *, owner: str = OWNER, hold: Hold | None = None, epoch: int = 0) -> Marker:
    """A well-formed marker beside ``value``."""
    return Marker.of(owner, "ab12", Generation(epoch, number), value, hold, 1)


def change(live: Live, number: int, *addresses: str, ttl: int = 30) -> Change:
    """The change that puts these addresses in place of what was seen."""
    value = content(addresses, ttl)
    families = ("4" if value.a else "") + ("6" if value.aaaa else "")
    return Change(live.name, live, marker(number, value), value, families)


def standing(name: str, number: int, *addresses: str, ttl: int = 30) -> Live:
    """An endpoint of ours as it stands after such a change."""
    value = content(addresses, ttl)
    return Live(name, marker(number, value), value.a, value.aaaa, ttl)
