"""What a person changes in the fleet's rows: instances terminated, words about hosts, hosts made known.

By compare-and-set without a claim: who owns a shard has its leases, not these. A row that somebody else wrote meanwhile
is read again, a few times.
"""

from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches

from msgspec import structs

from fencepost.core.capacity import attempts
from fencepost.core.capacity.clearing import unforgettable
from fencepost.core.capacity.fleet_store import Change, Versioned
from fencepost.core.capacity.rows import FleetRow, HostRow, InstanceRow, Kind, Word
from fencepost.ports import Refused, Unavailable
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.refusals import Unknown

TRIES = 5
LOOK_AT_ONCE = 90
"""Rows read together: DynamoDB takes a hundred, two of them the store's own."""
WRITE_AT_ONCE = 500


async def look(store: FleetStorePort, kind: Kind, keys: Sequence[str]) -> dict[str, Versioned]:
    """The rows of these keys that there are. Raises a ``PortError``."""
    found: dict[str, Versioned] = {}
    for at in range(0, len(keys), LOOK_AT_ONCE):
        some = keys[at : at + LOOK_AT_ONCE]
        proof = await store.prove(1, [(kind, key) for key in some])
        found.update((key, row) for key, row in zip(some, proof.rows, strict=True) if row is not None)
    return found


async def change(
    store: FleetStorePort, kind: Kind, keys: Sequence[str], how: Callable[[str, FleetRow | None], FleetRow | None]
) -> dict[str, FleetRow]:
    """Each row as ``how`` wants it, None or the same for as it is; the rows that stand then.

    Raises ``Unavailable`` if others write them faster than we do, and what ``how`` raises, before anything is written.
    """
    left, done = list(dict.fromkeys(keys)), dict[str, FleetRow]()
    for _ in range(TRIES):
        known = await look(store, kind, left)
        wanted: list[tuple[str, Change]] = []
        for key in left:
            before = known[key].row if key in known else None
            after = how(key, before)
            if after is None or after == before:
                if before is not None:
                    done[key] = before
                continue
            wanted.append((key, Change(after, known[key].revision if key in known else 0)))
        left = []
        for at in range(0, len(wanted), WRITE_AT_ONCE):
            some = wanted[at : at + WRITE_AT_ONCE]
            written = await store.commit(None, [(each,) for _, each in some])
            applied = written.applied if written is not None else (False,) * len(some)
            done.update((key, each.row) for (key, each), ok in zip(some, applied, strict=True) if ok and each.row)
            left += [key for (key, _), ok in zip(some, applied, strict=True) if not ok]
        if not left:
            return done
    raise Unavailable(f"{left[0]} is written by others all the time", where="the fleet's rows", hint="ask again")


async def terminate(store: FleetStorePort, names: Sequence[str]) -> dict[str, InstanceRow]:
    """Instances that are to end; those that have ended stay so. Raises ``Unknown``, before anything is written."""
    known = await look(store, "instance", names)
    refuse_unknown("instance", names, known)

    def how(_: str, row: FleetRow | None) -> FleetRow | None:
        return attempts.ending(row) if isinstance(row, InstanceRow) else None

    rows = await change(store, "instance", names, how)
    return {name: row for name, row in rows.items() if isinstance(row, InstanceRow)}


async def say(store: FleetStorePort, names: Sequence[str], word: Word) -> dict[str, HostRow]:
    """A person's word about hosts, "" to take it back. Raises ``Unknown``, before anything is written."""
    known = await look(store, "host", names)
    refuse_unknown("host", names, known)

    def how(_: str, row: FleetRow | None) -> FleetRow | None:
        return structs.replace(row, word=word, forgotten=False) if isinstance(row, HostRow) else None

    rows = await change(store, "host", names, how)
    return {name: row for name, row in rows.items() if isinstance(row, HostRow)}


async def refuse_remembered(store: FleetStorePort, names: Sequence[str]) -> None:
    """Raise ``Refused`` for the first host that can't be forgotten, saying why and what to do."""
    proof = await store.prove(1, [("host", name) for name in names[:1]])
    known = await look(store, "host", names)
    for name, at in known.items():
        why = unforgettable(at.row, proof.life) if isinstance(at.row, HostRow) else ""
        if why:
            hint = (
                f"fencepost fleet drain {name}, and end its agent; with --gone if that is gone; then wait for its lapse"
            )
            raise Refused(f"{name} {why}", where="the fleet", hint=hint)


async def forget(store: FleetStorePort, names: Sequence[str]) -> dict[str, HostRow]:
    """Hosts that nobody wants to hear of any more. Raises ``Unknown`` or ``Refused``, before anything is written."""
    refuse_unknown("host", names, await look(store, "host", names))
    await refuse_remembered(store, names)

    def how(_: str, row: FleetRow | None) -> FleetRow | None:
        return structs.replace(row, word="gone", forgotten=True) if isinstance(row, HostRow) else None

    rows = await change(store, "host", names, how)
    return {name: row for name, row in rows.items() if isinstance(row, HostRow)}


class Elsewhere(Exception):  # noqa: N818  it says what was found
    """A host that holds its lease is said to be somewhere else: has it moved, or are there two of that name?"""


async def register(
    store: FleetStorePort,
    hosts: Sequence[HostRow],
    free: Collection[str] = (),
) -> int:
    """Hosts as their agents say they are; how many are new, or are somewhere else than before. Leases stay.

    Raises :class:`Elsewhere`, before anything is written, for a name that another agent may hold, unless ``free`` has
    it: its instances would be taken for lost, and started a second time beside those that run.
    """
    told, changed = {host.host: host for host in hosts}, dict[str, None]()

    def how(name: str, row: FleetRow | None) -> FleetRow | None:
        new = told[name]
        if isinstance(row, HostRow):
            if row.at != new.at and row.lease == "held" and name not in free:
                raise Elsewhere
            since = row.since if row.at == new.at else new.since
            kept = structs.replace(row, word="", forgotten=False) if row.forgotten else row
            new = structs.replace(kept, zone=new.zone, at=new.at, room=new.room, addresses=new.addresses, since=since)
        if new != row:
            changed[name] = None
        return new

    await change(store, "host", list(told), how)
    return len(changed)


def refuse_unknown(kind: str, names: Sequence[str], known: Collection[str]) -> None:
    """Raise ``Unknown`` for the first name that isn't known."""
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            what = f"did you mean {near[0]}?" if near else f"fencepost fleet {kind}s    lists them"
            raise Unknown(f"there is no {kind} {name[:80]}", where=f"{kind}s", hint=what)
