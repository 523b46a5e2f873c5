"""The status document in lines, for ``status`` and the screen of ``up``. Pure: a document and a time in, text out."""

from collections.abc import Sequence

from msgspec import structs

from fencepost.cli.layout import ENDLESS, beside, cells, table
from fencepost.cli.terminal import moment, styled
from fencepost.core.instant import SECOND, Instant
from fencepost.core.traffic.membership import Rule
from fencepost.roles.status import kinds
from fencepost.roles.status.document import (
    EndpointStatus,
    PoolStatus,
    Problem,
    RoleStatus,
    ShardStatus,
    Status,
    instant,
)
from fencepost.roles.status.fleet import OLD
from fencepost.roles.status.recovery import recovery_words
from fencepost.settings.units import spoken

UNKNOWN = "?"
TAIL_AT = 63
"""Where what is counted stands beside the head of the endpoints, if there is room."""
LEAST_TARGETS = 20
"""Columns that the targets of a zone can do with, one under another."""
ADDRESS = "ADDRESS"
FOLDED_SHOWN = 4
FIRST = (
    kinds.EMPTY_NOW,
    kinds.PROMISE_BROKEN,
    kinds.REGION_DOWN,
    kinds.PROVIDER_REFUSES,
    kinds.DNS_UNAVAILABLE,
    kinds.STORE_MISCONFIGURED,
    kinds.STORE_UNAVAILABLE,
)
"""What is told before all else that is for a person."""
VERDICTS = {"ok": "green", "working": "yellow", "attention": "red"}


def endpoint_table(
    status: Status, now: Instant, tail: str = "", columns: int = ENDLESS, most: int | None = None
) -> list[str]:
    """The endpoints, one a line; ``tail`` stands at the right of the head line, or above it where that is full.

    ``most``: so many endpoints at most; those that aren't as they should be come first then.
    """
    shown = list(status.endpoints)
    if most is not None and len(shown) > most:
        shown = sorted(shown, key=lambda each: bool(each.addresses) and not each.kept and not each.out)[: most - 1]
    rows: list[tuple[str, ...]] = [("ENDPOINT", "GEN", "IN DNS", "KEPT", "OUT", "WRITTEN BY")]
    rows += [endpoint_row(each, status, now) for each in shown]
    lines = headed(table(rows, columns=columns, drop=(5, 1, 3, 4), right=(1, 3, 4)))
    if len(shown) < len(status.endpoints):
        lines.append(f" and {len(status.endpoints) - len(shown)} more: fencepost status")
    place = min(TAIL_AT, columns - len(tail))
    if tail and place >= cells(lines[0]) + 2:
        lines[0] += " " * (place - cells(lines[0])) + tail
        return lines
    return [f" {tail}", *lines] if tail else lines


def endpoint_row(each: EndpointStatus, status: Status, now: Instant) -> tuple[str, ...]:
    """One endpoint's cells."""
    pool = next((pool for pool in status.pools if pool.name == each.pool), None)
    count = UNKNOWN if each.addresses is None else str(len(each.addresses))
    # More than the pool has: a repair's or rollback's own addresses, or targets that have just left the file.
    beyond = pool is None or (each.addresses is not None and len(each.addresses) > pool.targets)
    shown = count if beyond or pool is None else f"{count} of {pool.targets}"
    by = (each.written_by or "").replace("/", " ") or UNKNOWN
    if each.written_at is not None:
        by += f", {spoken(max(0, now - instant(each.written_at)))} ago"
    held = [word.what for word in status.overrides if word.on == each.name and word.what in ("repair", "rollback")]
    if held and each.addresses is not None:
        shown = f"{count} ({held[0]})"  # its own addresses, which need be no targets of the pool
    if each.state == "withdrawn":
        shown = "withdrawn"
    elif each.state == "foreign":
        shown, by = "foreign", "another owner"
        if each.instead is not None:
            shown, by = each.instead, f"nothing is written beside a {each.instead}"
    elif each.as_planned is False:
        by += " (not as planned)"
    generation = UNKNOWN if each.generation is None else str(each.generation)
    return each.name, generation, shown, str(len(each.kept)), str(len(each.out)), by


