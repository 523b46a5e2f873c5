"""The fleet's rows as a load balancer goes by them, and what it asks of them at each pass.

A fleet has a hundred thousand rows, a pool a few hundred targets, and a pass comes each second: so what a pass asks (a
pool's instances, who holds an attempt, what stands at an address, which hosts can give it) is found by an index, and
each index is kept by what changed. A change costs what that row has, a pass what its pool has.
"""

from collections.abc import Collection, Iterable
from typing import TypeVar

from msgspec import Struct, field

from fencepost.core.capacity.rows import FleetRow, HostRow, InstanceRow, NetworkRow

Row = TypeVar("Row")


class FleetRows(Struct):
    """The fleet's rows as read last, by key, all of one life of the store. Changed by :meth:`take` alone.

    The indexes: ``placed`` has the placed instances of each pool by name; ``at`` the placed and ending ones at each
    address, by name; ``holders`` the host whose set has an attempt, by the attempt's id; ``givers`` the hosts that can
    give an address, by name.
    """

    life: str = ""
    instances: dict[str, InstanceRow] = field(default_factory=dict)
    hosts: dict[str, HostRow] = field(default_factory=dict)
    networks: dict[str, NetworkRow] = field(default_factory=dict)
    placed: dict[str, dict[str, InstanceRow]] = field(default_factory=dict)
    at: dict[str, dict[str, InstanceRow]] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)
    givers: dict[str, dict[str, HostRow]] = field(default_factory=dict)

    @classmethod
    def of(cls, life: str, rows: Iterable[FleetRow]) -> "FleetRows":
        """Those of a life that are these rows."""
        made = cls(life)
        for row in rows:
            made.take(row)
        return made

    def take(self, row: FleetRow) -> None:
        """A row that is new, or stands in the place of what it was; rows of other kinds are passed over."""
        match row:
            case InstanceRow():
                self._take_instance(row)
            case HostRow():
                self._take_host(row)
            case NetworkRow():
                self.networks[row.id] = row

    def of_pool(self, pool: str) -> list[InstanceRow]:
        """The placed instances of a pool, in order of their names."""
        found = self.placed.get(pool, {})
        return [found[name] for name in sorted(found)]

    def holder(self, ids: Collection[str]) -> dict[str, HostRow]:
        """The hosts that have any of these attempts in their set, by the attempt's id."""
        names = {id_: self.holders[id_] for id_ in ids if id_ in self.holders}
        return {id_: self.hosts[name] for id_, name in names.items() if name in self.hosts}

    def of_address(self, address: str) -> list[InstanceRow]:
        """What is placed or ending at an address, in order of their names."""
        found = self.at.get(address, {})
        return [found[name] for name in sorted(found)]

    def giving(self, address: str) -> list[HostRow]:
        """The hosts that can give an address, in order of their names."""
        found = self.givers.get(address, {})
        return [found[name] for name in sorted(found)]

    def _take_instance(self, row: InstanceRow) -> None:
        before, self.instances[row.instance] = self.instances.get(row.instance), row
        if before is not None:
            _drop(self.placed, before.pool, row.instance)
            _drop(self.at, before.address, row.instance)
        if row.state == "placed":
            self.placed.setdefault(row.pool, {})[row.instance] = row
        if row.address and row.state in ("placed", "ending"):
            self.at.setdefault(row.address, {})[row.instance] = row

    def _take_host(self, row: HostRow) -> None:
        before, self.hosts[row.host] = self.hosts.get(row.host), row
        if before is not None:
            for id_ in before.set.ids - row.set.ids:
                if self.holders.get(id_) == row.host:
                    del self.holders[id_]
            for address in before.addresses:
                _drop(self.givers, address, row.host)
        self.holders.update(dict.fromkeys(row.set.ids, row.host))
        for address in row.addresses:
            self.givers.setdefault(address, {})[row.host] = row


def _drop(index: dict[str, dict[str, Row]], under: str, name: str) -> None:
    """Take a name out of an index, and what is then empty with it: a fleet's addresses come and go for years."""
    found = index.get(under)
    if found is not None and found.pop(name, None) is not None and not found:
        del index[under]
