"""Network state's rules one by one; every interleaving of them is in tests/promises/test_network_state.py."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.messages import Instance, InstanceSet, NetworkAnswer, Newer
from fencepost.core.capacity.network_manager import (
    Answered,
    Look,
    NetworkManager,
    Pair,
    PlacesRead,
    Publish,
    Record,
    Settled,
    claim_of,
)
from fencepost.core.capacity.network_state import (
    BODY_BYTES_MOST,
    STATES_MOST,
    Heard,
    Wanted,
    digest_of,
    missing,
    order,
    outcome,
    overtakes,
    publication,
    ready,
    wanted,
)
from fencepost.core.capacity.rows import HostRow, NetworkRow, ShardRow
from fencepost.core.capacity.token import Token
from fencepost.core.effects import Wake

LIFE = "1"
SHARD = ShardRow(1, 1, "owner", 3)
HOST = HostRow(
    "h", "a", "h:1", number=5, nonce=9, lease="held", life=LIFE, boot=7, reported=True,
    set=InstanceSet(1, (Instance("web-1.1", "web", "192.0.2.1", 80),)),
)  # fmt: skip
(WANT,) = wanted(HOST, ("tcp/80 from 0.0.0.0/0",))
ROW = NetworkRow(WANT.id, "h", 4, WANT.digest, 11, WANT.body)
ACKED = replace(ROW, acked=(4, WANT.digest, 7, LIFE))


def test_a_state_says_what_the_attempt_needs_and_is_made_of_nothing_else() -> None:
    """The same inputs give the same text, so that two managers publish the same and a digest can be compared."""
    assert WANT.body == (
        '{"accept":["tcp/80 from 0.0.0.0/0"],"address":"192.0.2.1","id":"web-1.1","pool":"web","port":80,"zone":"a"}'
    )
    assert wanted(replace(HOST, boot=8, number=6), ("tcp/80 from 0.0.0.0/0",)) == (WANT,)


def test_what_stands_is_not_published_again() -> None:
    """Level-based: only a difference is written."""
    assert publication(WANT, ROW, None, LIFE, 12) is None


def test_a_difference_raises_the_version_by_one_and_keeps_the_acknowledgement() -> None:
    """Later versions take no acknowledgement away; they are owed."""
    other = Wanted(WANT.id, "h", "{}")
    made = publication(other, ACKED, None, LIFE, 12)
    assert made is not None
    assert (made.version, made.digest, made.inputs, made.acked) == (5, digest_of("{}"), 12, ACKED.acked)


@given(st.integers(0, 9), st.integers(0, 9), st.booleans(), st.sampled_from([LIFE, "2"]))
def test_published_above_whatever_the_host_has(row: int, told: int, same: bool, life: str) -> None:
    """A higher version, or another state of the same number, is above what the row may say; of this life only."""
    there = replace(ROW, version=row) if row else None
    heard = Heard(told, WANT.digest if same else "x", life)
    made = publication(WANT, there, heard, LIFE, 12)
    if overtakes(heard, there, LIFE):
        assert made is not None
        assert made.version == told + 1
    elif there is None:
        assert made is not None
        assert made.version == 1
    else:
        assert made is None
        assert life != LIFE or told < row or (told == row and same)


def test_ready_needs_this_boot_this_life_and_the_row_or_newer() -> None:
    """Each of the four, and the words for a person."""
    assert ready(ACKED, HOST, LIFE)
    assert missing(None, HOST, LIFE) == "its network state isn't made yet"
    assert missing(ROW, HOST, LIFE) == "its host hasn't acknowledged its network state"
    assert missing(replace(ACKED, acked=(4, WANT.digest, 7, "0")), HOST, LIFE) == missing(ROW, HOST, LIFE)
    assert "started anew" in missing(ACKED, replace(HOST, boot=8), LIFE)
    assert "version 4" in missing(replace(ACKED, version=5), HOST, LIFE)
    assert missing(replace(ACKED, digest="x"), HOST, LIFE)
    assert missing(ACKED, replace(HOST, lease="lapsed"), LIFE) == "its host has no lease"
    assert missing(ACKED, HOST, "2") == "its host has no lease"
    assert ready(replace(ACKED, acked=(5, "newer", 7, LIFE)), HOST, LIFE)


def test_an_order_carries_the_current_token_and_only_what_is_owed() -> None:
    """The token of one look: epoch of the shard's row, number and nonce of the host's."""
    made = order(HOST, SHARD, (ROW,), LIFE)
    assert made is not None
    assert made.token == Token(3, 5, 9)
    assert [(state.id, state.version) for state in made.states] == [("web-1.1", 4)]
    assert order(HOST, SHARD, (ACKED,), LIFE) is None
    assert order(replace(HOST, reported=False), SHARD, (ROW,), LIFE) is None
    assert order(replace(HOST, lease="lapsed"), SHARD, (ROW,), LIFE) is None
    assert order(HOST, SHARD, (ROW,), "2") is None
    assert order(HOST, SHARD, (replace(ROW, id="web-2.1"),), LIFE) is None
    assert order(HOST, None, (ROW,), LIFE) is None


def test_an_order_stays_well_below_what_a_connection_takes() -> None:
    """The rest comes in the next one."""
    ids = [f"web-{n}.1" for n in range(STATES_MOST + 20)]
    host = replace(HOST, set=InstanceSet(1, tuple(Instance(id_) for id_ in ids)))
    many = order(host, SHARD, tuple(replace(ROW, id=id_) for id_ in ids), LIFE)
    assert many is not None
    assert len(many.states) == STATES_MOST
    body = "x" * (BODY_BYTES_MOST // 3)
    big = order(host, SHARD, tuple(replace(ROW, id=id_, body=body) for id_ in ids), LIFE)
    assert big is not None
    assert len(big.states) == 3
    huge = order(host, SHARD, (replace(ROW, body=body * 9),), LIFE)
    assert huge is not None
    assert len(huge.states) == 1


def test_only_the_very_state_that_was_sent_is_acknowledged() -> None:
    """Anything else that a host has is heard of, and published above."""
    answer = NetworkAnswer("h", 7, 1, (("web-1.1", 4, WANT.digest),))
    assert outcome(answer, (ROW,), LIFE).acknowledged == (ACKED,)
    assert outcome(answer, (ACKED,), LIFE) == ((), ())
    for has in ((4, "x"), (5, WANT.digest), (3, WANT.digest)):
        told = outcome(replace(answer, has=(("web-1.1", *has),)), (ROW,), LIFE)
        assert told == ((), (("web-1.1", Heard(*has, LIFE)),))
    assert outcome(replace(answer, has=(("other.1", 1, "x"),)), (ROW,), LIFE) == ((), ())


def test_a_manager_publishes_over_what_it_compared_under_the_claim_it_read() -> None:
    """Compare-and-set on the row, and the store's life: what was made in one life is written into no other."""
    manager = NetworkManager()
    claim = claim_of(SHARD, LIFE)
    (effect,) = manager.on(PlacesRead(claim, 12, (Pair(WANT, None),)), 0)
    assert isinstance(effect, Publish)
    assert effect.claim == claim
    assert [(change.seen, change.place) for change in effect.changes] == [(0, ("network", "web-1.1"))]
    assert manager.on(PlacesRead(claim, 12, (Pair(WANT, Versioned(ROW, 3)),)), 0) == (Wake(manager.idle),)


