"""``fencepost store restamp``: tell a store that it was set back to an older day."""

import json as json_text
import time

from fencepost.cli.flags import Config, Json, Timeout, Yes, agree, duration
from fencepost.cli.regions import region_of
from fencepost.cli.talk import Talk, talk_about
from fencepost.cli.terminal import say
from fencepost.ports import HistoryRow


def store_restamp(*, yes: Yes = False, timeout: Timeout = "10s", config: Config = None, json: Json = False) -> int:
    """Let every lease in the store count as unknown: after its disk or folder was set back to an older day.

    Hosts report what they run, and their word wins; nothing is placed before. Records in DNS aren't touched. Most
    restores are noticed without it.
    """
    from fencepost.assembly.stores import fleet_store

    region = region_of(config)

    agree("Nothing is placed on any host until it has reported again. Go on?", yes=yes)

    async def work(talk: Talk) -> int:
        fleet = fleet_store(region)
        try:
            life = await talk.within(fleet.restamp(), "the store")
        finally:
            await fleet.close()
        text = f"the fleet's leases count as unknown from now on: life {life[:4]}"
        await talk.within(
            talk.store.note([HistoryRow("operator", "store", talk.by, text, time.time_ns())]), "the store"
        )
        if json:
            say(json_text.dumps({"schema": "fencepost.store-restamp/1", "life": life}))
            return 0
        say(f"new life {life[:4]}: every lease counts as unknown until its host has reported")
        return 0

    return talk_about(region, duration(timeout, "--timeout"), work)
