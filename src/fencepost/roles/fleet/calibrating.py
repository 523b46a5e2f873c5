"""Measures how many checks may be in flight: on the hosts that there are, at the pace at which a manager asks.

So many hosts are asked at once, an answer makes room for the next question, and each step has twice as many as the one
before, until more in flight makes answers slower and no more of them. L is where that begins: the fewest at which nine
tenths of the most are answered. A check is harmless: it carries the lease's present token and asks a host for nothing
but its state, so hosts, leases and instances are the same afterwards.

Bringing a host's lease back takes a check and a write of its row. So the writes are measured too, with the store's own
transactions, on rows of our own that stand for nothing and are deleted; whichever is slower bounds how fast a fleet
comes back.

What is measured on a fleet that is busy with something else is nonsense, and managers would go by it for months. So
where checks are lost while next to none are asked at once, or at L itself, nothing is kept.

Awkward truth: asker and store are measured from where this runs. On one machine with the hosts, as in a trial, it is
the asker's own core that gives out first; that is no fault of the figure, since a manager has no other.
"""

import asyncio
import contextlib
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from math import sqrt

import numpy as np
from msgspec import Struct, structs

from fencepost.core.capacity import lease_rows
from fencepost.core.capacity.fleet_store import Change, Group, Versioned
from fencepost.core.capacity.lease_book import A_CALL, LeaseBook
from fencepost.core.capacity.rows import CalibrationRow, HostRow, LaunchRow, ShardRow
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND, Duration, Instant
from fencepost.ports import Refused, Unavailable
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.calibrated import HOSTS
from fencepost.roles.fleet.host_manager import PAUSES_S, now
from fencepost.roles.fleet.manager_hands import ManagerHands
from fencepost.roles.fleet.manager_questions import Questions
from fencepost.roles.fleet.wire import Wire
from fencepost.roles.loop import Condition

LOST_AFTER: Duration = SECOND
"""A check that isn't answered in this time counts as lost."""
LOST_MOST = 0.01
"""With more than this share lost it is too many at once."""
FEW = 4
"""So few at once that more than ``LOST_MOST`` lost is no knee: a fleet at its end there would answer fewer than so many
in ``LOST_AFTER``."""
LOST_AT_L = 0.05
"""With more than this share lost at L a manager's brake would cut at once (docs/concepts/recovery.md)."""
MISSED_LEAST = 3
"""Fewer lost than that are chance. With one at once a single late answer is already a twentieth of a short step."""
ENOUGH = 0.9
"""L is the fewest in flight with which this share of the most is answered."""
MORE = 1.1
"""Twice as many in flight that don't bring so many times the answers have gone past the knee."""
FIRST_PART, LAST_PART = 0.05, 0.25
"""Shares of the time: each step, and the last one, at L."""
REFINED = 2
SAMPLES = 100
"""Answers that a step is judged by, at least."""
WRITES = 4
"""So many transactions of a thousand grants."""
FILL = "x" * 120


class Step(Struct, frozen=True, gc=False):
    """One number in flight: answers a second, how long they took (ns), the share that got none, and how many did."""

    in_flight: int
    rate: float
    mean: Duration
    p99: Duration
    p999: Duration
    lost: float
    missed: int

    def loses(self, most: float) -> bool:
        """Whether more than this share was lost; one or two are chance, whatever share that is of few."""
        return self.lost > most and self.missed >= MISSED_LEAST


class Measured(Struct, frozen=True, gc=False):
    """Everything: all steps in order, the one at L last, and grants written a second. ``knee``: one was found."""

    hosts: int
    steps: tuple[Step, ...]
    grants: float
    knee: bool

    @property
    def at(self) -> Step:
        """The step at L."""
        return self.steps[-1]

    @property
    def rate(self) -> float:
        """Leases that come back a second, at most: each takes a check and a grant."""
        return min(self.at.rate, self.grants)

    @property
    def binds(self) -> str:
        """What bounds it: "checks" or "grants"."""
        return "checks" if self.at.rate <= self.grants else "grants"

    def row(self, wall: Instant, limit_least: int) -> CalibrationRow:
        """As managers read it. A fleet too small for a knee says nothing against the number that hurts nobody."""
        limit = self.at.in_flight if self.knee else max(self.at.in_flight, limit_least)
        slowest = max(self.at.p999, self.at.mean)
        return CalibrationRow(HOSTS, limit, self.at.mean, slowest, self.rate, wall, self.grants, self.hosts)


class Known(Struct, frozen=True):
    """Hosts that hold a lease, their shards' epochs by shard, and each host's shard."""

    life: str
    epochs: Mapping[int, int]
    hosts: Sequence[tuple[int, Versioned]]


