"""Listing: pages of at most 300 record sets, and which of them are asked for.

Listing gives what was last written, not what has reached every name server (API reference, ListResourceRecordSets:
"including PENDING"), so reading right after a write needs no wait for INSYNC, and the fence has nothing to do with it.

A page of ours ends between two names: what a page of the API has of a name that goes on in the next is left to that.
"""

from collections.abc import Iterable
from typing import Any

from fencepost.adapters.dns_route53.client import Client
from fencepost.adapters.dns_route53.errors import Asked
from fencepost.adapters.dns_route53.host_cache import Shared
from fencepost.adapters.dns_route53.mirror import Page
from fencepost.adapters.dns_route53.names import listing_key
from fencepost.adapters.dns_route53.record_sets import RecordSet, from_api
from fencepost.core.instant import Instant
from fencepost.ports import Unavailable

PAGE_SETS = 300
"""Record sets on one page, whatever is asked for (API reference)."""


class Listing:
    """Asks for pages of one hosted zone, and keeps each for the other roles."""

    def __init__(self, client: Client, shared: Shared, domain: str) -> None:
        self._client = client
        self._shared = shared
        self._domain = domain

    async def page(self, zone_id: str, start: str, *, urgent: bool) -> Page:
        """The page from a name on ("" = the first); several requests for a name with more sets than a page holds."""
        asked = Asked("ListResourceRecordSets", f"listing {self._domain}", zone_id)
        sets: list[RecordSet] = []
        begin: dict[str, Any] = {"StartRecordName": start} if start else {}
        begun = [begin]
        at: Instant = 0
        while True:
            answer = await self._client.ask(
                "ListResourceRecordSets", asked, urgent=urgent, HostedZoneId=zone_id, MaxItems=str(PAGE_SETS), **begin
            )
            at = at or self._client.sent
            sets += map(from_api, answer["ResourceRecordSets"])
            following = answer.get("NextRecordName", "") if answer["IsTruncated"] else ""
            if answer["IsTruncated"] and not following:
                raise Unavailable("Route 53 lists a part and doesn't say where it goes on", where=asked.where)
            whole = [each for each in sets if each.owner != following] if following else sets
            if whole or not following:
                page = Page(start, following, at, tuple(whole))
                self._shared.put_page(zone_id, page)
                return page
            again = {"StartRecordName": following}
            if answer.get("NextRecordType"):
                again["StartRecordType"] = answer["NextRecordType"]
            if answer.get("NextRecordIdentifier"):
                again["StartRecordIdentifier"] = answer["NextRecordIdentifier"]
            if again in begun:
                raise going_round(asked.where)
            begun.append(again)
            begin = again

    async def whole(self, zone_id: str, since: Instant) -> list[Page]:
        """Every page; those that another role of this host was given since a time are taken from it."""
        pages: list[Page] = []
        start, begun = "", set[str]()
        while True:
            if start in begun:
                raise going_round(f"listing {self._domain}")
            begun.add(start)
            page = self._shared.page(zone_id, start, since) or await self.page(zone_id, start, urgent=False)
            pages.append(page)
            start = page.following
            if not start:
                return pages

    async def around(self, zone_id: str, owners: Iterable[str]) -> list[Page]:
        """Pages that tell of these names: as few as may be, since names near each other share one."""
        pages: list[Page] = []
        for owner in sorted(owners, key=listing_key):
            if not any(covers(page, owner) for page in pages):
                pages.append(await self.page(zone_id, owner, urgent=True))
        return pages


def going_round(where: str) -> Unavailable:
    """The error for a listing that comes back to where it was: it would never end."""
    return Unavailable("Route 53 lists the same page again and again", where=where)


def covers(page: Page, owner: str) -> bool:
    """Whether a page surely says what stands at a name: of a wildcard only where it begins there, or lists it."""
    if owner == page.start:
        return True
    if "\\052" in owner:
        return any(each.owner == owner for each in page.sets)
    low, high, key = listing_key(page.start), listing_key(page.following), listing_key(owner)
    return (not page.start or low <= key) and (not page.following or key < high)


def pages_of(record_sets: int) -> int:
    """How many pages so many record sets take."""
    return max(1, -(-record_sets // PAGE_SETS))


def scan_seconds(record_sets: int, requests: float) -> float:
    """How long listing a hosted zone takes at so many requests a second, if nothing is written meanwhile."""
    return pages_of(record_sets) / requests
