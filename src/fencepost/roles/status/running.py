"""The status of roles: signs of life from the store beside what the supervisor knows of its processes.

A process that runs and gives no sign of life has stopped seeing, however well it looks: that is "silent". Some
give none (the API); of those the supervisor alone knows.
"""

from collections.abc import Collection, Iterable

from msgspec import structs

from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.ports import Beat
from fencepost.roles.heartbeat import EVERY_S, STANDBY
from fencepost.roles.status.document import RoleState, RoleStatus, seconds
from fencepost.roles.status.facts import Facts, Process
from fencepost.roles.status.processes import is_here
from fencepost.settings import Region
from fencepost.settings.schema import Pool

SILENT_AFTER: Duration = int(2.5 * EVERY_S * SECOND)
"""Two signs of life were missed."""

SPEAKS_WITHIN: Duration = int(3 * EVERY_S * SECOND)
"""A process that was started less long ago isn't silent yet: it may still be reading what it needs."""

FORGOTTEN_AFTER: Duration = 600 * SECOND
"""A role that the region's settings don't ask for is no more listed so long after its last sign."""

BEATING = ("planner", "enactor", "checker", "janitor", "dns", "host-manager", "network-manager")
"""Roles that give signs of life; the first word of a role's name."""

ROLES = (*BEATING, "api", "agent")
"""Roles that are listed. What else the supervisor runs (a sample's targets) is no part of the control plane."""


def expected_roles(region: Region) -> tuple[str, ...]:
    """The roles without which a region isn't whole."""
    zones = [f"{role}/{zone}" for zone in region.zones for role in ("checker", "enactor")]
    return tuple(sorted(["planner", "janitor", *zones]))


def kind_of(name: str) -> str:
    """A role's kind: "enactor" of "enactor/b"."""
    return name.partition("/")[0]


def warming(facts: Facts, pool: Pool, zone: str) -> bool:
    """Whether a zone's checker was started so lately that it can't have voted on a pool yet.

    It speaks once it has seen each target for three intervals, and calls one healthy after ``rise`` passes.
    """
    process = facts.processes.get(f"checker/{zone}")
    warms = (3 + pool.probe.rise) * pool.probe.interval_ns
    return process is not None and bool(process.started) and 0 <= facts.now - process.started < warms


def lives(roles: Iterable[RoleStatus], kind: str) -> bool:
    """Whether a role of a kind runs and can be heard."""
    return any(kind_of(role.name) == kind and role.state not in ("down", "silent") for role in roles)


Sign = tuple[Beat | None, Process | None]
"""A role's last sign of life, and its process as the supervisor knows it."""


def signs_of(facts: Facts) -> dict[str, Sign]:
    """What is known of each role, by name, whether or not it is to be listed."""
    beats = {beat.role: beat for beat in facts.store.beats} if facts.store else {}
    names = {*beats, *facts.processes}
    signs: dict[str, Sign] = {name: (beats.get(name), facts.processes.get(name)) for name in sorted(names)}
    for name in sorted({name.removesuffix(STANDBY) for name in names if kind_of(name) == "host-manager"}):
        signs.pop(name + STANDBY, None)
        signs |= managers_of(facts, name, beats.get(name), beats.get(name + STANDBY))
    return signs


def managers_of(facts: Facts, name: str, beat: Beat | None, standby: Beat | None) -> dict[str, Sign]:
    """A shard's manager, and beside it one that stands by, as long as it is heard.

    The supervisor's process is the latter if another has the shard and is heard. Several that stand by speak under one
    name, so any of them speaks for that process.
    """
    process = facts.processes.get(name)
    if beat is not None and standby is not None and (beat.machine, beat.pid) == (standby.machine, standby.pid):
        standby = None  # it stood by, and has the shard now, or had it before
    heard = standby is not None and fresh(facts, standby)
    if process is None or (beat is not None and speaks_for(beat, process)):
        return {name: (beat, process), **({name + STANDBY: (standby, None)} if heard else {})}
    if standby is not None and heard and process.pid is not None:
        standby = structs.replace(standby, pid=process.pid, machine="")
    if beat is not None and fresh(facts, beat):
        return {name: (beat, None), name + STANDBY: (standby, process)}
    known = standby if standby is not None and speaks_for(standby, process) else beat
    return {name: (known, process)}


