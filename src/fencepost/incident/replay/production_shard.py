"""One shard of production's lease manager in the replay: the class that ships, and the world around it in columns.

The manager decides (:class:`~fencepost.core.capacity.lease_manager.LeaseManager`: whom to ask, what an answer is worth,
what to write, which lease lapses). Here is what it decides about: hosts that answer or don't, a store that is there or
away, and a machine that takes so long for a call.

A host holds a lease if its row says so, of the memory that the host still has, and if it has answered within a lease's
length: then it would obey an order. So whom nobody asked for that long is counted as without a lease, even where the
manager never lets his lapse.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fencepost.core.admission import AdmissionSettings
from fencepost.core.capacity import lease_facts
from fencepost.core.capacity.lease_calls import (
    NO_IDS,
    Answered,
    Away,
    Facts,
    Forget,
    HostsRead,
    Ids,
    Lease,
    Op,
    Prove,
    Proven,
    ReadHosts,
    ReadShard,
    Send,
    ShardRead,
    ShardWritten,
    Some,
    Words,
    Write,
    WriteShard,
    Wrote,
    lease_settings,
)
from fencepost.core.capacity.lease_manager import Effect, LeaseManager
from fencepost.core.capacity.rows import ShardRow
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.incident.replay.paths import NEVER
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.workers import Workers, WorkerValues

LIFE = "life"
"""The store's identity: here it is never put back."""
START: Instant = 1 << 50
"""The scenario's first second on a manager's clock: it has run for a while."""
HELD = int(Lease.HELD)
WARM = 6
"""Long steps until a manager that begins has each host in its turn."""
PATIENCE = 1.5
"""An attempt may take so many times what a new lease takes: so long does a silent host keep a slot."""
ROUNDS = 256
"""How often in a second a manager may look for more to do; it ends as soon as there is nothing."""


