"""The status document, ``fencepost.status/1``: what a region looks like now, for people, scripts and pages alike.

Within version 1 keys are only added. Seconds end in ``_s``, times are RFC 3339 in UTC, unknown is ``null`` and never 0,
arrays are sorted by name. Weights are numbers, whole where they are whole.
"""

from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec

from fencepost.core.instant import SECOND, Duration, Instant

SCHEMA = "fencepost.status/1"

TIMES_END: Instant = 253_402_300_800 * SECOND
"""Where RFC 3339's four digits of a year end: the first instant of year 10,000."""

BEYOND = "beyond year 9999"
"""What people read in place of a time that no calendar has."""

Time: TypeAlias = str
"""RFC 3339, UTC, to the millisecond (without a fraction where there is none)."""
Number: TypeAlias = int | float
Verdict: TypeAlias = Literal["ok", "working", "attention"]
EndpointState: TypeAlias = Literal["published", "withdrawn", "foreign"]
RoleState: TypeAlias = Literal["up", "misconfigured", "unavailable", "silent", "down"]
Source: TypeAlias = Literal["api", "store", "dns"]


class Config(msgspec.Struct, frozen=True):
    """The file that was loaded; ``rejected_at`` is when a newer text of it was refused, which then changed nothing."""

    path: str
    loaded_at: Time | None
    rejected_at: Time | None
    rejected_for: str | None = None


class Out(msgspec.Struct, frozen=True):
    """A target that isn't answered: ``reason`` for people, ``rule`` as in the membership row."""

    address: str
    reason: str
    rule: str
    since: Time | None


class EndpointStatus(msgspec.Struct, frozen=True):
    """One endpoint. ``addresses`` are those that stand in DNS, ``kept`` those of them that look dead.

    ``emptied_by_others_s`` is how long, since the observer started, callers got no address because somebody else had
    taken the records away: looked for each second, and more often while it lasts, so shorter gaps may go unseen.
    ``instead`` is what stands there that no address can stand beside: ``CNAME``, or another type that isn't ours.
    """

    name: str
    state: EndpointState | None
    epoch: int | None
    generation: int | None
    as_planned: bool | None
    pool: str | None
    ttl_s: int | None
    addresses: tuple[str, ...] | None
    kept: tuple[str, ...]
    out: tuple[Out, ...]
    written_by: str | None
    written_at: Time | None
    writes: int | None
    emptied_by_others_s: float | None
    instead: str | None = None


class PoolStatus(msgspec.Struct, frozen=True, rename={"in_": "in"}):
    """One pool, in targets; ``in_`` counts kept ones. ``budget``, ``max_out`` and ``min_in`` are in weight, as applied.

    ``weight`` is what they are parts of: that of all targets that count. ``max_out_targets`` is ``max_out`` in targets;
    both hold. ``burst`` is the budget when full.
    ``budget_next_s`` is how long until the budget is worth one average target; null if it is, or if removals have
    stopped.
    """

    name: str
    targets: int
    in_: int | None
    dead: int | None
    kept: int | None
    out: int | None
    pending: int | None
    suspect: bool | None
    panic: bool | None
    max_out: Number | None
    min_in: Number | None
    budget: Number | None
    budget_next_s: float | None
    drained: int | None = None
    mode: str | None = None
    read_s: float | None = None
    weight: Number | None = None
    max_out_targets: int | None = None
    burst: Number | None = None

    @property
    def weighed(self) -> bool:
        """Whether targets are known to weigh more than 1, the least there is, so that weights don't count targets."""
        return self.weight is not None and self.weight > self.targets

    @property
    def may_be_out(self) -> str:
        """The most that automation may take out, for people: in targets, and in weight where that says more."""
        if self.max_out_targets is None:
            return "?" if self.max_out is None else f"a weight of {self.max_out:g}"
        most = f"{self.max_out_targets} target{'' if self.max_out_targets == 1 else 's'}"
        return f"{most}, {self.max_out:g} of {self.weight:g} weight" if self.weighed else most


class CheckerStatus(msgspec.Struct, frozen=True):
    """One checker as a pool's load balancer heard it: "ok", "stale", or why it distrusts itself."""

    zone: str
    pool: str
    state: str


class RoleStatus(msgspec.Struct, frozen=True):
    """One process. ``state``: up, misconfigured, unavailable, silent (runs, gives no sign of life), down.

    ``generation``: the newest that an enactor has read in DNS. ``host``: which other one it runs on, as far as signs of
    life tell, so that ``pid`` is a process there; null for this one's.
    """

    name: str
    state: RoleState
    pid: int | None
    restarts: int | None
    version: str | None
    seen_s: float | None
    last_error: str | None
    generation: int | None = None
    host: str | None = None


class OverrideStatus(msgspec.Struct, frozen=True):
    """What a person said: drain, keep, pause, observe (targets, zones, pools), repair, rollback, withdraw (names).

    ``until`` null means until ``fencepost resume``. ``by`` and ``reason`` are null where only DNS could be read.
    """

    what: str
    on: str
    by: str | None
    reason: str | None
    until: Time | None
    id: str | None = None


class Problem(msgspec.Struct, frozen=True, rename={"try_": "try"}):
    """Something that isn't as it should be. ``id`` is the anchor of its runbook page; ``try_`` a line to paste."""

    id: str
    kind: Literal["refused", "unavailable", "misconfigured"]
    on: str
    what: str
    try_: str
    needs_person: bool
    since: Time | None


class Promise(msgspec.Struct, frozen=True):
    """A promise as checked from outside; the counts are since the observer started (``observed.since``).

    ``held`` is false also if it was seen broken before that, within a day and this run of the region. It is null while
    nothing tested it, and where it once looked broken and couldn't be told (``times_unsure``).
    """

    held: bool | None
    times_checked: int | None
    times_broken: int | None = None
    times_unsure: int | None = None


