"""The lease manager of one shard: which hosts are held, which have lapsed, and when an order may be sent.

In October 2025 the manager of EC2's hosts could not reach its database, so leases that nobody renewed ran out by the
ten thousand, and re-establishing them took longer than they lasted. Here a lease is renewed by the host's own answer,
in memory, so that a store that is away makes nothing lapse; what needs the store is to give a lease, to take it, and to
order anything. The rules, each with what goes wrong without it:

- Every write is one transaction under the shard's claim (owner, epoch, life of the store): a manager that slept
  through losing its shard could else take a lease that its successor had renewed.
- An order goes out by four steps in this order: a check, the host's stamp, a proof read from the store *after* the
  stamp arrived, the order with that stamp. A new stamp or token voids the proof. The host refuses an order whose stamp
  is older than 3R, so once 3R and a margin have passed since its last answer *arrived*, no order ever sent can be
  obeyed. Only then may the lease lapse, and what ran there be placed elsewhere.
- Whoever takes a shard over doesn't know when the last answer came: he waits the whole 3R and margin, from then on. A
  host that didn't answer is marked in its row with what is left, and the mark is taken away before the next order. A
  taker who finds it waits no longer than it says, so that a dead host lapses however often the shard changes hands.
- Lapsed hosts are checked too, and a fresh answer earns the next grant (etcd and nomad both had leases that stayed
  lost). A host whose memory was born anew needs a new grant as well.
- Told of something newer than its own token, a manager sends nothing more, reads the shard's row, and either raises the
  epoch above that (it is still the owner, the store had been put back) or forgets everything.
- A store whose identity changed has no leases: all are unknown until each host has answered, and told its set, under a
  grant of this life, or the wait is over.
- When more than a tenth of the leases would lapse in one R it is taken for our own fault: none does (kubernetes
  #24597), but those of hosts that a person says are gone. From then on each has R left, to be asked in.

Checking a host is always harmless, so *when* to check is not decided here but by admission, which is told by ``Renew``
and ``Recheck``. Times are the manager's own monotonic clock.
"""

import numpy as np
from numpy.typing import NDArray

from fencepost.core.capacity.lease_calls import (
    NO_IDS,
    Answered,
    Away,
    Due,
    Effect,
    Event,
    Forget,
    HostsRead,
    Ids,
    Lease,
    Op,
    Outdated,
    Prove,
    Proven,
    ReadHosts,
    Recheck,
    Renew,
    Send,
    SendOrders,
    ShardChanged,
    ShardRead,
    ShardWritten,
    Silent,
    Some,
    Tick,
    Write,
    Wrote,
)
from fencepost.core.capacity.lease_columns import LONG_AGO, LeaseColumns
from fencepost.core.capacity.lease_state import LeaseState
from fencepost.core.capacity.shard_owner import Standing
from fencepost.core.instant import Instant


