"""What ``fencepost resume`` ends of the fleet: words about hosts."""

from collections.abc import Sequence

from fencepost.cli.fleet.reading import seen
from fencepost.cli.talk import Talk
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet import changes


def rows_of(talk: Talk) -> FleetStorePort:
    """The fleet's rows."""
    from fencepost.assembly.stores import fleet_store

    return fleet_store(talk.region)


async def spoken_of(talk: Talk, names: Sequence[str]) -> dict[str, str]:
    """The word about each of these hosts, of all hosts if no name is given; none where no fleet is, or no store."""
    if talk.region.fleet is None:
        return {}
    store = rows_of(talk)
    try:
        known = await seen(talk, store)
    except PortError:
        return {}
    finally:
        await store.close()
    return {each.host: each.word for each in known.hosts if each.word and (not names or each.host in names)}


async def take_back(talk: Talk, words: dict[str, str], why: str) -> list[str]:
    """End them; what became of it, as lines. Raises a ``PortError``."""
    if not words:
        return []
    store = rows_of(talk)
    try:
        await talk.within(changes.say(store, sorted(words), ""), "the store")
    finally:
        await store.close()
    for host, word in sorted(words.items()):
        await talk.tell_history(host, f"fleet: {word} ended", why)
    return [f"{host}: the {word} is over" for host, word in sorted(words.items())]
