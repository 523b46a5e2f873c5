"""The calls that a lease manager's book makes of what is asked, and the events it makes of what came of them."""

from itertools import count

import numpy as np
import pytest

from fencepost.core.capacity.fleet_store import Change, Claim, Versioned
from fencepost.core.capacity.lease_book import A_CALL, LeaseBook
from fencepost.core.capacity.lease_calls import (
    NO_IDS,
    Lease,
    Op,
    Outdated,
    Prove,
    ReadHosts,
    ShardChanged,
    ShardWritten,
    Write,
)
from fencepost.core.capacity.messages import Answer, Instance, InstanceSet, Newer
from fencepost.core.capacity.rows import HostRow, InstanceRow, ShardRow
from fencepost.core.capacity.token import Token


def row(number: int, lease: str = "none") -> HostRow:
    """A host's row."""
    return HostRow(f"h{number}", "a", f"192.0.2.{number % 250}:7700", lease=lease, life="life")  # type: ignore[arg-type]


def book(hosts: int) -> LeaseBook:
    """One that has read so many hosts, in a shard that is its owner's in epoch 3."""
    made = LeaseBook(1, "m")
    made.life, made.epoch = "life", 3
    call = made.reading(ReadHosts(anew=True))
    assert made.take(call, [Versioned(row(number), number + 1) for number in range(hosts)])
    found = made.read(call, "life", hosts, ())
    assert found is not None
    assert (found.size, found.facts.ids.tolist()) == (hosts, list(range(hosts)))
    assert made.since == hosts
    return made


def granting(ids: list[int]) -> Write:
    """A grant of these."""
    words = np.full(len(ids), 7, np.uint64)
    return Write(Op.GRANT, np.array(ids), np.ones(len(ids), np.int64), words, words)


def test_a_mass_of_grants_is_written_a_thousand_a_commit() -> None:
    """Each over the revision that was read, under the claim, with a nonce of its own."""
    made, draws = book(A_CALL + 500), count(100)
    made.queue(granting(list(range(A_CALL + 500))))
    first, second = made.writing(lambda: next(draws)), made.writing(lambda: next(draws))
    assert first is not None
    assert second is not None
    assert made.writing(lambda: next(draws)) is None
    assert (len(first.groups), len(second.groups)) == (A_CALL, 500)
    assert first.claim == Claim(1, "m", 3, "life")
    ((change,),) = second.groups[:1]
    assert change.seen == A_CALL + 1
    assert isinstance(change.row, HostRow)
    assert (change.row.nonce, change.row.number, change.row.lease) == (100 + A_CALL, 1, "held")


def test_what_had_changed_meanwhile_is_looked_at_and_told_as_it_is() -> None:
    """Whether a write applied or not, the decider hears what the row says now."""
    made = book(2)
    made.queue(granting([0, 1]))
    call = made.writing(lambda: 5)
    assert call is not None
    assert made.took(call, (9, (True, False))) == [("host", "h1")]
    (wrote,) = made.wrote(call, True, [Versioned(row(1, "lapsed"), 8)])
    assert (wrote.op, wrote.stands, wrote.facts.lease.tolist()) == (Op.GRANT, True, [Lease.HELD, Lease.LAPSED])
    assert list(made.table.revisions) == [9, 8]


def test_a_commit_whose_claim_fell_changes_nothing_that_is_known() -> None:
    """The shard may be another's; that its row is looked at is the decider's business."""
    made = book(1)
    made.queue(granting([0]))
    call = made.writing(lambda: 5)
    assert call is not None
    assert made.took(call, None) == []
    (wrote,) = made.wrote(call, False)
    assert (wrote.stands, wrote.facts.number.tolist()) == (False, [0])


def test_what_a_forgotten_turn_asked_for_makes_no_event() -> None:
    """Its numbers mean other hosts now, or none (what it wrote, the claim has judged)."""
    made = book(2)
    made.queue(granting([0]))
    made.queue(Prove(np.array([1])))
    writing, proving, reading = made.writing(lambda: 5), made.proving(), made.reading(ReadHosts(again=(1,)))
    assert writing is not None
    assert proving is not None
    made.queue(granting([1]))
    made.hear(Answer("h1", Token(3, 1, 1), 1, 1, 1, 0))
    made.forget()
    assert made.took(writing, (9, (False,))) == []
    assert not made.wrote(writing, True)
    assert not made.failed(writing)
    assert not made.failed(proving)
    assert made.proved(proving, "life", None, [None]) is None
    assert not made.take(reading, [Versioned(row(1), 9)])
    assert made.read(reading, "life", 9, ()) is None
    assert made.writing(lambda: 5) is None
    assert made.heard() == (None, [])
    assert (len(made.table), made.since) == (0, 0)


