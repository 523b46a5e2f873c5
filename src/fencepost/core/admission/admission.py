"""How much work may be in flight, and which work next: a set of hosts, pulled at a calibrated rate.

Nobody pushes. A host is in one place at most: waiting until its renewal is due, in line, or in flight; a retry can't
multiply it, so the backlog is never larger than the number of hosts. At most ``limit`` are in flight. A call's deadline
starts when it is dispatched, so that no wait in line eats it. Renewals go first, by earliest deadline, and leave a
tenth to the line while they have time (``floor``); one that can't be answered before its lease ends is no renewal any
more, and joins the line of those that acquire. What failed joins the tail, and of all dispatches at most a tenth are
second tries.

    idle -> waiting -> ready -> renewing ---> idle
      `-> queued ------------> acquiring -´   (failed: again, at the tail)

State is numpy columns, changed in place. Below some twenty ids a call, plain lists would be quicker. Ids are 0 to
``size`` - 1, as any integers; the same id twice in one call counts once. Every answer depends on the calls and their
instants alone.
"""

from collections import deque
from itertools import takewhile

import numpy as np
from numpy.typing import ArrayLike

from fencepost.core.admission.brake import Brake
from fencepost.core.admission.calendar import Calendar, sorted_ids
from fencepost.core.admission.columns import LOW, NO_LEASE, NONE, Entries, Ids, Mask, Times, each_of
from fencepost.core.admission.floor import Floor
from fencepost.core.admission.hosts import (
    ACQUIRING,
    AGAIN,
    IDLE,
    LEAVING,
    NAMES,
    QUEUED,
    READY,
    RENEWING,
    WAITING,
    Hosts,
)
from fencepost.core.admission.line import Line
from fencepost.core.admission.second_tries import SecondTries
from fencepost.core.admission.settings import AdmissionSettings, plain
from fencepost.core.instant import Duration, Instant

FOREVER = (1 << 63) - 1
FLIGHTS = 1024
"""With more batches out than that, `take` looks whether the oldest have landed."""
SLACK = 1 << 16
"""So many entries out of date don't matter."""


