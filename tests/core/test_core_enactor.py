"""The enactor: batches, refusals, and that no endpoint holds up another."""

from collections.abc import Callable, Iterable

import pytest
from core_values import ONE, OWNER, STORE, TWO
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.effects import Commit, Compare, Effect, Findings, ReadDns, ReadRows, SetAside, Wake
from fencepost.core.events import (
    Changed,
    Committed,
    Compared,
    DnsRead,
    Event,
    Failed,
    Failure,
    InputsRead,
    RowsRead,
    Woke,
)
from fencepost.core.fence import Foreign, Generation, Marker
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND
from fencepost.core.judge import Kind, Pair, judge
from fencepost.core.record_set import Content, content
from fencepost.core.store import Row
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.traffic.room import Room, wire_size
from fencepost.core.zone import Batch, Live, transact

SETTINGS = EnactorSettings("enactor/b", OWNER)
Provider = Callable[[Batch], Event | None]
"""What the provider says of a batch; None means that it does what the reference does."""


def row(name: str, value: Content = ONE, number: int = 1) -> Row:
    """A published row of that name."""
    return structs.replace(Row.of(name, Generation(0, number), value, families="4"), store=STORE, nonce=str(number))


class Region:
    """One enactor with its port's mirror, a domain and rows: the loop of a role, without time or IO."""

    def __init__(
        self, rows: Iterable[Row], settings: EnactorSettings = SETTINGS, says: Provider = lambda _: None
    ) -> None:
        self.enactor = DnsEnactor(settings, settings.batch, settings.cursor)
        self.domain: dict[str, Live] = {}
        self.rows = {each.name: each for each in rows}
        self.says = says
        self.found: dict[str, str] = {}
        self.batches: list[tuple[str, ...]] = []
        self.wakes: list[int] = []
        self.aside: dict[str, int] = {}
        self.now = 0
        self.event: Event = Woke()

    def pairs(self, limit: int, cursor: str) -> Compared:
        """Endpoints that may need something, in name order from after the cursor, going round; findings left out."""
        names = [
            name
            for name, newest in self.rows.items()
            if name not in self.found
            and self.aside.get(name, 0) <= self.now
            and judge(Pair(self.domain.get(name, Live(name)), newest), OWNER).kind is not Kind.DONE
        ]
        order = sorted(name for name in names if name > cursor) + sorted(name for name in names if name <= cursor)
        chosen = order[:limit]
        pairs = tuple(Pair(self.domain.get(name, Live(name)), self.rows[name]) for name in chosen)
        return Compared(pairs, more=len(order) > limit)

    def commit(self, batch: Batch) -> Event:
        """The provider's answer, applied to the domain."""
        self.batches.append(tuple(change.name for change in batch))
        said = self.says(batch)
        if said is not None:
            return said
        replaced = transact(self.domain, batch)
        if replaced is None:
            return Changed()
        self.domain |= replaced
        return Committed()

    def carry_out(self, effect: Effect) -> Event | None:
        """The answer to an effect, if it has one."""
        match effect:
            case ReadDns():
                return DnsRead()
            case ReadRows():
                return RowsRead()
            case Compare(limit=limit, cursor=cursor):
                return self.pairs(limit, cursor)
            case Commit(batch=batch):
                return self.commit(batch)
            case Findings(found=found):
                self.found |= {name: kind for name, kind, _ in found}
                return None
            case SetAside(name=name, after=after):
                self.aside[name] = self.now + after
                return None
            case Wake(after=after):
                self.wakes.append(after)
                self.now += after
                return Woke()
        raise TypeError(type(effect).__name__)

    def run(self, commits: int) -> None:
        """Until so many transactions were sent, nothing is left to do, or a person is waited for."""
        ends = (self.enactor.settings.idle, self.enactor.settings.misconfigured)
        while len(self.batches) < commits:
            answers = [self.carry_out(effect) for effect in self.enactor.on(self.event, 0)]
            assert all(answer is None for answer in answers[:-1])
            assert answers[-1] is not None
            self.event = answers[-1]
            if self.wakes and self.wakes[-1] in ends:
                return

    @property
    def written(self) -> set[str]:
        """Names whose newest row is live."""
        return {name for name, live in self.domain.items() if live.holds(self.rows[name].content)}


