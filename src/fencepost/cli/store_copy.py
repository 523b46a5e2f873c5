"""``fencepost store copy``: a region's store into another, before the region moves there."""

import json as json_text

from msgspec import structs

from fencepost.cli.check import counted
from fencepost.cli.flags import Json, Timeout, duration
from fencepost.cli.progress import Progress
from fencepost.cli.regions import region_of
from fencepost.cli.talk import Talk, talk_about
from fencepost.cli.terminal import say


def store_copy(from_: str, to: str, /, *, timeout: Timeout = "10m", json: Json = False) -> int:
    """Copy a store: plans, inputs, orders, history and the fleet's rows. Changes nothing in the first.

    It may be done while the region runs, and again: then only what is new is brought.

    Parameters
    ----------
    from_
        The region.toml whose [store] is copied.
    to
        The region.toml whose [store] is copied to; made if there is none.
    """
    from fencepost.assembly import open_store
    from fencepost.assembly.stores import fleet_store
    from fencepost.roles.store_copy import copy_fleet, copy_store

    region, other = region_of(from_), region_of(to)

    async def work(talk: Talk) -> int:
        target, progress = open_store(other, create=True), Progress()
        fleets = (fleet_store(region), fleet_store(other, create=True))
        try:
            copied = await talk.within(
                copy_store(talk.store, target, lambda text: progress.say(lambda: text)), "the stores"
            )
            fleet_rows = await talk.within(copy_fleet(*fleets, lambda text: progress.say(lambda: text)), "the stores")
        finally:
            for each in (target, *fleets):
                await each.close()
        if json:
            document = {"schema": "fencepost.store-copy/1", **structs.asdict(copied), "fleet_rows": fleet_rows}
            say(json_text.dumps(document))
            return 0
        brought = f"{counted(copied.plans, 'plan')} with {counted(copied.rows, 'row')}"
        say(f"copied to plan {copied.number}: {brought}, {counted(copied.history, 'line')} of history brought now")
        if fleet_rows:
            say(f"{counted(fleet_rows, 'row')} of the fleet brought now; its leases count as unknown there")
        say(f"as in the first: {counted(copied.overrides, 'override')}, {counted(copied.orders, 'waiting order')}")
        say("next: with the roles stopped, copy once more (if they ran just now), and start them with the second file")
        return 0

    return talk_about(region, duration(timeout, "--timeout"), work)
