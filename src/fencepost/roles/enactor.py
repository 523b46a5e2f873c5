"""The enactor's hands: mirrors of DNS and rows, what differs between them, and the decider's effects on real ports.

One :class:`DnsEnactor` runs for each domain. The mirrors hold everything; the decider is only shown endpoints that may
need something. Which those are is found by what changed: a name is looked at again when its records or its row did.

Domains may lie in one another. A name is the business of the longest it lies in, and of no other: to an UPDATE that
names something of another domain a server answers NOTZONE (RFC 2136 section 3.4.1.3), and takes nothing of it.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from msgspec import structs

from fencepost.core.effects import Commit, Compare, Effect, Findings, ReadDns, ReadRows, SetAside, Wake
from fencepost.core.events import Changed, Committed, Compared, DnsRead, Event, RowsRead, Woke
from fencepost.core.fence import Marker
from fencepost.core.instant import Instant
from fencepost.core.jitter import jitter
from fencepost.core.judge import Pair, Remembered, plain, remember, settled
from fencepost.core.names import longest_domain
from fencepost.core.record_set import record_digest
from fencepost.core.store import Head, Row
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.traffic.room import transactions
from fencepost.core.zone import Batch, Change, Live, withdraws
from fencepost.ports import DnsPort, Enacted, HistoryRow, Misconfigured, PortError, ReadingBack, Refused, StorePort
from fencepost.roles.healed import written
from fencepost.roles.history import tell
from fencepost.roles.local_file import LocalFile
from fencepost.roles.loop import Condition, Drill, drive, first_of
from fencepost.roles.sending import sent
from fencepost.roles.unsettled import Unsettled
from fencepost.roles.word_keeper import WordKeeper

log = logging.getLogger(__name__)

CHUNK = 4096
"""So many endpoints are compared before other tasks of the process get their turn."""


class EnactorHands:
    """Carries out one domain's enactor's effects.

    ``among`` are all the region's domains. ``found`` is what isn't to be written: one for all domains of an enactor,
    since the store keeps a role's findings as one row. ``emptied`` is when an endpoint was last read whole, and first
    read as emptied by another writer. ``near`` says that the port reads on with each commit, and so shows where other
    enactors are at work; where reading is dear it shows where they were.
    """

    def __init__(
        self,
        settings: EnactorSettings,
        domain: str,
        dns: DnsPort,
        store: StorePort,
        file: LocalFile,
        *,
        among: Collection[str] = (),
        found: dict[str, tuple[str, str]] | None = None,
        condition: Condition | None = None,
    ) -> None:
        self.settings = settings
        self.domain = domain
        self.among = frozenset({domain, *among})
        self.below = f".{domain}"
        self.dns = dns
        self.store = store
        self.waiter = store.waiter()
        self.file = file
        self.rows: dict[str, Row] = {}
        self.head: Head | None = None
        self.dirty = Unsettled()
        self.unjudged: set[str] = set()
        self.unkept: dict[str, Live] = {}
        self.found = found if found is not None else {}
        self.told: dict[str, tuple[str, str]] = {}
        self.over = False
        self.refused: dict[str, Change] = {}
        self.met = False
        self.sent: frozenset[str] = frozenset()
        self.near = isinstance(dns, ReadingBack)
        self.meetings = 0
        self.fresh = False
        self.complaint = ("", "")
        self.read_at: Instant = 0
        self.condition = condition
        self.emptied: dict[str, tuple[Instant, Instant]] = {}

    async def perform(self, effect: Effect) -> Event | None:
        """See :class:`~fencepost.roles.loop.Performer`."""
        match effect:
            case Wake(after=after):
                self.fresh = False
                self.remember_some()
                await self.tell_over()
                self.nothing_left()
                await first_of(self.waiter.wait(after), self.dns.wait(after))
                return Woke()
            case ReadDns():
                return await self.read_dns()
            case ReadRows():
                return await self.read_rows()
            case Compare():
                return await self.compare(effect)
            case Findings(found=found):
                await self.make_known(found)
                return None
            case Commit(batch=batch):
                return await self.commit(batch)
            case SetAside():
                await self.set_aside(effect)
                return None
            case _:
                raise TypeError(f"an enactor doesn't ask for {type(effect).__name__}")

    async def read_dns(self) -> Event:
        """Bring the mirror of DNS up to date, and learn why refused writes were refused.

        A commit that has just been read back did the first already, as of after it: asking again would only bring what
        others wrote in these milliseconds, and the next write is fenced against that anyhow. Not so after a wait, or
        where the outcome of any of its transactions is unknown: that one may have come after the reading back.
        """
        changed = self.dns.read_back() if self.fresh and isinstance(self.dns, ReadingBack) else None
        self.fresh = False
        if changed is None:
            changed = await self.dns.read()
        before, self.read_at = self.read_at, time.time_ns()
        changed = [name for name in changed if self.ours(name)]
        for name in changed:
            live, row = self.dns.live(name), self.rows.get(name)
            self.look(live, before)
            if self.near and row is not None and settled(live, row, self.settings.owner):
                self.settle(name)
            else:
                self.dirty.add(name)
        if self.near:
            self.dirty.overtaken(name for name in changed if name not in self.sent)
        if self.refused:
            refused, self.refused = self.refused, {}
            await self.explain_refusals(refused, before)
        return DnsRead()

    def look(self, live: Live, before: Instant) -> None:
        """What changed in DNS between ``before`` and now: to be kept, the newest generation, what was emptied."""
        self.unkept[live.name] = live
        marker = live.marker
        if marker is None and live.empty and live.name in self.rows:
            self.emptied.setdefault(live.name, (before, self.read_at))
        if not isinstance(marker, Marker) or marker.owner != self.settings.owner:
            return
        if self.condition is not None:
            self.condition.reached(marker.generation)
        if live.empty and not withdraws(marker):
            self.emptied.setdefault(live.name, (before, self.read_at))
        else:
            self.emptied.pop(live.name, None)

    def ours(self, name: str) -> bool:
        """Whether a name is this domain's, and not that of one that lies in it."""
        if len(self.among) == 1:
            return name.endswith(self.below) or name == self.domain
        return longest_domain(name, self.among) == self.domain

    async def explain_refusals(self, refused: dict[str, Change], read_before: Instant) -> None:
        """A refusal only says *changed*; now it can be told whether something newer fenced the write."""
        rows = []
        for name, change in refused.items():
            marker = self.dns.live(name).marker
            if isinstance(marker, Marker) and marker.generation > change.marker.generation:
                ago = (time.time_ns() - read_before) // 1_000_000_000
                rows.append(
                    self.history(
                        "fenced",
                        name,
                        f"plan {change.marker.generation}, live is {marker.generation}."
                        f" Nothing was written; it had last read {ago} s before.",
                    )
                )
        await tell(self.store, rows)

    async def read_rows(self) -> Event:
        """Bring the mirror of the newest rows up to date."""
        first = self.head is None
        head, rows = await self.store.newest_rows(self.head)
        if self.head is not None and head.store != self.head.store:
            log.warning("the store is another one: %s instead of %s", head.mark, self.head.mark)
            self.dirty.update(self.rows)
            self.rows.clear()
        self.head = head
        news = [row for row in rows if self.ours(row.name)]
        for row in news:
            self.rows[row.name] = row
            self.dirty.add(row.name)
        if not first and len(news) <= self.settings.batch < len(self.dirty):
            self.dirty.hurry(row.name for row in news)
        self.dirty.update(self.unjudged)
        self.unjudged.clear()
        return RowsRead()

    async def compare(self, effect: Compare) -> Compared:
        """Endpoints that may need something.

        First what follows the cursor, up to where another enactor is at work; from there on, or after a refusal,
        something else. Those that are as they should be are settled.
        """
        pairs: list[Pair] = []
        limit = min(effect.limit, self.settings.batch)  # a long commit isn't less in the way of others
        many = len(self.dirty) > limit
        several = many or (self.near and len(self.dirty) > limit // 4)
        cursor = self.elsewhere() if several and (self.met or self.dirty.meets(effect.cursor)) else effect.cursor
        for at, name in enumerate(self.dirty.after(cursor, time.monotonic_ns())):
            if at % CHUNK == CHUNK - 1:
                await asyncio.sleep(0)
            live = self.dns.live(name)
            row = self.rows.get(name) if effect.rows_known else None
            if row is not None and settled(live, row, self.settings.owner):
                self.settle(name)
                continue
            if many and pairs and self.dirty.overtakes(name):
                return Compared(tuple(pairs), more=True)
            if row is None and live.marker is None and live.empty:
                self.dirty.discard(name)
                if not effect.rows_known:
                    self.unjudged.add(name)
                continue
            pairs.append(await self.pair(live, row))
            if not effect.rows_known:
                self.unjudged.add(name)
            if len(pairs) >= effect.limit:
                return Compared(tuple(pairs), more=len(self.dirty) > len(pairs))
        return Compared(tuple(pairs))

    def elsewhere(self) -> str:
        """Where to go on instead of where another enactor is at work: it would be met again and again."""
        self.met, self.meetings = False, self.meetings + 1
        return self.dirty.in_widest(self.settings.batch, lambda count: jitter(count, self.settings.name, self.meetings))

    def settle(self, name: str) -> None:
        """Nothing is to be done about an endpoint, as read."""
        self.dirty.discard(name)
        self.over = self.found.pop(name, None) is not None or self.over
        self.told.pop(name, None)

    async def pair(self, live: Live, row: Row | None) -> Pair:
        """One endpoint with all that its judge may ask about it."""
        if row is not None and plain(live, row):
            return Pair(live, row)
        known = self.file.recall(live.name)
        ours: set[str] = set()
        if live.marker is None and not live.empty:
            if known is not None:
                ours.add(record_digest(known.content.a, known.content.aaaa))
            if row is not None:
                ours |= {record_digest(kept.a, kept.aaaa) for kept in await self.store.kept_contents(live.name)}
        return Pair(live, row, known, frozenset(ours))

    async def make_known(self, found: Iterable[tuple[str, str, str]]) -> None:
        """Don't offer what isn't to be written, until it changes."""
        found = tuple(found)
        for name, _, _ in found:
            self.dirty.discard(name)
        await self.tell_found(found)

    async def set_aside(self, effect: SetAside) -> None:
        """Don't offer what couldn't be written, for a while."""
        self.dirty.put_off(effect.name, time.monotonic_ns() + effect.after)
        await self.tell_found(((effect.name, "refused", effect.why),))

    def nothing_left(self) -> None:
        """Where nothing waits to be written, a write that failed is over: it was done after all, or by another."""
        if self.condition is not None and not self.dirty and self.condition.succeeded(f"{self.domain} Commit"):
            log.info("%s Commit: what it was about stands", self.domain)

    async def tell_over(self) -> None:
        """Take back what was found of endpoints that are as they should be now, or `status` would ask for ever."""
        if not self.over:
            return
        try:
            await self.store.put_findings(self.settings.name, dict(self.found))
            self.over = False
        except PortError as error:
            log.debug("findings not taken back: %s", error)

    async def tell_found(self, found: Iterable[tuple[str, str, str]]) -> None:
        """Say once why endpoints are left alone, and note it where `status` looks.

        The history is only told of endpoints that this region has: another owner's, in the same domain, are his.
        """
        news = []
        for name, verdict, short in found:
            said = self.complaint[1] if (verdict, name) == ("refused", self.complaint[0]) else ""
            why = f"{short}: {said}" if said else short
            self.found[name] = (verdict, why)
            if verdict != "leave" and name in self.rows and self.told.get(name) != (verdict, why):
                self.told[name] = (verdict, why)
                news.append(self.history("finding", name, f"left alone: {why}"))
        try:
            await self.store.put_findings(self.settings.name, dict(self.found))
        except PortError as error:
            log.debug("findings not stored: %s", error)
        await tell(self.store, news)

    async def commit(self, batch: Batch) -> Event:
        """The decider's commit, in one transaction or several; afterwards each endpoint is looked at again.

        One that lasts ends early for another plan, so that this doesn't wait for thousands of endpoints.
        Several stand or fall each by itself. What applied is done whatever became of the rest, of which the decider is
        told: it reads again, and judges by what it finds.
        """
        self.dirty.update(change.name for change in batch)
        began = time.time_ns()
        self.complaint = ("", "")
        parts = transactions(batch, self.settings.room) if self.settings.at_once > 1 else (batch,)
        outcomes = await sent(self.dns, parts, self.store, self.head)
        last = parts[len(outcomes) - 1][-1].name if len(outcomes) < len(parts) else ""
        parts = parts[: len(outcomes)]
        applied = [change for part, outcome in zip(parts, outcomes, strict=True) if outcome is True for change in part]
        if applied:
            await self.enacted(applied, began)
        changed = [change for part, outcome in zip(parts, outcomes, strict=True) if outcome is False for change in part]
        self.refused = {change.name: change for change in changed}
        self.sent = frozenset(change.name for change in applied)
        self.met = bool(changed)
        for outcome in outcomes:
            if isinstance(outcome, PortError):
                if len(batch) == 1 and isinstance(outcome, (Refused, Misconfigured)):
                    # The decider is only told that it was refused; people need the provider's own words.
                    self.complaint = (batch[0].name, outcome.what)
                raise outcome
        self.fresh = True
        return Changed(last) if changed else Committed(last)

    async def enacted(self, batch: Sequence[Change], began: Instant) -> None:
        """Make known who enacted what. It has happened whether or not this can be written down."""
        now = time.time_ns()
        known = {change.name: self.file.recall(change.name) for change in batch if change.seen.marker is None}
        self.file.keep(
            (
                change.name,
                Remembered(
                    change.marker.generation, change.marker.digest, change.content, change.families, change.marker.hold
                ),
            )
            for change in batch
        )
        done, rows = [], []
        for change in batch:
            marker, name = change.marker, change.name
            done.append(Enacted(name, marker.generation, self.settings.name, now, marker.writes))
            seen = self.emptied.pop(name, (0, now))
            rows += written(change, known.get(name), self.settings.name, *seen, began, now)
        try:
            await self.store.note_enacted(done)
        except PortError as error:
            log.debug("enactments not stored: %s", error)
        await tell(self.store, rows)

    def history(self, kind: str, name: str, text: str) -> HistoryRow:
        """A line of history by this enactor."""
        return HistoryRow(kind, name, self.settings.name, text, time.time_ns())

    def remember_some(self) -> None:
        """Before a sleep: put what was read and is whole into the local file, a bounded number at a time."""
        names = list(self.unkept)[:CHUNK]
        known = []
        for name in names:
            live = self.unkept.pop(name)
            row = self.rows.get(name)
            whole = remember(live, row.families if row else ("4" if live.a else "") + ("6" if live.aaaa else ""))
            if whole is not None:
                known.append((name, whole))
        self.file.keep(known)


async def run_enactor(
    settings: EnactorSettings,
    domains: dict[str, DnsPort],
    store: StorePort,
    file: Path,
    condition: Condition,
    drill: Drill | None,
) -> None:
    """An enactor of several domains, until cancelled: a decider each, one local file, one memory of overrides."""
    known = LocalFile(file)
    found: dict[str, tuple[str, str]] = {}
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(WordKeeper(settings.name, settings.owner, store, known).run(condition))
            for domain, dns in domains.items():
                own = structs.replace(settings, cursor=settings.cursor)
                hands = EnactorHands(own, domain, dns, store, known, among=domains, found=found, condition=condition)
                decider = DnsEnactor(own, own.batch, own.cursor)
                group.create_task(drive(decider, hands, condition, drill, domain))
    finally:
        known.close()
