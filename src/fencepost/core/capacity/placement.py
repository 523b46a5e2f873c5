"""Which host each instance runs on: what a shard's manager writes next, from rows and what hosts told it.

A level, not a plan: it looks at what is and gives the groups of changes that bring it nearer to what was asked for.
Given the same rows it gives the same groups, so that any of them may be lost, refused or written twice over. A group is
one host's row and the rows of instances that come to it or leave it, written together or not at all: an attempt is in
the set of the host that its row names, and of no other.

- An instance is placed only once every shard is open: each host has told what it runs in this life of the store, or has
  lapsed. Before that a store put back from a copy would have things started that run already.
- An attempt is over when its host has lapsed, has told that it doesn't run (``down``), or has told a set without it.
  The same attempt is never started again: the next has the next number, and the old one leaves its host's set, so that
  a host that comes back is told to stop it.
- An attempt that a host holds and the rows don't know is taken into the rows: the host is right about what it runs.
- A host being drained: first the next attempt elsewhere; the old one goes on until that is in service and it itself
  isn't any more (or for so long at most), and leaves the host after a while more, in which callers' caches forget it.
- Terminated is "ended" only when the host has told exactly the set without it, or has lapsed.
- An attempt that ends by itself soon is tried again later and later, and elsewhere if there is an elsewhere. One that
  ended with its host, or while nobody looked on, is tried at once, where it was.

Awkward truth: what a host told is known to its own manager alone. So a fleet of several shards gives each manager all
rows of instances, not only those of its shard: it ends attempts on its own hosts, and places its own instances.
"""

from collections.abc import Callable, Iterable

from fencepost.core.capacity.fleet_store import Group, Versioned
from fencepost.core.capacity.known import Known, PlacementSettings, Told
from fencepost.core.capacity.placing import Turn
from fencepost.core.capacity.rows import HostRow, InstanceRow, ShardRow
from fencepost.core.instant import Instant

__all__ = ["Placement", "PlacementSettings", "Told", "decided"]


class Placement(Known):
    """All rows as last read. It can be lost at any moment: the rows, and hosts asked again, say as much."""

    def decide(
        self, now: Instant, wall: Instant = 0, ready: Callable[[str], bool] = lambda _: False
    ) -> tuple[Group, ...]:
        """The groups to write now. ``now`` is any steady time, ``wall`` nanoseconds since 1970.

        ``ready`` says of an attempt's id whether it may serve.
        """
        self.began = now if self.began is None else self.began
        turn = Turn(self, now, wall, ready)
        try:
            turn.take()
            return turn.groups()
        finally:
            turn.undo()


def decided(
    settings: PlacementSettings,
    life: str,
    rows: Iterable[Versioned],
    told: Iterable[tuple[str, Told]] = (),
    now: Instant = 0,
    ready: Callable[[str], bool] = lambda _: False,
) -> tuple[Group, ...]:
    """What is to be written, of all rows at once: for whoever keeps nothing between two looks."""
    placement = Placement(settings, life)
    for at in rows:
        if isinstance(at.row, ShardRow):
            placement.shard(at.row)
        elif isinstance(at.row, HostRow):
            placement.host(at)
        elif isinstance(at.row, InstanceRow):
            placement.instance(at)
    for host, said in told:
        placement.tell(host, said)
    return placement.decide(now, 0, ready)
