"""The janitor's hands: old rows, with what is live as read before they were listed."""

import asyncio

from fencepost.core.effects import DeleteRow, Effect, ReadDns, ReadSpent, Wake
from fencepost.core.events import Deleted, DnsRead, Event, Spent, SpentRead, Woke
from fencepost.core.fence import Generation, Marker
from fencepost.core.instant import SECOND
from fencepost.core.traffic.janitor import Janitor, JanitorSettings
from fencepost.ports import DnsPort, StorePort
from fencepost.roles.domains import Domains
from fencepost.roles.loop import Condition, Drill, drive

AT_ONCE = 10_000
"""So many old rows are looked at in one pass, the oldest first."""
FIRST_AFTER_S = 2.0
"""Nothing is in a hurry to be cleaned up, and at a region's start DNS and the store may not be up yet."""


class JanitorHands:
    """Carries out the janitor's effects."""

    def __init__(self, settings: JanitorSettings, owner: str, dns: Domains, store: StorePort) -> None:
        self.settings = settings
        self.owner = owner
        self.dns = dns
        self.store = store

    async def perform(self, effect: Effect) -> Event | None:
        """See :class:`~fencepost.roles.loop.Performer`."""
        match effect:
            case Wake(after=after):
                await asyncio.sleep(after / SECOND)
                return Woke()
            case ReadDns():
                await self.dns.read()
                return DnsRead()
            case ReadSpent():
                listed = await self.store.spent_rows(AT_ONCE, self.settings.keep_generations)
                return SpentRead(tuple(Spent(row, place, newest, self.live(row.name)) for row, place, newest in listed))
            case DeleteRow(name=name, generation=generation, nonce=nonce):
                await self.store.delete_row(name, generation, nonce)
                return Deleted()
            case _:
                raise TypeError(f"a janitor doesn't ask for {type(effect).__name__}")

    def live(self, name: str) -> Generation | None:
        """The generation that a marker of ours said was live when DNS was read."""
        marker = self.dns.live(name).marker
        return marker.generation if isinstance(marker, Marker) and marker.owner == self.owner else None


async def run_janitor(
    settings: JanitorSettings,
    owner: str,
    domains: dict[str, DnsPort],
    store: StorePort,
    condition: Condition,
    drill: Drill | None,
) -> None:
    """The janitor, until cancelled."""
    await asyncio.sleep(FIRST_AFTER_S)
    await drive(Janitor(settings), JanitorHands(settings, owner, Domains(domains), store), condition, drill)