class Admission:
    """Which hosts' calls are in flight, and which come next. See the module's text."""

    __slots__ = (
        "_again", "_flights", "_floor", "_fresh", "_hosts", "_place", "_ready", "_tries", "_waiting",
        "brake", "settings",
    )  # fmt: skip

    def __init__(self, settings: AdmissionSettings, size: int = 0) -> None:
        """Nobody waits. Raises ``ValueError`` for a size that isn't one."""
        self.settings, self.brake, self._hosts = settings, Brake.of(settings), Hosts(size)
        self._tries, self._floor = SecondTries(settings.retry_share), Floor(settings.floor_share)
        self._waiting, self._ready = Calendar(settings.width), Calendar(settings.width)
        self._fresh, self._again, self._place = Line(), Line(), 0
        self._flights: deque[tuple[Instant, Entries]] = deque()

    # What it is

    @property
    def size(self) -> int:
        """Ids are less than this."""
        return self._hosts.size

    @property
    def in_flight(self) -> int:
        """How many calls are out."""
        return sum(self._hosts.counts[RENEWING:])

    @property
    def backlog(self) -> int:
        """How many hosts want something now: in line or in flight, never more than ``size``."""
        return sum(self._hosts.counts[READY:])

    @property
    def limit(self) -> int:
        """How many may be in flight just now."""
        return self.brake.limit

    @property
    def calibrated(self) -> int:
        """L as it has become: worth persisting, for the settings of the next start."""
        return max(1, int(self.brake.calibrated + 1e-9))

    @property
    def rate(self) -> float:
        """Calls a second that the service carries, as far as is known."""
        return self.brake.rate

    def counts(self) -> dict[str, int]:
        """How many hosts are in each state."""
        return dict(zip(NAMES, self._hosts.counts, strict=True))

    def due(self, ids: ArrayLike) -> Times:
        """When each one's renewal is or was due."""
        return self._hosts.due[np.asarray(ids, np.int64)]

    # What joins and leaves

    def renew(self, ids: ArrayLike, due: ArrayLike, deadline: ArrayLike) -> None:
        """Each holds a lease until ``deadline``, to be renewed at ``due``; instants for each, or one for all.

        Replaces what was known of it, its place in line too. One in flight stays so, with the new deadline.
        """
        hosts = self._hosts
        who, places = hosts.once(ids)
        due, deadline = each_of(due, places, len(who)), each_of(deadline, places, len(who))
        hosts.due[who], hosts.deadline[who] = due, deadline
        state = hosts.state[who]
        flying = state >= RENEWING
        if flying.any():
            hosts.move(who[state == LEAVING], RENEWING)
            who, due, state = who[~flying], due[~flying], state[~flying]
        self._waiting.put(hosts.tickets.issue(who), due)
        hosts.move(who, WAITING, state)
        self._tidy()

    def acquire(self, ids: ArrayLike, now: Instant) -> None:
        """Join the tail, in this order. Who waits, is in line or in flight already stays where it is."""
        who, _ = self._hosts.once(ids, first=True)
        state = self._hosts.state[who]
        leaving = state == LEAVING
        if leaving.any():
            self._hosts.move(who[leaving], ACQUIRING)
        who = who[state == IDLE]
        self._hosts.deadline[who] = NO_LEASE
        self._join(self._fresh, self._hosts.tickets.issue(who))
        self._hosts.move(who, QUEUED)
        self.brake.look(now)

    def drop(self, ids: ArrayLike) -> None:
        """They want nothing any more. A call in flight still takes its slot until it is answered or given up."""
        who, _ = self._hosts.once(ids)
        state = self._hosts.state[who]
        flying = state >= RENEWING
        self._hosts.move(who[flying], LEAVING)
        who = who[~flying]
        self._hosts.tickets.issue(who)
        self._hosts.move(who, IDLE)
        self._tidy()

    def grow(self, size: int) -> None:
        """Room for more hosts. Raises ``ValueError`` for fewer than there are."""
        self._hosts.grow(size)

    # What goes out and comes back

    def take(self, now: Instant, most: int | None = None) -> tuple[Ids, Mask]:
        """What to dispatch now, in order, and which of these acquire (the others renew): at most ``most``.

        Each is in flight from now on, until ``answered`` or ``failed`` says otherwise.
        """
        self.brake.look(now)
        free = self.brake.limit - self.in_flight
        room = free if most is None else min(free, most)
        entries = self._straight(now, room)
        if room <= 0:
            self.brake.bound = self.brake.bound or (free <= 0 and any(self._hosts.counts[READY : AGAIN + 1]))
            return NONE, np.empty(0, np.bool_)
        if not len(entries) and self._hosts.counts[READY]:
            entries = self._ready.until(FOREVER, self._hosts.tickets, room - self._kept(now, room))[0]
            self._hosts.move_on(entries & LOW, READY, RENEWING)
        ids, renewing = entries & LOW, len(entries)
        acquiring = np.zeros(renewing, np.bool_)
        line = self._from_line(now, room - renewing, renewing)
        if len(line):
            joined = line & LOW
            late = self._hosts.too_late(joined, now + self.settings.service_p99)
            self._hosts.move(joined[late], ACQUIRING)
            self._hosts.move(joined[~late], RENEWING)
            ids, acquiring = np.concatenate((ids, joined)), np.concatenate((acquiring, late))
            entries = np.concatenate((entries, line))
        if len(ids):
            self._hosts.dispatched[ids] = now
            self._hosts.remember(ids)
            self._flights.append((now, entries))
            if len(self._flights) > FLIGHTS:
                self._forget_landed()
        self.brake.bound = self.brake.bound or (len(ids) == free and any(self._hosts.counts[READY : AGAIN + 1]))
        return ids, acquiring

    def answered(self, ids: ArrayLike, now: Instant, took: ArrayLike | None = None) -> None:
        """These were answered; ``took`` is how long each call took, from its dispatch on unless given.

        One that was given up before is done too, and leaves the tail. Others are passed over.
        """
        hosts = self._hosts
        who, places = hosts.once(ids)
        state = hosts.state[who]
        done = state >= RENEWING
        times = now - hosts.dispatched[who] if took is None else each_of(took, places, len(who))
        if not done.all():
            times = times[done]
            done |= state == AGAIN
            hosts.tickets.issue(who[state == AGAIN])
            who, state = who[done], state[done]
        squares = np.square(times.astype(np.float64))  # not BLAS: it takes every core, and sums differ by CPU
        self.brake.answered(len(times), int(times.sum()), float(squares.sum()))
        hosts.move(who, IDLE, state)
        self.brake.look(now)

    def failed(self, ids: ArrayLike, now: Instant) -> None:
        """These failed, or were given up: to the tail, in this order. Who isn't in flight is passed over."""
        who, _ = self._hosts.once(ids, first=True)
        state = self._hosts.state[who]
        self.brake.failed(int(np.count_nonzero(state >= RENEWING)))
        leaving = state == LEAVING
        if leaving.any():
            self._hosts.move(who[leaving], IDLE)
        who = who[(state >= RENEWING) & ~leaving]
        self._join(self._again, self._hosts.tickets.issue(who))
        self._hosts.move(who, AGAIN)
        self.brake.look(now)

    def overdue(self, now: Instant) -> Ids:
        """Whose call has taken as long as a call may take; they stay in flight until ``failed`` is called."""
        until = now - self.settings.attempt
        if not self._flights or self._flights[0][0] > until:
            return NONE
        self._forget_landed()
        found = [self._flying(entries) for at, entries in takewhile(lambda each: each[0] <= until, self._flights)]
        return np.concatenate(found) if found else NONE

    # When

    def next_at(self, now: Instant) -> Instant | None:
        """When ``take`` or ``overdue`` may have something new, without an answer before: ``now`` or later, or never."""
        found = []
        self._forget_landed()
        if self._flights:
            found.append(self._flights[0][0] + self.settings.attempt)
        if self.brake.limit > self.in_flight:
            found += self._next_with_room(now)
        elif self.brake.since is not None and any(self._hosts.counts[READY : AGAIN + 1]):
            end = self.brake.since + self.brake.length
            found += [end] if end > now else []
        return max(now, min(found)) if found else None

    def _next_with_room(self, now: Instant) -> list[Instant]:
        if self._hosts.counts[READY] or self._hosts.counts[QUEUED]:
            return [now]
        found = []
        if self._hosts.counts[AGAIN]:
            self._tries.pass_to(now, self.brake.trickle, self.brake.rate)
            ready = self._tries.allowed(alone=True)
            found.append(now if ready else now + self._tries.wait(self.brake.trickle, self.brake.rate))
        if self._hosts.counts[WAITING]:
            due = self._waiting.next_at(self._hosts.tickets)
            found += [] if due is None else [due]
        return found

    # Copies

    def copy(self) -> "Admission":
        """The same, apart."""
        other = Admission(self.settings)
        other._place = self._place
        for name in ("_hosts", "_tries", "_floor", "_waiting", "_ready", "_fresh", "_again", "_flights", "brake"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def aged(self, by: Duration) -> "Admission":
        """A copy in which every instant is ``by`` later."""
        other = self.copy()
        other._hosts.age(by)
        other._flights = deque((at + by, entries) for at, entries in self._flights)
        for part, field in ((other.brake, "since"), (other._tries, "at")):
            at = getattr(part, field)
            setattr(part, field, None if at is None else at + by)
        other._make_calendars()
        return other

    def key(self) -> bytes:
        """Equal for two that will answer alike: what an explorer remembers."""
        state = self._hosts.state
        fresh, again = self._fresh.all(self._hosts.tickets), self._again.all(self._hosts.tickets)
        line = np.concatenate((fresh[0], again[0]))[np.concatenate((fresh[1], again[1])).argsort()] & LOW
        flights = [(at, self._flying(entries).tolist()) for at, entries in self._flights]
        parts = [plain(part) for part in (self.brake, self._tries, self._floor)]
        numbers = (*parts, [each for each in flights if each[1]])
        return b"".join(
            (
                state.tobytes(),
                np.where(state == WAITING, self._hosts.due, 0).tobytes(),
                np.where((state != IDLE) & (state != QUEUED), self._hosts.deadline, 0).tobytes(),
                np.where(state >= RENEWING, self._hosts.dispatched, 0).tobytes(),
                line.tobytes(),
                repr(numbers).encode(),
            )
        )

    # Inside

    def _join(self, line: Line, entries: Entries) -> None:
        line.join(entries, self._place, self._hosts.tickets)
        self._place += len(entries)

    def _straight(self, now: Instant, room: int) -> Entries:
        """What is due goes out at once if there is room for all of it and nothing was ready before: nearly always.

        Else none does, and what is due is ready.
        """
        hosts, entries = self._hosts, NONE
        if hosts.counts[WAITING]:
            entries, _ = self._waiting.until(now, hosts.tickets)
        soonest = now + self.settings.service_p99
        if len(entries):
            ids = entries & LOW
            deadlines = hosts.deadline[ids]
            if not hosts.counts[READY] and len(ids) <= room and deadlines.min() >= soonest:
                ids = sorted_ids(ids, deadlines)
                hosts.move_on(ids, WAITING, RENEWING)
                return hosts.tickets.entries(ids)
            hosts.move_on(ids, WAITING, READY)
            self._ready.put(entries, deadlines)
        if hosts.counts[READY]:
            self._refuse_late(soonest)
        return NONE

    def _refuse_late(self, soonest: Instant) -> None:
        """Of what is ready, those whose lease would end before the answer came acquire."""
        entries, _ = self._ready.until(soonest - 1, self._hosts.tickets)
        if len(entries):
            ids = entries & LOW
            self._hosts.deadline[ids] = NO_LEASE
            self._hosts.move_on(ids, READY, QUEUED)
            self._join(self._fresh, entries)

    def _kept(self, now: Instant, room: int) -> int:
        """How many slots the renewals that are ready leave to the line: see :mod:`~fencepost.core.admission.floor`."""
        counts = self._hosts.counts
        line = counts[QUEUED] + min(counts[AGAIN], self._tries.allowed(alone=False))
        loads = self._ready.loads(self._hosts.tickets) if self.settings.period else ()
        return self._floor.kept(room, line, loads, now + self.settings.period, self.brake.rate)

    def _from_line(self, now: Instant, room: int, renewals: int) -> Entries:
        """Who acquires next, in order, beside so many renewals; second tries as far as they may."""
        tries, brake = self._tries, self.brake
        tries.pass_to(now, brake.trickle, brake.rate)
        fresh = places = NONE
        if self._hosts.counts[QUEUED]:
            fresh, places = self._fresh.look(room, self._hosts.tickets)
        taken = 0
        if room and self._hosts.counts[AGAIN]:
            alone = not self._hosts.counts[QUEUED] and not self._hosts.counts[READY]
            again, behind = self._again.look(min(room, tries.allowed(alone)), self._hosts.tickets)
            order = np.concatenate((places, behind)).argsort()[:room]
            taken = int(np.count_nonzero(order >= len(fresh)))
            both = np.concatenate((fresh, again))[order]
            self._again.leave(taken)
            self._fresh.leave(len(both) - taken)
            fresh = both
            tries.spend(taken)
        else:
            self._fresh.leave(len(fresh))
        tries.first(renewals + len(fresh) - taken, brake.rate)
        return fresh

    def _flying(self, entries: Entries) -> Ids:
        """Which of those dispatched are still out."""
        ids: Ids = entries[self._hosts.tickets.live(entries)] & LOW
        flying: Ids = ids[self._hosts.state[ids] >= RENEWING]
        return flying

    def _forget_landed(self) -> None:
        while self._flights and not len(self._flying(self._flights[0][1])):
            self._flights.popleft()

    def _tidy(self) -> None:
        """Make the calendars anew when most of what they hold is out of date."""
        live = self._hosts.counts[WAITING] + self._hosts.counts[READY]
        if self._waiting.size + self._ready.size > 2 * live + SLACK:
            self._make_calendars()

    def _make_calendars(self) -> None:
        width = self.settings.width
        self._waiting, self._ready = Calendar(width), Calendar(width)
        hosts = self._hosts
        for state, calendar, times in ((WAITING, self._waiting, hosts.due), (READY, self._ready, hosts.deadline)):
            ids = (hosts.state == state).nonzero()[0]
            calendar.put(hosts.tickets.entries(ids), times[ids])
