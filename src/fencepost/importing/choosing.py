"""Which address sets become endpoints, and which endpoints share a pool.

Without a word from the person an endpoint is a name with two addresses or more of one family: with one there is nothing
to take out. Addresses of name servers and mail servers are glue. Whatever isn't taken is named with its reason, so that
nobody takes a short file for a whole one. Endpoints that answer the very same addresses share a pool: one is checked
once, and has one removal budget.

What fencepost couldn't publish exactly as it stands (an address that no target can have, a name whose marker doesn't
fit) is left out whole: part of a set would be a change.
"""

import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from fencepost.core.names import marker_name, normalise
from fencepost.core.record_set import Content, content
from fencepost.importing.records import LeftOut, RecordSet, Source
from fencepost.ports import Misconfigured
from fencepost.settings import values

TTL_LEAST_S, TTL_MOST_S = 1, 86_400
"""What region.toml takes."""
POOL_NAME_MOST = 32


class Endpoint(Struct, frozen=True, gc=False):
    """A name with what it answers, the pool it goes into, and a word about it, or ""."""

    name: str
    content: Content
    pool: str
    note: str = ""


class Chosen(Struct, frozen=True):
    """The endpoints by name, each pool's addresses, and what is left out."""

    endpoints: tuple[Endpoint, ...]
    pools: dict[str, tuple[str, ...]]
    left: tuple[LeftOut, ...]


def choose(source: Source, only: Sequence[str] = (), patterns: Sequence[str] = ()) -> Chosen:
    """Pick endpoints: ``only`` these names, or those that fit a pattern (``api*.example.com``), or the likely ones.

    Raises ``Misconfigured`` for a name of ``only`` that has no addresses or can't be an endpoint.
    """
    wanted = {normalised(name) for name in only}
    left = {each.name: each.why for each in source.left}
    known = {found.name for found in source.sets}
    for name in sorted(wanted - known):
        why = left.get(name, "it has no address in this source")
        raise Misconfigured(f"can't be an endpoint: {why}", where=f"--only {name}", hint="leave it out of --only")
    found: list[tuple[str, Content, str]] = []
    for one in source.sets:
        why = unfit(one) or unasked(one, source, wanted, [pattern.lower() for pattern in patterns])
        if why and one.name in wanted:
            raise Misconfigured(f"can't be an endpoint: {why}", where=f"--only {one.name}", hint="leave it out of it")
        if why:
            left[one.name] = why
            continue
        ttl, note = ttl_of(one)
        marked = "a fencepost marker stands beside it; " if one.name in source.marked else ""
        found.append((one.name, content(one.addresses, ttl), f"{marked}{note}".removesuffix("; ")))
    pools: dict[tuple[str, ...], str] = {}
    for name, value, _ in found:
        if value.addresses not in pools:
            pools[value.addresses] = pool_name(name, pools.values())
    return Chosen(
        tuple(Endpoint(name, value, pools[value.addresses], note) for name, value, note in found),
        {pool: addresses for addresses, pool in pools.items()},
        tuple(LeftOut(name, why) for name, why in sorted(left.items())),
    )


def normalised(name: str) -> str:
    """A name of ``--only``. Raises ``Misconfigured``."""
    try:
        return normalise(name)
    except ValueError as error:
        raise Misconfigured(f"{name!a} {error}", where="--only") from None


def unfit(one: RecordSet) -> str:
    """Why a set can't be published as it stands; "" if it can."""
    try:
        marker_name(one.name)
    except ValueError as error:
        return f"as a name it {error}"
    for text in one.addresses:
        try:
            values.address(text)
        except ValueError as error:
            return f"{text} {error}"
    return ""


def unasked(one: RecordSet, source: Source, wanted: Collection[str], patterns: Sequence[str]) -> str:
    """Why a set isn't taken, by what was asked for; "" if it is."""
    if one.name in wanted:
        return ""
    pointed = source.pointed.get(one.name)
    glue = f"{'an' if pointed == 'NS' or pointed == 'MX' else 'a'} {pointed} record points at it" if pointed else ""
    if wanted or patterns:
        if any(fnmatchcase(one.name, pattern) for pattern in patterns):
            return f"{glue}; --only takes it" if glue else ""
        return "not asked for"
    if glue:
        return f"{glue}; --only takes it"
    if max(len(one.a), len(one.aaaa)) < 2:
        return "one address, so nothing could ever be taken out; --only takes it"
    return ""


def ttl_of(one: RecordSet) -> tuple[int, str]:
    """The endpoint's TTL in seconds, and what to say about it: an endpoint has one, within bounds."""
    ttls = sorted({ttl for ttl, there in ((one.ttl_a, one.a), (one.ttl_aaaa, one.aaaa)) if there})
    ttl = min(max(ttls[0], TTL_LEAST_S), TTL_MOST_S)
    said = []
    if len(ttls) > 1:
        said.append(f"its families have ttl {ttls[0]} s and {ttls[1]} s, and an endpoint has one")
    if ttl != ttls[0]:
        said.append(f"ttl {ttls[0]} s stands there; {TTL_LEAST_S} s to 1 d can be said here")
    return ttl, "; ".join(said)


def pool_name(name: str, taken: Collection[str]) -> str:
    """A pool's name after its first endpoint: the first label, made unique."""
    label = name.partition(".")[0]
    base = "wildcard" if label == "*" else re.sub(r"[^a-z0-9_-]", "-", label).strip("-_")
    base = base[: POOL_NAME_MOST - 4].strip("-_") or "pool"
    found, count = base, 1
    while found in taken:
        count += 1
        found = f"{base[: POOL_NAME_MOST - 1 - len(str(count))]}-{count}"
    return found
