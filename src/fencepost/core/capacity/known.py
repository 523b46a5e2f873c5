"""What a shard's manager knows when it places: all rows as last read, what hosts told, and what is to be looked at.

Only what changed is looked at again, so that a fleet of a million in which little happens costs little.
"""

from collections.abc import Mapping, MutableMapping, Sequence

from msgspec import Struct

from fencepost.core.capacity import attempts
from fencepost.core.capacity.fleet_store import Group, Versioned
from fencepost.core.capacity.packed_hosts import PackedHosts
from fencepost.core.capacity.room import Room
from fencepost.core.capacity.rows import HostRow, InstanceRow, ShardRow
from fencepost.core.capacity.shards import closed, shard_of
from fencepost.core.instant import MINUTE, SECOND, Duration, Instant


class PlacementSettings(Struct, frozen=True, gc=False):
    """Whose instances are placed, and how patiently.

    ``patience``: how long a moved instance's old attempt waits for the new one to be ready. ``linger``: how long it
    stays on its host after nobody waits for it any more: what callers' caches keep. ``again`` and ``longest``: after an
    attempt that ended by itself the next waits that long, doubled each time; one that ran for ``calm`` starts anew.
    ``settle``: what is found down so soon after we began ended with its host, or before anybody looked on: it is tried
    again at once, where it was. ``elsewhere``: what ended by itself is tried again on another host, if there is room on
    one; without it where it was, if there is room there. ``most``: groups a turn; ``group_most``: instances in one
    group, since a store takes so many rows at once.
    """

    shard: int = 1
    of: int = 1
    patience: Duration = 5 * MINUTE
    linger: Duration = 0
    again: Duration = SECOND
    longest: Duration = 5 * MINUTE
    calm: Duration = 10 * MINUTE
    settle: Duration = 0
    elsewhere: bool = True
    most: int = 1000
    group_most: int = 48


class Told(Struct, frozen=True, gc=False):
    """What a host told under its current token: the version of its set, what of it doesn't run, and maybe why.

    ``unable`` says why it can't write its memory; then ``boot`` is the start of its agent that says so, and ``refused``
    are the attempts that this start never starts.
    """

    version: int
    down: frozenset[str] = frozenset()
    causes: Mapping[str, str] = {}
    unable: str = ""
    boot: int = 0
    refused: frozenset[str] = frozenset()


class Strikes(Struct, frozen=True, gc=False):
    """How often in a row an instance ended by itself, when it may be tried again, and where it was.

    ``count`` 0: it ended with its host, or while nobody looked on, and is tried again at once, where it was.
    """

    count: int
    attempt: int
    until: Instant
    host: str