class ShardValues(Struct, frozen=True, gc=False):
    """Which shard of how many; how long a lease lasts, in seconds; its part of the workers."""

    number: int
    of: int
    length_s: int
    workers: WorkerValues

    @property
    def renew_s(self) -> int:
        """R: a host is asked three times in a lease."""
        return max(2, self.length_s // 3)

    @property
    def step_s(self) -> int:
        """Steps while nothing contends: as large as the manager's rules allow."""
        return self.renew_s // 2


class Shard:
    """A manager, its rows, its hosts and its machine. ``lost``: who has been without a lease; ``holding``: how many
    have one. ``away``: its way to the store is shut."""

    def __init__(self, values: ShardValues, hosts: int) -> None:
        """Hosts that all hold a lease, granted long ago, under a manager that has yet to read of them."""
        self.values = values
        self.size = self.holding = hosts
        self.born: Words = np.arange(1, hosts + 1, dtype=np.uint64)
        self.rows = _held(self.born)
        self.row: ShardRow | None = None
        self.away = False
        self.end: NDArray[np.int64] = np.full(hosts, NEVER)
        self.lost: Some = np.zeros(hosts, np.bool_)
        self.dark_from: NDArray[np.int64] = np.full(hosts, NEVER)
        self.dark_until: NDArray[np.int64] = np.zeros(hosts, np.int64)
        self._darkened = False
        self.checks = self.lapsed = self.granted = self.starts = 0
        self.due: Tick = 0
        self._now: Tick = 0
        self._nonce = hosts
        self._spent = self._useful = 0.0
        self._workers = Workers(values.workers)
        self._start()

    def _start(self) -> None:
        """A manager that knows nothing; what its predecessor had under way is gone."""
        values = self.values
        self.starts += 1
        name = f"manager {values.number}, start {self.starts}"
        settings = lease_settings(name, values.number, values.of, values.renew_s * SECOND)
        self._wide = True
        self.manager = LeaseManager(settings, self._calibration())
        self._let_go()

    def _let_go(self) -> None:
        self._known: Some = np.zeros(self.size, np.bool_)
        self._spent += self._workers.spent
        self._useful += self._workers.useful
        self._workers = Workers(self.values.workers)

    # Time

    def begin(self, now: Tick) -> None:
        """The usual day up to now: the shard taken, each host asked once in R, in its turn."""
        for at in range(now - WARM * self.values.step_s, now + 1, self.values.step_s):
            self.step(at)
        self.due = now + 1

    def step(self, now: Tick) -> None:
        """What arrived, then time, as often as there is something to do; ``due`` says when next."""
        self._now = now
        in_time = PATIENCE * self.values.workers.establish_cost
        for ids, came, cost in self._workers.finished(now):
            if now - came <= in_time:
                self._workers.useful += len(ids) * cost
            self._answer(ids, None)
        for _ in range(ROUNDS):
            before = self.checks
            self._carry_out(self.manager.pass_time(self._at))
            if self.checks == before:
                break
        self._workers.work(now)
        held = self.held()
        self.holding = int(np.count_nonzero(held))
        if self.holding < self.size:
            self.lost |= ~held
        self._go_by(wide=not self.busy)
        self.due = self._next()

    def _next(self) -> Tick:
        """The next second in which anything can happen, and no later than the manager's rules allow."""
        now, latest = self._now, self._now + self.values.step_s
        if self._wide:
            return latest
        if not self.manager.leases.owner.owning:
            return now + 1
        asked, done = self.manager.admission.next_at(self._at), self._workers.next_at(now)
        if asked is not None:
            latest = min(latest, -((START - asked) // SECOND))
        return max(now + 1, latest if done is None else min(latest, done))

    def held(self, ids: Ids | slice = slice(None)) -> Some:
        """Which of these hold a lease now."""
        rows = self.rows
        own = (rows.lease[ids] == HELD) & (rows.incarnation[ids] == self.born[ids])
        return np.asarray(own & (self.end[ids] > self._now))

    @property
    def waiting(self) -> int:
        """Hosts in line or being asked."""
        return self.manager.admission.backlog

    @property
    def spent(self) -> float:
        """Worker-seconds so far."""
        return self._spent + self._workers.spent

    @property
    def useful(self) -> float:
        """Worker-seconds of calls that were answered in time."""
        return self._useful + self._workers.useful

    @property
    def busy(self) -> bool:
        """Something contends: hosts in line, out or without a lease; or the shard is to be had, and isn't yet."""
        if self.manager.leases.owner.owning:
            return self.waiting > 0 or self.holding < self.size
        return not self.away

    # What befalls it

    def restart(self, now: Tick) -> None:
        """The manager is stopped and another started; the store and the hosts stay as they are."""
        self._start()
        self.due = now

    def reborn(self, ids: Ids, now: Tick) -> None:
        """These hosts lose their memory: what was granted to it is worth nothing, and they have nothing to tell."""
        self.born[ids] += np.uint64(self.size)
        self._known[ids] = False
        self.due = now

    def darken(self, ids: Ids, begins: Tick, ends: Tick) -> None:
        """Between these ticks nothing that is sent to these hosts arrives."""
        self._darkened = True
        self.dark_from[ids], self.dark_until[ids] = begins, ends

    # Inside

    @property
    def _at(self) -> Instant:
        return START + self._now * SECOND

    def _calibration(self) -> AdmissionSettings:
        """What the manager goes by: as a quiet day's calibration finds it, or, in long steps, the same for a step.

        In a long step as many are asked as the same workers answer in one, and each call takes a step.
        """
        workers, period, step = self.values.workers, self.values.renew_s * SECOND, self.values.step_s * SECOND
        if not self._wide:
            call: Duration = int(workers.establish_cost * SECOND)
            attempt = int(PATIENCE * call)
            return AdmissionSettings(max(1, round(workers.knee)), call, call, call, attempt, period=period, width=step)
        most = max(1, int(workers.knee * self.values.step_s / workers.renew_cost))
        return AdmissionSettings(most, step, step, step, period, period=period, width=step)

    def _go_by(self, *, wide: bool) -> None:
        if wide != self._wide:
            self._wide = wide
            self.manager.recalibrate(self._calibration())

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        """In order; the store answers at once, or it is away."""
        manager, at = self.manager, self._at
        for effect in effects:
            match effect:
                case Send(ids=ids):
                    self._ask(ids)
                case Forget():
                    self._let_go()
                case ReadShard() | WriteShard() | ReadHosts() | Write() | Prove() if self.away:
                    write = isinstance(effect, Write)
                    gone = Away(effect.op, effect.ids) if write else Away(Op.NONE, NO_IDS)  # type: ignore[union-attr]
                    self._carry_out(manager.on(gone, at))
                case ReadShard():
                    self._carry_out(manager.on(ShardRead(LIFE, self.row), at))
                case WriteShard(row=row):
                    self.row = row
                    self._carry_out(manager.on(ShardWritten(row), at))
                case ReadHosts(waited=waited):
                    self._carry_out(manager.on(HostsRead(LIFE, self.size, self.rows, waited), at))
                case Prove(ids=ids):
                    self._carry_out(manager.on(Proven(LIFE, self.row, lease_facts.of(self.rows, ids)), at))
                case Write():
                    self._write(effect)

    def _write(self, write: Write) -> None:
        count = len(write.ids)
        self._nonce += count
        nonces = np.arange(self._nonce, self._nonce + count, dtype=np.uint64)
        version = self.manager.leases.hosts.host_version[write.ids]
        facts = lease_facts.written(write, lease_facts.of(self.rows, write.ids), nonces, version=version)
        lease_facts.keep(self.rows, facts)
        if write.op is Op.GRANT:
            self.granted += count
            self.end[write.ids] = self._now + self.values.length_s
        elif write.op is Op.LAPSE:
            self.lapsed += count
        self._carry_out(self.manager.on(Wrote(write.op, True, facts), self._at))

    def _ask(self, ids: Ids) -> None:
        """Whom the call reaches, it is worked on: at once if it is a renewal and there is room for it."""
        self.checks += len(ids)
        ids = self._reached(ids)
        renews = self.held(ids)
        begun = ids[~renews]
        self._workers.call(self._now, begun, np.ones(len(begun), np.bool_))
        ids = ids[renews]
        if not len(ids):
            return
        if self._wide:
            self._spent += len(ids) * self.values.workers.renew_cost
            self._useful += len(ids) * self.values.workers.renew_cost
            self._answer(ids, self.values.step_s * SECOND)
        elif self._workers.at_once(len(ids)):
            self._answer(ids, int(self.values.workers.establish_cost * SECOND / self._workers.speed()))
        else:
            self._workers.call(self._now, ids, np.zeros(len(ids), np.bool_))

    def _reached(self, ids: Ids) -> Ids:
        """Those of them that aren't dark."""
        if not self._darkened:
            return ids
        return ids[(self.dark_from[ids] > self._now) | (self.dark_until[ids] <= self._now)]

    def _answer(self, ids: Ids, took: Duration | None) -> None:
        """``took`` as if each call took as long as a new lease does, so that what is slow is told of any."""
        ids = self._reached(ids)
        self.end[ids] = self._now + self.values.length_s
        known = self._known[ids]
        old, new = ids[known], ids[~known]
        if len(old):
            self._carry_out(self.manager.unchanged(old, self._at, self._at, took))
        if len(new):
            self._known[new] = True
            hosts, count = self.manager.leases.hosts, len(new)
            epoch, stamp = np.full(count, self.manager.leases.owner.epoch), np.full(count, self._at)
            asked = (epoch, hosts.number[new], hosts.nonce[new])
            born, version = self.born[new], np.zeros(count, np.int64)
            said = Answered(new, *asked, born, stamp, born, version, np.ones(count, np.bool_))
            self._carry_out(self.manager.on(said, self._at, took))


def _held(born: Words) -> Facts:
    """Rows of hosts that were granted a lease in this life of the store, and have told what they run."""
    count = len(born)
    none, yes = np.zeros(count, np.int64), np.ones(count, np.bool_)
    lease = np.full(count, Lease.HELD, np.int8)
    ids = np.arange(count)
    return Facts(ids, none + 1, born.copy(), lease, born.copy(), born.copy(), none, yes, none.copy(), ~yes)
