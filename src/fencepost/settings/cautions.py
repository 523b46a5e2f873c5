"""What is allowed and surprises people: said by `check` and at the start, refused by neither."""

import ipaddress
from urllib.parse import urlsplit

from fencepost.settings import units
from fencepost.settings.mistakes import Notes
from fencepost.settings.providers import PROVIDERS, where
from fencepost.settings.schema import Endpoint, Pool, Region
from fencepost.settings.values import LOOPBACK

TTL_LONG_S = 300
"""Callers keep a dead address for up to a TTL; past five minutes most of an incident is the caches'."""

CHECKERS_MIN = 3
"""A verdict takes two fresh votes; with three checkers one may be down or cut off."""

RECORDS_BIND_TAKES = 100
"""BIND 9.18.28 and later, max-records-per-type: one more and it answers SERVFAIL to the whole UPDATE."""


def note_cautions(region: Region, notes: Notes) -> None:
    """Note each thing about a region that its owner may not expect."""
    _zones(region, notes)
    _names(region, notes)
    if region.drills and not _here(region):
        text = f'drills are allowed on a real provider ("{region.dns.provider}"), and they damage live records'
        notes.odd(("region", "drills"), text)
    if region.dns.ttl_s > TTL_LONG_S:
        notes.odd(("dns", "ttl"), _long_ttl(region.dns.ttl_s))
    used = {endpoint.pool for endpoint in region.endpoints}
    for pool in region.pools:
        _pool(region, pool, notes)
        if pool.name not in used:
            notes.odd(pool.line, f"no endpoint uses pool {pool.name}; its targets are probed and answer nobody")


def _here(region: Region) -> bool:
    """Whether records are written on this machine only: a sample's BIND or stand-in is none that others ask."""
    if region.dns.provider == "rfc2136" and region.dns.server is not None:
        return ipaddress.ip_address(region.dns.server.host).is_loopback
    return region.dns.provider == "embedded" or urlsplit(region.dns.option("endpoint")).hostname in LOOPBACK


def _zones(region: Region, notes: Notes) -> None:
    count = len(region.zones)
    at = ("region", "zones")
    if count == 1:
        text = "one zone has one checker, and a verdict takes two: nothing is ever taken out; name three zones"
        notes.odd(at, text)
    elif 1 < count < CHECKERS_MIN:
        text = (
            f"{count} zones have {count} checkers, and a verdict takes two: with one down nothing is taken out; "
            "name a third"
        )
        notes.odd(at, text)


def _pool(region: Region, pool: Pool, notes: Notes) -> None:
    if pool.launch is not None:
        pass  # how many there are, and where, is known when they run
    elif len(pool.targets) == 1:
        notes.odd(pool.line, f"pool {pool.name} has one target, which is never taken out however sick it is")
    elif len(region.zones) > 1 and len({target.zone for target in pool.targets}) == 1:
        zone = pool.targets[0].zone
        notes.odd(
            pool.line,
            f"pool {pool.name} has all its targets in zone {zone}; if that zone goes, nothing is left to turn to",
        )
    if _server_is_elsewhere(region):
        inner = [target for target in pool.targets if ipaddress.ip_address(target.address).is_loopback]
        if inner:
            text = (
                f"{inner[0].address} is a loopback address, and the server is open to other machines: "
                "there it means themselves"
            )
            notes.odd(inner[0].line, text)
    mine = [endpoint for endpoint in region.endpoints if endpoint.pool == pool.name]
    if region.dns.provider != "embedded" and len({target.counts for target in pool.targets}) > 1:
        _weights(region, pool, mine, notes)
    if region.dns.provider == "rfc2136":
        _many(pool, any(endpoint.srv for endpoint in mine), notes)


def _weights(region: Region, pool: Pool, endpoints: list[Endpoint], notes: Notes) -> None:
    """What weights are worth where all addresses are answered alike."""
    alike = [each for each in endpoints if not each.weighted]
    if not alike:
        return
    head = f"{where(region.dns)} answers all addresses alike: weights of pool {pool.name}"
    plain = [each.name for each in alike if not each.srv]
    provider = PROVIDERS[region.dns.provider]
    if not plain:
        services = ", ".join(sorted({each.srv for each in alike}))
        text = f"{head} reach those callers alone that ask for SRV records ({services})"
    elif provider.weighted:
        way = f"weighted = true at endpoint {plain[0]} has it answer by weight, one address a question"
        text = f"{head} count for the limits only; {way}"
    elif provider.srv:
        text = f'{head} count for the limits only; srv = "_http._tcp" at endpoint {plain[0]} has them in SRV records'
    else:
        text = f"{head} count for the limits only"
    notes.odd(pool.line, text)


def _many(pool: Pool, srv: bool, notes: Notes) -> None:
    families = [ipaddress.ip_address(target.address).version for target in pool.targets]
    most = max(families.count(4), families.count(6))
    if most <= RECORDS_BIND_TAKES < len(families) and srv:
        text = (
            f"pool {pool.name} has {len(families)} addresses, each with a SRV record, and BIND takes "
            f"{RECORDS_BIND_TAKES} records of a type at a name: raise its max-records-per-type, or make two endpoints"
        )
        notes.odd(pool.line, text)
    if most > RECORDS_BIND_TAKES:
        text = (
            f"pool {pool.name} has {most} addresses of one family, and BIND takes {RECORDS_BIND_TAKES} records "
            "of a type at a name: raise its max-records-per-type, or make two endpoints"
        )
        notes.odd(pool.line, text)


def _server_is_elsewhere(region: Region) -> bool:
    place = region.dns.place
    return place is not None and not ipaddress.ip_address(place.host).is_loopback


def _names(region: Region, notes: Notes) -> None:
    for endpoint in region.endpoints:
        if endpoint.ttl_s > TTL_LONG_S and endpoint.ttl_s != region.dns.ttl_s:
            notes.odd(endpoint.line, f"endpoint {endpoint.name}: {_long_ttl(endpoint.ttl_s)}")
        if endpoint.name == region.api.listen.host:
            text = (
                f"the API listens on {endpoint.name}, an endpoint managed here: "
                "if that is broken, so is the way to mend it"
            )
            notes.odd(("api", "listen"), text)


def _long_ttl(seconds: int) -> str:
    return f"ttl {units.duration_text(seconds * units.NS['s'])} is over 5m: callers keep a dead address that long"