class Known:
    """All rows as last read. It can be lost at any moment: the rows, and hosts asked again, say as much."""

    def __init__(self, settings: PlacementSettings, life: str, packed: PackedHosts | None = None) -> None:
        """``packed`` is for very many hosts, an empty one; a dict unless given."""
        self.settings = settings
        self.life = life
        self.packed = packed
        self.room = Room(life, str(settings.shard), packed.drafts if packed is not None else None)
        self.shards: dict[int, ShardRow] = {}
        self.hosts: MutableMapping[str, Versioned] = packed if packed is not None else {}
        self.instances: dict[str, Versioned] = {}
        self.told: dict[str, Told] = {}
        self.waiting: dict[str, None] = {}
        self.ending: dict[str, None] = {}
        self.moving: dict[str, Instant | None] = {}
        self.unsure: dict[str, None] = {}
        self.look: dict[str, None] = {}
        self.later: dict[str, None] = {}
        self.strays: dict[str, dict[tuple[str, str], Instant]] = {}
        self.strikes: dict[str, Strikes] = {}
        self.began: Instant | None = None
        self.forgotten: dict[str, None] = {}
        self.settling: dict[str, tuple[str, Instant | None]] = {}
        self.unable: dict[str, None] = {}

    # What is.

    def shard(self, row: ShardRow) -> None:
        """A shard's row."""
        self.shards[row.shard] = row

    def host(self, at: Versioned) -> None:
        """A host's row, if it is newer than what is known."""
        row, known = at.row, self.hosts.get(at.row.key)
        if not isinstance(row, HostRow) or (known is not None and known.revision >= at.revision):
            return
        was = known.row if known is not None and isinstance(known.row, HostRow) else None
        if self.packed is not None:
            at = self.packed.own(at)
            row = at.row if isinstance(at.row, HostRow) else row
        self.hosts[row.host] = at
        self.room.put(row)
        if row.forgotten:
            self.forgotten[row.host] = None
        else:
            self.forgotten.pop(row.host, None)
        if row.unable:
            self.unable[row.host] = None
        if was is not None:
            stays = row.set.ids
            self.unsure.update(dict.fromkeys(each.name for each in was.set.instances if each.id not in stays))
        if row.set.instances:
            self.look[row.host] = None

    def instance(self, at: Versioned) -> None:
        """An instance's row, if it is newer than what is known."""
        row, known = at.row, self.instances.get(at.row.key)
        if not isinstance(row, InstanceRow) or (known is not None and known.revision >= at.revision):
            return
        was = self.instance_row(row.instance)
        self.instances[row.instance] = at
        for word, kept in (("waiting", self.waiting), ("ending", self.ending)):
            if row.state == word and (word != "waiting" or self.mine(row.instance)):
                kept[row.instance] = None
            else:
                kept.pop(row.instance, None)
        if row.old != attempts.NO_OLD and row.state in ("waiting", "placed"):
            self.moving.setdefault(row.instance, None)
        else:
            self.moving.pop(row.instance, None)
        if row.state == "placed":
            self.unsure[row.instance] = None
        if row.state == "ending" and row.host and row.address:
            self.room.leaving(row.instance, row.address)
        else:
            self.room.leaves(row.instance)
        if row.state != "placed" or not row.ends or not self.mine(row.instance):
            self.settling.pop(row.instance, None)
        elif self.settling.get(row.instance, ("", None))[0] != row.id:
            self.settling[row.instance] = (row.id, None)
        for each in (was, row):
            if each is not None:
                self.look.update(dict.fromkeys(host for host in (each.host, each.old[0]) if host in self.hosts))

    def deleted(self, instance: str) -> None:
        """An ended instance's row is gone."""
        self.instances.pop(instance, None)
        for kept in (self.waiting, self.ending, self.moving, self.unsure, self.strays, self.strikes, self.settling):
            kept.pop(instance, None)
        self.room.leaves(instance)

    def tell(self, host: str, told: Told | None) -> None:
        """What a host told under its current token; None when that token is no longer the current one."""
        if told is None:
            self.told.pop(host, None)
        else:
            self.told[host] = told
            if told.down or told.refused:
                self.look[host] = None
            if told.unable:
                self.unable[host] = None

    def wrote(self, groups: Sequence[Group], snapshot: int, applied: Sequence[bool]) -> None:
        """Groups of an earlier turn were written; those that were not are to be read again before the next turn."""
        for group, ok in zip(groups, applied, strict=True):
            for change in group if ok else ():
                if isinstance(change.row, HostRow):
                    self.host(Versioned(change.row, snapshot))
                elif isinstance(change.row, InstanceRow):
                    self.instance(Versioned(change.row, snapshot))

    def host_row(self, host: str) -> HostRow | None:
        """A host's row as read."""
        at = self.hosts.get(host)
        return at.row if at is not None and isinstance(at.row, HostRow) else None

    def instance_row(self, instance: str) -> InstanceRow | None:
        """An instance's row as read."""
        at = self.instances.get(instance)
        return at.row if at is not None and isinstance(at.row, InstanceRow) else None

    def mine(self, instance: str) -> bool:
        """Whether this shard places it."""
        return self.settings.of == 1 or shard_of(instance, self.settings.of) == self.settings.shard

    @property
    def opened(self) -> bool:
        """Whether every shard is open in this life of the store."""
        return not closed(self.shards.values(), self.settings.of, self.life)

    def over(self, host: HostRow | None, id_: str) -> str:
        """Why an attempt at a host is over, in words; "" if it isn't, or that can't be known yet."""
        if host is None:
            return ""
        if self.lapsed(host):
            return f"{host.host} lapsed"
        told = self.told.get(host.host)
        if told is not None and id_ in told.down:
            cause = told.causes.get(id_, "")
            return f"ended by itself on {host.host}" + (f": {cause}" if cause else "")
        if self.refused(host, id_):
            return f"wasn't started: {host.host} can't write its memory"
        if host.held(self.life) and host.reported and id_ not in host.set.ids:
            return f"{host.host} doesn't have it"
        return ""

    def refused(self, host: HostRow, id_: str) -> bool:
        """Whether a host that can't write its memory refused an attempt for good, whoever starts its agent anew."""
        told = self.told.get(host.host)
        if told is None or id_ not in told.refused or not (host.held(self.life) and host.reported):
            return False
        return attempts.refused_for_good(host, told.boot, told.version)

    def stopped(self, host: str, id_: str) -> bool:
        """Whether an attempt is known not to run at a host any more, or not to be believed to: it has lapsed."""
        row = self.host_row(host)
        if row is None or id_ in row.set.ids:
            return False
        told = self.told.get(host)
        sure = told is not None and row.held(self.life) and row.reported and told.version == row.set.version
        return sure or self.lapsed(row)

    def lapsed(self, host: HostRow) -> bool:
        """Whether its lease has run out in this life of the store."""
        return host.lease == "lapsed" and host.life == self.life
