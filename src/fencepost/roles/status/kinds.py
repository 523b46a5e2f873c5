"""Every kind of problem there is. Each id is the anchor of a page in ``docs/operating/problems.md``, so no id changes.

``kind`` says of what sort it is: *refused* (a rule said no), *unavailable* (something doesn't answer; that may pass),
*misconfigured* (credentials, rights, names, files). A problem needs a person if nothing here will mend it: at once, or
once it has lasted for its patience. What heals itself never asks for anyone.
"""

from typing import Literal

from msgspec import Struct

from fencepost.core.instant import MINUTE, SECOND, Duration
from fencepost.core.traffic.membership import Rule


class Kind(Struct, frozen=True):
    """A kind of problem. ``patience`` is how long it may last before a person is needed; None: none ever is."""

    id: str
    kind: Literal["refused", "unavailable", "misconfigured"]
    patience: Duration | None = None


AT_ONCE: Duration = 0

KEPT = {
    rule: Kind(f"kept-by-{rule.value.replace('_', '-')}", "refused", patience)
    for rule, patience in (
        (Rule.OPERATOR, None),
        (Rule.FAILING_NOW, None),
        (Rule.MIN_IN, AT_ONCE),
        (Rule.LAST_OF_FAMILY, AT_ONCE),
        (Rule.ZONE_FAILOVER, None),
        (Rule.FAIL_OPEN, None),
        (Rule.FREEZE, None),
        (Rule.MAX_OUT, None),
        (Rule.BUCKET, None),
    )
}
"""A dead target that is still answered, by the rule that keeps it. `fail-open` itself asks for a person."""

FAIL_OPEN = Kind("fail-open", "refused", AT_ONCE)
POOL_SUSPECT = Kind("pool-suspect", "refused")
NO_QUORUM = Kind("no-quorum", "unavailable", MINUTE)
TARGETS_UNSEEN = Kind("targets-unseen", "unavailable", MINUTE)
CHECKER_SUSPECT = Kind("checker-suspect", "unavailable", 5 * MINUTE)
CHECKER_OUTVOTED = Kind("checker-outvoted", "refused", 5 * MINUTE)
TARGETS_REFUSED = Kind("targets-refused", "refused", AT_ONCE)
TARGETS_PENDING = Kind("targets-pending", "unavailable")
LAST_ONE_OVER = Kind("last-one-over", "refused", 5 * MINUTE)

FOREIGN_RECORD = Kind("foreign-record", "refused", AT_ONCE)
NEEDS_ADOPT = Kind("needs-adopt", "refused", AT_ONCE)
CONTESTED = Kind("contested-two-stores", "refused", AT_ONCE)
EMPTY_NOW = Kind("empty-now", "unavailable", 5 * SECOND)
NOT_PUBLISHED = Kind("not-published", "unavailable", MINUTE)
ENACTORS_BEHIND = Kind("enactors-behind", "unavailable", 30 * SECOND)
PLANNER_BEHIND = Kind("planner-behind", "unavailable", 30 * SECOND)
ORPHAN = Kind("orphan-endpoint", "refused")
PROMISE_BROKEN = Kind("promise-broken", "refused", AT_ONCE)

HOSTS_SILENT = Kind("hosts-silent", "unavailable", MINUTE)
SHARD_UNMANAGED = Kind("shard-unmanaged", "unavailable", 30 * SECOND)
HOST_LAPSED = Kind("host-lapsed", "unavailable", 10 * MINUTE)
HOST_CANNOT_WRITE = Kind("host-cannot-write", "unavailable", MINUTE)
DRAIN_STUCK = Kind("drain-stuck", "refused", 5 * MINUTE)
NO_ROOM = Kind("no-room", "refused", 5 * MINUTE)
CRASH_LOOP = Kind("crash-loop", "refused", AT_ONCE)
LEASES_IN_MEMORY = Kind("leases-in-memory", "unavailable")
PLACING_CLOSED = Kind("placing-closed", "refused", 5 * MINUTE)

STORE_UNAVAILABLE = Kind("store-unavailable", "unavailable", MINUTE)
STORE_MISCONFIGURED = Kind("store-misconfigured", "misconfigured", AT_ONCE)
STORE_NEW = Kind("store-new", "unavailable")
WRITER_STUCK = Kind("writer-stuck", "unavailable", 30 * SECOND)
DNS_UNAVAILABLE = Kind("dns-unavailable", "unavailable", MINUTE)
PROVIDER_REFUSES = Kind("provider-refuses", "misconfigured", AT_ONCE)
CONFIG_REJECTED = Kind("config-rejected", "misconfigured", AT_ONCE)
CONFIG_MISSING = Kind("config-missing", "misconfigured", 30 * SECOND)
REGION_DOWN = Kind("region-down", "unavailable", AT_ONCE)
ROLE_DOWN = Kind("role-down", "unavailable", 30 * SECOND)
ROLE_SILENT = Kind("role-silent", "unavailable", 30 * SECOND)
ROLE_UNAVAILABLE = Kind("role-unavailable", "unavailable", MINUTE)
ROLE_MISCONFIGURED = Kind("role-misconfigured", "misconfigured", AT_ONCE)
ROLE_OTHER_VERSION = Kind("role-other-version", "misconfigured", 10 * MINUTE)

KINDS: dict[str, Kind] = {
    kind.id: kind
    for kind in (
        *KEPT.values(),
        FAIL_OPEN,
        POOL_SUSPECT,
        NO_QUORUM,
        TARGETS_UNSEEN,
        CHECKER_SUSPECT,
        CHECKER_OUTVOTED,
        TARGETS_REFUSED,
        TARGETS_PENDING,
        LAST_ONE_OVER,
        FOREIGN_RECORD,
        NEEDS_ADOPT,
        CONTESTED,
        EMPTY_NOW,
        NOT_PUBLISHED,
        ENACTORS_BEHIND,
        PLANNER_BEHIND,
        ORPHAN,
        PROMISE_BROKEN,
        HOSTS_SILENT,
        SHARD_UNMANAGED,
        HOST_LAPSED,
        HOST_CANNOT_WRITE,
        DRAIN_STUCK,
        NO_ROOM,
        CRASH_LOOP,
        LEASES_IN_MEMORY,
        PLACING_CLOSED,
        STORE_UNAVAILABLE,
        STORE_MISCONFIGURED,
        STORE_NEW,
        WRITER_STUCK,
        DNS_UNAVAILABLE,
        PROVIDER_REFUSES,
        CONFIG_REJECTED,
        CONFIG_MISSING,
        REGION_DOWN,
        ROLE_DOWN,
        ROLE_SILENT,
        ROLE_UNAVAILABLE,
        ROLE_MISCONFIGURED,
        ROLE_OTHER_VERSION,
    )
}
"""All of them, by id."""
