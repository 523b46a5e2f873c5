"""Google Cloud DNS by its REST API (v1), in one file: the worked example of adding a provider.

The fence is ``changes.create``: deletions and additions that apply together or not at all. A deletion must match a
record set exactly (name, type, TTL, every value), else 412 conditionNotMet or 404 notFound; an addition must find
none, else 409 alreadyExists. So each write deletes what its writer saw and adds what shall stand, equal or not.

The awkward truth: that a set is absent and stays absent can't be asked for, so a change of A alone goes through
although somebody put an AAAA beside it. Two things stand in its place. Each write exchanges the domain's SOA record
for one with the next serial, as ``gcloud dns record-sets transaction`` does, so writers that do so can't cross each
other. For those that leave the serial alone (most: external-dns #1219, cert-manager #2148) the newest changes are read
just before, and a set that has come where none was seen refuses the write here. One round trip is left in which such a
writer can add a family that we don't publish without touching our marker; the next read sees it.

Reading is as cheap as an incremental transfer (RFC 1995): one request for the two newest changes; newer ones than we
know move the mirror on. What is written past the list of changes (``resourceRecordSets.patch`` may be) is found by
listing the whole each ten minutes, and after a refusal that the mirror can't explain.

It was run against a stand-in made from Cloud DNS's documentation and public reports, never on Google's service itself.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace

from fencepost.adapters.dns_mirror import Mirror, Parts
from fencepost.adapters.dns_presentation import packed, quoted, wire_name
from fencepost.adapters.https import Https, Pace, Send, safe_url
from fencepost.core.dns_numbers import AAAA, CNAME, NS, TTL_MAX, TXT, A
from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND, Duration
from fencepost.core.names import marker_name
from fencepost.core.record_set import NOTHING
from fencepost.core.zone import Batch, Change, Live
from fencepost.ports import DnsPort, Misconfigured, PortError, Refused, Unavailable
from fencepost.settings import Region
from fencepost.settings.secret import read_secret
from fencepost.world.reference_dns import refuse_unlawful

URL = "https://dns.googleapis.com"
URL_VARIABLE = "FENCEPOST_CLOUD_DNS_URL"
"""Another address of the API, for tests: https, or http on loopback, since a token goes along."""
NEWEST_FIRST = {"sortBy": "changeSequence", "sortOrder": "descending"}
CHANGES_MAX = 10_000  # after more changes than these the whole is listed instead
POLL_S, RELIST_S = 2.0, 600.0
TRIES = 8
"""So often a change that lost only the race for the serial, and so wasn't applied, is made again."""
MARKER_TTL_S = 60
SETS_MAX, VALUES_MAX, RRDATA_MAX = 1000, 100, 100_000
"""Cloud DNS's quotas: additions (and deletions) a change, values a record set, bytes of values a change."""
_TYPES = {"A": A, "AAAA": AAAA, "TXT": TXT, "CNAME": CNAME, "NS": NS}
_SLOW = frozenset(("rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"))

Wish: TypeAlias = tuple[Live, Change | None]
"""What was seen at an endpoint, and the change to it; None: it goes wholly."""


