"""What is looked at elsewhere: DNS provider, store, and what stands in both. It reads only."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from fencepost.assembly.doctor import Look, look_at_store
from fencepost.cli.check import counted
from fencepost.cli.doctor.here import fresh, listed
from fencepost.cli.talk import Talk
from fencepost.core.fence import Marker
from fencepost.core.instant import MINUTE, SECOND, Instant
from fencepost.core.store import Row
from fencepost.core.zone import Live
from fencepost.ports import Beat, Enacted, Notified, PortError
from fencepost.settings import Region
from fencepost.settings.providers import PROVIDERS, by_api
from fencepost.settings.units import spoken

NEGATIVE_TTL_MOST_S = 60
NO_ROWS: Mapping[str, Row] = {}
PROVE = "fencepost prove    races writers at a scratch name, and so shows what may be written"


def trouble(about: str, error: PortError) -> Look:
    """A port's failure as a finding."""
    return Look("attention", about, str(error), error.advice)


async def look_at_dns(talk: Talk) -> AsyncIterator[Look]:
    """Whether the provider answers and takes our credentials, and how long a whole read takes."""
    region = talk.region
    label = PROVIDERS[region.dns.provider].label
    began = time.monotonic_ns()
    await talk.read_dns()
    took = spoken(time.monotonic_ns() - began)
    marked = counted(len(list(talk.dns.names())), "name")
    yield Look("ok", "dns", f"{label}: read with our credentials in {took}; {marked} with a marker")
    if region.dns.place is not None and not by_api(region.dns):
        yield Look("ok", "clock", "the DNS server takes our signatures, so its clock is within 300 s (RFC 8945, 10)")
        for domain in region.dns.domains:
            yield negative_ttl(region, domain, talk.timeout / SECOND)
    else:
        if region.dns.provider == "route53":
            yield Look("ok", "clock", "AWS takes our signatures, so its clock and ours are within five minutes")
        text = "the negative TTL isn't looked at here: it is the smaller of the SOA record's TTL and its last number"
        hint = f"dig SOA {region.dns.domains[0]}    callers that once saw no name believe it that long (RFC 2308)"
        yield Look("unknown", "ttl", text, hint)


def negative_ttl(region: Region, domain: str, patience_s: float) -> Look:
    """How long callers remember that a name wasn't there (RFC 2308 section 5)."""
    import dns.exception
    import dns.message
    import dns.query
    import dns.rdatatype

    place = region.dns.place
    try:
        query = dns.message.make_query(f"{domain}.", "SOA")
        answer = dns.query.udp(query, place.host if place else "", min(patience_s, 2.0), place.port if place else 53)
        found = [rrset for rrset in answer.answer if rrset.rdtype == dns.rdatatype.SOA]
    except (OSError, ValueError, dns.exception.DNSException):
        found = []
    if not found:
        return Look("unknown", "ttl", f"{domain}: its SOA record isn't answered to us", f"dig SOA {domain}")
    seconds = min(found[0].ttl, found[0][0].minimum)
    text = f"{domain}: callers that once saw no name believe it for {spoken(seconds * SECOND)} (negative TTL, RFC 2308)"
    if seconds <= NEGATIVE_TTL_MOST_S:
        return Look("ok", "ttl", text)
    return Look("note", "ttl", text, "lower the SOA record's last number to 10 or so: it delays every first answer")


def look_at_rights(enacted: Mapping[str, Enacted], now: Instant) -> Iterator[Look]:
    """Whether we may write: only a write shows it, so the last one that was noted."""
    last = max(enacted.values(), key=lambda each: each.at, default=None)
    if last is None:
        yield Look("unknown", "rights", "no write is on record; only a write shows whether we may", PROVE)
    else:
        when = spoken(max(0, now - last.at))
        text = f"{last.by} wrote {last.name} {when} ago; whether we still may, only a write shows"
        yield Look("ok", "rights", text, PROVE if now - last.at > 7 * 24 * 60 * MINUTE else "")


def written_elsewhere(region: Region, live: Live, mark: str, row: Row | None = None) -> bool:
    """Whether its marker is of our owner and another store, and isn't what our own row says.

    ``mark`` is our store's ("" = not known). After a move, or once a new store has adopted what stood, nothing is
    written: markers go on naming the store before, and our store holds the very same.
    """
    marker = live.marker
    if not isinstance(marker, Marker) or marker.owner != region.owner or not mark or marker.store in (mark, "0000"):
        return False
    return row is None or (row.generation, row.digest) != (marker.generation, marker.digest)