def names(count: int) -> list[str]:
    """Names in order."""
    return [f"e{number:03}.example.test" for number in range(count)]


def test_a_pass_reads_dns_then_the_rows_and_then_compares() -> None:
    """A row acted on where no marker stands must have been read after its absence was seen."""
    enactor = DnsEnactor(SETTINGS, 200)
    assert enactor.on(Woke(), 0) == (ReadDns(),)
    assert enactor.on(DnsRead(), 0) == (ReadRows(),)
    assert enactor.on(RowsRead(), 0) == (Compare(200, ""),)
    for event in (Committed(), Changed()):
        assert enactor.on(event, 0) == (ReadDns(),)
    with pytest.raises(TypeError, match="InputsRead"):
        enactor.on(InputsRead(1), 0)


def test_the_store_away_is_no_reason_to_stop() -> None:
    """The store may sit behind the very endpoint that is empty."""
    for failure in (Failure.UNAVAILABLE, Failure.MISCONFIGURED):
        assert DnsEnactor(SETTINGS, 200).on(Failed("ReadRows", failure), 0) == (Compare(200, "", rows_known=False),)


def test_all_endpoints_are_written_in_batches_of_at_most_so_many() -> None:
    """A thousand endpoints, 200 a transaction: five transactions."""
    region = Region((row(name) for name in names(1_000)), structs.replace(SETTINGS, room=Room(octets=10**6)))
    region.run(commits=99)
    assert region.written == set(names(1_000))
    assert [len(batch) for batch in region.batches] == [200] * 5


@given(st.integers(1, 6), st.integers(200, 6_000))
def test_batches_are_cut_by_bytes_and_never_to_nothing(count: int, most: int) -> None:
    """RFC 2136 over TCP takes 64 KiB (RFC 1035 section 4.2.2); an endpoint too big alone is sent alone."""
    many = content([f"192.0.2.{n}" for n in range(1, 60)], 30)
    region = Region([row(name, many) for name in names(count)], structs.replace(SETTINGS, room=Room(octets=most)))
    region.run(commits=count)
    assert region.written == set(names(count))
    for batch in region.batches:
        changes = [judge(Pair(Live(name), region.rows[name]), OWNER).change for name in batch]
        size = sum(wire_size(change) for change in changes if change is not None)
        assert size <= most or len(batch) == 1


def test_a_commit_is_long_once_one_has_applied_and_nothing_was_refused() -> None:
    """Each is read back with all that others wrote, so few are cheap; the first shows where others are at work."""
    settings = structs.replace(SETTINGS, batch=20, room=Room(endpoints=10), at_once=2, at_once_most=6)
    region = Region((row(name) for name in names(150)), settings)
    region.says = lambda _: Changed() if len(region.batches) == 3 else None
    region.run(commits=99)
    assert region.written == set(names(150))
    assert [len(batch) for batch in region.batches] == [20, 60, 60, 20, 50]
    assert region.batches[3][0] == names(141)[-1], "on from where it was refused"


def test_a_long_commit_is_over_with_a_failure_and_with_the_work() -> None:
    """Then nothing is known any more of how the server does, nor of where others are."""
    settings = structs.replace(SETTINGS, batch=20, room=Room(endpoints=10), at_once=2, at_once_most=6)
    for over in (Failed("Commit", Failure.UNAVAILABLE), Compared(())):
        enactor = DnsEnactor(settings, 20)
        enactor.on(Committed(), 0)
        assert enactor.on(RowsRead(), 0) == (Compare(60, ""),)
        enactor.on(over, 0)
        assert enactor.on(RowsRead(), 0) == (Compare(20, ""),)