class HostLeases(LeaseState):
    """What each event means for that state, and what is to be done next."""

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """One step; see :class:`~fencepost.core.decider.Decider`. ``now`` is the process's own monotonic time."""
        match event:
            case Answered():
                return self.answered(event, now)
            case Due():
                return self.send(event.ids)
            case Tick():
                return self.tick(now)
            case Wrote():
                return self.wrote(event, now)
            case Proven():
                return self.proven(event, now)
            case Silent():
                return self.silent(event, now)
            case HostsRead():
                return self.hosts_read(event, now)
            case Outdated():
                return self.outdated(event)
            case Away():
                return self.went_away(event, now)
            case ShardRead():
                back = self.returned(now)
                return back + self.looked(self.owner.read(event, now), now)
            case ShardWritten():
                back = self.returned(now)
                return back + self.looked(self.owner.stands(event.row), now)
            case ShardChanged():
                self.owner.asking = False
                return self.returned(now) + self.owner.ask()

    # Whose the shard is.

    def looked(self, found: tuple[Standing, tuple[Effect, ...]], now: Instant) -> tuple[Effect, ...]:
        """What a look at the shard's row means for the hosts."""
        standing, effects = found
        match standing:
            case Standing.SAME:
                return effects
            case Standing.RAISED:
                self.hosts.void()
                return (*effects, Recheck(np.arange(self.hosts.size)))
            case Standing.LOST:
                return (self.forget(), *effects)
            case Standing.TAKEN:
                self.taken = now
                return (*effects, self.forget(), ReadHosts(anew=True))

    def forget(self) -> Effect:
        """Nothing that was known of hosts counts any more."""
        self.hosts = LeaseColumns()
        self.loaded = self.waited = self.mass = False
        self.lapses = 0
        return Forget()

    def outdated(self, event: Outdated) -> tuple[Effect, ...]:
        """A host has met something newer: nothing is sent until the row has said whether we are still the owner."""
        if not self.owner.owning or event.id >= self.hosts.size:
            return ()
        effects = self.owner.outdated(event, int(self.hosts.number[event.id]), int(self.hosts.nonce[event.id]))
        # Newer than a token of ours from before only: under the present one it is to be asked, or nobody ever does.
        return effects if self.owner.above else (*effects, Recheck(np.array([event.id])))

    def send(self, ids: Ids, *, whole: bool = False) -> tuple[Effect, ...]:
        """A check, if the shard is ours and no host is known to have met anything newer."""
        if not self.owner.owning or not self.loaded or self.owner.above or not len(ids):
            return ()
        return (Send(ids, whole),)

    # What the store says.

    def returned(self, now: Instant) -> tuple[Effect, ...]:
        """The store has answered. After more than R without it each lease has at least R left."""
        gone = self.owner.returned(now)
        if gone > self.settings.renew:
            self.hosts.lengthen(now + self.settings.renew)
        if not gone or not self.owner.owning:
            return ()
        again = tuple(self.hosts.unread().tolist())
        waiting = self.settle(np.flatnonzero(self.hosts.fresh), now)
        return (ReadHosts(anew=not self.loaded, again=again), *self.owner.ask(), *waiting)

    def went_away(self, event: Away, now: Instant) -> tuple[Effect, ...]:
        """A call to the store failed. Whether it took effect is unknown: those hosts' rows are read again."""
        self.owner.went_away(now, about_row=event.op is Op.NONE)
        ids = event.ids[event.ids < self.hosts.size]
        self.hosts.busy[ids] = Op.NONE if event.op is Op.PROVE else Op.REREAD
        if event.op in (Op.LAPSE, Op.MARK):
            # It may yet be written, over the row as it was, and must not be once an order has gone out.
            self.hosts.unsure[ids] = True
        self.hosts.proof[ids] = False
        return ()

    def hosts_read(self, event: HostsRead, now: Instant) -> tuple[Effect, ...]:
        """Rows as they are now."""
        if not self.owner.owning:
            return ()
        if event.life != self.owner.life:
            return self.owner.ask()
        effects = self.returned(now)
        hosts, ids, known = self.hosts, event.facts.ids, self.hosts.size
        hosts.grow(event.size, now + max(self.settings.lease, self.owner.wait))
        hosts.take(event.facts)
        self.waited = self.waited or event.waited
        hosts.busy[ids[hosts.busy[ids] == Op.REREAD]] = Op.NONE
        if not self.loaded:
            # Since such a mark was written no order was sent but those that are dead when it runs out.
            marked = ids[(event.facts.left > 0) & (event.facts.lease == Lease.HELD)]
            hosts.ends[marked] = np.minimum(hosts.ends[marked], now + hosts.left[marked])
            self.loaded = True
        new = ids[ids >= known]
        return (*effects, *((Recheck(new),) if len(new) else ()), *self.settle(ids, now))

    def wrote(self, event: Wrote, now: Instant) -> tuple[Effect, ...]:
        """Rows as they are after a write of ours, whether it applied to each or not."""
        hosts, ids = self.hosts, event.facts.ids
        if not self.owner.owning or not self.loaded:
            return ()
        effects = self.returned(now)
        hosts.busy[ids] = Op.NONE
        if not event.stands:
            return (*effects, *self.owner.ask())
        hosts.take(event.facts)
        if event.op in (Op.GRANT, Op.CLEAR):
            # Written over by us: what was given up before finds another row than it had seen.
            hosts.unsure[ids] = False
        if event.op is Op.GRANT:
            hosts.ends[ids] = np.maximum(hosts.ends[ids], now + self.settings.lease)
            done = (
                (hosts.lease[ids] == Lease.HELD) & hosts.reported[ids] & (hosts.version[ids] == hosts.host_version[ids])
            )
            given, again = ids[done], ids[~done]
            if len(given):
                effects += (Renew(given, hosts.ends[given], True, hosts.number[given]),)
            if len(again):
                effects += (Recheck(again),)
        elif event.op is Op.LAPSE:
            effects += (Recheck(ids),)
        return (*effects, *self.settle(ids, now))

    def proven(self, event: Proven, now: Instant) -> tuple[Effect, ...]:
        """The proof is here: orders go to hosts whose stamp and token are still those it was read after."""
        hosts, ids = self.hosts, event.facts.ids
        if not self.owner.owning or not self.loaded:
            return ()
        effects = self.returned(now)
        hosts.busy[ids] = Op.NONE
        if not self.owner.is_claimed(event.life, event.row):
            return (*effects, *self.owner.ask())
        hosts.take(event.facts)
        good = hosts.fresh[ids] & hosts.proof[ids] & self.orderable(ids, now)
        hosts.proof[ids] = False
        sent = ids[good] if self.acting else ids[:0]
        if len(sent):
            # What it holds isn't known again until it has answered: to the order, or to the next check in its turn.
            # Checked at once, a host that datagrams reach and connections don't would be ordered as fast as it answers.
            hosts.fresh[sent] = False
            effects += (SendOrders(sent, hosts.boot[sent].copy(), hosts.stamp[sent].copy()),)
        return (*effects, *self.settle(ids[~good], now))

    def orderable(self, ids: Ids, now: Instant) -> Some:
        """Which of these an order would be right for: held, by the memory it was granted to, told, unmarked, behind."""
        hosts = self.hosts
        same = hosts.host_incarnation[ids] == hosts.incarnation[ids]
        behind = hosts.version[ids] > hosts.host_version[ids]
        held = (hosts.lease[ids] == Lease.HELD) & hosts.reported[ids] & (hosts.left[ids] == 0) & ~hosts.unsure[ids]
        young = now - hosts.seen[ids] < 2 * self.settings.renew
        return np.asarray(held & same & behind & young)

    # What hosts say.

    def answered(self, event: Answered, now: Instant) -> tuple[Effect, ...]:
        """Answers have arrived: each under the present token renews its lease, in memory."""
        if not self.owner.owning or not self.loaded:
            return ()
        event = self.known(event)
        hosts, known = self.hosts, self.hosts.asked(event.ids)
        old = self.overtaken(event, known["stamp"])
        if old.any():
            event, known = event.only(~old), known[~old]
        ids = event.ids
        mine = (known["number"] == event.number) & (known["nonce"] == event.nonce)
        mine &= event.epoch == self.owner.epoch
        effects: tuple[Effect, ...] = ()
        if not mine.all():
            # Whoever counts calls takes these for answered: unless they are checked again, nobody ever does.
            effects = (Recheck(ids[~mine]),)
            event, known = event.only(mine), known[mine]
            ids = event.ids
        ends = np.full(len(ids), now + self.settings.lease)
        hosts.seen[ids] = now
        hosts.stamp[ids] = event.stamp
        hosts.ends[ids] = ends
        echo = (known["incarnation"] == event.incarnation) & (known["row_boot"] == event.boot)
        echo &= known["version"] == event.version
        again = echo & known["echo"] & known["fresh"]
        if not again.all():
            hosts.say(event.only(~again), echo[~again])
        if (known["whole"] != event.whole).any():
            hosts.whole[ids] = event.whole
        if known["proof"].any():
            hosts.proof[ids] = False
        # Who answered just as its row says needs nothing, and mostly that is all.
        echo &= known["calm"]
        wanting = NO_IDS if echo.all() else ids[~echo]
        return (*effects, Renew(ids, ends, False, event.number), *self.settle(wanting, now))

    def news(self, event: Answered) -> Answered:
        """Without answers of hosts that aren't known yet, and those overtaken by a later one of the same start of the
        agent: they answer no call that is still out."""
        event = self.known(event)
        old = self.overtaken(event, self.hosts.stamp[event.ids])
        return event.only(~old) if old.any() else event

    def known(self, event: Answered) -> Answered:
        """Without answers of hosts that no row told of yet."""
        ids, size = event.ids, self.hosts.size
        return event.only(ids < size) if len(ids) and ids.max() >= size else event

    def overtaken(self, event: Answered, stamps: NDArray[np.int64]) -> Some:
        """Which of these came after a later one of the same start of the agent; ``stamps`` are those known."""
        hosts, old = self.hosts, event.stamp < stamps
        if old.any():
            old &= hosts.fresh[event.ids] & (hosts.boot[event.ids] == event.boot)
        return np.asarray(old)

    def settle(self, ids: Ids, now: Instant) -> tuple[Effect, ...]:
        """What each of these hosts needs next, if anything: a level, not a step of a plan."""
        if not self.acting or not len(ids):
            return ()
        hosts = self.hosts
        ids = ids[hosts.fresh[ids] & (hosts.busy[ids] == Op.NONE)]
        own = (hosts.lease[ids] == Lease.HELD) & (hosts.host_incarnation[ids] == hosts.incarnation[ids])
        unmarked = (hosts.left[ids] == 0) & ~hosts.unsure[ids]
        told, version = hosts.host_version[ids], hosts.version[ids]
        known = hosts.reported[ids] & (told <= version)
        booted = hosts.boot[ids] == hosts.row_boot[ids]
        needy = ~(own & unmarked & known & booted & (told == version))
        if not needy.any():
            return ()
        effects: list[Effect] = []
        self.begin(Op.GRANT, ids[needy & ~own], now, effects)
        needy &= own
        self.begin(Op.CLEAR, ids[needy & ~unmarked], now, effects)
        needy &= unmarked
        self.begin(Op.ADOPT, ids[needy & ~known & hosts.whole[ids]], now, effects)
        asked = ids[needy & ~known & ~hosts.whole[ids]]
        hosts.fresh[asked] = False
        effects += self.send(asked, whole=True)
        needy &= known
        self.begin(Op.BOOT, ids[needy & ~booted], now, effects)
        self.prove(ids[needy & booted], now, effects)
        return tuple(effects)

    def begin(self, op: Op, ids: Ids, now: Instant, effects: list[Effect]) -> None:
        """Begin a write about these hosts, if any."""
        if len(ids):
            hosts = self.hosts
            hosts.busy[ids] = op
            left = np.maximum(hosts.ends[ids] - now, 1)
            effects.append(Write(op, ids, left, hosts.host_incarnation[ids].copy(), hosts.boot[ids].copy()))

    def prove(self, ids: Ids, now: Instant, effects: list[Effect]) -> None:
        """Begin the proofs that these hosts' orders need; those whose stamp has grown old are checked first."""
        able = self.orderable(ids, now)
        proving, old = ids[able], ids[~able]
        if len(proving):
            self.hosts.busy[proving] = Op.PROVE
            self.hosts.proof[proving] = True
            effects.append(Prove(proving))
        if len(old):
            effects.append(Recheck(old))

    # Time.

    def tick(self, now: Instant) -> tuple[Effect, ...]:
        """Beat, look at the shard, and let leases lapse. A tick that comes late was our own sleep, nobody else's."""
        if self.ticked != LONG_AGO and now - self.ticked > self.settings.renew:
            self.hosts.lengthen(now + self.settings.renew)
        self.ticked = now
        effects = self.owner.beat(now, opened=self.placing, room=self.room, waited=self.wait_over(now))
        if not self.acting:
            return effects
        if not self.waited and not self.complete and self.wait_over(now):
            effects += (ReadHosts(waited=True),)
        return effects + self.lapse(now)

    def lapse(self, now: Instant) -> tuple[Effect, ...]:
        """The hosts whose time is over, unless they are too many to be anything but our own fault."""
        hosts = self.hosts
        if now - self.window >= self.settings.renew:
            self.window, self.lapses = now, 0
        over = np.flatnonzero((hosts.ends <= now) & (hosts.lease != Lease.LAPSED) & hosts.idle)
        ours = (hosts.lease == Lease.HELD) & ~hosts.gone
        counted = over[ours[over]]
        # Renewals are spread over R, so hosts cut off at one moment lapse over R: those still to come are counted too.
        would = int(np.count_nonzero(ours & (hosts.ends <= now + self.settings.renew)))
        self.mass = self.lapses + would > self.most(hosts.held + self.lapses)
        if self.mass:
            over = np.setdiff1d(over, counted)
            # Nor do those lapse that are still in our own line when most have answered: each has time to be asked.
            hosts.ends[ours] = np.maximum(hosts.ends[ours], now + self.settings.renew)
        else:
            self.lapses += len(counted)
        effects: list[Effect] = []
        hosts.fresh[over] = False
        self.begin(Op.LAPSE, over, now, effects)
        return tuple(effects)

    def most(self, of: int) -> int:
        """How many of so many leases may lapse in one R."""
        return max(self.settings.mass_least, int(self.settings.mass_share * of))

    def silent(self, event: Silent, now: Instant) -> tuple[Effect, ...]:
        """Checked, and no answer: suspects are marked with what is left, and again when that has become much less."""
        if not self.owner.owning or not self.loaded:
            return ()
        effects: list[Effect] = []
        hosts, ids = self.hosts, event.ids
        hosts.fresh[ids] = False
        left, marked = hosts.ends[ids] - now, hosts.left[ids]
        news = (marked == 0) | (marked - left >= self.settings.renew // 2)
        wanted = ids[news & (left > 0) & (hosts.lease[ids] == Lease.HELD) & (hosts.busy[ids] == Op.NONE)]
        if self.acting and len(wanted) <= self.most(hosts.held):
            self.begin(Op.MARK, wanted, now, effects)
        return tuple(effects)
