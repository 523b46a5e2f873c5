"""Which rows nobody minds any more: instances that ended a while ago, and launches all of whose instances are gone.

They stay long enough to be looked at, and longer than a launch may be finished by whoever asks again; a host remembers
what ended there far longer, so nothing comes back by being forgotten here.

A host that a person forgets keeps its row, marked: whoever has its lease may keep its row in memory, and isn't told of
rows that are deleted.
"""

from collections.abc import Collection, Iterable, Mapping

from fencepost.core.capacity.fleet_store import Change, Group, Versioned
from fencepost.core.capacity.launches import FINISHED_WITHIN
from fencepost.core.capacity.rows import HostRow, InstanceRow, LaunchRow
from fencepost.core.instant import DAY, HOUR, Duration, Instant

ENDED_KEPT: Duration = HOUR
LAUNCH_KEPT: Duration = DAY
"""So long a launch's key still answers, at least."""
MOST = 500


def unforgettable(row: HostRow, life: str) -> str:
    """Why a host can't be forgotten, in words that follow its name; "" if it can.

    Once it has lapsed nothing may count on it; before, what runs there would run unseen.
    """
    if row.lease == "lapsed" and row.life == life:
        return ""
    runs = len(row.set.instances)
    some = f"{runs} instance{'' if runs == 1 else 's'}"
    if row.held(life):
        return f"holds its lease and runs {some}" if runs else "holds its lease"
    return f"may run {some}: its lease is unknown" if runs else ""


def hidden(row: HostRow, life: str) -> bool:
    """Whether a host is forgotten, and hasn't come back since."""
    return row.forgotten and not row.held(life)


def clearable(
    instances: Mapping[str, Versioned], launches: Iterable[Versioned], held: Collection[str], now: Instant
) -> tuple[Group, ...]:
    """Deletions, each alone. ``held`` are instances in some host's set; ``now`` is nanoseconds since 1970."""
    found: list[Group] = []
    for name, at in instances.items():
        row = at.row
        if isinstance(row, InstanceRow) and row.state == "ended" and name not in held:
            since = max(row.ended_at, row.asked_at + FINISHED_WITHIN)
            if now - since > ENDED_KEPT:
                found.append((Change(None, at.revision, ("instance", name)),))
    for at in launches:
        row = at.row
        old = isinstance(row, LaunchRow) and now - row.asked_at > LAUNCH_KEPT
        if isinstance(row, LaunchRow) and old and not any(name in instances for name in row.instances):
            found.append((Change(None, at.revision, ("launch", row.name)),))
    return tuple(found[:MOST])
