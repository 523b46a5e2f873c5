"""What is written when an attempt is placed, is over, is moved or has ended: rows to rows, and nothing else.

At any moment the current attempt of a placed instance is in the set of exactly the host that its row names, because the
two rows are always written together.
"""

from collections.abc import Collection

from msgspec import structs

from fencepost.core.capacity.messages import Instance, InstanceSet
from fencepost.core.capacity.rows import HostRow, InstanceRow
from fencepost.core.instant import Instant

NO_OLD = ("", "")
LOOPING = 3
"""An instance whose attempts ended by themselves so often in a row won't mend itself, as far as can be told."""


def looping(row: InstanceRow) -> bool:
    """Whether its attempts end by themselves again and again."""
    return row.ends >= LOOPING and row.state in ("waiting", "placed")


def joined(host: HostRow, instance: Instance) -> HostRow:
    """The host with one more instance in its set."""
    return structs.replace(host, set=InstanceSet(host.set.version + 1, (*host.set.instances, instance)))


def left(host: HostRow, ids: Collection[str]) -> HostRow:
    """The host without these attempts in its set; the very same row if it has none of them."""
    staying = tuple(each for each in host.set.instances if each.id not in ids)
    if len(staying) == len(host.set.instances):
        return host
    return structs.replace(host, set=InstanceSet(host.set.version + 1, staying))


def refused_for_good(host: HostRow, boot: int, version: int) -> bool:
    """Whether what this start of its agent refused, with that version of its set, is never started by any other.

    An order is obeyed only by the start that it names, and is sent only once the row has that one's boot. If the row
    has had this boot ever since the host's version, no order with anything newer was sent to another start; and from
    now on none can be before the row has changed, and with it what is about to be written over it.
    """
    return host.boot == boot and host.steady[0] == boot and host.steady[1] <= version


def free_addresses(host: HostRow) -> tuple[str, ...]:
    """The addresses that no instance of its set has."""
    used = {each.address for each in host.set.instances}
    return tuple(address for address in host.addresses if address not in used)


def to_be_moved(row: InstanceRow, host: HostRow, life: str) -> bool:
    """Whether an instance's next attempt is wanted elsewhere, since its host is drained, and hasn't been begun."""
    held = host.word == "drain" and host.held(life)
    return held and row.state == "placed" and row.old == NO_OLD and row.host == host.host and row.id in host.set.ids


def free_places(host: HostRow, life: str) -> int:
    """How many more instances it has places for, whether or not it has addresses for them.

    A suspect has none: it didn't answer lately, so it couldn't be told, and may be dying.
    """
    return 0 if host.left or not host.placeable(life) else host.room - len(host.set.instances)


def shut_places(host: HostRow, life: str) -> int:
    """How many more it would have places for, but for a person's word."""
    if host.word not in ("cordon", "drain") or host.left or host.unable or not host.held(life) or not host.reported:
        return 0
    return max(0, host.room - len(host.set.instances))


def free_room(host: HostRow, life: str) -> int:
    """How many more instances may be placed on it: as many as it has places and addresses for.

    One without an address could run, and nobody could ever be sent to it.
    """
    places = free_places(host, life)
    return min(places, len(free_addresses(host))) if places else 0


def placed(row: InstanceRow, host: HostRow, address: str) -> tuple[HostRow, InstanceRow]:
    """The next attempt, at this host. An attempt that still runs elsewhere is kept as the old one."""
    attempt = row.attempt + 1
    after = structs.replace(
        row,
        state="placed",
        attempt=attempt,
        host=host.host,
        address=address,
        zone=host.zone,
        why=row.why if row.ends else "",
        again_at=0,
    )
    return joined(host, row.at(attempt, address)), after


def moved(row: InstanceRow, host: HostRow, address: str) -> tuple[HostRow, InstanceRow]:
    """The next attempt, at this host, while the present one goes on until the next is ready."""
    there, after = placed(row, host, address)
    return there, structs.replace(after, old=(row.host, row.id))


def over(row: InstanceRow, why: str, *, by_itself: bool = False, again_at: Instant = 0) -> InstanceRow:
    """The present attempt is over; the instance waits for its next. ``by_itself``: it ended, and its host said so.

    ``again_at`` is when the next is due, nanoseconds since 1970; 0 for as soon as there is room, or where nobody knows.
    """
    ends = row.ends + 1 if by_itself else 0
    return structs.replace(row, state="waiting", host="", address="", zone="", why=why, ends=ends, again_at=again_at)


def calm(row: InstanceRow) -> InstanceRow:
    """The present attempt has run for a while: how those before it ended is no news any more."""
    return structs.replace(row, ends=0, why="")


def found(host: HostRow, instance: Instance, row: InstanceRow | None) -> InstanceRow:
    """The row of an attempt that a host holds and the store forgot, being put back from a copy or wiped."""
    base = row or InstanceRow(instance.name)
    return structs.replace(
        base,
        pool=instance.pool,
        state="placed",
        attempt=instance.attempt,
        host=host.host,
        address=instance.address,
        port=instance.port,
        zone=host.zone,
        command=instance.command,
        why="",
    )


def settled(row: InstanceRow) -> InstanceRow:
    """The new attempt is ready, or has had its time: the old one is nothing that anybody waits for."""
    return structs.replace(row, old=NO_OLD)


def ending(row: InstanceRow) -> InstanceRow:
    """Somebody wants it ended."""
    if row.state not in ("waiting", "placed"):
        return row
    return structs.replace(row, state="ending", why="terminated", again_at=0)


def ended(row: InstanceRow, at: Instant) -> InstanceRow:
    """Nothing of it runs on any host that may be believed to run it. ``at`` is nanoseconds since 1970."""
    return structs.replace(row, state="ended", old=NO_OLD, ended_at=at)