def test_what_was_left_of_a_commit_comes_next() -> None:
    """A commit ends early where there is another plan; who went on behind its end would leave a gap for others."""
    for told in (Committed("e007.example.test"), Changed("e007.example.test")):
        enactor = DnsEnactor(SETTINGS, 200, "e019.example.test")
        enactor.on(told, 0)
        assert enactor.on(RowsRead(), 0) == (Compare(200, "e007.example.test"),)


def test_only_a_second_refusal_halves_the_batch() -> None:
    """One change elsewhere is normal: read again, drop what is done, send the rest together."""
    enactor = DnsEnactor(SETTINGS, 200)
    limits = []
    for _ in range(10):
        effect = enactor.on(Changed(), 0)[0]
        limits.append(enactor.limit)
        assert effect == ReadDns() or (isinstance(effect, Wake) and 0 < effect.after <= 51 * MILLISECOND)
    assert limits == [200, 100, 50, 25, 12, 6, 3, 1, 1, 1]
    enactor.on(Committed(), 0)
    assert (enactor.limit, enactor.refusals) == (2, 0)


def test_a_pass_with_nothing_to_do_sleeps_and_forgets_its_troubles() -> None:
    """The next change finds full batches again."""
    enactor = DnsEnactor(SETTINGS, 1, refusals=8, failures=3)
    assert enactor.on(Compared(()), 0) == (Wake(SECOND),)
    assert (enactor.limit, enactor.refusals, enactor.failures) == (200, 0, 0)


@pytest.mark.parametrize("answer", [Failed("Commit", Failure.REFUSED), Changed()])
@pytest.mark.parametrize("bad", [0, 10, 49])
def test_one_bad_endpoint_never_blocks_the_others(answer: Event, bad: int) -> None:
    """external-dns #1517 and #421: fifty endpoints, one that can't be written; forty-nine are, and it is named."""
    worst = names(50)[bad]
    region = Region(
        (row(name) for name in names(50)),
        says=lambda batch: answer if any(change.name == worst for change in batch) else None,
    )
    region.run(commits=60)
    assert region.written == set(names(50)) - {worst}
    if answer != Changed():
        assert region.found == {worst: "refused"}
        assert len(region.batches) < 30


@given(
    st.sets(st.integers(0, 59), max_size=20),
    st.sampled_from(
        [
            (Failure.REFUSED, Failure.MISCONFIGURED),
            (Failure.REFUSED, Failure.UNAVAILABLE),
            (Failure.UNAVAILABLE, Failure.UNAVAILABLE),
        ]
    ),
)
def test_names_that_the_server_will_not_take_hold_up_no_other(bad: set[int], failure: tuple[Failure, Failure]) -> None:
    """external-dns #421 and #1517: BIND answers REFUSED to a bad name as to a key without rights, and SERVFAIL to a
    set with more records than max-records-per-type; only alone can it be told which. However many are bad.

    ``failure`` is the answer to several at once, and to a bad one alone.
    """
    worst = {names(60)[at] for at in bad}

    def says(batch: Batch) -> Event | None:
        if worst.isdisjoint(change.name for change in batch):
            return None
        return Failed("Commit", failure[len(batch) == 1])

    region = Region((row(name) for name in names(60)), structs.replace(SETTINGS, batch=60), says=says)
    for _ in range(30 * (len(bad) + 1)):
        if region.written == set(names(60)) - worst:
            break
        region.wakes.clear()
        region.run(commits=len(region.batches) + 1)
    assert region.written == set(names(60)) - worst
    if len(bad) < 3:
        assert region.now < 10 * SECOND
    elif failure[1] is Failure.UNAVAILABLE:
        assert region.now < 2 * MINUTE  # 2 s each; some come round again
    else:
        assert region.now < 6 * MINUTE  # up to 10 s each


def test_a_batch_that_gets_no_answer_is_made_smaller() -> None:
    """A server that fails at one set of a batch and says so in no other way: the others are written all the same."""
    worst = names(20)[7]
    failed = Failed("Commit", Failure.UNAVAILABLE)
    region = Region(
        (row(name) for name in names(20)),
        says=lambda batch: failed if any(change.name == worst for change in batch) else None,
    )
    region.run(commits=20)
    assert region.written == set(names(20)) - {worst}
    assert region.now < 30 * SECOND


