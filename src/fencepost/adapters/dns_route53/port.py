"""The DNS port for Amazon Route 53.

Reading keeps a mirror of the whole hosted zone. The first read lists it page by page. After that the zone is listed
anew without end: a small one whole at each read that is due, a large one a page at a time, as fast as half the budget
of requests allows. Names that a refused or unanswered write was about are listed at once. What other roles of the
region on this host listed and wrote is taken in before anything is asked for (:mod:`.shared`).

Writing is one batch of exact DELETEs and CREATEs (:mod:`.batches`), sent once. The mirror has it as soon as Route 53
says that it took it; that it isn't INSYNC on every name server yet makes no difference to the fence.

The awkward truth: Route 53 tells nobody of a change, so another's hand is seen only when its page comes round. That
takes ``look_each`` in a zone of a page, and minutes in one of 60,000 record sets. And a set that we don't write can't
be required to be absent: see :mod:`.batches`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable

from fencepost.adapters.dns_route53.batches import (
    Exchange,
    changes_of,
    exchange_of,
    refuse_too_big,
    removal_of,
    told,
)
from fencepost.adapters.dns_route53.client import Client, InvalidBatch, Outrun
from fencepost.adapters.dns_route53.errors import Asked, Verdict, reasons, refused
from fencepost.adapters.dns_route53.host_cache import Shared, now
from fencepost.adapters.dns_route53.listing import Listing, pages_of, scan_seconds
from fencepost.adapters.dns_route53.mirror import Mirror, Page, Sets
from fencepost.adapters.dns_route53.names import endpoint_of, marker_owner_of, owner_of
from fencepost.adapters.dns_route53.pace import Pace
from fencepost.adapters.dns_route53.settings import Route53Settings
from fencepost.adapters.dns_route53.zones import HostedZone, find_zone
from fencepost.core.instant import MILLISECOND, SECOND, Duration
from fencepost.core.zone import Batch, Live
from fencepost.ports import Misconfigured, Refused
from fencepost.world.reference_dns import refuse_unlawful

log = logging.getLogger(__name__)

WHOLE_PAGES_MOST = 4
"""A zone of so many pages is listed whole at each look; a larger one page by page."""
FOLLOWED_MOST = 16
"""So many further pages are listed when those around a refused write are full of news: another has been here."""
FRESH: Duration = 60 * SECOND
"""The first read takes pages that another role listed so recently."""
LEASE: Duration = 30 * SECOND
"""So long the rolling scan is left to a role that died over it."""
ROLL_WAIT_MOST: Duration = 100 * MILLISECOND
STUCK = 4
"""A write refused so often for something changed, while the listing shows just what it requires, won't ever apply."""
POLL_S = 0.25


