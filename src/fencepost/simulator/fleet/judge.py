"""The fleet's promises, judged at each commit, start and answer; see :mod:`fencepost.core.promises` for their words.

Truth is kept here, apart from what any part believes: which attempt was started where, which are over, what each host
acknowledged, and since when each part has been well.
"""

from typing import TYPE_CHECKING

from fencepost.core.capacity.fleet_store import Change, Claim, Group
from fencepost.core.capacity.messages import Answer, Order
from fencepost.core.capacity.rows import FleetRow, HostRow, InstanceRow, ShardRow
from fencepost.core.capacity.token import Token
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.ports.fleet import Written

if TYPE_CHECKING:
    from fencepost.simulator.fleet.hosts import SimHost
    from fencepost.simulator.fleet.manager import SimManager
    from fencepost.simulator.fleet.walk import Walk

SLACK: Duration = 5 * SECOND
"""What calls and lines add to a lease before a host that was well may be said to have been let down."""


def name_of(id_: str) -> tuple[str, int]:
    """An attempt's instance and number."""
    name, _, number = id_.rpartition(".")
    return name, int(number)


class Judge:
    """What has happened, and what it breaks."""

    def __init__(self, lease: Duration) -> None:
        self.lease = lease
        self.hosts: dict[str, SimHost] = {}
        self.managers: dict[str, SimManager] = {}
        self.starts: dict[str, tuple[str, Instant]] = {}
        self.over: dict[tuple[str, str], Instant] = {}
        self.ended: dict[str, None] = {}
        self.acked: dict[str, Token] = {}
        self.owners: dict[tuple[str, str, Token], str] = {}
        self.ordered: dict[tuple[str, Token], str] = {}
        self.taken: dict[tuple[str, int], str] = {}
        self.restored_at: Instant = -1

    def begin(self, walk: "Walk") -> None:
        """Judge this walk."""
        self.walk = walk

    def check(self, promise: str, broken: str = "") -> None:
        """Judged once more; ``broken`` says how it was broken."""
        self.walk.watch.checked[promise] += 1
        if broken:
            self.walk.watch.judge(promise, broken)

    # Commits

    def write(self, who: str, claim: Claim | None, row: FleetRow, seen: int) -> bool:
        """One row by one group; whether it applied."""
        written = self.commit(who, claim, [(Change(row, seen),)])
        self.walk.noticed()
        return written is not None and written.applied[0]

    def commit(self, who: str, claim: Claim | None, groups: list[Group] | tuple[Group, ...]) -> Written | None:
        """A commit takes effect, and is judged."""
        rows = self.walk.rows
        before = {
            change.place: found.row for group in groups for change in group
            if (found := rows.table.get(change.place)) is not None
        }  # fmt: skip
        written = rows.commit(claim, groups)
        if written is None:
            self.walk.watch.saw("claim refused")
            return None
        for group, ok in zip(groups, written.applied, strict=True):
            for change in group if ok else ():
                if change.row is not None:
                    self.changed(who, before.get(change.place), change.row)
        return written

    def changed(self, who: str, before: FleetRow | None, row: FleetRow) -> None:
        """One row is another now."""
        match row:
            case HostRow():
                self.host(who, before if isinstance(before, HostRow) else None, row)
            case InstanceRow():
                self.instance(before if isinstance(before, InstanceRow) else None, row)
            case ShardRow():
                self.shard(who, before if isinstance(before, ShardRow) else None, row)

    def shard(self, who: str, before: ShardRow | None, row: ShardRow) -> None:
        """An epoch belongs to one owner, and never falls."""
        if before is not None and row.epoch < before.epoch:
            self.check("single_holder", f"{who} sets shard {row.shard} back from epoch {before.epoch} to {row.epoch}")
        if before is None or before.epoch != row.epoch:
            self.taken[row.owner, row.epoch] = self.walk.rows.life
        if before is None or before.owner != row.owner:
            self.walk.watch.saw("taken over" if before is not None else "taken")
            self.walk.tell(who, f"takes shard {row.shard}, epoch {row.epoch}")
        elif row.epoch > before.epoch:
            self.walk.watch.saw("epoch raised")
            self.walk.tell(who, f"raises shard {row.shard} to epoch {row.epoch}")
        if row.open and (before is None or before.open != row.open):
            self.walk.tell(who, f"opens shard {row.shard}")

    def host(self, who: str, before: HostRow | None, row: HostRow) -> None:
        """A lease is given, taken or marked; a set is adopted."""
        life, tell = self.walk.rows.life, self.walk.tell
        saw = self.walk.watch.saw
        if before is None:
            tell(who, "is registered")
            return
        if row.number != before.number:
            saw("granted")
            tell(who, f"grants {row.host} lease {row.number}")
        if row.lease == "lapsed" and (before.lease, before.life) != ("lapsed", life):
            self.lapsed(who, row)
        if row.left and not before.left:
            saw("marked")
            tell(who, f"marks {row.host}, {row.left // SECOND} s left")
        if row.reported and not before.reported:
            saw("reported")
            if row.set != before.set:
                saw("adopted")
                tell(who, f"adopts what {row.host} tells: {' '.join(sorted(row.set.ids))}")

    def lapsed(self, who: str, row: HostRow) -> None:
        """Nothing but a host's own fault, or a manager's, makes a lease lapse."""
        host, manager = self.hosts[row.host], self.managers.get(who)
        self.walk.watch.saw("lapsed")
        self.walk.tell(who, f"lets the lease of {row.host} lapse")
        if row.word == "gone":
            return
        since = max(host.process.well_since, host.cut_until, self.walk.network_bad_until)
        well = host.process.alive and not host.cut and self.walk.now - since > self.lease + SLACK
        steady = manager is not None and self.walk.now - manager.process.well_since > self.lease + SLACK
        wrong = well and steady
        self.check("outage_lapses_nothing", f"{who} lets {row.host} lapse, which answers" if wrong else "")

    def instance(self, before: InstanceRow | None, row: InstanceRow) -> None:
        """An attempt is placed or over; an instance has ended."""
        saw, tell = self.walk.watch.saw, self.walk.tell
        was = (before.host, before.id) if before is not None else ("", "")
        if before is not None and before.attempt and before.host and was not in ((row.host, row.id), row.old):
            self.over[was] = self.walk.now
            tell("placement", f"{before.id} is over: {row.why or 'moved'}")
        if row.state == "placed" and (before is None or before.state != "placed" or before.id != row.id):
            saw("placed")
            if row.attempt > 1:
                saw("replaced")
            tell("placement", f"places {row.id} on {row.host}")
        if row.state == "ended" and (before is None or before.state != "ended"):
            saw("ended")
            tell("placement", f"{row.instance} has ended")
            self.ended[row.instance] = None
            for host in self.hosts.values():
                for id_ in host.running:
                    # An older copy that outlived its lease there stops at the host's first contact, ended or not.
                    outlived = (host.name, id_) in self.over
                    if name_of(id_)[0] == row.instance and self.believed(host) and not outlived:
                        self.check("ended_stays_ended", f"{row.instance} is told as ended and runs on {host.name}")
            self.check("ended_stays_ended")

    def believed(self, host: "SimHost") -> bool:
        """Whether the store says that this host's lease is held, and that it told its set."""
        at = self.walk.rows.table.get(("host", host.name))
        row = at.row if at is not None else None
        return isinstance(row, HostRow) and row.held(self.walk.rows.life) and row.reported

    # Hosts

    def started(self, host: str, id_: str) -> None:
        """An attempt starts."""
        saw = self.walk.watch.saw
        saw("started")
        self.walk.tell(host, f"starts {id_}")
        first = self.starts.get(id_)
        wrong = ""
        if first is not None:
            other, at = first
            # A store put back has forgotten which numbers were given since its copy was made, and gives them again.
            lost = at <= self.restored_at and other != host and id_ not in self.hosts[other].running
            wrong = "" if lost else f"{id_} is started on {host}, and was on {other} before"
        elif self.over.get((host, id_), -1) > self.restored_at:  # what was over before that is forgotten with it
            wrong = f"{id_} is started on {host}, where it was taken for over"
        self.check("started_once", wrong)
        ended = name_of(id_)[0] in self.ended
        self.check("ended_stays_ended", f"{id_} is started on {host} after it had ended" if ended else "")
        self.starts.setdefault(id_, (host, self.walk.now))

    def obeyed(self, host: str, order: Order, sender: str) -> None:
        """A host does what it is told."""
        acked = self.acked.get(host)
        late = acked is not None and order.token.place < acked.place
        self.check("single_holder", f"{host} obeys {order.token.place} after {acked and acked.place}" if late else "")
        self.known(host, order.token, sender)
        other = self.ordered.setdefault((host, order.token), sender)
        if other != sender:
            self.check("single_holder", f"{host} obeys {sender} under the token {order.token.place} of {other}")
        self.walk.watch.saw("obeyed")
        self.walk.tell(host, f"takes set {order.set.version} of {sender}: {' '.join(sorted(order.set.ids))}")

    def acknowledged(self, host: str, answer: Answer) -> None:
        """A host answers under a token."""
        acked = self.acked.get(host)
        if acked is None or answer.token.place > acked.place:
            self.acked[host] = answer.token

    def known(self, host: str, token: Token, sender: str) -> None:
        """One token belongs to one manager, in each life of the store; that of an order in all lives together.

        A store put back gives epochs again that it has forgotten. Whoever has one must grant anew before any order, and
        a grant of this life outdates what the other still had on the way. That may be a check which arrives only now,
        so what counts is the life in which its sender took the epoch, and not that of its arrival.
        """
        life = self.taken.get((sender, token.epoch))
        if life is None:
            self.check("single_holder", f"{sender} speaks to {host} in epoch {token.epoch}, which it never took")
            return
        owner = self.owners.setdefault((life, host, token), sender)
        if owner != sender:
            self.check("single_holder", f"token {token.place} of {host} is {owner}'s and {sender}'s")

    def forgot(self, host: str) -> None:
        """A host's memory is gone, and what it had acknowledged with it."""
        self.acked.pop(host, None)

    def lost(self) -> None:
        """The store was wiped or put back: what it has forgotten isn't known to be ended any more."""
        self.restored_at = self.walk.now
        table = self.walk.rows.table
        for name in list(self.ended):
            at = table.get(("instance", name))
            if at is None or not isinstance(at.row, InstanceRow) or at.row.state != "ended":
                del self.ended[name]