def pool_line(pool: PoolStatus, status: Status) -> str:
    """A pool's numbers and limits."""
    parts = [f"{pool.targets} {'target' if pool.targets == 1 else 'targets'}, {known(pool.dead)} dead"]
    if pool.kept:
        parts.append(f"{pool.kept} kept")
    if pool.pending:
        parts.append(f"{pool.pending} pending")
    if pool.drained:
        parts.append(f"{pool.drained} drained")
    most = pool.may_be_out if pool.weighed or pool.max_out_targets is None else pool.max_out_targets
    text = ", ".join(parts) + f"; automation may take out {most} (max_out)"
    if pool.budget is not None:
        full = "" if pool.burst is None else f" of {pool.burst:g}"
        text += f"; budget {pool.budget:.1f}{full}{' weight' if pool.weighed else ''}"
        if pool.budget_next_s is not None:
            text += f", next in {spoken(int(pool.budget_next_s * SECOND))}"
    for flag, word in ((pool.panic, "fail open"), (pool.suspect, "suspect")):
        if flag:
            text += f"; {styled(word, 'yellow')}"
    if pool.mode not in (None, "enabled"):
        text += f"; {styled(mode_text(pool, status), 'yellow')}"
    elif status.mode != "enabled":
        text += f"; {styled(status.mode, 'yellow')}"
    return f" POOL {pool.name}  {text}"


def mode_text(pool: PoolStatus, status: Status) -> str:
    """A pool's mode: as the file has it, or as a person's pause makes it."""
    words = {each.what for each in status.overrides if each.on in (f"pool {pool.name}", "the region")}
    if pool.mode == "disabled" and "pause" in words:
        return "paused"
    return "observed" if pool.mode == "observe" and "observe" in words else str(pool.mode)


def shard_lines(status: Status) -> list[str]:
    """The fleet, a line a shard: its manager, hosts by lease, instances by state; and a line if nobody measured how
    many hosts may be asked at once, and there are more than are.
    """
    if status.fleet is None:
        return []
    lines = []
    for each in status.fleet.shards:
        manager = f"manager {each.state or 'unknown'}" + (f" (pid {each.pid})" if each.pid else "")
        # One that is suspect still holds its lease, and counts among the held for programs; people see each once.
        well = each if each.held is None else structs.replace(each, held=max(0, each.held - (each.suspect or 0)))
        hosts = counted(well, ("held", "suspect", "lapsed"))
        instances = counted(each, ("ready", "pending", "waiting", "ending"))
        number = UNKNOWN if each.hosts is None else f"{each.hosts:,}"
        noun = "host" if each.hosts == 1 else "hosts"
        text = f"{number} {noun}{f' ({hosts})' if hosts else ''}, {instances or 'no instances'}"
        if each.told_s is not None and each.told_s * SECOND >= OLD:
            text += f", as told {spoken(int(each.told_s) * SECOND)} ago"
        if each.placing is False:
            text += f"; {styled('nothing is placed', 'yellow')}: it waits for {each.waits_for}"
        lines.append(f" FLEET  shard {each.shard}: {manager}, {text}")
    if status.fleet.recovery is not None:
        lines.append(f" FLEET  {styled(recovery_words(status.fleet.recovery), 'yellow')}")
    many = any((each.hosts or 0) > (each.limit or 0) for each in status.fleet.shards)
    if status.fleet.calibrated_at is None and status.source != "dns" and many:
        lines.append(" FLEET  never calibrated:  fencepost fleet calibrate  on a quiet day")
    elif status.fleet.calibrated_s is not None:
        age = spoken(int(status.fleet.calibrated_s * SECOND))
        shards = len(status.fleet.shards)
        over = f" over {shards} shards" if shards > 1 else ""
        lines.append(f" FLEET  {status.fleet.limit} checks at once{over}, measured {age} ago")
    return lines


def counted(each: ShardStatus, names: tuple[str, ...]) -> str:
    """Of these numbers those that are known and not 0: ``290 held, 10 suspect``."""
    return ", ".join(f"{getattr(each, name):,} {name}" for name in names if getattr(each, name))


