"""The network manager's mirror of the rows it goes by, and what is to be compared and sent because they changed.

Work follows from what changed, not from how much there is: an attempt is compared when its host's row, its own row or
the configuration changed, or its host was heard to have something else; a host is counted anew when any of its rows
changed.
"""

from collections.abc import Iterable, Sequence

from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.network_manager import Pair
from fencepost.core.capacity.network_state import commands, owed, wanted
from fencepost.core.capacity.rows import HostRow, NetworkRow, ShardRow
from fencepost.core.capacity.shards import shard_of
from fencepost.core.instant import Instant
from fencepost.ports.fleet import Page

A_COMMIT = 1000
"""So many rows are compared and published at once."""


class NetworkTable:
    """``life`` is the store's that all of it is of. ``owing`` are hosts that owe states: how many, and since when."""

    def __init__(self) -> None:
        self.begin("")

    def begin(self, life: str) -> None:
        """Forget all: this is another store."""
        self.life = life
        self.accept: tuple[str, ...] | None = None
        self.since = {"network": 0, "host": 0, "shard": 0}
        self.inputs = 0
        self.hosts: dict[str, HostRow] = {}
        self.shards: dict[int, ShardRow] = {}
        self.states: dict[str, Versioned] = {}
        self.where: dict[str, str] = {}
        self.compare: dict[str, None] = {}
        self.count: dict[str, None] = {}
        self.astray: dict[str, Instant] = {}
        self.owing: dict[str, tuple[int, Instant]] = {}

    @property
    def depth(self) -> int:
        """How many states are owed."""
        return sum(count for count, _ in self.owing.values())

    def oldest(self, now: Instant) -> Instant:
        """For how long the host that has owed longest has; 0 if none does."""
        return now - min((since for _, since in self.owing.values()), default=now)

    # What is read

    def take_states(self, page: Page) -> int:
        """Network rows that changed; how many new acknowledgements are among them."""
        self.since["network"] = page.snapshot
        return sum(self.put_state(each) for each in page.rows)

    def put_state(self, found: Versioned) -> bool:
        """A network row as it stands; whether it is acknowledged anew. One older than the table's is passed over."""
        row, known = found.row, self.states.get(found.row.key)
        if not isinstance(row, NetworkRow) or (known is not None and known.revision >= found.revision):
            return False
        self.states[row.id] = found
        self.compare[row.id] = self.count[row.host] = None
        before = known.row.acked if known is not None and isinstance(known.row, NetworkRow) else None
        return row.acked != before and bool(row.acked[0])

    def lose_state(self, id_: str) -> None:
        """A network row that isn't there any more."""
        found = self.states.pop(id_, None)
        self.astray.pop(id_, None)
        if found is not None:
            self.compare[id_] = None

    def take_hosts(self, page: Page) -> None:
        """Hosts' rows that changed: all their attempts are compared, and those that left are astray."""
        self.since["host"] = self.inputs = page.snapshot
        for each in page.rows:
            if isinstance(each.row, HostRow):
                self.put_host(each.row)

    def put_host(self, row: HostRow) -> None:
        """A host's row as it stands."""
        before = self.hosts.get(row.host)
        for id_ in before.set.ids - row.set.ids if before is not None else ():
            if self.where.get(id_) == row.host:
                del self.where[id_]
            self.compare[id_] = None
        self.hosts[row.host] = row
        self.count[row.host] = None
        for instance in row.set.instances:
            self.where[instance.id] = row.host
            self.compare[instance.id] = None

    def take_shards(self, page: Page) -> None:
        """Shards' rows that changed."""
        self.since["shard"] = page.snapshot
        for each in page.rows:
            if isinstance(each.row, ShardRow):
                self.shards[each.row.shard] = each.row

    def take_accept(self, accept: tuple[str, ...]) -> None:
        """What the configuration lets reach instances; another than before concerns every attempt."""
        if accept != self.accept:
            self.accept = accept
            self.compare.update(dict.fromkeys(self.where))

    # What follows

    @property
    def of(self) -> int:
        """How many shards there are; 0 before any has an owner."""
        return max((row.of for row in self.shards.values()), default=0)

    def shard(self, host: str) -> ShardRow | None:
        """The row of a host's shard."""
        return self.shards.get(shard_of(host, self.of)) if self.of else None

    def to_compare(self, now: Instant) -> list[tuple[ShardRow, tuple[Pair, ...]]]:
        """What is to be compared, by shard, so many at once; the rest waits. It counts as compared now."""
        if self.accept is None:
            return []
        ids = [*self.compare][:A_COMMIT]
        by_shard: dict[int, tuple[ShardRow, list[Pair]]] = {}
        later: set[str] = set()
        for host, chosen in self._by_host(ids, now).items():
            row, shard = self.hosts[host], self.shard(host)
            if not commands(row, self.life):
                continue  # they are compared when its row changes
            if shard is None:
                later |= chosen
                continue
            pairs = by_shard.setdefault(shard.shard, (shard, []))[1]
            pairs += [Pair(want, self.states.get(want.id)) for want in wanted(row, self.accept) if want.id in chosen]
        for id_ in ids:
            if id_ not in later:
                del self.compare[id_]
        return [(shard, tuple(pairs)) for shard, pairs in by_shard.values() if pairs]

    def _by_host(self, ids: Iterable[str], now: Instant) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for id_ in ids:
            host = self.where.get(id_)
            if host is not None:
                found.setdefault(host, set()).add(id_)
                self.astray.pop(id_, None)
            elif id_ in self.states:
                self.astray.setdefault(id_, now)
        return found

    def spent(self, before: Instant, most: int) -> list[Versioned]:
        """Rows of attempts that have been in no host's set since ``before`` that instant, oldest first."""
        found = [self.states[id_] for id_, since in self.astray.items() if since <= before and id_ in self.states]
        return [each for each in found if self._left(each)][:most]

    def _left(self, state: Versioned) -> bool:
        row = state.row
        host = self.hosts.get(row.host) if isinstance(row, NetworkRow) else None
        return host is not None and host.life == self.life and host.reported

    def recount(self, now: Instant) -> tuple[list[str], list[str]]:
        """Hosts that owe something, and hosts that owe nothing (any more), of those that changed."""
        owe, free = [], []
        for host in self.count:
            count = self.owed(host)
            if count:
                self.owing[host] = (count, self.owing.get(host, (0, now))[1])
                owe.append(host)
            else:
                self.owing.pop(host, None)
                free.append(host)
        self.count = {}
        return owe, free

    def owed(self, host: str) -> int:
        """How many states a host owes that may be told."""
        row = self.hosts.get(host)
        if row is None or not commands(row, self.life):
            return 0
        found = (self.states.get(id_) for id_ in row.set.ids)
        return sum(owed(each.row, row, self.life) for each in found if each and isinstance(each.row, NetworkRow))

    def ids(self, host: str) -> Sequence[str]:
        """The attempts that a host is to run, as far as is known, that a state was published for."""
        row = self.hosts.get(host)
        return sorted(id_ for id_ in row.set.ids if id_ in self.states) if row is not None else ()