class RecordSet(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A record set as the API writes it. One with a routing policy has no values of its own."""

    name: str
    type: str
    ttl: Annotated[int, msgspec.Meta(ge=0, le=TTL_MAX)] = 0
    rrdatas: tuple[str, ...] = ()
    routing_policy: dict[str, Any] | None = None

    @property
    def owner(self) -> str:
        """Its name as it compares: no case, a wildcard as a star."""
        return self.name.lower().replace("\\052.", "*.", 1)

    def data(self) -> list[bytes] | None:
        """Its values as on the wire, in one order; None if they can't be read, or depend on who asks."""
        try:
            return None if self.routing_policy else sorted(packed(self.type, value) for value in self.rrdatas)
        except ValueError:
            return None


class Edit(msgspec.Struct, frozen=True):
    """A change: what it deletes and adds; its id once it stands in the list of changes."""

    id: str = ""
    additions: tuple[RecordSet, ...] = ()
    deletions: tuple[RecordSet, ...] = ()


class _Page(msgspec.Struct, frozen=True, rename="camel"):
    rrsets: tuple[RecordSet, ...] = ()
    changes: tuple[Edit, ...] = ()
    next_page_token: str = ""
    dns_name: str = ""


class _Changed(Exception):  # noqa: N818  an answer, not a failure
    """The provider refused a change because something wasn't as it said."""


class CloudDns:
    """A :class:`~fencepost.ports.DnsPort` on one managed zone. ``token`` is asked at each use: tokens expire."""

    def __init__(
        self, domain: str, owner: str, place: tuple[str, str], token: Callable[[], str], send: Send, url: str = URL
    ) -> None:
        """``place`` is (project, managed zone)."""
        project, zone = (quote(word, safe=":") for word in place)
        self._zone = f"projects/{place[0]}/managedZones/{place[1]}"
        self._base = f"{url}/dns/v1/projects/{project}/managedZones/{zone}"
        self._domain, self._owner, self._token, self._send = domain, owner, token, send
        self._mirror = Mirror(domain, owner)
        self._sets: dict[tuple[str, str], RecordSet] = {}
        self._known = ""  # the newest change that the mirror holds
        self._changed: dict[str, None] = {}
        self._doubted, self._listed_at = True, 0.0
        self._pace = Pace()
        self._busy = asyncio.Lock()
        self.last_refusal = ""

    async def read(self) -> Collection[str]:
        """Bring the mirror up to date; the names changed since the last read."""
        async with self._busy:
            await self._catch_up()
            changed, self._changed = self._changed, {}
            return tuple(changed)

    def live(self, name: str) -> Live:
        """What the mirror holds at an endpoint."""
        return self._mirror.lives.get(name) or Live(name)

    def names(self) -> Iterable[str]:
        """Every name in the mirror at which a marker stands."""
        return [name for name, live in self._mirror.lives.items() if live.marker is not None]

    async def commit(self, batch: Batch) -> bool:
        """One change, all or nothing; False if something wasn't as its writer had seen it."""
        refuse_unlawful(self._domain, batch, srv=False)
        return not batch or await self._write([(change.seen, change) for change in batch])

    async def remove(self, seen: Live) -> bool:
        """Delete marker and addresses wholly, as exact as a commit."""
        return await self._write([(seen, None)])

    async def wait(self, most: Duration) -> None:
        """Return when the newest change isn't the mirror's, at the latest after ``most`` nanoseconds."""
        loop = asyncio.get_running_loop()
        until = loop.time() + most / SECOND
        while (left := until - loop.time()) > 0:
            await asyncio.sleep(min(left, POLL_S))
            if loop.time() >= until:
                return
            async with self._busy:
                with suppress(PortError):  # the read that follows meets it too
                    if await self._newest() != self._known:
                        return

    async def close(self) -> None:
        """Let go of connections."""
        await self._send.close()

    async def _write(self, wishes: list[Wish]) -> bool:
        doing = f"changes.create in {self._zone}: {_told(wishes)}"
        self.last_refusal = ""
        async with self._busy:
            for _ in range(TRIES):
                await self._catch_up()
                barred = next(filter(None, (self._barred(seen, wish) for seen, wish in wishes)), "")
                if barred:
                    self.last_refusal = f"not sent, for Cloud DNS can't be asked to rule it out: {barred}"
                    return False
                edit, before = self._edit(wishes), self._known
                _refuse_too_big(edit, wishes, doing)
                try:
                    await self._call("POST", "changes", {}, doing, msgspec.json.encode(edit))
                except _Changed as refusal:
                    self.last_refusal = str(refusal)
                    await self._catch_up()
                    stands = all(replace(seen, ttl=(live := self.live(seen.name)).ttl) == live for seen, _ in wishes)
                    if not stands or self._known == before:
                        self._doubted = stands
                        return False
                else:
                    await self._catch_up()
                    return True
            return False

    def _barred(self, seen: Live, wish: Change | None) -> str:
        """What stands at the name that the change can't require to be absent; "" if nothing."""
        live, value = self.live(seen.name), wish.content if wish else NOTHING
        pairs = (("A", live.a, seen.a or value.a), ("AAAA", live.aaaa, seen.aaaa or value.aaaa))
        marked = ("TXT",) if live.marker and not (seen.marker or wish) else ()
        found = (*live.other, *(kind for kind, stands, named in pairs if stands and not named), *marked)
        return f"{found[0]} at {seen.name}" if found else ""

    def _edit(self, wishes: list[Wish]) -> Edit:
        """The change: everything that was seen goes, everything that shall stand comes, and the serial moves on."""
        gone, come = [], []
        for seen, wish in wishes:
            own, at = f"{seen.name}.", f"{marker_name(seen.name)}."
            texts = (
                (seen.marker.encode(),) if isinstance(seen.marker, Marker) else seen.marker.raw if seen.marker else ()
            )
            olds = [(at, "TXT", MARKER_TTL_S, tuple(map(quoted, texts)))]
            olds += [(own, "A", seen.ttl, seen.a), (own, "AAAA", seen.ttl, seen.aaaa)]
            gone += [self._stated(RecordSet(*old)) for old in olds if old[3]]
            if wish is not None:
                come.append(RecordSet(at, "TXT", MARKER_TTL_S, (quoted(wish.marker.encode()),)))
                value = wish.content
                new = [RecordSet(own, "A", value.ttl, value.a), RecordSet(own, "AAAA", value.ttl, value.aaaa)]
                come += [each for each in new if each.rrdatas]
        soa = self._sets.get((f"{self._domain}.", "SOA"))
        if soa is not None and len(words := soa.rrdatas[0].split() if soa.rrdatas else []) == 7:
            words[2] = str((int(words[2]) + 1) % 2**32)
            gone.append(soa)
            come.append(RecordSet(soa.name, "SOA", soa.ttl, (" ".join(words),)))
        return Edit(additions=tuple(come), deletions=tuple(gone))

    def _stated(self, wanted: RecordSet) -> RecordSet:
        """A set to delete, in the very spelling and with the TTL that the API gave for it, if its values are those."""
        held = self._sets.get((wanted.name, wanted.type))
        return held if held is not None and held.data() == wanted.data() else wanted

    async def _catch_up(self) -> None:
        """Move the mirror on by the newer changes; list everything if that can't be."""
        now = asyncio.get_running_loop().time()
        if self._known and not self._doubted and now - self._listed_at < RELIST_S:
            newer = await self._newer(self._known)
            if newer is not None:
                self._apply(newer)
                return
        if not self._known:
            await self._check_domain()
        first = await self._newest()
        sets = [each async for page in self._pages("rrsets", 1000) for each in page.rrsets]
        newer = await self._newer(first)
        if newer is None:
            raise Unavailable("its list of changes moved on while it was read", where=self._zone)
        # A change that the listing shows already does nothing when it is applied again: the last word on a set stands.
        self._doubted, self._listed_at = False, now
        old, self._sets, self._mirror = self._mirror.lives, {}, Mirror(self._domain, self._owner)
        before, self._changed = self._changed, {}
        self._apply([Edit(first, additions=tuple(sets)), *newer])
        new = self._mirror.lives
        self._changed = before | {name: None for name in old | new if old.get(name) != new.get(name)}

    async def _newer(self, known: str) -> list[Edit] | None:
        """The changes after one, oldest first; None if that isn't in the list any more."""
        for most in (2, 20, 100):
            found: list[Edit] = []
            async for page in self._pages("changes", most, NEWEST_FIRST):
                found += page.changes
                at = next((at for at, edit in enumerate(found) if edit.id == known), -1)
                if at >= 0:
                    return found[:at][::-1]
                if most < 100 or len(found) > CHANGES_MAX:
                    break
        return None

    def _apply(self, edits: Iterable[Edit]) -> None:
        touched: dict[str, None] = {}
        for edit in edits:
            for each in edit.deletions:
                self._sets.pop((each.owner, each.type), None)
            for each in edit.additions:
                self._sets[each.owner, each.type] = each
            touched |= {each.owner: None for each in edit.deletions + edit.additions}
            self._known = edit.id
        for name in {self._mirror.endpoint(wire_name(owner)): None for owner in touched}:
            if name is not None and self._rebuild(name):
                self._changed[name] = None

    def _rebuild(self, name: str) -> bool:
        """Put an endpoint together from its sets; whether that changed it."""
        parts, odd, before = Parts(), [], self.live(name)
        try:
            keys = [(f"{name}.", kind) for kind in ("A", "AAAA", "CNAME", "NS")] + [(f"{marker_name(name)}.", "TXT")]
        except ValueError:
            return False  # a name that no marker fits: never ours
        for owner, kind in keys:
            held = self._sets.get((owner, kind))
            if held is not None and self._mirror.wanted(wire_name(owner), _TYPES[kind]):
                values = held.data()
                odd += [f"{kind} of another kind"] if values is None else []
                for data in values or ():
                    parts.add(_TYPES[kind], held.ttl, [data])
        self._mirror.put(name, parts)
        if odd:
            live = self.live(name)
            self._mirror.lives[name] = replace(live, other=(*odd, *live.other))
        return self.live(name) != before

    async def _newest(self) -> str:
        """The id of the newest change. Every managed zone has one: that which made its SOA and NS."""
        page = await anext(self._pages("changes", 1, NEWEST_FIRST))
        if page.changes:
            return page.changes[0].id
        raise Unavailable("its list of changes is empty", where=self._zone)

    async def _check_domain(self) -> None:
        found = await self._call("GET", "", {}, f"managedZones.get of {self._zone}")
        if found.dns_name.removesuffix(".").lower() != self._domain:
            hint = "name the managed zone of that domain under [dns] managed_zone"
            raise Misconfigured(f'it holds "{found.dns_name}", not {self._domain}', where=self._zone, hint=hint)

    async def _pages(self, path: str, most: int, query: Mapping[str, str] = {}) -> AsyncIterator[_Page]:
        """A list's pages, of at most so many elements."""
        token, begun = "", set[str]()
        while True:
            asked = {**query, "maxResults": str(most)} | ({"pageToken": token} if token else {})
            yield (page := await self._call("GET", path, asked, f"{path}.list of {self._zone}"))
            if not page.next_page_token:
                return
            begun.add(token)
            if (token := page.next_page_token) in begun:
                raise Unavailable("its list never ends: the same page comes again", where=self._zone)

    async def _call(self, method: str, path: str, query: Mapping[str, str], doing: str, body: bytes = b"") -> _Page:
        """One request; its answer. Raises ``_Changed`` or a ``PortError``."""
        await self._pace.turn()
        url = f"{self._base}{'/' if path else ''}{path}{'?' if query else ''}{urlencode(query)}"
        try:
            status, said = await self._send(method, url, self._token(), body)
        except OSError as error:
            raise Unavailable(str(error), where=doing, hint="if it lasts: can Google's API be reached?") from None
        if status != 200:
            complaint = _complaint(status, said, doing, writing=method == "POST")
            self._pace.note(slower=isinstance(complaint, Unavailable))
            raise complaint
        self._pace.note(slower=False)
        try:
            return msgspec.json.decode(said, type=_Page)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"its answer makes no sense: {error}", where=doing) from None


