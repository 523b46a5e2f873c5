"""``fencepost fleet forget``: hosts that are gone leave the lists, once nothing can run there by the fleet's word."""

from fencepost.cli.check import counted
from fencepost.cli.flags import Config, Json, Note, Timeout, Yes, agree, duration
from fencepost.cli.fleet.reading import fleet_region, seen, with_store
from fencepost.cli.talk import Talk, answer
from fencepost.cli.terminal import note
from fencepost.ports import Misconfigured
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet import changes


def forget(
    *hosts: str,
    reason: Note = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Take hosts off the lists for good. One that holds a lease, or may run something, is refused until it has lapsed.

    Parameters
    ----------
    hosts
        Hosts, by name.
    """
    if not hosts:
        raise Misconfigured("forget takes hosts", hint="fencepost fleet hosts")

    async def work(talk: Talk, store: FleetStorePort) -> int:
        known = {each.host: each for each in (await seen(talk, store)).hosts}
        changes.refuse_unknown("host", hosts, known)
        await talk.within(changes.refuse_remembered(store, hosts), "the store")
        for name in hosts:
            each = known[name]
            left = f"; {counted(each.used, 'instance')} of it to start elsewhere" if each.used else ""
            note(f"{name} (zone {each.zone}, at {each.at}): {each.lease}{left}")
        agree("Forget it?" if len(hosts) == 1 else f"Forget all {len(hosts)}?", yes=yes)
        rows = await talk.within(changes.forget(store, hosts), "the store")
        await talk.tell_history(", ".join(hosts[:3]), f"fleet: forget {len(rows)}", reason or "")
        told = [f"{host} is forgotten; it is known again once an agent of that name registers" for host in sorted(rows)]
        answer("\n".join(told), {"done": "forget", "on": sorted(rows)}, as_json=json)
        return 0

    return with_store(fleet_region(config), duration(timeout, "--timeout"), work)
