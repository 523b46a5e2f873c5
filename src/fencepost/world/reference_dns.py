"""A DNS provider in memory: the port's meaning, built on :mod:`fencepost.core.zone`. Tests hold every adapter against
it.

A :class:`ReferenceDomain` is what stands at the provider; any number of :class:`ReferenceDns` ports look at it, each
with its own mirror, as enactors do. Nothing is drawn or read from a clock here: whoever makes a port says how time
passes.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable

from msgspec.structs import replace

from fencepost.core.instant import MILLISECOND, Duration
from fencepost.core.names import in_domain, marker_name
from fencepost.core.zone import Batch, Live, transact
from fencepost.ports import Refused

LOOK_EACH: Duration = 50 * MILLISECOND


def refuse_unlawful(domain: str, batch: Batch, *, srv: bool = True) -> None:
    """Raise ``Refused``, naming the endpoint, for a batch that no provider adapter may send.

    It would leave a published family empty, names something outside the domain, a name that can't carry a marker, or an
    endpoint twice (what each change requires is looked at before the first is made, so both would hold). Without
    ``srv`` the adapter keeps no SRV records, and content that has any is refused too: it may come from an older plan.
    """
    seen: set[str] = set()
    for change in batch:
        name = change.name
        where = f"the write of {name} in {domain}"
        if change.empties():
            raise Refused(
                f"{name} would be left without an address in a published family ({change.families})",
                where=where,
                hint=f"to take it away on purpose:  fencepost withdraw {name}",
            )
        if change.content.srv is not None and not srv:
            hint = "region.toml: leave srv out; or roll back to a plan without"
            raise Refused(f"{name} has SRV records, which this provider isn't given yet", where=where, hint=hint)
        if not in_domain(name, domain):
            hint = "name the domain it lies in under [dns] domains"
            raise Refused(f"{name} is not in {domain}", where=where, hint=hint)
        if name in seen:
            hint = "this is a mistake in fencepost; nothing was written"
            raise Refused(f"{name} is named twice in one batch", where=where, hint=hint)
        seen.add(name)
        try:
            marker_name(name)
        except ValueError as error:
            raise Refused(f"{name} {error}", where=where, hint="give the endpoint another name") from error
        if any(not 0 < len(label) < 64 for label in name.split(".")):
            raise Refused(f"{name} has a label that no DNS message can carry", where=where, hint="give it another name")


class ReferenceDomain:
    """What stands in one domain, and how often it changed (its serial)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lives: dict[str, Live] = {}
        self.serial = 1

    def set(self, *lives: Live) -> None:
        """Put endpoints as they are to stand, unfenced: another writer's hand."""
        for live in lives:
            if live == Live(live.name, ttl=live.ttl):
                self.lives.pop(live.name, None)
            else:
                self.lives[live.name] = replace(live, ttl=0 if live.empty else live.ttl)
        self.serial += 1


class ReferenceDns:
    """:class:`fencepost.ports.DnsPort` on a domain in memory; ``sleep`` lets time pass (nanoseconds)."""

    def __init__(self, domain: ReferenceDomain, sleep: Callable[[Duration], Awaitable[object]]) -> None:
        self._domain = domain
        self._sleep = sleep
        self._mirror: dict[str, Live] = {}
        self._serial = 0

    async def read(self) -> Collection[str]:
        """As the port says."""
        old, new = self._mirror, dict(self._domain.lives)
        self._mirror, self._serial = new, self._domain.serial
        return [name for name in old | new if old.get(name) != new.get(name)]

    def live(self, name: str) -> Live:
        """As the port says."""
        return self._mirror.get(name) or Live(name)

    def names(self) -> Iterable[str]:
        """As the port says."""
        return [name for name, live in self._mirror.items() if live.marker is not None]

    async def commit(self, batch: Batch) -> bool:
        """As the port says: :func:`~fencepost.core.zone.transact`, and no address goes beside a CNAME."""
        refuse_unlawful(self._domain.name, batch)
        lives = self._domain.lives
        if any((lives.get(change.name) or Live(change.name)).other for change in batch):
            return False
        replaced = transact(lives, batch)
        if replaced is None:
            return False
        if replaced:
            self._domain.set(*replaced.values())
        return True

    async def wait(self, most: Duration) -> None:
        """As the port says; looks each 50 ms."""
        waited = 0
        while self._domain.serial == self._serial and waited < most:
            step = min(LOOK_EACH, most - waited)
            await self._sleep(step)
            waited += step

    async def close(self) -> None:
        """As the port says; there is nothing to let go of."""