def test_a_failed_call_is_told_with_the_hosts_it_was_about() -> None:
    """Whether it took effect isn't known, so they are read again."""
    made = book(3)
    made.queue(granting([2, 0]))
    made.queue(Prove(np.array([1])))
    writing, proving = made.writing(lambda: 5), made.proving()
    told = [(away.op, away.ids.tolist()) for call in (writing, proving, None) for away in made.failed(call)]
    assert told == [(Op.GRANT, [2, 0]), (Op.PROVE, [1]), (Op.NONE, NO_IDS.tolist())]


def test_a_reading_tells_each_host_once_and_only_what_is_news() -> None:
    """Two writes about one host at once would be one too many."""
    made = book(3)
    call = made.reading(ReadHosts(again=(2,)))
    newer = [Versioned(row(1, "held"), 20), Versioned(row(2, "held"), 21)]
    assert made.take(call, [Versioned(row(0), 1), *newer])
    found = made.read(call, "life", 21, [newer[1]])
    assert found is not None
    assert found.facts.ids.tolist() == [1, 2]
    assert found.facts.lease.tolist() == [Lease.HELD, Lease.HELD]
    other = made.reading(ReadHosts())
    assert made.read(other, "life-2", 99, ()) is not None
    assert made.since == 21


def test_the_shard_is_written_over_the_row_last_read_in_that_life() -> None:
    """Revisions of a store put back come again: the claim says in which life this one was read."""
    made = LeaseBook(1, "m")
    stood, mine = ShardRow(1, 1, "old", 4), ShardRow(1, 1, "m", 5)
    made.shard_read("life", Versioned(stood, 12))
    call = made.shard_writing(mine)
    assert (call.claim, call.groups) == (Claim(1, "old", 4, "life"), [(Change(mine, 12),)])
    assert made.shard_wrote(call, None) == made.shard_wrote(call, (13, (False,))) == ShardChanged()
    assert made.shard_wrote(call, (14, (True,))) == ShardWritten(mine)
    assert made.shard_writing(mine).groups == [(Change(mine, 14),)]
    made.shard_read("life-2", None)
    assert made.shard_writing(mine).claim is None


def test_of_several_answers_of_a_host_the_last_counts() -> None:
    """And nothing of hosts that nobody knows; what they tell of their sets is kept in any case."""
    made, whole = book(2), InstanceSet(4, (Instance("web-1.1"),))
    made.hear(Answer("h1", Token(3, 1, 8), 5, 10, 6, 4, ("web-1.1",), whole))
    made.hear(Answer("h1", Token(3, 1, 8), 5, 11, 6, 4))
    made.hear(Answer("stranger", Token(3, 1, 8), 5, 11, 6, 4))
    made.hear(Newer("h0", Token(9, 2, 1)))
    found, refused = made.heard()
    assert found is not None
    assert (found.ids.tolist(), found.stamp.tolist(), found.whole.tolist()) == ([1], [11], [True])
    assert refused == [Outdated(0, 9, 2, 1)]
    assert made.table.told == {1: whole}
    assert made.table.down == {}
    assert made.heard() == (None, [])


@pytest.mark.parametrize("at", ["192.0.2.1:7700", "[2001:db8::1]:7700", "a-name:1"])
def test_where_an_agent_answers_is_kept(at: str) -> None:
    """As it registered itself, packed where it can be."""
    made = LeaseBook(1, "m")
    number = made.table.put(Versioned(HostRow("h", "a", at), 1))
    address, _, port = at.rpartition(":")
    assert made.table.place(number) == (address.strip("[]"), int(port))


def test_a_row_that_is_no_host_s_is_refused() -> None:
    """It would be taken for one."""
    with pytest.raises(TypeError, match="is no host"):
        LeaseBook(1, "m").table.put(Versioned(InstanceRow("web-1"), 1))