def test_a_manager_remembers_what_it_heard_until_it_is_acknowledged() -> None:
    """And forgets what was heard in another life, and of attempts that the host hasn't got."""
    manager, look = NetworkManager(), Look(LIFE, SHARD, HOST, (Versioned(ROW, 3),))
    manager.heard = {"old.1": Heard(9, "x", "0"), "gone.1": Heard(9, "x", LIFE)}
    answer = NetworkAnswer("h", 7, 1, (("web-1.1", 8, "x"),), ("gone.1",))
    assert manager.on(Answered(answer, look), 0) == (Settled("h", again=True),)
    assert manager.heard == {"web-1.1": Heard(8, "x", LIFE)}
    (effect,) = manager.on(PlacesRead(claim_of(SHARD, LIFE), 12, (Pair(WANT, Versioned(ROW, 3)),)), 0)
    assert isinstance(effect, Publish)
    made = effect.changes[0].row
    assert isinstance(made, NetworkRow)
    assert made.version == 9
    taken = NetworkAnswer("h", 7, 1, (("web-1.1", 9, made.digest),))
    record, settled = manager.on(Answered(taken, replace(look, rows=(Versioned(made, 4),))), 0)
    assert isinstance(record, Record)
    assert record.changes[0].seen == 4
    assert settled == Settled("h", again=False)
    assert manager.heard == {}


def test_a_host_that_knows_a_newer_token_is_asked_again_later() -> None:
    """Its lease's manager is told the same, and the row will say so."""
    manager, look = NetworkManager(), Look(LIFE, SHARD, HOST, (Versioned(ROW, 3),))
    assert manager.on(Answered(Newer("h", Token(9, 1, 1)), look), 0) == (Settled("h", again=True),)
