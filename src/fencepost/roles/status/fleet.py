"""The fleet in the status document: how each shard stands, and what of it isn't as it should be.

A manager tells its shard's numbers in a row each few seconds; what is older than half a minute is shown with its age
and judged no more, since nobody knows how things are by now.
"""

from collections.abc import Iterator

from msgspec import Struct

from fencepost.core.capacity.rows import CalibrationRow, CheckpointRow, ShardRow
from fencepost.core.instant import Instant
from fencepost.roles.fleet import opening
from fencepost.roles.status import kinds
from fencepost.roles.status.document import FleetStatus, Problem, RoleStatus, ShardStatus, seconds, when
from fencepost.roles.status.facts import Facts, FleetFacts
from fencepost.roles.status.problems import log_of, problem
from fencepost.roles.status.recovery import recovery_status

OLD = opening.OLD
NAMED = 5
CALIBRATE = "fencepost fleet calibrate"


class Told(Struct, frozen=True):
    """What one shard's manager said last: nothing, if nobody did. ``fresh``: lately enough to go by."""

    shard: int
    row: ShardRow | None
    said: CheckpointRow | None
    fresh: bool

    def count(self, name: str) -> int | None:
        """One of its numbers."""
        return self.said.counts.get(name) if self.said is not None else None

    def fresh_count(self, name: str) -> int:
        """The same, 0 where it isn't known any more."""
        return (self.count(name) or 0) if self.fresh else 0


def shards_of(facts: Facts) -> tuple[Told, ...]:
    """Each shard, as told."""
    settings, known = facts.region.fleet, facts.store.fleet if facts.store else None
    if settings is None or known is None:
        return ()
    return tuple(told(known, shard, facts.now) for shard in range(1, settings.shards + 1))


def told(known: FleetFacts, shard: int, now: Instant) -> Told:
    """One shard."""
    said = known.told.get(shard)
    return Told(shard, known.shards.get(shard), said, said is not None and now - said.at < OLD)


def fleet_status(facts: Facts, roles: tuple[RoleStatus, ...]) -> FleetStatus | None:
    """The whole; None where there is no fleet."""
    if facts.region.fleet is None:
        return None
    known = facts.store.fleet if facts.store else None
    found = known.calibration if known is not None else None
    row = found or CalibrationRow("hosts", 0, 0, 0, 0.0)
    return FleetStatus(
        shards=tuple(shard_status(facts, each, roles) for each in shards_of(facts)),
        calibrated_at=when(row.measured_at),
        calibrated_s=seconds(facts.now - row.measured_at) if row.measured_at else None,
        limit=row.limit or None,
        rate_s=round(row.rate, 1) if found is not None else None,
        recovery=recovery_status((each.said, each.fresh) for each in shards_of(facts)),
    )


def shard_status(facts: Facts, each: Told, roles: tuple[RoleStatus, ...]) -> ShardStatus:
    """One shard."""
    role = next((role for role in roles if role.name == f"host-manager/{each.shard}"), None)
    names = ("hosts", "held", "suspect", "lapsed", "room", "waiting", "pending", "ready", "ending")
    work = ("checks", "answers", "granted", "lapses", "orders", "in_flight", "limit", "backlog")
    numbers = {name: each.count(name) for name in (*names, *work)}
    opened = None if each.row is None or facts.store is None or facts.store.fleet is None else is_open(facts, each)
    return ShardStatus(
        shard=each.shard,
        state=role.state if role is not None else None,
        pid=role.pid if role is not None else None,
        epoch=each.row.epoch if each.row is not None else None,
        told_s=seconds(facts.now - each.said.at) if each.said is not None else None,
        placing=opened,
        waits_for=None if opened is not False else waits_for(each),
        mass=bool(each.count("mass")) if each.said is not None else None,
        **numbers,
    )


def is_open(facts: Facts, each: Told) -> bool:
    """Whether instances may be placed, as far as this shard goes."""
    life = facts.store.fleet.life if facts.store and facts.store.fleet else ""
    return each.row is not None and each.row.open == life


def waits_for(each: Told) -> str:
    """What placing waits for, in words."""
    return opening.waits_for(each.said.counts if each.said is not None and each.fresh else {})


