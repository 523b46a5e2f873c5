"""Enactors, planners and the janitor in time: each call takes a while, each timer fires when due or early.

The moves are :func:`fencepost.world.calls.perform` and its like. What is added is what a driver of deciders has: the
mirrors. They are kept from pass to pass, as the roles keep theirs, and only what changed since an endpoint was last
found in order is shown to the decider. A call whose answer the mirror holds already (nothing has changed) is answered
from it, which is what makes idle passes nearly free; ``shortcuts=False`` takes the long way, with the same outcome.
"""

from collections.abc import Callable, Iterator

from fencepost.core import judge
from fencepost.core.effects import (
    Commit,
    Compare,
    DeleteRow,
    Effect,
    Publish,
    ReadDns,
    ReadHead,
    ReadInputs,
    ReadRows,
    Survey,
    Wake,
)
from fencepost.core.events import (
    Compared,
    DnsRead,
    Event,
    Failed,
    Failure,
    HeadRead,
    InputsRead,
    RowsRead,
    Standing,
    Surveyed,
    Woke,
)
from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.judge import Pair
from fencepost.core.traffic.dns_enactor import DnsEnactor
from fencepost.core.traffic.dns_planner import DnsPlanner, gathered_at
from fencepost.core.zone import Batch
from fencepost.simulator.timed import Timed
from fencepost.simulator.walk import Process, Walk, outcome_of
from fencepost.world import calls, region
from fencepost.world.model import Move
from fencepost.world.region import NOTHING_READ, Slot, advance

WOKE, DNS_READ, ROWS_READ, NOTHING_DIFFERS = Woke(), DnsRead(), RowsRead(), Compared(())
WRITES = (Commit, Publish, DeleteRow)
STORE_CALLS = (*calls.STORE_CALLS, Publish, DeleteRow)
STOPS = "stopped-before-write"
NEVER_ARRIVED = ("write lost", "given up", "store away", "DNS away")
TIMEOUT: Duration = 2 * SECOND
"""How long a call waits for an answer that doesn't come."""