async def known(store: FleetStorePort, shards: int) -> Known:
    """The hosts that can be asked now. Raises a ``PortError``."""
    from fencepost.core.capacity.shards import shard_of

    page = await store.rows("shard")
    epochs = {at.row.shard: at.row.epoch for at in page.rows if isinstance(at.row, ShardRow) and at.row.owner}
    found = []
    for at in (await store.rows("host")).rows:
        row = at.row
        if isinstance(row, HostRow) and row.held(page.life) and not row.left:
            shard = shard_of(row.host, shards)
            if shard in epochs:
                found.append((shard, at))
    return Known(page.life, epochs, found)


class Asker:
    """Asks hosts, so many at once."""

    def __init__(self, wire: Wire, store: FleetStorePort, fleet: Known) -> None:
        condition = Condition()
        self.epochs = fleet.epochs
        self.hands = ManagerHands(store, LeaseBook(1, "calibrate"), condition)
        self.questions = Questions(wire, condition)
        self.questions.begin(self.hands, MINUTE)
        rows = [at.row for _, at in fleet.hosts if isinstance(at.row, HostRow)]
        for _, at in fleet.hosts:
            self.hands.table.put(at)
        self.shards = np.array([shard for shard, _ in fleet.hosts], np.int64)
        self.number = np.array([row.number for row in rows], np.int64)
        self.nonce = np.array([row.nonce for row in rows], np.uint64)
        self.since = np.zeros(len(rows), np.int64)
        self.free = deque(range(len(rows)))
        self.out = 0
        self.refused = 0

    @contextlib.asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """While it has its sockets."""
        task = asyncio.create_task(self.questions.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    def send(self, most: int) -> None:
        """Ask as many as there is room for."""
        count = min(most - self.out, len(self.free))
        if count <= 0:
            return
        ids = np.array([self.free.popleft() for _ in range(count)], np.int64)
        self.since[ids] = now()
        self.out += count
        for shard, epoch in self.epochs.items():
            some = ids[self.shards[ids] == shard]
            self.questions.check(self.hands.table, epoch, some, self.number, self.nonce, whole=False)

    def hear(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """How long each answer that has come took. A host that has a newer token isn't asked again."""
        answered, refused = self.questions.heard()
        at = now()
        for each in refused:
            if self.since[each.id]:
                self.since[each.id], self.out, self.refused = 0, self.out - 1, self.refused + 1
        ids = answered.ids if answered is not None else np.empty(0, np.int64)
        ids = ids[self.since[ids] > 0]
        took: np.ndarray[tuple[int], np.dtype[np.int64]] = at - self.since[ids]
        self.since[ids] = 0
        self.out -= len(ids)
        self.free.extend(ids.tolist())
        return took

    def lost(self) -> int:
        """How many were given up."""
        gone = np.flatnonzero((self.since > 0) & (now() - self.since > LOST_AFTER))
        self.since[gone] = 0
        self.out -= len(gone)
        self.free.extend(gone.tolist())
        return len(gone)

    async def step(self, in_flight: int, length: Duration) -> Step:
        """Ask for so long, or up to four times as long where answers are few; the first quarter doesn't count.

        Where they are few it asks long enough for what is lost to be seen: else the next step would be blamed for it.
        """
        begun, longest = now(), max(4 * length, 3 * LOST_AFTER)
        counted, ends = begun + length // 4, begun + length
        parts, heard, lost, looked, at = [np.empty(0, np.int64)], 0, 0, begun, begun
        while at < ends or (heard < SAMPLES and at < begun + longest):
            self.hands.arrived.clear()
            took = self.hear()
            at = now()
            if at >= counted:
                parts.append(took)
                heard += len(took)
            if at - looked > LOST_AFTER // 4:
                lost, looked = lost + self.lost(), at
            self.send(in_flight)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await self.hands.arrived.wait()
            await asyncio.sleep(PAUSES_S[0])
        times = np.concatenate(parts)
        total = len(times) + lost
        if not len(times):
            return Step(in_flight, 0.0, 0, 0, 0, 1.0, lost)
        p99, p999 = (int(each) for each in np.percentile(times, (99, 99.9)))
        rate = len(times) * SECOND / (at - counted)
        return Step(in_flight, rate, int(times.mean()), p99, p999, lost / total, lost)


async def measured(
    wire: Wire, store: FleetStorePort, fleet: Known, length: Duration, told: Callable[[Step], None]
) -> Measured:
    """All of it. ``told`` hears each step.

    Raises ``Refused`` where there is nobody to ask, or too many checks are lost for it to mean anything;
    ``Unavailable`` where nobody answers, or the store doesn't.
    """
    if not fleet.hosts:
        hint = "fencepost fleet hosts    shows who is; leases are given by a running host-manager"
        raise Refused("no host holds a lease, so none can be asked", where="the fleet", hint=hint)
    asker = Asker(wire, store, fleet)
    part = max(int(FIRST_PART * length), 100 * MILLISECOND)
    async with asker.asking():
        steps = await climbed(asker, part, told)
        if not any(step.rate for step in steps):
            hint = (
                "do agents and managers have this fleet.key, and are their ports reachable from here? Or is the fleet"
            )
            hint += " busy with something else (fencepost status)?"
            raise Unavailable("no host answers a check", where="the fleet", hint=hint)
        if 2 * asker.refused > len(fleet.hosts):
            raise Unavailable("leases changed hands meanwhile", where="the fleet", hint="ask again in a minute")
        if steps[-1].in_flight <= FEW:
            refuse_lossy(steps[-1], LOST_MOST)
        at, knee = knee_of(steps)
        for _ in range(REFINED):
            below = max((step.in_flight for step in steps if step.in_flight < at), default=0)
            between = round(sqrt(below * at)) if knee else 0
            if between in (0, below, at):
                break
            steps.append(await asker.step(between, part))
            told(steps[-1])
            at, _ = knee_of(sorted(steps, key=lambda step: step.in_flight))
        last = await asker.step(at, max(part, int(LAST_PART * length)))
        told(last)
        refuse_lossy(last, LOST_AT_L)
    grants = await granted(asker.hands, fleet)
    return Measured(len(fleet.hosts), (*steps, last), grants, knee)


def refuse_lossy(step: Step, most: float) -> None:
    """Raises ``Refused`` where a step lost more than this share: something else keeps the fleet busy."""
    if step.loses(most):
        what = f"at {step.in_flight} at once {step.lost:.0%} of the checks were lost, and {step.rate:,.0f} a second"
        what += f" answered: more than {most:.0%} lost there is no measure of these hosts. Nothing was kept"
        hint = (
            "look for what else loads hosts, network, store or this machine (fencepost status; hosts that are dead or"
        )
        hint += " come back); when that is over, fencepost fleet calibrate again. What was kept before goes on holding"
        raise Refused(what, where="the fleet", hint=hint)


async def climbed(asker: Asker, part: Duration, told: Callable[[Step], None]) -> list[Step]:
    """1, 2, 4 ... in flight, until that brings nothing but waiting, or there are no more hosts."""
    steps: list[Step] = []
    in_flight, best = 1, 0.0
    while in_flight <= len(asker.free) + asker.out:
        steps.append(await asker.step(in_flight, part))
        told(steps[-1])
        slower = len(steps) > 1 and steps[-1].mean > MORE * steps[-2].mean
        if steps[-1].loses(LOST_MOST) or (slower and steps[-1].rate < MORE * best):
            break
        best = max(best, steps[-1].rate)
        in_flight *= 2
    return steps


def knee_of(steps: Sequence[Step]) -> tuple[int, bool]:
    """The fewest in flight with nine tenths of the most; and whether more than that was tried and brought nothing."""
    good = [step for step in steps if not step.loses(LOST_MOST)] or list(steps[:1])
    most = max(step.rate for step in good)
    at = next(step for step in good if step.rate >= ENOUGH * most)
    return at.in_flight, any(step.in_flight > at.in_flight for step in steps)


async def granted(hands: ManagerHands, fleet: Known) -> float:
    """Grants written a second: rows composed as grants are, a thousand a transaction. Leaves nothing behind."""
    table, store, count = hands.table, hands.store, min(A_CALL, 1000)
    names = [f"calibrate-{secrets.token_hex(6)}-{n}" for n in range(count)]
    seen, done, took = 0, 0, 0
    try:
        for turn in range(WRITES + 1):
            begun = now()
            groups: list[Group] = []
            for n, name in enumerate(names):
                row = lease_rows.granted(table.row(n % len(table)), fleet.life, secrets.randbits(63), 1, 1)
                filled = f"{FILL}{row.nonce}{row.number}"
                groups.append((Change(LaunchRow(name, filled, (), time.time_ns()), seen),))
            written = await store.commit(None, groups)
            if written is None or not all(written.applied):
                raise Unavailable("somebody else writes the rows that are to be measured with", where="the store")
            seen = written.snapshot
            if turn:  # the first one writes new rows, which a grant doesn't
                done, took = done + count, took + now() - begun
    finally:
        if seen:
            await store.commit(None, [(Change(None, seen, ("launch", name)),) for name in names])
    return done * SECOND / max(1, took)


async def persist(store: FleetStorePort, row: CalibrationRow) -> None:
    """Write it over the one before. Raises a ``PortError``."""
    before = (await store.prove(1, [("calibration", row.name)])).rows[0]
    written = await store.commit(None, [(Change(row, before.revision if before is not None else 0),)])
    if written is None or not written.applied[0]:
        raise Unavailable("another calibration came first", where="the store", hint="fencepost fleet hosts    shows it")


def sample(fleet: Known, count: int) -> Known:
    """Some of the hosts, evenly among them."""
    every = max(1, len(fleet.hosts) / max(1, count))
    picked = [fleet.hosts[int(n * every)] for n in range(min(count, len(fleet.hosts)))]
    return structs.replace(fleet, hosts=picked)
