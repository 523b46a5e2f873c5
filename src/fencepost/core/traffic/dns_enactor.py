"""The DNS enactor: brings each endpoint's records to the newest row, by fenced writes, and heals what drifted.

Three run, one a failure zone, and never talk to each other; any one is enough. A pass reads DNS, then the rows,
compares, and commits what differs. The order matters: an enactor that sees no marker must act on a row read *after* it
saw that, or a row remembered from before could be brought back once somebody deletes a newer marker by hand. Reading
DNS first in every pass makes that no special case.

A commit requires exactly what was read (:mod:`fencepost.core.zone`), so however late it arrives it can do no harm: that
is the step whose absence emptied DynamoDB's endpoint in October 2025. A refusal only says that something changed; the
next pass finds out what: a newer marker (we were fenced) or drift. Batches save round trips; a batch refused twice is
halved, so that one stale or bad endpoint can't hold up the others for ever, and passes start where the last left off.

Each commit is read back, with all that others wrote meanwhile; that takes the server's time and ours, which all three
then lack for writing. So where there is much to do a commit is long; but not before one has shown where others are at
work, nor after one was refused.

It goes on without the store: rows are then unknown, nothing new is written, and emptied or altered records are healed
from the marker or the local file. The store may well sit behind the very endpoint that is empty.
"""

from msgspec import Struct

from fencepost.core.effects import Commit, Compare, Effect, Findings, ReadDns, ReadRows, SetAside, Wake
from fencepost.core.events import Changed, Committed, Compared, DnsRead, Event, Failed, Failure, RowsRead, Woke
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND, Duration, Instant
from fencepost.core.jitter import jitter
from fencepost.core.judge import Kind, judge
from fencepost.core.traffic.room import Load, Room, load_of
from fencepost.core.zone import Change

REFUSALS_MOST = 8
"""Counting further would change nothing, and a state that grows for ever can't be explored."""
FAILURES_MOST = 16
ELSEWHERE = 3
"""So many endpoints failed in a row, each alone, and it may not be the endpoints."""
PAUSES_MOST = 5
"""A pause between them grows to so many times the longest after a failure, lest a stretch of bad names take hours."""


class EnactorSettings(Struct, frozen=True, gc=False):
    """Who the enactor is and how it goes about it.

    ``name`` and ``owner`` appear in history and markers; ``batch`` is the most endpoints a commit, ``room`` what else a
    transaction holds (RFC 2136 over TCP takes 64 KiB, signature included); a commit is up to ``at_once`` transactions,
    where the port sends several before the first is answered, and up to ``at_once_most`` once one of those has applied;
    ``idle`` the longest sleep between passes;
    ``retry`` the first wait after a failure and ``retry_most`` the longest; ``misconfigured`` the wait when only a
    person can help. ``cursor`` is where the first pass starts, so that three enactors don't begin at the same endpoint.
    """

    name: str
    owner: str
    batch: int = 200
    room: Room = Room()
    at_once: int = 1
    at_once_most: int = 1
    idle: Duration = SECOND
    retry: Duration = 50 * MILLISECOND
    retry_most: Duration = 2 * SECOND
    misconfigured: Duration = MINUTE
    cursor: str = ""


