"""Several domains' DNS ports as one, for parts that look at all endpoints together."""

import asyncio
from collections.abc import Iterator

from fencepost.core.instant import Duration
from fencepost.core.names import longest_domain
from fencepost.core.zone import Live
from fencepost.ports import DnsPort


class Domains:
    """The ports by domain; a name belongs to the longest domain that fits it.

    What a domain holds of another that lies in it (glue, or what stood there before the other was made) counts nowhere.
    """

    def __init__(self, ports: dict[str, DnsPort]) -> None:
        self.ports = ports

    async def read(self) -> set[str]:
        """Bring every mirror up to date; the names that changed. One that fails fails the whole read."""
        changed: set[str] = set()
        for domain, port in self.ports.items():
            changed.update(name for name in await port.read() if longest_domain(name, self.ports) == domain)
        return changed

    def of(self, name: str) -> DnsPort:
        """The port of the domain that a name belongs to. Raises ``KeyError`` if none fits."""
        domain = longest_domain(name, self.ports)
        if domain is None:
            raise KeyError(name)
        return self.ports[domain]

    def live(self, name: str) -> Live:
        """What the mirrors hold at a name; nothing where no domain fits."""
        try:
            return self.of(name).live(name)
        except KeyError:
            return Live(name)

    def names(self) -> Iterator[str]:
        """Every name that has a marker."""
        for domain, port in self.ports.items():
            yield from (name for name in port.names() if longest_domain(name, self.ports) == domain)

    async def wait(self, most: Duration) -> None:
        """Return when a domain may have changed."""
        tasks = [asyncio.ensure_future(port.wait(most)) for port in self.ports.values()]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