def stage_lines(status: Status) -> list[str]:
    """Stages of the fleet's work in which something waits."""
    words = {"network": "network states"}
    return [
        f" FLEET  {each.waiting:,} {words.get(each.stage, each.stage)} wait, the oldest for {each.oldest_s:.0f} s;"
        f" {each.rate_s:g} a second get done, {each.bound:,} may wait"
        for each in status.stages
        if each.waiting
    ]


def out_lines(status: Status, columns: int = ENDLESS) -> list[str]:
    """The targets that are out, once for all endpoints that say the same of them."""
    said: dict[str, list[str]] = {}
    for each in status.endpoints:
        text = ", ".join(f"{gone.address} {gone.reason}" for gone in each.out)
        said.setdefault(text, []).append(each.name)
    said.pop("", None)
    found = []
    for text, names in said.items():
        whose = f" ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})" if len(said) > 1 else ""
        found += beside(" OUT   ", f"{text}{whose}", columns)
    return found


def known(value: float | None) -> str:
    """A number, or that it isn't known."""
    return UNKNOWN if value is None else f"{value:g}"


def zone_table(
    status: Status, targets: dict[str, list[tuple[str, int | None]]] | None = None, columns: int = ENDLESS
) -> list[str]:
    """The zones: checker, enactor, and (where stand-ins for targets run here) each target with its pid."""
    roles = {role.name: role for role in status.roles}
    zones = sorted(
        {role.name.partition("/")[2] for role in status.roles if role.name.startswith(("checker/", "enactor/"))}
    )
    head = ("ZONE", "CHECKER", "ENACTOR", "TARGETS (pid)") if targets else ("ZONE", "CHECKER", "ENACTOR")
    rows: list[tuple[str, ...]] = [head]
    for zone in zones:
        checker, enactor = roles.get(f"checker/{zone}"), roles.get(f"enactor/{zone}")
        row: tuple[str, ...] = (f"{zone:<4}", checker_text(status, zone, checker), role_text(enactor))
        if targets:
            listed = (f"{address} ({pid or 'down'})" for address, pid in targets.get(zone, ()))
            row += ("  ".join(f"{each:<17}" for each in listed),)
        rows.append(row)
    return headed(table(rows, columns=columns, drop=(3, 2), last=LEAST_TARGETS))


def checker_text(status: Status, zone: str, role: RoleStatus | None) -> str:
    """A zone's checker: how its process is, else how its votes are taken."""
    if role is None or role.state != "up":
        return role.state if role else UNKNOWN
    states = sorted({each.state for each in status.checkers if each.zone == zone})
    return ", ".join(states) or "starting"


def role_text(role: RoleStatus | None) -> str:
    """An enactor: the newest generation that it has seen live, and its process; else how it is."""
    if role is None:
        return UNKNOWN
    well = f"gen {role.generation}" if role.generation else "ok"
    return f"{well if role.state == 'up' else role.state} (pid {role.pid})" if role.pid else role.state


def problem_lines(status: Status, columns: int = ENDLESS) -> list[str]:
    """What isn't as it should be, those for a person first, each with what to try."""
    lines = []
    for each in folded(status.problems):
        word = styled("attention", "red") if each.needs_person else styled("note", "yellow")
        since = f" (since {moment(instant(each.since))})" if each.since else ""
        lines += beside(f" {word}  ", f"{each.on}: {each.what}{since}", columns)
        if each.try_:
            lines.append(f"   try      {each.try_}")
    return lines


def urgency(problem: Problem) -> tuple[bool, int, str, str]:
    """What is for a person first; of that what callers feel, then what may be the cause of all the rest."""
    first = next((rank for rank, kind in enumerate(FIRST) if kind.id == problem.id), len(FIRST))
    return not problem.needs_person, first, problem.id, problem.on


