"""One shard's lease manager, whole: lease decider, admission and the table of its hosts, for whoever drives it.

Two things decide, side by side. :class:`~fencepost.core.capacity.host_lease.HostLeases` says what an answer is worth,
what may be written and ordered; :class:`~fencepost.core.admission.Admission` says how many hosts are asked at once and
which next. What one of them wants of the other is settled here, and what both want of the world comes out as effects:
the same for the role in production, the simulator, and a replay.

    hosts, store --events--> on(event, now) ----.
    time ------------------> pass_time(now) ----+--> effects, in order: Send, SendOrders, Write, Prove, ReadHosts, ...

All that arrived is told before time is: a manager that was stopped for ten minutes finds the answers in its inbox
before it may think of a lease as over (nomad PR #14474). Nothing here reads a clock or draws: ``now`` is the driver's
monotonic time, and so are its nonces his.

**With rows.** A driver that has a store of rows keeps them in ``book``
(:class:`~fencepost.core.capacity.lease_book.LeaseBook`), which makes commits of ``Write`` and looks of ``Prove``, and
messages of ``Send`` and ``SendOrders`` (``book.table``). So do the role and the simulator.

**With arrays alone.** A driver in virtual time, with a hundred thousand hosts and a step a second, leaves the book
empty. Each step it tells what arrived, by host numbers, calls ``pass_time``, and carries out what it is given:

- ``Send(ids)``: these hosts are asked. Those that answer as before are told of by ``unchanged(ids, stamp, now)``; those
  that answer for the first time, or otherwise than before, by ``on(Answered(...), now)``. Nothing is told of the rest:
  admission notices who keeps silent.
- ``Write``, ``Prove``: answered by ``Wrote`` and ``Proven`` with :class:`~fencepost.core.capacity.lease_calls.Facts` of
  the rows. :mod:`~fencepost.core.capacity.lease_facts` says what a write makes of such columns.
- ``ReadShard``, ``WriteShard``, ``ReadHosts``: answered by ``ShardRead``, ``ShardWritten``, ``HostsRead``; any of these
  calls by ``Away`` while the store is.
- ``Forget``: whatever is under way is let go of. ``News`` concerns placement alone.

No object is made for a host on that way: a call costs some tens of microseconds, and what numpy takes for its arrays.
Hosts are in flight from ``Send`` until they are told of. A driver that steps by the second and answers in the next step
goes by a calibration that says so (a second a call, and as many in flight as the service answers in one), or else says
how long each call ``took``: the brake would take waiting for the step for a service that is slow. It steps at least
twice each R; after more than R between two ticks the manager takes itself for one that slept, and lengthens all leases.
"""

import numpy as np
from msgspec import Struct, structs
from numpy.typing import ArrayLike

from fencepost.core.admission import Admission, AdmissionSettings, first_renewal, next_renewal, phase
from fencepost.core.admission.brake import Brake
from fencepost.core.capacity import lease_calls
from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_book import LeaseBook
from fencepost.core.capacity.lease_calls import (
    Answered,
    Due,
    Event,
    Forget,
    HostsRead,
    Ids,
    Lease,
    LeaseSettings,
    Op,
    Outdated,
    Prove,
    ReadHosts,
    ReadShard,
    Recheck,
    Renew,
    Send,
    SendOrders,
    Silent,
    Tick,
    Write,
    WriteShard,
    Wrote,
)
from fencepost.core.instant import MILLISECOND, Duration, Instant


class News(Struct, frozen=True, gc=False):
    """Hosts told something that placement may wait for. Not answered."""


Effect = Send | SendOrders | Write | Prove | ReadShard | WriteShard | ReadHosts | Forget | News
"""What is left for the driver to do. ``Forget`` comes after all that it makes worthless was left out."""


class Counts(Struct):
    """What a manager has done since it started: for people and tests."""

    checks: int = 0
    answers: int = 0
    orders: int = 0
    granted: int = 0
    lapsed: int = 0