def fleet_problems(facts: Facts, roles: tuple[RoleStatus, ...]) -> Iterator[Problem]:
    """All of them."""
    if facts.region.fleet is None:
        return
    if facts.store_error is not None or facts.store_full is not None:
        text = (
            "no host's lease lapses for that, they are renewed in memory; nothing is launched, moved or ended meanwhile"
        )
        yield problem(facts, kinds.LEASES_IN_MEMORY, "the fleet", text, "fencepost doctor")
        return
    for each in shards_of(facts):
        on = f"shard {each.shard}"
        if not each.fresh:
            if not facts.full_at or facts.now - facts.full_at > OLD:
                yield unmanaged(facts, each, roles, on)
            continue
        if each.fresh_count("mass"):
            count = each.fresh_count("suspect")
            text = f"{count} hosts fell silent together, taken for a fault of ours or the network's: no lease lapses"
            yield problem(facts, kinds.HOSTS_SILENT, on, text, "fencepost fleet hosts")
        yield from lapsed(facts, each, on)
        yield from unable(facts, each)
        yield from looping(facts, each)
        yield from stuck(facts, each, on)
        if each.fresh_count("waiting") and not each.fresh_count("room"):
            count = each.fresh_count("waiting")
            text = (
                f"{'1 instance waits' if count == 1 else f'{count} instances wait'}, and no host that is held has room"
            )
            yield problem(facts, kinds.NO_ROOM, on, text, "fencepost fleet hosts")
        if not is_open(facts, each):
            text = f"nothing is placed until the store's hosts are known again: it waits for {waits_for(each)}"
            yield problem(facts, kinds.PLACING_CLOSED, on, text, "fencepost fleet hosts")


def unmanaged(facts: Facts, each: Told, roles: tuple[RoleStatus, ...], on: str) -> Problem:
    """A shard whose manager says nothing."""
    name = f"host-manager/{each.shard}"
    role = next((role for role in roles if role.name == name), None)
    text = "no manager holds it" if role is None or role.state == "down" else f"its manager ({role.state}) says nothing"
    text += ": its leases stay as they are, nothing is placed on its hosts, and a host that dies isn't noticed"
    return problem(facts, kinds.SHARD_UNMANAGED, on, text, log_of(facts, name))


def unable(facts: Facts, each: Told) -> Iterator[Problem]:
    """Hosts that can't write their memories: they keep what they have, and take no orders."""
    if each.said is None:
        return
    more = each.fresh_count("unable") - len(each.said.unable)
    for host, why, since in each.said.unable:
        text = f"host {host} takes no orders: {why}; what runs there goes on, what is terminated there stays ending, "
        text += "nothing more is placed there"
        text += f" ({more} more hosts say such a thing)" if more > 0 else ""
        text += ": make room on its disk, or the folder writable; it goes on by itself then"
        yield problem(facts, kinds.HOST_CANNOT_WRITE, host, text, f"fencepost explain {host}", since)


def looping(facts: Facts, each: Told) -> Iterator[Problem]:
    """Pools whose instances end by themselves again and again, with how the last attempt of one ended."""
    if each.said is None:
        return
    pools: dict[str, list[tuple[str, int, str]]] = {}
    for instance, pool, ends, why in each.said.loops:
        pools.setdefault(pool, []).append((instance, ends, why))
    more = each.fresh_count("looping") > len(each.said.loops)
    for pool, found in sorted(pools.items()):
        instance, ends, why = found[0]
        count, one = len(found) - 1, len(found) == 2 and not more
        others = (
            f", as {'has' if one else 'have'} {count}{' or more' if more else ''} other{'' if one else 's'} of the pool"
        )
        others = others if count else ""
        text = f"{instance} ended by itself {ends} times in a row{others}; the last: {why}"
        text += "; it is tried again, more and more seldom: mend its command or what that needs"
        yield problem(facts, kinds.CRASH_LOOP, pool, text, f"fencepost fleet instances --pool {pool}")


def of_drained(count: int) -> str:
    """How many instances of a drained host have something."""
    return "1 of its instances has" if count == 1 else f"{count} of its instances have"


def stuck(facts: Facts, each: Told, on: str) -> Iterator[Problem]:
    """Drained hosts whose instances have no place elsewhere: they go on there, and nothing more happens by itself."""
    count = each.fresh_count("stuck")
    if not count or each.said is None or not each.said.stuck:
        return
    names = [host for host, _ in each.said.stuck]
    if len(names) == 1:
        text = f"host {names[0]} is drained, and {of_drained(count)} no place elsewhere"
    else:
        text = f"hosts {', '.join(names[:NAMED])}{' and others' if len(names) > NAMED else ''} are drained, and {count}"
        text += f" {'instance has' if count == 1 else 'instances have'} no place elsewhere"
    text += f": add a host, or  fencepost resume {names[0]}"
    yield problem(facts, kinds.DRAIN_STUCK, on, text, "fencepost fleet hosts")


def lapsed(facts: Facts, each: Told, on: str) -> Iterator[Problem]:
    """Hosts whose lease has run out, and of whom nobody has said that they are gone."""
    count = each.fresh_count("lapsed_unsaid")
    if not count or each.said is None:
        return
    names = ", ".join(each.said.hosts[:NAMED]) + (" and others" if count > NAMED else "")
    left = sum(each.said.ages)
    one = "has" if count == 1 else "have"
    text = f"{count} host{'' if count == 1 else 's'} {one} lapsed ({names}); what ran there starts elsewhere"
    text += f", {left} still to go" if left else ""
    host = each.said.hosts[0] if each.said.hosts else "HOST"
    yield problem(facts, kinds.HOST_LAPSED, on, text, f"fencepost fleet drain {host} --gone")
