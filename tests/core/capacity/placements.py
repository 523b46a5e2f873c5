"""A small fleet on the reference store: hosts that come, lapse, return and tell, and managers that place."""

from msgspec import structs

from fencepost.core.capacity import attempts, lease_rows
from fencepost.core.capacity.fleet_store import Change, Claim, Fleet, Group, Versioned, commit
from fencepost.core.capacity.messages import Instance, InstanceSet
from fencepost.core.capacity.placement import Placement, PlacementSettings, Told
from fencepost.core.capacity.rows import HostRow, InstanceRow, ShardRow, kind_of
from fencepost.core.capacity.shards import shard_of

LIFE = "life-1"


def host(name: str, zone: str = "a", room: int = 2, **fields: object) -> HostRow:
    """A host that is held and has reported."""
    addresses = tuple(f"127.1.{name[1:]}.{index}" for index in range(1, room + 1))
    row = HostRow(name, zone, "127.0.0.1:9", room, addresses, 1, 7, "held", LIFE, 5, 6, reported=True)
    return structs.replace(row, **fields)


class World:
    """The store, the hosts' own sets (what they run), and one placement a shard."""

    def __init__(self, *hosts: HostRow, shards: int = 1, **settings: object) -> None:
        self.of = shards
        self.settings = settings
        rows = [ShardRow(shard, shards, f"m{shard}", 1, 1, LIFE) for shard in range(1, shards + 1)]
        self.fleet = Fleet(LIFE, 1, tuple((("shard", row.key), Versioned(row, 1)) for row in rows))
        self.runs: dict[str, InstanceSet] = {}
        self.down: dict[str, frozenset[str]] = {}
        self.ever: set[str] = set()
        self.now = 0
        for each in hosts:
            self.add(each)
        self.placements = {shard: self.fresh(shard) for shard in range(1, shards + 1)}

    # The store.

    def write(self, *groups: Group, shard: int = 0) -> tuple[bool, ...]:
        """Commit groups and check what must hold whatever happens."""
        claim = Claim(shard, f"m{shard}", 1, LIFE) if shard else None
        before = self.hosts()
        self.fleet, applied = commit(self.fleet, claim, groups)
        assert applied is not None
        self.holds(before)
        return applied

    def put(self, row: HostRow | InstanceRow) -> None:
        """Write one row over what there is."""
        at = self.fleet.table().get((kind_of(row), row.key))
        assert self.write((Change(row, at.revision if at else 0),)) == (True,)

    def hosts(self) -> dict[str, HostRow]:
        """All hosts' rows."""
        return {at.row.host: at.row for _, at in self.fleet.rows if isinstance(at.row, HostRow)}

    def instances(self) -> dict[str, InstanceRow]:
        """All instances' rows."""
        return {at.row.instance: at.row for _, at in self.fleet.rows if isinstance(at.row, InstanceRow)}

    # What must hold.

    def holds(self, before: dict[str, HostRow]) -> None:
        """Never over room, an address once, an id in one set and placed once, versions rising, held hosts only."""
        ids: dict[str, str] = {}
        addresses: set[str] = set()
        for name, row in self.hosts().items():
            assert len(row.set.instances) <= row.room
            was = before.get(name)
            for each in row.set.instances:
                assert each.id not in ids, f"{each.id} on {ids[each.id]} and on {name}"
                ids[each.id] = name
                if was is not None and each.id not in was.set.ids and not self.told_by(name, each.id):
                    # One that says just now that it can write again may be given something in the same write.
                    assert structs.replace(was, unable=row.unable).placeable(LIFE)
                    assert each.id not in self.ever, f"{each.id} placed twice"
                    self.ever.add(each.id)
                    assert each.address in row.addresses
                    assert each.address not in addresses
                addresses.add(each.address)
            if was is not None and row.set.instances != was.set.instances:
                assert row.set.version > was.set.version
        for instance in self.instances().values():
            if instance.state == "placed":
                assert ids.get(instance.id, instance.host) == instance.host

    def told_by(self, name: str, id_: str) -> bool:
        """Whether a host itself brought an id into its row."""
        return name in self.runs and id_ in self.runs[name].ids

    # What happens.

    def add(self, row: HostRow) -> None:
        """A new host."""
        self.put(row)
        self.runs[row.host] = row.set
        self.down[row.host] = frozenset()

    def launch(self, *names: str, pool: str = "web") -> None:
        """New instances."""
        for name in names:
            self.put(InstanceRow(name, pool, port=80))

    def terminate(self, name: str) -> None:
        """Somebody wants it ended."""
        self.put(attempts.ending(self.instances()[name]))

    def word(self, name: str, word: str) -> None:
        """A person's word about a host."""
        self.put(structs.replace(self.hosts()[name], word=word))

    def lapse(self, name: str) -> None:
        """The host's manager gives it up."""
        row = lease_rows.lapsed(self.hosts()[name], LIFE)
        if row is not None:
            self.put(row)

    def back(self, name: str, incarnation: int = 5) -> None:
        """The host answers again; with another incarnation its memory is gone."""
        row = self.hosts()[name]
        if row.incarnation != incarnation:
            self.runs[name], self.down[name] = InstanceSet(), frozenset()
        self.put(lease_rows.granted(row, LIFE, row.nonce + 1, incarnation, row.boot + 1))
        adopted = lease_rows.adopted(self.hosts()[name], LIFE, self.runs[name])
        if adopted is not None:
            self.put(adopted)

    def obey(self, name: str) -> bool:
        """A held host gets its set, if it isn't the one it has."""
        row = self.hosts()[name]
        if row.held(LIFE) and row.set.version > self.runs[name].version:
            self.runs[name] = row.set
            self.down[name] &= row.set.ids
            return True
        return False

    def dies(self, id_: str) -> None:
        """An attempt ends by itself."""
        for name, had in self.runs.items():
            if id_ in had.ids:
                self.down[name] |= {id_}

    # The managers.

    def fresh(self, shard: int) -> Placement:
        """A manager that knows nothing yet."""
        settings = PlacementSettings(shard=shard, of=self.of, **self.settings)  # type: ignore[arg-type]
        return Placement(settings, LIFE)

    def read(self, shard: int) -> Placement:
        """A manager reads all rows, and hears what its own hosts told."""
        placement = self.placements[shard]
        for _, at in self.fleet.rows:
            if isinstance(at.row, ShardRow):
                placement.shard(at.row)
            elif isinstance(at.row, HostRow):
                placement.host(at)
            elif isinstance(at.row, InstanceRow):
                placement.instance(at)
        for name, row in self.hosts().items():
            told = Told(self.runs[name].version, self.down[name])
            if shard_of(name, self.of) == shard:
                placement.tell(name, told if row.held(LIFE) else None)
        return placement

    def turn(self, shard: int = 1, *, stale: bool = False, ready: bool = True) -> int:
        """One manager's turn: how many groups applied. ``stale``: it doesn't read first."""
        placement = self.placements[shard] if stale else self.read(shard)
        groups = placement.decide(self.now, 99, lambda _: ready)
        assert placement.decide(self.now, 99, lambda _: ready) == groups
        applied = self.write(*groups, shard=shard)
        placement.wrote(groups, self.fleet.snapshot, applied)
        return sum(applied)

    def settle(self, *, ready: bool = True, turns: int = 30) -> None:
        """Turns of all managers, and hosts that obey, until nothing changes."""
        for _ in range(turns):
            changed = sum(self.turn(shard, ready=ready) for shard in self.placements)
            if not changed + sum(self.obey(name) for name in self.hosts()):
                return
        raise AssertionError("it never settles")

    def where(self, name: str) -> str:
        """Which host an instance is placed at."""
        return self.instances()[name].host


def instance(id_: str, address: str = "") -> Instance:
    """An attempt as a host holds it."""
    return Instance(id_, "web", address, 80)