def open_domains(region: Region, folder: Path) -> Mapping[str, DnsPort]:  # noqa: ARG001  every provider is given it
    """A DNS port for the region's domain. Raises ``Misconfigured``."""
    dns = region.dns
    if len(dns.domains) != 1:
        raise Misconfigured("a managed zone holds one domain", where=region.path, hint="name one under [dns] domain")
    secret = dict(dns.secrets)["token"]

    def token() -> str:
        try:
            return read_secret(secret, os.environ)
        except ValueError as error:
            raise Misconfigured(f"token: {error}", where=region.path, hint="see [dns] token") from None

    url = safe_url(os.environ.get(URL_VARIABLE) or URL, URL_VARIABLE)
    place = (dns.option("project"), dns.option("managed_zone"))
    return {dns.domains[0]: CloudDns(dns.domains[0], region.owner, place, token, Https(), url)}


def _told(wishes: list[Wish]) -> str:
    """A write for people: its first endpoint's step, and how many more."""
    seen, wish = wishes[0]
    before = str(seen.marker.generation) if isinstance(seen.marker, Marker) else "none"
    step = f"{seen.name}, gen {before} -> {wish.marker.generation if wish else 'removed'}"
    return step + (f" and {len(wishes) - 1} more" if len(wishes) > 1 else "")


