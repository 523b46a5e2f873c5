"""``fencepost repair``: break glass. One fenced write straight to the provider, by a person.

It needs region.toml and the provider, and nothing else: no planner, no enactor, no store, no API. What it writes stands
until it is resumed, and heals if somebody empties it, for its marker carries it.
"""

import ipaddress
import os
import time
from typing import NamedTuple

from fencepost.cli import terminal, unwell
from fencepost.cli.check import counted
from fencepost.cli.flags import Config, Ever, Json, Reason, Timeout, Yes, agree, duration, reason, until
from fencepost.cli.talk import Talk, answer, endpoint_name, talk_about
from fencepost.cli.terminal import note
from fencepost.core import repair as core
from fencepost.core.fence import Generation, Marker
from fencepost.core.instant import SECOND
from fencepost.core.record_set import Content, ports_of
from fencepost.core.service import claimed
from fencepost.core.store import Row
from fencepost.core.traffic.desired import Offer, offered
from fencepost.core.zone import Change, Live, withdraws
from fencepost.ports import Misconfigured, PortError, Refused, Unavailable
from fencepost.settings.core_settings import offer
from fencepost.settings.schema import Endpoint

TRIES = 5
"""A write refused because something had changed is read again and made again this often."""
STORE_PATIENCE_S = 1.0
AWAY = "0000"
"""The four digits in place of a store's that isn't known."""


class Source(NamedTuple):
    """Where a set comes from, and as of which generation."""

    content: Content
    generation: Generation
    whence: str


def repair(
    name: str,
    /,
    *,
    address: list[str] | None = None,
    reason: Reason = None,
    for_: Ever = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Write an endpoint's addresses straight to the DNS provider; nothing undoes it before `resume`.

    Parameters
    ----------
    address
        What it shall answer, once for each address. Without: the newest whole set that this machine remembers.
    """
    from fencepost.cli.regions import region_of

    ends = until(for_, "ever")
    return talk_about(
        region_of(config, forgiving=True),
        duration(timeout, "--timeout"),
        lambda ports: work(ports, name, tuple(address or ()), why=reason, ends=ends, yes=yes, as_json=json),
    )


async def work(
    talk: Talk, text: str, addresses: tuple[str, ...], *, why: str | None, ends: int, yes: bool, as_json: bool
) -> int:
    """Read, show, ask, write, say."""
    dns = await talk.read_dns()
    name = endpoint_name(talk.region, text, tuple(dns.names()))
    live = dns.live(name)
    say_withdrawn(live)
    row, mark = await newest_row(talk, name)
    source = chosen(talk, live, row, addresses)
    change = made(talk, live, row, mark, source.content, ends)
    stands = ", ".join(live.a + live.aaaa) or "nothing"
    note(f"{name} answers {stands} now ({marker_text(live)}).")
    note(f"It will answer {', '.join(change.content.addresses)} ({source.whence}), {terminal.until_text(ends)}.")
    launched = await launched_of(talk, name) if row is not None or mark != AWAY else None
    for text in strangers(talk, name, change.content, launched):
        note(text)
    found = await unwell.unwell(talk, name, change.content.addresses)
    for text in unwell.lines(name, change.content, live.a + live.aaaa, found):
        note(text)
    why = reason(why, f"repair {name}")
    agree("Write it?", yes=yes)
    change = await written(talk, change, row, mark, source.content, ends)
    generation = change.marker.generation
    await talk.tell_history(name, f"repair: {', '.join(change.content.addresses)}", why)
    count = len(change.content.addresses)
    answer(
        f"{name} is repaired: gen {generation}, {counted(count, 'address')}, {terminal.until_text(ends)}\n"
        f"  back     fencepost resume {name}    gives it back to the planner",
        {
            "done": "repair",
            "on": [name],
            "generation": generation.number,
            "epoch": generation.epoch,
            "addresses": list(change.content.addresses),
            "unwell": unwell.document(name, found),
        },
        as_json=as_json,
    )
    return 0


def strangers(talk: Talk, name: str, value: Content, launched: frozenset[str] | None) -> list[str]:
    """Addresses that are targets of no pool of the endpoint, as a line: a slip, or a spare that nobody checks.

    ``launched`` are the targets beside those that the file lists; None where the store doesn't say.
    """
    pools = {each.pool for each in talk.region.endpoints if each.name == name}
    known = {target.address for pool in talk.region.pools if pool.name in pools for target in pool.targets}
    odd = [each for each in value.addresses if each not in known and each not in (launched or ())]
    if not odd or not pools:
        return []
    listed = ", ".join(odd[:8]) + (", …" if len(odd) > 8 else "")
    is_, it = ("is", "it") if len(odd) == 1 else ("are", "them")
    whose = ", ".join(sorted(pools))
    if launched is None and any(each.launch is not None for each in talk.region.pools if each.name in pools):
        unsure = f"without the store it isn't known whether a launch put {it} there"
        return [f"{listed} {is_} not listed in pool {whose}; {unsure}"]
    return [f"{listed} {'is no target' if len(odd) == 1 else 'are no targets'} of pool {whose}: nobody checks {it}."]


async def launched_of(talk: Talk, name: str) -> frozenset[str] | None:
    """The targets of an endpoint's pool, as its membership has them; None while the store is away.

    An instance of the fleet is a target of its pool without being listed in the file.
    """
    import asyncio

    from fencepost.core.traffic.membership import Membership
    from fencepost.roles.bodies import read_body

    pools = {each.pool for each in talk.region.endpoints if each.name == name}
    try:
        async with asyncio.timeout(STORE_PATIENCE_S):
            rows = (await talk.store.inputs()).membership
        found = [read_body(Membership, body, f"pool {pool}") for pool, (_, body) in rows.items() if pool in pools]
    except (PortError, TimeoutError):
        return None
    return frozenset(member.key for row in found for member in row.members)


def say_withdrawn(live: Live) -> None:
    """Say of an endpoint that somebody withdrew that this isn't the way back; in an outage it may be all there is."""
    if isinstance(live.marker, Marker) and withdraws(live.marker):
        note(f"{live.name} is withdrawn, by a person; a repair replaces that.")
        note(f"  back     fencepost resume {live.name}    ends the withdrawal instead: the planner publishes it again")


async def newest_row(talk: Talk, name: str) -> tuple[Row | None, str]:
    """The newest row and the store's four digits, if the store answers within a second; else None and zeros."""
    import asyncio

    try:
        async with asyncio.timeout(STORE_PATIENCE_S):
            head = await talk.store.head()
            rows = await talk.store.rows_of(name)
    except (PortError, TimeoutError) as error:
        note(f"going on without the store ({error or 'no answer within 1 s'})")
        return None, AWAY
    return (rows[0] if rows else None), head.mark or AWAY


def chosen(talk: Talk, live: Live, row: Row | None, addresses: tuple[str, ...]) -> Source:
    """The set to write: the addresses given, or the newest whole set known here. Raises ``Refused`` if none is."""
    endpoint = next((each for each in talk.region.endpoints if each.name == live.name), None)
    ttl = endpoint.ttl_s if endpoint else live.ttl or talk.region.dns.ttl_s
    if addresses:
        try:
            weights = {str(ipaddress.ip_address(each)): 1 for each in addresses}
            return Source(offered(weights, ttl, service_of(talk, live, endpoint)), Generation(), "as you said")
        except ValueError as error:
            raise Refused(str(error), where="--address") from None
    known = remembered(talk, live.name)
    if row is not None and not row.content.empty:
        known.append(Source(row.content, row.generation, f"the store's newest, gen {row.generation}"))
    if isinstance(live.marker, Marker) and live.marker.content is not None and not live.marker.content.empty:
        known.append(Source(live.marker.content, live.marker.generation, "as its marker says"))
    known = [each for each in known if not each.content.empty]
    if not known:
        raise Refused(
            "nothing on this machine remembers a whole set of it",
            where=live.name,
            hint=f"fencepost repair {live.name} --address 192.0.2.10 --address 192.0.2.11    (yours)",
        )
    return max(known, key=lambda each: each.generation)


def service_of(talk: Talk, live: Live, endpoint: Endpoint | None) -> Offer | None:
    """What the file asks of SRV records beside it; of an endpoint that it doesn't have, what the marker says."""
    if endpoint is not None:
        return offer(talk.region, endpoint)
    value = claimed(live.marker)
    return None if value is None or value.srv is None else Offer(value.srv.service, value.srv.ports[0], ports_of(value))


def remembered(talk: Talk, name: str) -> list[Source]:
    """What the enactors' local files on this machine remember."""
    from fencepost import assembly
    from fencepost.roles.local_file import LocalFile

    found = []
    for path in sorted(assembly.state_folder(talk.region).glob("enactor-*.known")):
        if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK):
            note(f"{path.name} isn't looked at: it belongs to another user")
            continue
        file = LocalFile(path)
        known = file.recall(name)
        file.close()
        if known is not None:
            found.append(Source(known.content, known.generation, f"gen {known.generation}, from {path.name}"))
    return found