class Violation(msgspec.Struct, frozen=True):
    """A promise that was seen broken."""

    promise: str
    on: str
    what: str
    at: Time


class Ages(msgspec.Struct, frozen=True):
    """How old what this document rests on is; null was never read. A part that has stopped seeing shows here."""

    store_s: float | None
    dns_s: float | None
    observer_s: float | None


class Observed(msgspec.Struct, frozen=True):
    """What the observer asked, and since when it and the promises count: since the API's last start.

    Unanswered questions (timeouts, refusals) are no empty answers.
    """

    looks: int
    unanswered: int
    altered_by_others: int
    since: Time | None = None


class StageStatus(msgspec.Struct, frozen=True):
    """What waits in a stage of the fleet's work, as its manager said at ``at``: "network" is network states.

    ``waiting`` of ``bound``, the oldest for ``oldest_s``; ``rate_s`` is how many a second get done when it is busy.
    """

    stage: str
    waiting: int
    bound: int
    rate_s: float
    oldest_s: float
    at: Time | None


class ShardStatus(msgspec.Struct, frozen=True):
    """One shard of the fleet, as its manager said ``told_s`` ago; null is what nobody said.

    ``state`` and ``pid`` are its manager's role; ``epoch`` says how often the shard changed hands. Hosts are counted by
    their leases (``suspect`` ones are held, and didn't answer lately), instances by their states. ``placing`` is
    whether instances may be placed, ``waits_for`` what that waits for. ``mass``: so many fell silent at once that no
    lease lapses. What it did counts from its start; ``in_flight`` of ``limit`` checks are out (the
    shard's share of the fleet's), ``backlog`` wait or are.
    """

    shard: int
    state: RoleState | None
    pid: int | None
    epoch: int | None
    told_s: float | None
    placing: bool | None
    waits_for: str | None
    mass: bool | None
    hosts: int | None
    held: int | None
    suspect: int | None
    lapsed: int | None
    room: int | None
    waiting: int | None
    pending: int | None
    ready: int | None
    ending: int | None
    checks: int | None
    answers: int | None
    granted: int | None
    lapses: int | None
    orders: int | None
    in_flight: int | None
    limit: int | None
    backlog: int | None


class RecoveryStatus(msgspec.Struct, frozen=True):
    """While many hosts lack a lease: ``back`` of ``of`` hold one, ``rate_s`` more a second over the last ``over_s``,
    and at that rate it is done in ``done_s``; null where it can't be told. See ``docs/operating/recovery.md``.
    """

    back: int
    of: int
    rate_s: float | None
    over_s: float | None
    done_s: float | None


class FleetStatus(msgspec.Struct, frozen=True):
    """The fleet: its shards, and when it was measured how many hosts may be asked at once (``limit``), by all
    shards together.

    ``rate_s`` is how many leases come back a second, as measured then. All four are null where it never was.
    ``recovery`` is null where few lack a lease.
    """

    shards: tuple[ShardStatus, ...]
    calibrated_at: Time | None
    calibrated_s: float | None
    limit: int | None
    rate_s: float | None
    recovery: RecoveryStatus | None = None


class Status(msgspec.Struct, frozen=True, rename={"schema_": "schema"}):
    """The whole document; see ``docs/operating/status.md``."""

    schema_: str
    version: str
    region: str
    owner: str
    at: Time
    source: Source
    verdict: Verdict
    mode: str
    provider: str
    plan: int | None
    config: Config
    endpoints: tuple[EndpointStatus, ...]
    pools: tuple[PoolStatus, ...]
    roles: tuple[RoleStatus, ...]
    overrides: tuple[OverrideStatus, ...]
    problems: tuple[Problem, ...]
    promises: dict[str, Promise]
    restarts: int | None
    fenced: int | None
    violations: tuple[Violation, ...] = ()
    checkers: tuple[CheckerStatus, ...] = ()
    ages: Ages = Ages(None, None, None)
    observed: Observed | None = None
    stages: tuple[StageStatus, ...] = ()
    fleet: FleetStatus | None = None


def when(at: Instant) -> Time | None:
    """An instant (nanoseconds since 1970) as text; None for 0, which stands for unknown, and for what is no time.

    What a store or a marker holds was written by somebody: one number beyond the calendar must not cost the document.
    """
    if not is_time(at):
        return None
    # Not strftime, whose %Y has no leading zeros here.
    moment = datetime.fromtimestamp(at // SECOND, UTC).isoformat(timespec="seconds").partition("+")[0]
    millis = at % SECOND // 1_000_000
    return f"{moment}.{millis:03}Z" if millis else f"{moment}Z"


def is_time(at: object) -> bool:
    """Whether something is an instant that calendars have: after 1970 began, and before year 10,000."""
    return isinstance(at, int) and 0 < at < TIMES_END


def instant(text: Time) -> Instant:
    """What :func:`when` wrote, to the millisecond. Raises ``ValueError``."""
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * SECOND + moment.microsecond * 1000


def seconds(length: Duration) -> float:
    """A length of time in seconds, to the millisecond; never negative, whatever clocks do."""
    return max(0, length // 1_000_000) / 1000


def number(value: float) -> Number:
    """A weight: whole if it is whole, else to three places."""
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def encode(status: Status) -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(status)


def decode(data: bytes) -> Status:
    """A document of version 1, also a later one with more keys. Raises ``msgspec.ValidationError``."""
    return msgspec.json.decode(data, type=Status)


def status_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    schema = msgspec.json.schema(Status)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
