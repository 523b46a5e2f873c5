"""What can be seen of the region at the end of a step: the names that rules, charts and files use."""

QUANTITIES = {
    "dns_empty": ("endpoint without an address", "1 or 0"),
    "store_access": ("callers that reach the store", "share"),
    "leases_missing": ("hosts without a lease", "share"),
    "lease_queue": ("calls in the lease manager's line", "count"),
    "launches_wanted": ("launches asked for, those that come back included", "per second"),
    "launches_failing": ("launches refused", "share"),
    "launches_admitted": ("launches let in", "per second"),
    "launches_met": ("launches let in, to those newly asked for", "share"),
    "launches_owed": ("how long the launches not had so far would take, at the usual pace", "seconds"),
    "network_age": ("how long a new instance waits for its network state", "seconds"),
    "network_work": ("how long it takes to work off all changes of it, those held back included", "seconds"),
    "targets_unready": ("targets without their network state, to all targets", "share"),
    "results_late": ("check results that came too late", "share"),
    "capacity_out": ("healthy capacity taken out of DNS", "share"),
    "capacity_missing": ("capacity that was lost and not replaced", "share"),
    "connection_errors": ("connections that fail", "share"),
    "connection_errors_15m": ("the same, mean of fifteen minutes", "share"),
}
"""Each quantity's meaning and unit."""