class DnsEnactor(Struct, gc=False):
    """The enactor's whole state: it can be lost at any moment without harm.

    ``sent`` is how many changes the commit under way has (0: none is); its last name is ``cursor``. ``long``: the next
    commit may have ``at_once_most`` transactions.
    """

    settings: EnactorSettings
    limit: int
    cursor: str = ""
    refusals: int = 0
    failures: int = 0
    sent: int = 0
    long: bool = False

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:  # noqa: ARG002  it keeps no time
        """One step of a pass; see :class:`~fencepost.core.decider.Decider`."""
        match event:
            case Woke():
                return (ReadDns(),)
            case DnsRead():
                return (ReadRows(),)
            case RowsRead():
                return (Compare(self.limit * self.times(), self.cursor),)
            case Failed(effect="ReadRows"):
                return (Compare(self.limit * self.times(), self.cursor, rows_known=False),)
            case Compared():
                return self.enact(event)
            case Committed():
                self.cursor, self.long = event.last or self.cursor, self.settings.at_once < self.settings.at_once_most
                self.refusals = self.failures = self.sent = 0
                self.limit = min(2 * self.limit, self.settings.batch)
                return (ReadDns(),)
            case Changed():
                self.cursor = event.last or self.cursor
                return self.refused()
            case Failed():
                return self.back_off(event)
            case _:
                raise TypeError(f"an enactor is never told {type(event).__name__}")

    def enact(self, event: Compared) -> tuple[Effect, ...]:
        """Judge what the pass found; commit what may be written, in as many transactions as may be under way."""
        changes: list[Change] = []
        found: list[tuple[str, str, str]] = []
        load, begun = Load(), 1
        for pair in event.pairs:
            judgement = judge(pair, self.settings.owner)
            change = judgement.change
            if change is None:
                if judgement.kind is not Kind.DONE:
                    found.append((pair.live.name, judgement.kind.value, judgement.why))
                continue
            more = load_of(change, self.settings.room)
            load += more
            if changes and not self.settings.room.holds(load):
                if begun == self.settings.at_once * self.times():
                    break
                load, begun = more, begun + 1
            changes.append(change)
        findings: tuple[Effect, ...] = (Findings(tuple(found)),) if found else ()
        if changes:
            self.cursor, self.sent = changes[-1].name, len(changes)
            return (*findings, Commit(tuple(changes)))
        self.refusals = self.failures = 0
        self.limit, self.long = self.settings.batch, False
        return (*findings, ReadDns() if event.more else Wake(self.settings.idle))

    def times(self) -> int:
        """How many times as long as at first the next commit may be."""
        return self.settings.at_once_most // self.settings.at_once if self.long else 1

    def refused(self) -> tuple[Effect, ...]:
        """Read again at once; only a second refusal in a row halves the batch."""
        self.refusals, self.sent, self.long = min(self.refusals + 1, REFUSALS_MOST), 0, False
        if self.refusals >= 2:
            self.limit = max(1, self.limit // 2)
        if self.refusals <= 3:
            return (ReadDns(),)
        return (Wake(jitter(self.settings.retry, self.settings.name, self.refusals) + MILLISECOND),)

    def back_off(self, event: Failed) -> tuple[Effect, ...]:
        """Wait before reading again; half is jitter, so that enactors don't come back together."""
        sent, self.sent, self.long = self.sent, 0, False
        if event.failure is Failure.REFUSED:
            return self.skip(sent)
        self.failures = min(self.failures + 1, FAILURES_MOST)
        if sent == 1:
            return self.set_aside(event.failure)
        if event.failure is Failure.MISCONFIGURED:
            return (Wake(self.settings.misconfigured),)
        if sent:
            self.limit = max(1, sent // 2)  # one of them may be to blame: BIND answers SERVFAIL to a 101st address
            self.failures = 1  # names that fail alone are counted anew
        wait = min(self.settings.retry << self.failures, self.settings.retry_most)
        return (Wake(wait // 2 + jitter(wait // 2, self.settings.name, self.failures)),)

    def set_aside(self, failure: Failure) -> tuple[Effect, ...]:
        """One endpoint's write failed, sent alone, while reading works: it may be about this name only.

        BIND's check-names answers as to a key without rights, and SERVFAIL to more records than it takes. So the name
        is put off, and the others go on at once: neither one bad name nor twenty hold up the rest. Only where names
        fail in a row is there a pause between them, since then it may be no name's fault: 2 s as after any failure,
        and where only a person can help 2 s longer each time, up to 10 s. It goes on with the next name all the same,
        not elsewhere: going round, each is tried once before any is tried again.
        """
        mine = failure is Failure.MISCONFIGURED
        why = "the server refuses it: has our key the right to this name?" if mine else "the server fails at it"
        aside = SetAside(self.cursor, why, self.settings.misconfigured if mine else self.settings.retry_most)
        in_a_row = self.failures - ELSEWHERE + 1
        if in_a_row <= 0:
            return (aside, ReadDns())
        return (aside, Wake(self.settings.retry_most * (min(in_a_row, PAUSES_MOST) if mine else 1)))

    def skip(self, sent: int) -> tuple[Effect, ...]:
        """The provider won't ever take this batch as it is: smaller ones, until the bad endpoint stands alone.

        Alone, it is a finding: not offered again before something about it changes, so that it costs no more requests
        (external-dns #1517 and #421: one bad label among fifty held up the other forty-nine).
        """
        self.limit = max(1, min(self.limit, sent) // 2)
        if sent == 1:
            return (Findings(((self.cursor, "refused", "the provider refuses this record set"),)), ReadDns())
        return (Wake(self.settings.retry),)
