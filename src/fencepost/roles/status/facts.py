"""Everything that a status document is made from, as one value, whoever read it and however much could be read."""

from collections.abc import Mapping

from msgspec import Struct

from fencepost.core.capacity.rows import CalibrationRow, CheckpointRow, DrainRow, ShardRow
from fencepost.core.instant import Duration, Instant
from fencepost.core.store import Head, Order, Row
from fencepost.core.traffic.membership import Membership
from fencepost.core.zone import Live
from fencepost.ports import Beat, Enacted, PortError
from fencepost.roles.configuration import Loaded
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.document import Source
from fencepost.roles.status.promise_watch import Broken
from fencepost.settings import Region

Findings = Mapping[str, Mapping[str, tuple[str, str]]]


class Process(Struct, frozen=True):
    """A process as the supervisor knows it: its pid (None: not running now) and how often it was started again.

    ``started`` is when (nanoseconds since 1970), 0 if unknown.
    """

    pid: int | None
    restarts: int = 0
    last_exit: str | None = None
    started: Instant = 0


class FleetFacts(Struct, frozen=True):
    """The fleet's rows that say how it stands: ``told`` is what each shard's manager says of itself."""

    life: str
    shards: Mapping[int, ShardRow]
    told: Mapping[int, CheckpointRow]
    calibration: CalibrationRow | None


class StoreFacts(Struct, frozen=True):
    """What the store said, as of ``at`` (nanoseconds since 1970). ``fenced`` counts since the region's start.

    ``breaches`` are the promises seen broken since then (a day back at most), as the history has them. ``since`` is
    when this store came in place of another; 0 if it has been there as long as anybody looked. ``stages`` are of the
    fleet's work, () if it has none or didn't say; ``fleet`` is None in the same cases.
    """

    at: Instant
    head: Head
    rows: Mapping[str, Row]
    enacted: Mapping[str, Enacted]
    loaded: Loaded | None
    pools: Mapping[str, Membership]
    overrides: tuple[StoredOverride, ...]
    orders: tuple[Order, ...]
    findings: Findings
    beats: tuple[Beat, ...]
    fenced: int
    breaches: tuple[Broken, ...] = ()
    since: Instant = 0
    stages: tuple[DrainRow, ...] = ()
    fleet: FleetFacts | None = None


class DnsFacts(Struct, frozen=True):
    """What stands in DNS, by endpoint, as of ``at``; a name that isn't here wasn't looked at."""

    at: Instant
    lives: Mapping[str, Live]


class ObserverFacts(Struct, frozen=True):
    """What the observer has seen: when it was last answered (0: never), and how each promise fared.

    ``since`` is when it began; it counts anew after each start.
    """

    at: Instant
    checked: Mapping[str, int]
    broken: Mapping[str, int]
    violations: tuple[Broken, ...]
    emptied: Mapping[str, Duration]
    empty_now: Mapping[str, Instant]
    looks: int
    unanswered: int
    altered: int
    error: str = ""
    unsure: Mapping[str, int] = {}
    since: Instant = 0


class Facts(Struct, frozen=True):
    """The whole; ``now`` is nanoseconds since 1970.

    ``source`` is how far down one had to look. ``store`` and ``dns`` may be old: their ``at`` tells; the errors say why
    they couldn't be read this time. ``first_seen`` is since when each problem (id, on) has been seen, for those whose
    own beginning isn't recorded. ``processes`` is empty where no supervisor runs the roles. ``stuck_writer`` is who
    holds the store's write lock and doesn't move, as the supervisor sees it: its pid and for how many seconds.
    ``gone`` are the pids of roles that are no longer processes of this machine, however young their last sign of life.
    ``stopped`` are those, and the supervisor, that a signal stopped: they can do nothing until they are told to go on.
    ``repairers`` is who repaired and why, by endpoint and hold, where the history says so: a repair needs no store, and
    its marker names nobody. ``logs`` are the names of log files in ``folder``.
    ``store_full`` is what is to be said of a store that can be read and has no room to be written,
    ``full_at`` when it was last seen so (0: never).
    ``file`` is what region.toml says where it lies, if it has no mistakes; it is looked at only once it was refused.
    """

    region: Region
    now: Instant
    source: Source
    store: StoreFacts | None = None
    store_error: PortError | None = None
    store_full: PortError | None = None
    full_at: Instant = 0
    dns: DnsFacts | None = None
    dns_error: PortError | None = None
    observer: ObserverFacts | None = None
    processes: Mapping[str, Process] = {}
    stuck_writer: tuple[int, float] | None = None
    first_seen: Mapping[tuple[str, str], Instant] = {}
    folder: str = ""
    gone: frozenset[int] = frozenset()
    stopped: frozenset[int] = frozenset()
    logs: frozenset[str] = frozenset()
    repairers: Mapping[tuple[str, int], tuple[str, str]] = {}
    file: Region | None = None