def fresh(facts: Facts, beat: Beat) -> bool:
    """Whether it is heard, and its process isn't known to be gone."""
    return heard_until(facts) - beat.at < SILENT_AFTER and not is_gone(beat, facts.gone)


def is_gone(beat: Beat, gone: Collection[int]) -> bool:
    """Whether the process that gave it is known to be gone; of another machine's that can't be known."""
    return is_here(beat) and beat.pid in gone


def speaks_for(beat: Beat, process: Process) -> bool:
    """Whether a sign of life is that of a process of this machine."""
    return is_here(beat) and beat.pid == process.pid


def role_statuses(facts: Facts) -> tuple[RoleStatus, ...]:
    """Every role that is expected, runs, or gave a sign of life lately; by name."""
    signs = signs_of(facts)
    expected = expected_roles(facts.region)
    # A role that makes this document while it can see neither signs of life nor processes doesn't call all others down.
    names = set(expected) if facts.store or facts.processes or facts.observer is None else set()
    for name, (beat, process) in signs.items():
        lately = beat is not None and facts.now - beat.at < FORGOTTEN_AFTER
        if lately or (process is not None and kind_of(name) in ROLES):
            names.add(name)
    return tuple(role_status(facts, name, *signs.get(name, (None, None))) for name in sorted(names))


def role_status(facts: Facts, name: str, beat: Beat | None, process: Process | None) -> RoleStatus:
    """One role."""
    last_error = beat.error or None if beat else None
    if process is not None and process.pid is None:
        last_error = process.last_exit or last_error
    pid = process.pid if process else beat.pid if beat else None
    here = process is not None or beat is None or is_here(beat)
    if here and pid in facts.gone:
        last_error, pid = f"its process (pid {pid}) is gone", None
    found = state(beat, process, kind_of(name) in BEATING, heard_until(facts), facts.gone, young=is_young(facts))
    return RoleStatus(
        name=name,
        state="silent" if here and pid in facts.stopped else found,
        pid=pid,
        restarts=process.restarts if process else None,
        version=beat.version or None if beat else None,
        seen_s=seconds(facts.now - beat.at) if beat else None,
        last_error=last_error,
        generation=beat.generation or None if beat else None,
        host=None if here or beat is None else beat.host,
    )


def heard_until(facts: Facts) -> Instant:
    """Until when signs of life could be heard: while the store can't be read, or written, nobody is silent for that."""
    if facts.store is None:
        return 0
    until = min(facts.store.at, facts.now)
    return min(until, max((beat.at for beat in facts.store.beats), default=0)) if facts.store_full else until


def is_young(facts: Facts) -> bool:
    """Whether the store came so lately, in place of another, that signs of life may still be on their way there.

    So may they be where its disk was full until lately.
    """
    since = max(facts.store.since if facts.store else 0, 0 if facts.store_full else facts.full_at)
    return bool(since) and facts.now - since < SPEAKS_WITHIN


def state(
    beat: Beat | None,
    process: Process | None,
    beats: bool,
    now: Instant,
    gone: Collection[int] = (),
    *,
    young: bool = False,
) -> RoleState:
    """See :class:`RoleStatus`. A sign of life given by an earlier process says nothing of the one that runs now; one
    from another machine, where a role of this name runs too, leaves nothing to be heard of the one that runs here.

    ``young``: so is the store, and who isn't known to be gone is taken to be up.
    """
    if process is not None and (process.pid is None or process.pid in gone):
        return "down"
    if process is None and beat is not None and is_gone(beat, gone):
        return "down"
    if process is not None and beat is not None and is_here(beat) and beat.pid != process.pid:
        beat = None
    fresh = beat is not None and now - beat.at < SILENT_AFTER
    if beat is not None and (fresh or (process is not None and not beats)):
        return beat.state if beat.state in ("misconfigured", "unavailable") else "up"  # type: ignore[return-value]
    if young:
        return "up"
    if process is None:
        return "silent" if beat is not None and not is_here(beat) and now else "down"
    if process.started and now - process.started < SPEAKS_WITHIN:
        return "up"
    return "silent" if beats and now else "up"


def all_restarts(processes: Iterable[tuple[str, Process]]) -> int | None:
    """How often roles were started again; None where no supervisor counts."""
    counted = [process.restarts for name, process in processes if kind_of(name) in ROLES]
    return sum(counted) if counted else None