class DnsPart:
    """One decider, its mirrors, and the call it is about to make."""

    def __init__(self, walk: Walk, process: Process, made: Callable[[], region.AnyDecider], shortcuts: bool) -> None:
        self.walk = walk
        self.process = process
        self.made = made
        self.shortcuts = shortcuts
        self.token = 0
        self.asleep = self.roused = False
        self.mishaps: list[tuple[str, Duration]] = []
        self.is_enactor = isinstance(made(), DnsEnactor)
        file = (None,) * len(walk.shared.domain) if self.is_enactor else ()
        self.slot = Slot(process.name, made(), NOTHING_READ, ReadDns(), file, timed=True)
        self.forget()

    def forget(self) -> None:
        """All that a process loses with its life."""
        self.seen_rows: object = None
        self.seen_with: object = None
        self.calm: tuple[object, ...] = ()
        self.aside: dict[str, tuple[object, ...]] = {}
        self.restless = False
        self.highest = 0

    def begin(self, after: Duration) -> None:
        """Start, or start anew, so much later: all is forgotten but the local file."""
        self.forget()
        self.asleep = self.roused = False
        self.mishaps.clear()
        slot = self.slot._replace(decider=self.made(), mirror=NOTHING_READ)
        self.slot = advance(slot, WOKE, self.walk.now + self.process.skew, copied=True)
        self.next(self.walk.now + after)

    def sending(self) -> Batch | None:
        """The transaction it is about to send, or has just sent."""
        return self.slot.pending.batch if isinstance(self.slot.pending, Commit) else None

    def next(self, at: Instant) -> None:
        """Its next move, in place of any other."""
        self.token += 1
        self.walk.push(at, self.step, self.token)

    def rouse(self) -> None:
        """Store or DNS changed."""
        if self.asleep and not self.roused:
            self.roused = True
            self.walk.push(self.walk.now + self.walk.latency.notice(), self.step, self.token)

    def step(self, token: int) -> None:
        """The timer fires, or the pending call takes effect and is answered."""
        if token != self.token:
            return
        walk, process = self.walk, self.process
        if process.stopped_until > walk.now:
            walk.push(process.stopped_until, self.step, token)
            return
        slot = self.slot
        late: Duration = 0
        if self.mishaps and self.mishaps[0][0] == STOPS and isinstance(slot.pending, WRITES):
            process.stopped_until = walk.now + self.mishaps.pop(0)[1]
            walk.watch.saw("stopped between reading and writing")
            walk.watch.tell(walk.now, process.name, "stands still, having read and not yet written", STOPS)
            walk.push(process.stopped_until, self.step, token)
            return
        if type(slot.pending) is Wake:
            self.asleep = self.roused = False
            self.slot = slot = advance(slot, WOKE, walk.now + process.skew, copied=True)
            if walk.watch.told is not None:
                walk.watch.tell(walk.now, process.name, "wakes")
        else:
            answer = self.at_hand(slot.pending) if self.shortcuts else None
            if answer is not None:
                slot = advance(slot, answer, walk.now + process.skew, copied=True)
                self.settle(slot)
                if walk.watch.told is not None:
                    walk.watch.tell(walk.now, process.name, f"{type(answer).__name__}: nothing new")
            else:
                late = self.call()
            slot = self.slot
        pending = slot.pending
        self.token += 1
        if type(pending) is Wake:
            self.asleep = True
            walk.push(walk.now + pending.after + late, self.step, self.token)
        else:
            walk.push(walk.now + walk.latency.call() + late, self.step, self.token)

    def at_hand(self, pending: Effect) -> Event | None:
        """The answer to a read, if the mirror is as of now."""
        walk, mirror = self.walk, self.slot.mirror
        shared = walk.shared
        kind = type(pending)
        if kind is ReadDns:
            return DNS_READ if mirror.dns is shared.domain and not walk.no_dns(self.process) else None
        if walk.no_store(self.process):
            return None
        tables = shared.stores[0]
        if kind is ReadRows:
            return ROWS_READ if self.seen_rows is tables.rows and self.seen_with is mirror.dns else None
        if kind is ReadHead:
            return HeadRead(tables.head) if self.seen_rows is tables.rows else None
        if kind is ReadInputs and mirror.wanted is tables.wanted and mirror.orders is tables.orders:
            return InputsRead(tables.inputs)
        return None

    def call(self) -> Duration:
        """One call of the world's, gone well or wrong; how much longer its caller waited."""
        walk, slot = self.walk, self.slot
        pending = slot.pending
        before = walk.as_of(self.process.skew)
        mishap, lasts = self.mishaps.pop(0) if self.mishaps and isinstance(pending, WRITES) else ("", 0)
        away = self.away(pending)
        waits = 0
        if away:
            move, waits = self.unanswered(before), TIMEOUT
        elif mishap in ("answer-lost", "write-lost", "write-late"):
            move, waits = self.gone_wrong(mishap, before), TIMEOUT
        elif mishap == "delivered-twice" and isinstance(pending, Commit):
            move = calls.twice(slot, before, pending.batch)
        else:
            move = calls.perform(slot, before)
            if type(pending) in (ReadRows, ReadHead):
                self.seen_rows, self.seen_with = before.tables.rows, slot.mirror.dns
        self.note(pending, before, move)
        self.settle(move.slot)
        walk.took(self.process.name, move, lasts)
        return waits

    def away(self, pending: Effect) -> bool:
        """Whether nobody is there to answer."""
        walk = self.walk
        if isinstance(pending, STORE_CALLS):
            return walk.no_store(self.process)
        return walk.no_dns(self.process)

    def unanswered(self, shared: Timed) -> Move:
        """Nobody answers."""
        if isinstance(self.slot.pending, calls.STORE_CALLS):
            return calls.unanswered(self.slot, shared)
        failed = Failed(type(self.slot.pending).__name__, Failure.UNAVAILABLE)
        of = "the store" if isinstance(self.slot.pending, STORE_CALLS) else "DNS"
        told = advance(self.slot, failed, shared.now)
        return Move(f"gets no answer from {of}", told, shared, calm=False, event=f"{of.split()[-1]} away")

    def gone_wrong(self, mishap: str, shared: Timed) -> Move:
        """The answer to a write is lost: one of the ways in which that can be."""
        ways: Iterator[Move] = calls.unknown(self.slot, shared)
        found = list(ways)
        place = {"answer-lost": 0, "write-lost": 1, "write-late": -1}[mishap]
        return found[place]

    def note(self, pending: Effect, before: Timed, move: Move) -> None:
        """Count what promises speak of, and tell whoever drives real ports beside us."""
        walk, after = self.walk, move.shared
        if type(pending) is Publish and after.tables is not before.tables:
            walk.watch.checked["inputs_never_backward"] += 1
        elif type(pending) is DeleteRow and after.tables is not before.tables:
            walk.watch.checked["cleanup_spares_live"] += 1
        if walk.operated is None:
            return
        if isinstance(pending, WRITES) and move.event not in NEVER_ARRIVED:
            walk.operated((type(pending).__name__, pending, outcome_of(pending, before, after)))

    def settle(self, slot: Slot) -> None:
        """Compare and survey: what the mirrors show costs no call."""
        pending = slot.pending
        kind = type(pending)
        now = self.walk.now + self.process.skew
        if kind is Compare:
            slot = self.compared(slot, pending, now)  # type: ignore[arg-type]
        elif kind is Survey:
            slot = self.surveyed(slot, now)
        self.slot = slot

    def compared(self, slot: Slot, effect: Compare, now: Instant) -> Slot:
        """DNS and rows side by side, but for endpoints known to be in order, or set aside until they change."""
        mirror = slot.mirror
        state = (mirror.dns, mirror.rows, effect.rows_known)
        if self.shortcuts and self.same_as_calm(state):
            return advance(slot, NOTHING_DIFFERS, now, copied=True)
        every = region.compared(slot, Compare(len(mirror.dns), effect.cursor, effect.rows_known)).pairs
        pairs = [pair for pair in every if not in_order(pair) and not self.is_aside(pair)]
        shown = tuple(pairs[: effect.limit])
        slot = advance(slot, Compared(shown, more=len(pairs) > effect.limit), now, copied=True)
        written = [change.name for change in slot.pending.batch] if isinstance(slot.pending, Commit) else []
        for pair in shown:
            if pair.live.name not in written:
                self.aside[pair.live.name] = (pair.live, pair.row, effect.rows_known)
            elif pair.live.name == written[-1]:
                break
        self.calm = state if type(slot.pending) is Wake else ()
        return slot

    def is_aside(self, pair: Pair) -> bool:
        """Whether it was judged as it stands, and nothing was to be done."""
        known = self.aside.get(pair.live.name)
        return known is not None and known[0] is pair.live and known[1] is pair.row

    def same_as_calm(self, state: tuple[object, ...]) -> bool:
        """Whether all is as when nothing was to be done."""
        calm = self.calm
        return bool(calm) and all(now is then for now, then in zip(state, calm, strict=True))

    def surveyed(self, slot: Slot, now: Instant) -> Slot:
        """Inputs, rows and DNS side by side, but for endpoints in agreement since the last look."""
        mirror = slot.mirror
        state = (mirror.dns, mirror.rows, mirror.wanted, mirror.orders)
        if self.shortcuts and not self.restless and self.same_as_calm(state):
            return advance(slot, Surveyed((), self.highest), now, copied=True)
        told = region.surveyed(slot)
        self.highest = told.highest
        shown = tuple(each for each in told.standings if not self.agreed(each))
        slot = advance(slot, Surveyed(shown, told.highest), now, copied=True)
        if type(slot.pending) is Wake:
            for each in shown:
                self.aside[each.name] = (each.live, each.row, each.wanted)
            decider = slot.decider
            gather = decider.settings.gather if isinstance(decider, DnsPlanner) else 0
            self.restless = False
            for each in told.standings:
                if gathered_at(each, gather) > now:
                    self.aside.pop(each.name, None)
                    self.restless = True
                self.restless = self.restless or ends_by_itself(each) or bool(each.orders)
            self.calm = state
        else:
            self.calm = ()
        return slot

    def agreed(self, each: Standing) -> bool:
        """Whether nothing about an endpoint has changed since it was found in agreement, and time changes nothing."""
        known = self.aside.get(each.name)
        if known is None or each.orders or ends_by_itself(each):
            return False
        return known[0] is each.live and known[1] is each.row and (known[2] is each.wanted or known[2] == each.wanted)


def ends_by_itself(each: Standing) -> bool:
    """Whether its hold has an end, so that time alone may change what is wanted."""
    return each.row is not None and each.row.hold is not None and each.row.hold.until_s > 0


def in_order(pair: Pair) -> bool:
    """Whether the judge would say DONE: the quick way that the enactor's role takes too."""
    row, marker = pair.row, pair.live.marker
    return (
        row is not None
        and isinstance(marker, Marker)
        and judge.same(marker, row)
        and marker.owner == region.OWNER
        and pair.live.holds(row.content)
        and not row.contested
    )