def _refuse_too_big(edit: Edit, wishes: list[Wish], doing: str) -> None:
    """Raise ``Refused``, with the numbers, for a change beyond Cloud DNS's quotas."""
    sets = max(len(edit.additions), len(edit.deletions))
    size = sum(len(value) for each in edit.additions + edit.deletions for value in each.rrdatas)
    most = max((len(each.rrdatas) for each in edit.additions), default=0)
    if sets > SETS_MAX or size > RRDATA_MAX or most > VALUES_MAX:
        what = f"it has {sets:,} record sets, {size:,} bytes of values, {most} values in one set"
        limits = f"Cloud DNS takes {SETS_MAX:,}, {RRDATA_MAX:,} and {VALUES_MAX} a change"
        hint = "split the batch" if len(wishes) > 1 else "spread its addresses over more endpoints"
        raise Refused(f"{wishes[0][0].name} is too big: {what}; {limits}", where=doing, hint=hint)


def _complaint(status: int, body: bytes, doing: str, *, writing: bool) -> Exception:
    """What to raise for an answer that isn't success, by Google's own reason and words."""
    try:
        error: Any = msgspec.json.decode(body)["error"]
        reason, words = str(error["errors"][0]["reason"]), str(error["message"])[:400]
    except (msgspec.MsgspecError, LookupError, TypeError):
        reason, words = "", "no reason given"
    said = f"{status} {reason}: {words}".replace(" :", ":")
    stale = status == 412 or (reason in ("notFound", "alreadyExists") and "entity.change" in words)
    if writing and (stale or reason == "cnameResourceRecordSetConflict"):
        return _Changed(said)
    kind: type[PortError] = Unavailable
    hint = "if it lasts: its answer isn't one that its documentation gives"
    if status == 429 or status >= 500 or (status == 403 and reason in _SLOW):
        hint = "it is asked less often meanwhile; its quotas are the project's"
    elif status == 401:
        kind, hint = Misconfigured, "tokens last an hour: write the file anew in time (gcloud auth print-access-token)"
    elif status in (403, 404):
        kind, hint = Misconfigured, "it needs roles/dns.admin there; project and managed_zone are named under [dns]"
    elif writing and status == 400:
        kind, hint = Refused, "it won't take this change as it is"
    return kind(f"Cloud DNS answers {said}", where=doing, hint=hint)