class Route53Dns:
    """A :class:`~fencepost.ports.DnsPort` over Route 53's API."""

    def __init__(
        self, settings: Route53Settings, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Opens nothing on the network yet. ``sleep`` lets so many seconds pass."""
        self._settings = settings
        self._shared = Shared(settings.folder / "route53.db" if settings.folder is not None else None)
        self._pace = Pace(self._shared, settings.requests, sleep)
        self._client = Client(settings, self._pace, sleep)
        self._listing = Listing(self._client, self._shared, settings.domain)
        self._mirror = Mirror(settings.domain, settings.owner, settings.weighted)
        self._zone: HostedZone | None = None
        self._listed = False
        self._seq = 0
        self._pages_taken = 0
        self._gathered: list[Page] = []
        self._doubted: dict[str, None] = {}
        self._refusals: dict[str, tuple[Sets, int]] = {}
        self._busy = asyncio.Lock()
        self.last_refusal = ""

    @property
    def calls(self) -> dict[str, int]:
        """How many requests were sent, by action."""
        return dict(self._client.calls)

    def scan_s(self) -> float:
        """How many seconds listing the whole zone takes within the budget; for a zone not listed yet, AWS's count."""
        sets = len(self._mirror) if self._listed else self._zone.sets if self._zone is not None else 0
        return scan_seconds(sets, self._settings.requests)

    async def read(self) -> Collection[str]:
        """Bring the mirror up to date, as far as that is due; the names changed since the last read."""
        async with self._busy:
            zone_id = await self._zone_id()
            try:
                if not self._listed:
                    await self._list_whole(zone_id)
                else:
                    self._take_shared(zone_id)
                    await self._look_again(zone_id)
                    await self._roll(zone_id)
            except Misconfigured:
                self._zone = None  # it may be another one by the next time
                raise
            return self._mirror.changed()

    def live(self, name: str) -> Live:
        """What the mirror holds at an endpoint."""
        return self._mirror.live(name)

    def names(self) -> Iterable[str]:
        """Every name in the mirror at which a marker stands."""
        return self._mirror.marked()

    async def commit(self, batch: Batch) -> bool:
        """One batch, all or nothing; False if something wasn't as a change had seen it."""
        refuse_unlawful(self._settings.domain, batch, srv=False)
        if not batch:
            return True
        async with self._busy:
            doing = told(batch)
            zone_id = await self._zone_id()
            news = self._take_shared(zone_id)
            blocked = {change.name: None for change in batch if self.live(change.name).other}
            self._doubted |= blocked
            if blocked or any(change.name in news for change in batch):
                return False
            exchanges = [
                exchange_of(change, self._mirror, weighted=change.name in self._settings.weighted) for change in batch
            ]
            refuse_too_big(exchanges, doing)
            return await self._send(zone_id, exchanges, doing)

    async def remove(self, seen: Live) -> bool:
        """Delete marker and addresses wholly, as exact as a commit: for scratch names."""
        async with self._busy:
            zone_id = await self._zone_id()
            weighted = seen.name in self._settings.weighted
            return await self._send(
                zone_id, [removal_of(seen, self._mirror, weighted=weighted)], f"the removal of {seen.name}"
            )

    async def look_up(self, names: Collection[str]) -> None:
        """List what stands at these endpoints now, whatever else is due."""
        async with self._busy:
            owners = [owner for name in names for owner in (owner_of(name), marker_owner_of(name))]
            self._take_pages(await self._listing.around(await self._zone_id(), owners))

    async def wait(self, most: Duration) -> None:
        """Return when another role here wrote, or the zone is to be listed again; at the latest after ``most``."""
        loop = asyncio.get_running_loop()
        until = loop.time() + most / SECOND
        while (left := until - loop.time()) > 0:
            due = POLL_S
            if self._zone is not None and self._listed:
                if self._shared.last_write(self._zone.id) > self._seq:
                    return
                due = (self._shared.due(self._zone.id) - now()) / SECOND
                if due <= 0:
                    await asyncio.sleep(min(left, 0.01))
                    return
            await asyncio.sleep(min(left, due, POLL_S))

    async def close(self) -> None:
        """Let go of sockets and of the shared file."""
        await self._client.close()
        self._shared.close()

    async def _zone_id(self) -> str:
        if self._zone is None:
            self._zone = await find_zone(self._client, self._settings)
        return self._zone.id

    def _take_shared(self, zone_id: str) -> frozenset[str]:
        """Take in what other roles here wrote and were given; the endpoints that their writes changed."""
        self._seq, written = self._shared.writes(zone_id, self._seq)
        news = set()
        for write in written:
            found = endpoint_of(write.owner)
            before = self.live(found[0]) if found else None
            self._mirror.take_writes({write.owner: write.sets}, write.at)
            if found and self.live(found[0]) != before:
                news.add(found[0])
        if self._listed:
            self._pages_taken, pages = self._shared.pages(zone_id, self._pages_taken)
            self._take_pages(pages)
        return frozenset(news)

    def _take_pages(self, pages: Iterable[Page]) -> None:
        for page in pages:
            self._doubt(self._mirror.take_page(page))

    def _doubt(self, owners: Iterable[str]) -> None:
        self._doubted |= {found[0]: None for found in map(endpoint_of, owners) if found is not None}

    async def _list_whole(self, zone_id: str) -> None:
        """The first listing: nothing is taken in before it is complete."""
        if self.scan_s() > 30:
            count = self._zone.sets if self._zone is not None else 0
            log.info("listing %s: %d record sets take %.0f s", self._settings.domain, count, self.scan_s())
        pages = await self._listing.whole(zone_id, now() - min(FRESH, 12 * self._settings.look_each))
        self._take_shared(zone_id)
        self._take_pages(pages)
        self._shared.begin(zone_id, now() + self._settings.look_each)
        self._listed = True

    async def _look_again(self, zone_id: str) -> None:
        """List what doubted names have. Where that page is full of news, go on: another enactor has been here."""
        doubted, self._doubted = self._doubted, {}
        if not doubted:
            return
        try:
            owners = [owner for name in doubted for owner in (owner_of(name), marker_owner_of(name))]
            pages = await self._listing.around(zone_id, owners)
            last, followed = pages[-1], 0
            while last.following and followed < FOLLOWED_MOST and self._mirror.news(last) > 2 * len(doubted):
                last, followed = await self._listing.page(zone_id, last.following, urgent=True), followed + 1
                pages.append(last)
        except BaseException:
            self._doubted = doubted | self._doubted
            raise
        self._take_pages(pages)

    async def _roll(self, zone_id: str) -> None:
        """Go on with the rolling scan, if it is due, this role's turn, and nobody has anything to write."""
        if self._pace.left(now()) > max(self._pace.period(), ROLL_WAIT_MOST):
            return
        count = pages_of(len(self._mirror))
        whole = count <= WHOLE_PAGES_MOST
        for _ in range(WHOLE_PAGES_MOST if whole else 1):
            start = self._shared.claim(zone_id, now(), LEASE)
            if start is None:
                break
            try:
                page = await self._listing.page(zone_id, start, urgent=False)
            except BaseException:
                self._shared.move_on(zone_id, start, now())
                raise
            self._gathered.append(page)
            pause = self._settings.look_each
            if not whole:
                pause = max(pause // count, 2 * self._pace.period())
            self._shared.move_on(zone_id, page.following, now() + (0 if whole and page.following else pause))
            if not page.following:
                break
        gathered, self._gathered = self._gathered, []
        self._take_pages(gathered)

    async def _send(self, zone_id: str, exchanges: list[Exchange], doing: str) -> bool:
        asked = Asked("ChangeResourceRecordSets", doing, zone_id, writes=True, count=len(exchanges))
        names = dict.fromkeys(one.name for one in exchanges)
        self.last_refusal = ""

        def wanted() -> bool:
            return not any(name in names for name in self._take_shared(zone_id))

        try:
            await self._client.ask(
                "ChangeResourceRecordSets",
                asked,
                urgent=True,
                wanted=wanted,
                HostedZoneId=zone_id,
                ChangeBatch={"Changes": changes_of(exchanges)},
            )
        except Outrun:
            return False
        except InvalidBatch as error:
            self.last_refusal = error.message
            return self._refused(error.message, exchanges, doing)
        except BaseException as error:
            self._doubted |= names  # also when cancelled: it may have been sent
            if isinstance(error, Misconfigured):
                self._zone = None
            raise
        for one in exchanges:
            self._refusals.pop(one.name, None)
        left = {owner: sets for one in exchanges for owner, sets in one.left().items()}
        at = now()
        self._mirror.take_writes(left, at)
        self._shared.put_writes(zone_id, left, at)
        return True

    def _refused(self, message: str, exchanges: list[Exchange], doing: str) -> bool:
        """False for a batch that is refused for what changed; the names it is about are looked at again."""
        found = reasons(message)
        names = {one.name for one in exchanges}
        named = {at[0] for each in found if (at := endpoint_of(each.owner)) is not None}
        blamed = named & names or names
        self._doubted |= dict.fromkeys(sorted(blamed))
        if not found or any(each.verdict is not Verdict.CHANGED for each in found):
            raise refused(found, doing, len(exchanges))
        for one in exchanges:
            if one.name not in blamed:
                continue
            required, times = self._refusals.get(one.name, ((), 0))
            times = times + 1 if required == one.deletes and times else 1
            self._refusals[one.name] = (one.deletes, times)
            if times >= STUCK:
                del self._refusals[one.name]
                raise Refused(
                    f"{one.name}: Route 53 refuses what it lists itself: {found[0].text[:200]}",
                    where=doing,
                    hint="look at the record set in the console; recreate it by hand if it can't be told why",
                    unchanged=True,
                )
        return False