def test_one_name_that_the_server_fails_at_costs_no_pause_once_it_stands_alone() -> None:
    """However many batches it was looked for in: only names that fail alone, in a row, tell of more than names."""
    enactor = DnsEnactor(SETTINGS, 200)
    while enactor.limit > 1:
        enactor.sent = enactor.limit
        enactor.on(Failed("Commit", Failure.UNAVAILABLE), 0)
    enactor.sent = 1
    assert enactor.on(Failed("Commit", Failure.UNAVAILABLE), 0)[-1] == ReadDns()
    pauses = []
    for _ in range(30):
        enactor.sent = 1
        pauses.append(enactor.on(Failed("Commit", Failure.UNAVAILABLE), 0)[-1])
    assert pauses == [Wake(2 * SECOND)] * 30, "as after any failure of a server"


def test_a_key_without_rights_is_tried_less_and_less_often() -> None:
    """Refused alone, one after the other: it may be no endpoint's fault, and only a person can help."""
    enactor = DnsEnactor(SETTINGS, 1)
    pauses = []
    for _ in range(30):
        enactor.sent = 1
        aside, then = enactor.on(Failed("Commit", Failure.MISCONFIGURED), 0)
        assert isinstance(aside, SetAside)
        assert aside.after == MINUTE
        pauses.append(then.after if isinstance(then, Wake) else 0)
    assert pauses[:5] == [0, 0, 2 * SECOND, 4 * SECOND, 6 * SECOND]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 10 * SECOND
    enactor.sent = 200
    assert enactor.on(Failed("Commit", Failure.MISCONFIGURED), 0) == (Wake(MINUTE),)


def test_what_is_not_to_be_written_is_told_and_holds_up_nothing() -> None:
    """A foreign name among ours is a finding; ours are written in the same pass."""
    region = Region(row(name) for name in names(3))
    region.domain[names(3)[1]] = Live(names(3)[1], Foreign("eu-2"), ("203.0.113.9",))
    region.run(commits=9)
    assert region.written == {names(3)[0], names(3)[2]}
    assert region.found == {names(3)[1]: "foreign"}
    assert len(region.batches) == 1


def test_the_cursor_goes_round() -> None:
    """Each pass goes on after the last name of the one before, so the first names aren't always first."""
    region = Region((row(name) for name in names(5)), structs.replace(SETTINGS, batch=2, cursor=names(5)[2]))
    region.run(commits=9)
    assert [batch[0] for batch in region.batches] == [names(5)[3], names(5)[0], names(5)[2]]


def test_a_stale_row_is_never_written_over_a_newer_marker() -> None:
    """October 2025, step 3: an enactor that read long ago sends what it read, and the provider refuses it."""
    name = names(1)[0]
    slow = Region([row(name)])
    (commit,) = slow.enactor.on(slow.pairs(200, ""), 0)
    assert isinstance(commit, Commit)
    newer = Live(name, Marker.of(OWNER, STORE, Generation(0, 2), TWO, None, 1), TWO.a, (), TWO.ttl)
    assert transact({name: newer}, commit.batch) is None


def test_failures_wait_with_jitter_longer_each_time() -> None:
    """Enactors that failed together don't come back together."""
    waits = {}
    for who in ("enactor/a", "enactor/b", "enactor/c"):
        enactor = DnsEnactor(structs.replace(SETTINGS, name=who), 200)
        effects = [enactor.on(Failed("ReadDns", Failure.UNAVAILABLE), 0)[0] for _ in range(12)]
        waits[who] = [effect.after for effect in effects if isinstance(effect, Wake)]
        assert all(50 * MILLISECOND <= wait <= 2 * SECOND for wait in waits[who])
    assert len({wait[3] for wait in waits.values()}) == 3
    assert DnsEnactor(SETTINGS, 200).on(Failed("ReadDns", Failure.MISCONFIGURED), 0) == (Wake(MINUTE),)