class LeaseManager:
    """``leases`` and ``admission`` decide; ``leases.hosts`` are the hosts' columns, ``book`` their rows.

    ``every`` is how often time must pass at least: for the tick, which is due at ``ticked`` + ``every``.
    """

    def __init__(self, settings: LeaseSettings, admission: AdmissionSettings) -> None:
        self.settings = settings
        self.leases = HostLeases(settings)
        self.admission_settings = admission
        self.admission = Admission(admission)
        self.book = LeaseBook(settings.shard, settings.owner)
        self.counts = Counts()
        self.every: Duration = min(settings.renew // 4, settings.beat // 2)
        self.ticked: Instant = 0
        self.listed: frozenset[str] | None = None
        self._strangers = self._met = 0

    # What arrives

    def on(self, event: Event, now: Instant, took: ArrayLike | None = None) -> tuple[Effect, ...]:
        """Something has arrived; what is to be done next, in order.

        ``took`` is how long each call that is answered took, or all of them, where that isn't the time since its
        dispatch. Whose time it is, who keeps silent and that time has passed (``Due``, ``Silent``, ``Tick``) isn't
        told: ``pass_time`` finds it out.
        """
        match event:
            case Answered():
                return self._answered(event, now, took)
            case Outdated():
                if event.id < self.admission.size:
                    self.admission.answered([event.id], now)
            case HostsRead():
                self.expect()
                if event.size > self.admission.size:
                    self.admission.grow(event.size)
            case Wrote(op=Op.LAPSE):
                self.counts.lapsed += int((event.facts.lease == Lease.LAPSED).sum())
            case Wrote(op=Op.GRANT, stands=True):
                self.counts.granted += int((event.facts.lease == Lease.HELD).sum())
        return self._tell(event, now)

    def unchanged(self, ids: Ids, stamp: ArrayLike, now: Instant, took: ArrayLike | None = None) -> tuple[Effect, ...]:
        """These hosts were checked with their present tokens, and answered as they did before: nothing has changed.

        The same as ``on(Answered(...))`` with what each told last, which it must have done: each of them answered once
        under some token since the shard was taken. ``stamp``: what each one's own clock shows, or one for all. ``took``
        as in ``on``.
        """
        hosts, count = self.leases.hosts, len(ids)
        stamps = np.asarray(stamp, np.int64) if np.ndim(stamp) else np.full(count, stamp, np.int64)
        epoch = np.full(count, self.leases.owner.epoch)
        told = (hosts.boot[ids], stamps, hosts.host_incarnation[ids], hosts.host_version[ids], hosts.whole[ids])
        return self._answered(Answered(ids, epoch, hosts.number[ids], hosts.nonce[ids], *told), now, took)

    def _answered(self, event: Answered, now: Instant, took: ArrayLike | None = None) -> tuple[Effect, ...]:
        all_ids = event.ids
        event = self.leases.news(event)
        if took is not None and len(event.ids) < len(all_ids) and np.ndim(took):
            took = np.asarray(took)[np.isin(all_ids, event.ids)]
        self.counts.answers += len(event.ids)
        told = bool(self.book.table.down or self.book.table.unable) or self.behind(event.ids)
        self.admission.answered(event.ids, now, took)
        effects = self._tell(event, now)
        return (News(), *effects) if told else effects

    def behind(self, ids: Ids) -> bool:
        """Whether any of these hosts had yet to tell that it has its newest set: then somebody may wait for that."""
        hosts = self.leases.hosts
        return bool((hosts.version[ids] != hosts.host_version[ids]).any())

    # Time

    def pass_time(self, now: Instant) -> tuple[Effect, ...]:
        """Who has kept silent, whose time it is, and the tick. Once all that arrived is told."""
        effects: tuple[Effect, ...] = ()
        silent = self.admission.overdue(now)
        if len(silent):
            self.admission.failed(silent, now)
            effects += self._tell(Silent(silent), now)
        if self.leases.owner.owning and self.leases.loaded:
            ids, _ = self.admission.take(now)
            if len(ids):
                effects += self._tell(Due(ids), now)
        if now - self.ticked >= self.every:
            self.ticked = now
            effects += self._tell(Tick(), now)
        return effects

    def next_at(self, now: Instant) -> Instant:
        """When there is something to do by itself, if nothing arrives before: the next tick at the latest."""
        ends = self.ticked + self.every
        due = self.admission.next_at(now) if self.leases.owner.owning else None
        return ends if due is None else min(ends, max(due, now + MILLISECOND))

    # What people say

    def lists(self, names: frozenset[str]) -> None:
        """The configuration names all hosts there are; none of them: it takes all that come."""
        self.listed, self._strangers, self._met = names, 0, 0
        self.expect()

    def expect(self) -> None:
        """Count whom to wait for: those listed, and those known who aren't (rows from before the list).

        So there are as many as are waited for only once each of those listed is known. Without a list the settings say
        how many to wait for.
        """
        if self.listed is None:
            return
        names = self.book.table.names
        if self._met > len(names):
            self._strangers = self._met = 0
        self._strangers += sum(name not in self.listed for name in names[self._met :])
        self._met = len(names)
        wanted = len(self.listed) + self._strangers if self.listed else 0
        if wanted != self.leases.settings.expect:
            self.leases.settings = structs.replace(self.leases.settings, expect=wanted)

    def recalibrate(self, settings: AdmissionSettings) -> None:
        """Go by another calibration from now on. What is in line and in flight stays."""
        self.admission_settings = self.admission.settings = settings
        self.admission.brake = Brake.of(settings)

    # Between the two

    def _tell(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """Tell the lease decider one event; what it wants of admission is done, the rest is the driver's."""
        effects = self.leases.on(event, now)
        owner = self.leases.owner
        self.book.life, self.book.epoch = owner.life, owner.epoch
        left: list[Effect] = []
        for effect in effects:
            match effect:
                case Renew():
                    self._renew(effect, now)
                case Recheck():
                    self._recheck(effect.ids, now)
                case Forget():
                    self.book.forget()
                    self.admission = Admission(self.admission_settings)
                    left = [each for each in left if isinstance(each, ReadShard | WriteShard)]
                    left.append(effect)
                case _:
                    self._count(effect)
                    left.append(effect)
        return tuple(left)

    def _count(self, effect: lease_calls.Effect) -> None:
        if isinstance(effect, Send):
            self.counts.checks += len(effect.ids)
        elif isinstance(effect, SendOrders):
            self.counts.orders += len(effect.ids)

    def _renew(self, effect: Renew, now: Instant) -> None:
        """Each in its turn: the first renewal between R and 2R after a grant, the others in the host's phase."""
        period = self.settings.renew
        if effect.first:
            due = first_renewal(effect.ids, effect.number, now, period)
        else:
            due = next_renewal(phase(effect.ids, period), now, period)
        self.admission.renew(effect.ids, due, effect.deadline)

    def _recheck(self, ids: Ids, now: Instant) -> None:
        """As soon as there is room: by the end of each one's lease if it holds one, else in line with who acquires."""
        held = self.leases.hosts.lease[ids] == Lease.HELD
        if held.any():
            self.admission.renew(ids[held], now, self.leases.hosts.ends[ids[held]])
        if not held.all():
            self.admission.drop(ids[~held])
            self.admission.acquire(ids[~held], now)