def folded(problems: Sequence[Problem]) -> list[Problem]:
    """In order, and what fail open keeps as one for all targets of which the same is to be said.

    It keeps all at once: of forty dead targets there would be forty hints, alike but for the address. The document has
    each.
    """
    ordered = sorted(problems, key=urgency)
    alike: dict[object, list[Problem]] = {}
    for at, each in enumerate(ordered):
        kept = each.id == kinds.KEPT[Rule.FAIL_OPEN].id
        key: object = (each.needs_person, each.what, each.try_.replace(each.on, ADDRESS)) if kept else at
        alike.setdefault(key, []).append(each)
    return [each[0] if len(each) == 1 else as_one(each) for each in alike.values()]


def as_one(problems: Sequence[Problem]) -> Problem:
    """Problems that are alike but for whom they are on."""
    some = ", ".join(each.on for each in problems[:FOLDED_SHOWN])
    more = f" and {len(problems) - FOLDED_SHOWN} more" if len(problems) > FOLDED_SHOWN else ""
    since = min((each.since for each in problems if each.since), default=None)
    line = f"{problems[0].try_.replace(problems[0].on, ADDRESS)}    for each that is dead indeed"
    return structs.replace(problems[0], on=some + more, try_=line, since=since)


def override_lines(status: Status) -> list[str]:
    """What persons said, and until when."""
    rows = []
    for each in status.overrides:
        until = f"until {moment(instant(each.until))}" if each.until else "until you resume it"
        who = f"; by {each.by}: {each.reason}" if each.by else ""
        rows.append((each.what, each.on, until + who))
    return table(list(dict.fromkeys(rows)))  # an address of several pools has a word in each


def other_role_lines(status: Status) -> list[str]:
    """Roles without a zone that aren't up; where none is, that has been said."""
    if any(problem.id == "region-down" for problem in status.problems):
        return []
    return [
        f" {role.name} is {role.state}{f': {role.last_error}' if role.last_error else ''}"
        for role in status.roles
        if "/" not in role.name and role.state != "up" and role.name not in {each.on for each in status.problems}
    ]


def unsure_promises(status: Status) -> list[str]:
    """The promises that looked broken and couldn't be told."""
    return sorted(name for name, each in status.promises.items() if each.held is None and each.times_unsure)


def promise_line(status: Status) -> str:
    """What was promised and seen to hold; "" while nobody has looked."""
    checked = {name: each for name, each in status.promises.items() if each.held is not None}
    broken = sorted(name for name, each in checked.items() if not each.held)
    if broken:
        return " " + styled(f"BROKEN: {', '.join(broken)}", "red")
    unsure = unsure_promises(status)
    doubt = f" · can't be told: {', '.join(unsure)}" if unsure else ""
    if not checked:
        return doubt.replace(" ·", "")
    empty = checked.get("never_empty")
    times = f" (never_empty {empty.times_checked:,} checks)" if empty and empty.times_checked else ""
    return f" {len(checked)} promises held{times}{doubt}"


def headed(lines: list[str]) -> list[str]:
    """A table with its head line made to stand out."""
    return [styled(lines[0], "bold"), *lines[1:]] if lines else []


def status_lines(status: Status, now: Instant, columns: int = ENDLESS) -> list[str]:
    """The whole document for people, for so many columns; text that is wider wraps when it is printed."""
    counts = f"fenced {known(status.fenced)} · restarts {known(status.restarts)}"
    plan = f" · plan {status.plan}" if status.plan is not None else ""
    verdict = styled(status.verdict, VERDICTS[status.verdict])
    head = f"{styled(status.region, 'bold')} · {verdict}{plan} · {status.provider} · mode {status.mode}"
    lines = [f"{head} · {moment(instant(status.at))}"]
    lines += problem_lines(status, columns)
    if status.endpoints:
        lines += endpoint_table(status, now, counts, columns)
    lines += [*out_lines(status, columns), *(pool_line(pool, status) for pool in status.pools)]
    lines += [*shard_lines(status), *stage_lines(status)]
    if status.roles:
        lines += zone_table(status, columns=columns)
    lines += other_role_lines(status)
    overrides = override_lines(status)
    if overrides:
        lines += headed([" PLACED BY PERSONS", *overrides])
    held = promise_line(status)
    return lines + ([held] if held else [])
