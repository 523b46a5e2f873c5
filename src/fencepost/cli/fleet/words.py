"""``fencepost fleet drain``, ``cordon`` and ``terminate``: a person's word about hosts and instances, in the store."""

from collections.abc import Sequence
from typing import Any

from fencepost.cli.check import counted
from fencepost.cli.flags import Config, Confirm, Json, Note, Timeout, Yes, agree, duration
from fencepost.cli.fleet.reading import Seen, fleet_region, seen, with_store
from fencepost.cli.fleet.tables import room
from fencepost.cli.talk import Talk, answer
from fencepost.cli.terminal import note
from fencepost.core.capacity.rows import Word
from fencepost.ports import Misconfigured
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet import changes

SAID = {
    "drain": "is drained: what runs there starts elsewhere first",
    "cordon": "is cordoned: nothing more is placed there",
    "gone": "counts as gone: its lease lapses without being waited for longer than any other's",
}


def drain(
    *hosts: str,
    gone: bool = False,
    reason: Note = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Move everything away from hosts: each instance starts elsewhere first, and nothing new is placed there.

    Parameters
    ----------
    hosts
        Hosts, by name.
    gone
        The host is known to be gone for good: its lapse doesn't count when many hosts fall silent at once.
    """
    return place("gone" if gone else "drain", hosts, reason, yes, timeout, config, as_json=json)


def cordon(
    *hosts: str,
    reason: Note = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Place nothing more at hosts; what runs there goes on.

    Parameters
    ----------
    hosts
        Hosts, by name.
    """
    return place("cordon", hosts, reason, yes, timeout, config, as_json=json)


def place(
    word: Word, hosts: Sequence[str], why: str | None, yes: bool, timeout: str, config: str | None, *, as_json: bool
) -> int:
    """Show what a word about hosts does, ask, say it."""
    if not hosts:
        raise Misconfigured(f"{'drain --gone' if word == 'gone' else word} takes hosts", hint="fencepost fleet hosts")

    async def work(talk: Talk, store: FleetStorePort) -> int:
        known = await seen(talk, store)
        changes.refuse_unknown("host", hosts, {each.host for each in known.hosts})
        for line in effect(word, hosts, known):
            note(line)
        agree("Do it?", yes=yes)
        rows = await talk.within(changes.say(store, hosts, word), "the store")
        await talk.tell_history(", ".join(hosts[:3]), f"fleet: {word} {len(rows)}", why or "")
        told = [f"{host} {SAID[word]}" for host in sorted(rows)]
        told += [f"  see      fencepost fleet instances --host {host}" for host in sorted(rows)[:1] if word == "drain"]
        told.append(f"  back     fencepost resume {' '.join(sorted(rows))}")
        answer("\n".join(told), {"done": word, "on": sorted(rows)}, as_json=as_json)
        return 0

    return with_store(fleet_region(config), duration(timeout, "--timeout"), work)


def effect(word: Word, names: Sequence[str], known: Seen) -> list[str]:
    """What a word does, as lines: what it replaces, what is so already, what goes on and what moves."""
    meant = [each for each in known.hosts if each.host in names]
    lines = [f"{each.host}: this replaces its {each.word}" for each in meant if each.word not in ("", word)]
    lines += [f"{each.host}: so it is already" for each in meant if each.word == word]
    runs = sum(each.host in names and each.state in ("pending", "ready") for each in known.instances)
    leaving = sum(each.old in names for each in known.instances)
    if leaving:
        lines.append(f"{counted(leaving, 'instance')} started elsewhere already, and still to be stopped there")
    if not runs:
        return [*lines, "nothing else runs there" if leaving else "nothing runs there"]
    if word == "cordon":
        return [*lines, f"{counted(runs, 'instance')} there: {'it goes' if runs == 1 else 'they go'} on"]
    free = sum(room(each) for each in known.hosts if each.host not in names)
    over = runs - free
    stay = f"; {over} {'stays' if over == 1 else 'stay'} until there is more" if over > 0 and word == "drain" else ""
    return [*lines, f"{counted(runs, 'instance')} to start elsewhere; room for {free} there{stay}"]


def terminate(
    *instances: str,
    reason: Note = None,
    confirm: Confirm = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """End instances. Each is ended once its host has stopped it, or has lapsed.

    Parameters
    ----------
    instances
        Instances, by name.
    """
    if not instances:
        raise Misconfigured("terminate takes instances", hint="fencepost fleet instances")

    async def work(talk: Talk, store: FleetStorePort) -> int:
        from fencepost.cli.fleet import losing

        known = {each.instance: each for each in (await seen(talk, store)).instances}
        changes.refuse_unknown("instance", instances, known)
        for name in instances:
            each = known[name]
            note(f"{name}: {each.state}{f' at {each.host}' if each.host else ''}, of pool {each.pool}")
        lost = await losing.losses(talk, [known[name] for name in instances])
        for line in lost.lines:
            note(line)
        losing.agreed(
            lost.effects, "End it?" if len(instances) == 1 else f"End all {len(instances)}?", yes=yes, said=confirm
        )
        rows = await talk.within(changes.terminate(store, instances), "the store")
        await talk.tell_history(", ".join(instances[:3]), f"fleet: terminate {len(rows)}", reason or "")
        states = {name: row.state for name, row in sorted(rows.items())}
        told = [f"{name} {'has ended' if state == 'ended' else 'is ending'}" for name, state in states.items()]
        document: dict[str, Any] = {"done": "terminate", "on": sorted(rows), "states": states}
        document["pools"] = losing.document(lost.effects)
        answer("\n".join(told), document, as_json=json)
        return 0

    return with_store(fleet_region(config), duration(timeout, "--timeout"), work)
