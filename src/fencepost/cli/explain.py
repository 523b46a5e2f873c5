"""``fencepost explain``: why an address is in or out, from the same facts as ``status``."""

import contextlib
import time

import msgspec

from fencepost.cli.flags import Config, Json, Timeout, duration
from fencepost.cli.looking import unheard
from fencepost.cli.regions import refuse_unstarted, region_of
from fencepost.cli.talk import Talk, talk_about
from fencepost.cli.terminal import say, styled
from fencepost.ports import HistoryRow, PortError, Refused, Unavailable
from fencepost.roles.status.explain import explain as explained
from fencepost.roles.status.explanation import Explanation, render
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.gather import Gatherer
from fencepost.roles.status.processes import load_processes
from fencepost.roles.status.running import role_statuses

LOOKED_BACK_NS = 24 * 3600 * 1_000_000_000
ROWS = 10_000


def explain(what: str, /, *, timeout: Timeout = "10s", config: Config = None, json: Json = False) -> int:
    """Say why each address is in or out, with the votes, the limit and the write behind it.

    Parameters
    ----------
    what
        An endpoint, a target's address, a pool, a failure zone, or an instance or a host of the fleet.
    """

    async def work(talk: Talk) -> int:
        facts = await read(talk)
        try:
            found = explained(facts, await history(talk), meant(talk, what))
        except Refused:
            if not await tell_fleet(talk, what, as_json=json):
                raise
            return 0
        if json:
            say(msgspec.json.encode({"schema": "fencepost.explain/1", **msgspec.to_builtins(found)}).decode())
        else:
            tell(facts, found)
        return 0

    region = region_of(config, forgiving=True)
    refuse_unstarted(region)
    return talk_about(region, duration(timeout, "--timeout"), work)


async def tell_fleet(talk: Talk, what: str, *, as_json: bool) -> bool:
    """Print what the fleet has of that name; whether it has anything."""
    if talk.region.fleet is None:
        return False
    from fencepost.cli.fleet.explaining import of_fleet

    found = await of_fleet(talk, what)
    if found is None:
        return False
    lines, document = found
    if as_json:
        say(msgspec.json.encode({"schema": "fencepost.explain/1", **document}).decode())
    else:
        say("\n".join([styled(lines[0], "bold"), *lines[1:]]))
    return True


async def read(talk: Talk) -> Facts:
    """What can be had. Raises ``Unavailable`` if neither the store nor DNS can be read."""
    from fencepost import assembly

    folder = assembly.state_folder(talk.region)
    dns = None
    with contextlib.suppress(PortError):
        dns = talk.dns.ports
    facts = await Gatherer(talk.region, talk.store, dns, None, folder=str(folder)).facts(load_processes(folder))
    if facts.store is None and facts.dns is None:
        error = facts.dns_error or facts.store_error
        raise Unavailable(
            f"neither its store nor its DNS can be read ({error})",
            where=talk.region.name,
            hint="fencepost up    starts it here",
        )
    return facts


async def history(talk: Talk) -> tuple[HistoryRow, ...]:
    """The last day's lines; none where the store is away."""
    try:
        rows = await talk.within(talk.store.history(since=time.time_ns() - LOOKED_BACK_NS, most=ROWS), "the store")
    except PortError:
        return ()
    return tuple(rows)


def meant(talk: Talk, what: str) -> str:
    """An endpoint's first label stands for its name where it is the only one."""
    names = [each.name for each in talk.region.endpoints if each.name.partition(".")[0] == what.lower()]
    return names[0] if len(names) == 1 and what not in talk.region.zones else what


def tell(facts: Facts, found: Explanation) -> None:
    """Print it; line one says how far down it had to look."""
    if facts.store is None:
        say(styled("the store is away: this is read from the markers in DNS", "yellow"))
    elif facts.dns is None:
        say(styled(f"DNS can't be read ({facts.dns_error}); this is what the store says", "yellow"))
    if facts.store is not None and (still := unheard(role_statuses(facts))):
        say(styled(still, "yellow"))
    lines = render(found)
    say("\n".join([styled(lines[0], "bold"), *lines[1:]]))