def made(talk: Talk, live: Live, row: Row | None, mark: str, value: Content, ends: int) -> Change:
    """The change. Raises ``Refused`` where a repair can't be right."""
    if live.other:
        raise Refused(f"a {live.other[0]} record stands there", where=live.name, hint="remove it first; it isn't ours")
    try:
        return core.repair(
            live,
            row,
            value,
            owner=talk.region.owner,
            store=mark,
            now=time.time_ns(),
            until_s=-(-ends // SECOND),
        )
    except ValueError as error:
        raise Refused(str(error), where=live.name) from None


async def written(talk: Talk, change: Change, row: Row | None, mark: str, value: Content, ends: int) -> Change:
    """Commit it; what changed meanwhile is read again and the repair made anew, a few times."""
    for _ in range(TRIES):
        try:
            port = talk.dns.of(change.name)
        except KeyError:
            raise Misconfigured("lies in no domain of this region", where=change.name) from None
        if await talk.within(port.commit((change,)), talk.server):
            return change
        note(f"{change.name} changed since it was read; reading again")
        dns = await talk.read_dns()
        change = made(talk, dns.live(change.name), row, mark, value, ends)
    raise Unavailable(
        f"it changed under each of {TRIES} attempts", where=change.name, hint="see who writes: fencepost history"
    )


def marker_text(live: Live) -> str:
    """What its marker says, in a word or two."""
    if isinstance(live.marker, Marker):
        return f"gen {live.marker.generation}{', withdrawn' if withdraws(live.marker) else ''}"
    if live.other:
        return f"a {live.other[0]} record"
    return "no marker" if live.marker is None else "another owner's"
