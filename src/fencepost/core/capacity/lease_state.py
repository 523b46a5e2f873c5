"""A lease manager's state as a value: what it is, and whether it may act and place by it."""

from copy import copy
from typing import Self

from msgspec.structs import astuple

from fencepost.core.capacity.lease_calls import Lease, LeaseSettings
from fencepost.core.capacity.lease_columns import LONG_AGO, LeaseColumns, older
from fencepost.core.capacity.shard_owner import ShardOwner
from fencepost.core.instant import Duration, Instant


class LeaseState:
    """The manager's whole state. It can be lost at any moment: whoever comes after waits, and then knows as much.

    ``loaded``: the rows were read since the shard was taken, which was at ``taken``; ``waited``: and again by a read
    begun after the wait for hosts that no row tells of. ``ticked``: the last tick.
    ``lapses`` is how many held leases lapsed since ``window``; ``mass``: too many would. ``room`` is for the shard's
    row, as its driver counts it.
    """

    def __init__(self, settings: LeaseSettings) -> None:
        self.settings = settings
        self.owner = ShardOwner(settings)
        self.hosts = LeaseColumns()
        self.loaded = False
        self.waited = False
        self.taken: Instant = LONG_AGO
        self.ticked: Instant = LONG_AGO
        self.window: Instant = LONG_AGO
        self.lapses = 0
        self.mass = False
        self.room = 0

    def copy(self) -> Self:
        """One that changes on its own."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.owner, other.hosts = copy(self.owner), self.hosts.copy()
        return other

    def key(self) -> tuple[object, ...]:
        """What tells its state from another."""
        own = (self.loaded, self.waited, self.taken, self.ticked, self.window, self.lapses, self.mass)
        return (*own, *astuple(self.owner)[1:], *self.hosts.key())

    def aged(self, by: Duration, oldest: Instant) -> None:
        """The same, ``by`` nanoseconds later, told from the same now; nothing is told apart beyond ``oldest``."""
        self.hosts.aged(by, oldest)
        for name in ("taken", "ticked", "window"):
            setattr(self, name, older(getattr(self, name), by, oldest))
        for name in ("since", "away", "beaten"):
            setattr(self.owner, name, older(getattr(self.owner, name), by, oldest))

    @property
    def acting(self) -> bool:
        """Whether it may write and order: it owns the shard, knows its rows, and the store is there."""
        return self.owner.acting and self.loaded

    @property
    def complete(self) -> bool:
        """Whether the rows know as many hosts as the configuration names."""
        return 0 < self.settings.expect <= self.hosts.size

    def wait_over(self, now: Instant) -> bool:
        """Whether hosts that no row tells of have had the time that they have to make themselves known."""
        return now - self.taken >= max(self.settings.lease, self.owner.wait)

    @property
    def placing(self) -> bool:
        """Whether each of the shard's hosts has told its set, or lapsed, in this life of the store.

        Hosts that a lost store no longer knows may still come: they have the whole wait for it, unless the
        configuration names all that there are. The rows are read once more when it is over: a manager that slept, or a
        read that took long, would else place anew what a host runs that has long made itself known.
        """
        hosts, row = self.hosts, self.owner.row
        if not self.acting or (row is not None and row.open == self.owner.life):
            return self.acting
        waited = self.complete or self.waited
        told = (hosts.lease == Lease.LAPSED) | ((hosts.lease == Lease.HELD) & hosts.reported)
        return waited and bool(told.all())