def is_as_asked(region: Region, live: Live) -> bool:
    """Whether unmarked records are every target that the file names, and so ours from the first start on."""
    endpoint = next(each for each in region.endpoints if each.name == live.name)
    pool = next(each for each in region.pools if each.name == endpoint.pool)
    asked = {each.address for each in pool.targets if ("AAAA" if ":" in each.address else "A") in endpoint.records}
    return pool.launch is None and asked == {*live.a, *live.aaaa}


def look_at_owners(
    region: Region, lives: Sequence[Live], mark: str, rows: Mapping[str, Row] = NO_ROWS
) -> Iterator[Look]:
    """Names that somebody else holds, and signs of another region under our owner. ``rows`` are our store's newest."""
    managed = {endpoint.name for endpoint in region.endpoints}
    strangers, others, orphans, barred = [], [], [], []
    odd: list[str] = []
    as_asked: list[str] = []
    for live in lives:
        marker = live.marker
        if isinstance(marker, Marker) and marker.owner == region.owner:
            if written_elsewhere(region, live, mark, rows.get(live.name)):
                others.append(f"{live.name} (store {marker.store})")
            if live.name not in managed:
                orphans.append(live.name)
        elif live.name in managed and marker is not None:
            whose = f'"{marker.owner}"' if marker.owner else "nobody known"
            strangers.append(f"{live.name} (its marker is of {whose})")
        elif live.name in managed and live.other:
            barred.append(f"{live.name} ({live.other[0]})")
        elif live.name in managed and not live.empty:
            (as_asked if is_as_asked(region, live) else odd).append(live.name)
    if strangers:
        hint = "find out whose it is: take it out of one of the two, or, if nobody's any more, delete its marker there"
        yield Look("attention", "owner", f"not ours: {listed(strangers)}", hint)
    if barred:
        hint = "remove that record at the provider, and the addresses follow; or take the name out of region.toml"
        text = f"no address can stand beside what is there: {listed(barred)}"
        yield Look("attention", "owner", text, hint)
    if odd:
        hint = "fencepost adopt NAME    once the region runs: writes the marker, changes no address"
        text = f"records without a marker, other than region.toml asks: {listed(odd)}; nothing is written there"
        yield Look("attention", "owner", text, hint)
    if as_asked:
        text = (
            f"without a marker, exactly as region.toml asks: {listed(as_asked)}; a start writes the marker beside them"
        )
        yield Look("ok", "owner", text)
    if others:
        hint = "docs/operating/two-stores.md; right after a lost store it is normal until the planner has adopted them"
        text = f'another store than ours ({mark}) wrote under our owner "{region.owner}": {listed(others)}'
        yield Look("attention", "owner", text, hint)
    if orphans:
        hint = "fencepost withdraw NAME    takes one away, once nobody asks for it"
        yield Look("note", "owner", f"ours, and no longer in region.toml: {listed(orphans)}", hint)
    if not (strangers or others or odd or barred or as_asked):
        yield Look("ok", "owner", f'"{region.owner}": nobody else writes under it or holds our names')


def look_at_notify(talk: Talk, beats: Sequence[Beat], now: Instant) -> Iterator[Look]:
    """Whether roles wait where the primary can tell them of changes (RFC 1996)."""
    if not all(isinstance(port, Notified) for port in talk.dns.ports.values()):
        yield Look("ok", "notify", "this provider sends none; its newest change is asked for instead")
        return
    places = {each.role: each.notify for each in fresh(beats, now) if each.notify}
    if not places:
        yield Look("unknown", "notify", "no role is up that waits for NOTIFY", "fencepost up")
    elif talk.region.dns.provider == "embedded":
        yield Look("ok", "notify", f"our server tells {len(places)} roles")
    elif talk.region.dns.notify:
        deaf = [f"{zone} ({at})" for zone, at in talk.region.dns.notify if places.get(f"enactor/{zone}") != str(at)]
        hint = "its log says who has that place; a region that was up before takes it at its restart"
        if deaf:
            yield Look("note", "notify", f"no enactor takes NOTIFY in zone {listed(deaf)}; it asks each second", hint)
        else:
            yield Look("ok", "notify", f"{len(talk.region.dns.notify)} enactors take it where [dns] notify says")
    else:
        text = (
            f"{len(places)} roles wait for NOTIFY on ports that change; without it they ask for the serial each second"
        )
        yield Look("note", "notify", text, "notify in [dns], if that second matters: docs/start/bind-knot-powerdns.md")


async def look_at_whole_store(talk: Talk) -> Sequence[Look]:
    """The store's head and kind, within the patience. Raises a ``PortError``."""
    return await talk.within(look_at_store(talk.region), f"the store ({talk.region.store.kind})")
