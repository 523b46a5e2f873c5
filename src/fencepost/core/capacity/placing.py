"""One turn of placement: drafts of hosts' and instances' rows, each instance touched at most once.

The turn changes the index of rooms as it goes, so that two instances never get one place, and puts it back at its end:
what was decided counts only once it is written.
"""

from collections.abc import Callable

from msgspec import structs

from fencepost.core.capacity import attempts
from fencepost.core.capacity.fleet_store import Change, Group
from fencepost.core.capacity.known import Known, Strikes
from fencepost.core.capacity.messages import Instance
from fencepost.core.capacity.rows import HostRow, InstanceRow
from fencepost.core.instant import Instant


class Turn:
    """What one look at everything comes to."""

    def __init__(self, known: Known, now: Instant, wall: Instant, ready: Callable[[str], bool]) -> None:
        self.all = known
        self.now = now
        self.wall = wall
        self.ready = ready
        self.hosts: dict[str, HostRow] = {}
        self.joint: dict[str, dict[str, InstanceRow]] = {}
        self.alone: dict[str, InstanceRow] = {}
        self.touched: set[str] = set()

    def take(self) -> None:
        """Look at what is over, what strays, what ends, what moves, and what waits, in that order."""
        opened = self.all.opened
        if opened:
            self.all.look.update(self.all.later)
            self.all.later.clear()
        self.hinders()
        self.unsure()
        for host in list(self.all.look):
            self.at_host(host, opened)
        self.ends()
        self.moves()
        self.settles()
        if opened:
            self.waits()

    def groups(self) -> tuple[Group, ...]:
        """The groups, one a host and one for each instance that no host's row changes for."""
        found: list[Group] = []
        for host, row in self.hosts.items():
            changes = [Change(row, self.all.hosts[host].revision)]
            found.append((*changes, *(self.change(each) for each in self.joint.get(host, {}).values())))
        found.extend((self.change(row),) for row in self.alone.values())
        return tuple(found)

    def change(self, row: InstanceRow) -> Change:
        """An instance's row over the one read, or a new one."""
        at = self.all.instances.get(row.instance)
        return Change(row, at.revision if at is not None else 0)

    def undo(self) -> None:
        """Put the index of rooms back to what the rows say."""
        for host in self.hosts:
            row = self.all.host_row(host)
            if row is not None:
                self.all.room.put(row)

    # Drafts.

    @property
    def full(self) -> bool:
        """Whether the turn has as many groups as it may."""
        return len(self.hosts) + len(self.alone) >= self.all.settings.most

    def row(self, host: str) -> HostRow | None:
        """A host as drafted, else as read."""
        return self.hosts.get(host) or self.all.host_row(host)

    def fits(self, host: str) -> bool:
        """Whether a host's group takes another instance, or there may be another group."""
        return len(self.joint.get(host, ())) < self.all.settings.group_most if host in self.hosts else not self.full

    def draft(self, host: HostRow, row: InstanceRow | None = None) -> None:
        """A host's next row, and an instance's with it."""
        self.hosts[host.host] = host
        self.all.room.put(host)
        if row is not None:
            self.joint.setdefault(host.host, {})[row.instance] = row
            self.touched.add(row.instance)

    def leave(self, host: str, id_: str, row: InstanceRow | None = None) -> bool:
        """An attempt leaves a host's set; with an instance's row, in one group (the host's row is written anyway)."""
        at = self.row(host)
        if at is None or not self.fits(host):
            return False
        self.draft(attempts.left(at, (id_,)), row)
        return True

    def single(self, row: InstanceRow) -> None:
        """An instance's row that no host's row changes for."""
        if not self.full:
            self.alone[row.instance] = row
            self.touched.add(row.instance)

    # What ends.

    def ends(self) -> None:
        """Terminated instances leave their hosts, and are ended once that has become true there."""
        for name in self.all.ending:
            row = self.all.instance_row(name)
            if row is None:
                continue
            places = [place for place in ((row.host, row.id), row.old) if place[0]]
            for host, id_ in places:
                at = self.row(host)
                if self.all.mine(name) and at is not None and id_ in at.set.ids:
                    self.leave(host, id_)
            if row.old[0]:
                if self.gone(name, *row.old):
                    self.single(attempts.settled(row))
            elif self.all.opened and self.nowhere(name, places) and not self.strays(name):
                # Before all is open a host may yet tell of an attempt that the store has forgotten.
                self.single(attempts.ended(row, self.wall))

    def nowhere(self, name: str, places: list[tuple[str, str]]) -> bool:
        """Whether its row names no place where it may still run; without any, its own shard's manager says so."""
        return self.gone(name, *places[0]) if places else self.all.mine(name)

    def gone(self, name: str, host: str, id_: str) -> bool:
        """Whether it is for us to say that an attempt has stopped, and it has."""
        return (self.all.mine(name) or host in self.all.told) and self.all.stopped(host, id_)

    def strays(self, name: str) -> bool:
        """Whether an older attempt of it may still run at a host that tells us."""
        strays = self.all.strays.get(name, {})
        for host, id_ in list(strays):
            row = self.all.host_row(host)
            left = row is None or id_ not in row.set.ids
            if self.all.stopped(host, id_) or (left and (row is None or not self.all.mine(host))):
                del strays[host, id_]
        return bool(strays)

    # Who can't take anything.

    def hinders(self) -> None:
        """What hosts say of their memories is put into their rows, which all managers and people read."""
        for host in list(self.all.unable):
            row, told = self.row(host), self.all.told.get(host)
            if row is None or told is None or self.full:
                continue  # as it was, until it is heard of
            if told.unable != row.unable:
                since = (row.unable_at or self.wall) if told.unable else 0
                self.draft(structs.replace(row, unable=told.unable, unable_at=since))
            elif not row.unable:
                del self.all.unable[host]

    # What is over.

    def unsure(self) -> None:
        """Placed instances whose host may not have them."""
        for name in list(self.all.unsure):
            row = self.all.instance_row(name)
            host = self.all.host_row(row.host) if row is not None and row.state == "placed" else None
            if row is None or row.state != "placed" or (host is not None and row.id in host.set.ids):
                self.all.unsure.pop(name)
            elif host is not None and name not in self.touched:
                self.judge(row, host)

    def judge(self, row: InstanceRow, host: HostRow) -> bool:
        """Whether the present attempt, at this host, is over; then it waits for the next."""
        told, why = self.all.told.get(host.host), self.all.over(host, row.id)
        down = told is not None and row.id in told.down
        if not why or not (down or self.all.mine(row.instance) or self.all.refused(host, row.id)):
            return False
        strikes = self.struck(row) if down else None
        wait = strikes.until - self.now if strikes is not None else 0
        again_at = self.wall + wait if self.wall and wait > 0 else 0
        over = attempts.over(row, f"{row.id} {why}", by_itself=down, again_at=again_at)
        if self.leave(row.host, row.id, over) and strikes is not None:
            self.all.strikes[row.instance] = strikes
        return True

    def struck(self, row: InstanceRow) -> Strikes:
        """What comes of an attempt that ended by itself: the next later and later, and elsewhere."""
        settings, known = self.all.settings, self.all.strikes.get(row.instance)
        if known is not None and known.attempt == row.attempt:
            return known  # counted already, and not yet written
        if known is None and self.all.began is not None and self.now - self.all.began < settings.settle:
            # It ended with its host, or while nobody looked on: no fault of its own, so it is tried where it was.
            return Strikes(0, row.attempt, self.now, row.host)
        before = known.count if known is not None and self.now - known.until < settings.calm else 0
        wait = min(settings.longest, settings.again << min(before, 32))
        return Strikes(before + 1, row.attempt, self.now + wait, row.host)

    # What a host holds.

    def at_host(self, host: str, opened: bool) -> None:
        """Each attempt in one host's set: is it to be there?"""
        at = self.all.host_row(host)
        pending = False
        for each in at.set.instances if at is not None else ():
            if at is not None:
                pending |= each.name in self.touched or self.held(at, each)
        if not pending or not opened:
            self.all.look.pop(host, None)
        if pending and not opened:
            (self.all.look if host in self.hosts or self.full else self.all.later)[host] = None

    def held(self, host: HostRow, each: Instance) -> bool:
        """One attempt in a host's set. True if there is, or soon may be, something to do about it."""
        row = self.all.instance_row(each.name)
        if row is None or (row.state in ("waiting", "placed") and each.attempt > row.attempt):
            return self.unknown(host, each, row)
        current = (row.host, row.id) == (host.host, each.id)
        if current and row.state == "placed":
            if not self.judge(row, host) and host.word == "drain" and self.all.mine(each.name):
                self.move(row)
                return True
            return each.name in self.touched or bool(self.all.over(host, each.id))
        old = row.old == (host.host, each.id) and row.state in ("waiting", "placed")
        if old or (current and row.state == "ending"):
            return False  # looked at wherever its row is
        since = self.stray(host, each)
        if not self.all.mine(each.name):
            return False
        lapsed = self.all.lapsed(host)
        known = lapsed or (host.held(self.all.life) and host.reported)
        if known and not lapsed and row.state == "ending" and not row.host:
            # That it has stopped is heard by its host's manager, which may be another shard's: the row says where.
            self.leave(host.host, each.id, structs.replace(row, host=host.host, attempt=each.attempt))
        elif known and (lapsed or row.state != "placed" or self.now - since >= self.all.settings.linger):
            self.leave(host.host, each.id)
        return True

    def stray(self, host: HostRow, each: Instance) -> Instant:
        """Remember that a host holds an attempt which isn't where its row says; since when it has.

        Also of another shard's instance: who says that it has ended may be the manager of a host that it once was on.
        """
        return self.all.strays.setdefault(each.name, {}).setdefault((host.host, each.id), self.now)

    def unknown(self, host: HostRow, each: Instance, row: InstanceRow | None) -> bool:
        """An attempt that no row knows. Once all hosts have told theirs, the highest number is the present one."""
        if not self.all.mine(each.name):
            self.stray(host, each)
            return False
        sure = host.held(self.all.life) and host.reported and self.all.opened
        why = self.all.over(host, each.id)
        if sure and not why and self.fits(host.host):
            self.draft(self.row(host.host) or host, attempts.found(host, each, row))
        elif sure and why and row is not None:
            # It ran and is over: its number is used up, or another host would be told to start the same attempt.
            told = self.all.told.get(host.host)
            down = told is not None and each.id in told.down
            found = attempts.over(attempts.found(host, each, row), f"{each.id} {why}", by_itself=down)
            self.leave(host.host, each.id, found)
        elif (sure and why) or (self.all.lapsed(host) and self.all.opened):
            self.leave(host.host, each.id)
        return True

    # What moves.

    def move(self, row: InstanceRow) -> bool:
        """The next attempt elsewhere, the present one going on."""
        if row.old != attempts.NO_OLD or row.instance in self.touched or not self.all.opened:
            return False
        return self.place(row, attempts.moved)

    def moves(self) -> None:
        """Old attempts that are over, or that nobody waits for any more."""
        for name, since in list(self.all.moving.items()):
            row = self.all.instance_row(name)
            if row is None or name in self.touched or not self.all.mine(name):
                continue
            host, id_ = row.old
            if self.all.over(self.all.host_row(host), id_):
                self.leave(host, id_, attempts.settled(row))
            elif row.state == "placed":
                if since is None:
                    since = self.all.moving[name] = self.now
                if self.ready(row.id) or self.now - since >= self.all.settings.patience:
                    self.single(attempts.settled(row))

    def settles(self) -> None:
        """Attempts that have run for a while after others that ended by themselves: nobody need hear of those now."""
        for name, (id_, since) in list(self.all.settling.items()):
            row = self.all.instance_row(name)
            if row is None or row.id != id_ or name in self.touched:
                continue
            if since is None:
                self.all.settling[name] = (id_, self.now)
            elif self.now - since >= self.all.settings.calm:
                self.single(attempts.calm(row))

    # What waits.

    def waits(self) -> None:
        """Place what waits, in the order it came, while there is room."""
        for name in self.all.waiting:
            row = self.all.instance_row(name)
            if row is None or name in self.touched or self.early(name):
                continue
            if self.full or not self.place(row, attempts.placed):
                return

    def early(self, name: str) -> bool:
        """Whether it ended by itself so lately that it isn't tried again yet."""
        strikes = self.all.strikes.get(name)
        return strikes is not None and self.now < strikes.until

    def place(self, row: InstanceRow, how: Callable[[InstanceRow, HostRow, str], tuple[HostRow, InstanceRow]]) -> bool:
        """The next attempt at the best host, if there is any room."""
        strikes, room = self.all.strikes.get(row.instance), self.all.room
        if strikes is not None and not strikes.count and strikes.attempt != row.attempt:
            strikes = None
        where = strikes.host if strikes is not None else ""
        if strikes is None or (strikes.count and self.all.settings.elsewhere):
            chosen = room.choose(row.pool, avoid=where)
        else:
            chosen = room.at(where) or room.choose(row.pool)
        if chosen is None or not self.fits(chosen[0].host):
            return False
        self.draft(*how(row, *chosen))
        return True
