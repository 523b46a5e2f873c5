"""What ``fencepost explain`` says of an instance or a host of the fleet."""

from collections.abc import Sequence
from typing import Any

import msgspec

from fencepost.cli.check import counted
from fencepost.cli.fleet.reading import Seen, seen
from fencepost.cli.fleet.tables import due, place, used
from fencepost.cli.talk import Talk
from fencepost.core.instant import SECOND
from fencepost.ports import PortError
from fencepost.roles.fleet.view import HostSeen, InstanceSeen
from fencepost.settings.units import spoken

NAMED = 10
LEASE = {
    "held": "it answers, and may be given more",
    "suspect": "it didn't answer lately; nothing new is placed there, and what runs there stays its own",
    "lapsed": "three renewals have passed without an answer: it obeys nothing any more, its instances start elsewhere",
    "unknown": "nothing is known of it yet in this life of the store",
}
WORD = {
    "drain": "what runs there starts elsewhere first",
    "cordon": "nothing more is placed there",
    "gone": "it is known not to come back",
}


async def of_fleet(talk: Talk, what: str) -> tuple[list[str], dict[str, Any]] | None:
    """An instance or a host, in lines and for programs; None where the fleet has nothing of that name."""
    from fencepost.assembly.stores import fleet_store

    if talk.region.fleet is None:
        return None
    store = fleet_store(talk.region)
    try:
        known = await seen(talk, store)
    except PortError:
        return None
    finally:
        await store.close()
    instance = next((each for each in known.instances if each.instance == what), None)
    still = [f"  as of    {known.still}"] if known.still else []
    if instance is not None:
        return instance_lines(instance, known) + still, {"instance": msgspec.to_builtins(instance)}
    host = next((each for each in known.hosts if each.host == what), None)
    if host is not None:
        return host_lines(host, known) + still, {"host": msgspec.to_builtins(host)}
    return None


def instance_lines(each: InstanceSeen, known: Seen) -> list[str]:
    """Where an instance stands, why, and what its host is like."""
    lines = [f"instance {each.instance}   {each.state}, of pool {each.pool}; attempt {each.attempt or 'none yet'}"]
    if each.why:
        lines.append(f"  why      {each.why}")
    if each.ends:
        again = f"{counted(each.ends, 'attempt')} in a row ended by {'itself' if each.ends == 1 else 'themselves'}"
        lines.append(f"  again    {again}; the next comes later each time, at most 5 min")
    if each.again_at:
        lines.append(f"  next     {due(each)}: its attempt {each.attempt + 1}")
    host = next((row for row in known.hosts if row.host == each.host), None)
    if each.host:
        lease = f", whose lease is {host.lease}" if host is not None else ""
        lines.append(f"  at       {each.host} (zone {each.zone}){lease}, serving {place(each)}")
    if each.old:
        lines.append(f"  moves    its attempt before goes on at {each.old} until this one serves")
    if each.address:
        lines.append(f"  serves   fencepost explain {each.address}    says whether DNS answers it, and why")
    return lines


def host_lines(each: HostSeen, known: Seen) -> list[str]:
    """A host's lease, what a person said of it, its room and what runs there."""
    heard = f"last answered {spoken(each.seen_s * SECOND)} ago" if each.seen_s is not None else "no answer was noted"
    lines = [f"host {each.host}   lease {each.lease}, zone {each.zone}, at {each.at}; {heard}"]
    lines.append(f"  lease    {LEASE[each.lease]}")
    if each.lease == "lapsed" and each.seen_s is None:
        lines.append(
            "  asked    it registered, and answered nobody: its agent's log says if its fleet.key isn't the region's;"
        )
        lines.append(f"           else nothing comes through to {each.at} (UDP and TCP)")
    if each.word:
        lines.append(f"  word     {each.word}: {WORD[each.word]};  fencepost resume {each.host}    ends it")
    if each.unable:
        lines.append(f"  memory   {each.unable}")
        lines.append("           it takes no orders until it can; its own log says when that is over")
    free = f"{each.free} more may be placed there" if each.free else "nothing more is placed there"
    lines.append(f"  room     {used(each)}; {free}")
    states = {row.instance: row for row in known.instances}
    lines += [f"  runs     {text}" for text in running(each.instances, states)]
    return lines


def running(ids: Sequence[str], states: dict[str, InstanceSeen]) -> list[str]:
    """Some of a host's attempts, each with its state."""
    lines = []
    for id_ in ids[:NAMED]:
        name, _, attempt = id_.rpartition(".")
        row = states.get(name)
        current = row is not None and str(row.attempt) == attempt
        lines.append(f"{id_}  {row.state if row is not None and current else 'an attempt that is to be stopped'}")
    return lines + ([f"and {len(ids) - NAMED} more"] if len(ids) > NAMED else [])
