"""The lines of a load balancer's moves, as people read them."""

from importlib import resources
from pathlib import Path

import pytest
from msgspec import structs

from fencepost.core.traffic.membership import MICRO, Fate, Member, Membership, Move, Rule, State, Votes
from fencepost.incident.record.troubles import ASKED_FOR
from fencepost.roles.domains import Domains
from fencepost.roles.load_balancer import LoadBalancers
from fencepost.settings import load
from fencepost.settings.schema import Pool
from fencepost.world.reference_store import ReferenceStore

KEYS = ("127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2", "127.0.3.1", "127.0.3.2")


def sample_pool(folder: Path) -> Pool:
    """The sample's."""
    path = folder / "region.toml"
    path.write_text(resources.files("fencepost.dev").joinpath("sample.toml").read_text())
    return load(str(path)).pools[0]


def line(folder: Path, move: Move, member: Member) -> str:
    """What is told of a move that left a member so, among five that are in."""

    async def pause(_: int) -> None:
        """Nothing waits here."""

    others = tuple(Member(key, "a", State.IN) for key in KEYS if key != member.key)
    work = LoadBalancers("load balancer", ReferenceStore("beef" * 8, lambda: "0", pause), Domains({}))
    told = work.line(sample_pool(folder), move, Membership("web", members=(member, *others)))
    assert told is not None
    return told.text


def test_a_return_says_what_it_took_and_how_the_weight_rises(tmp_path: Path) -> None:
    """Passes in a row, the hold for its falls so far, and slow start: so it is clear why it is not full at once."""
    move = Move(1, 0, KEYS[2], "b", State.OUT, State.IN, Rule.HEALTHY)
    back = Member(KEYS[2], "b", State.IN, joined=1, flips=1)
    assert line(tmp_path, move, back) == (
        "127.0.2.1 back: 5 passes, held 30 s (1 flip); 6 of 6 in; weight 10 % -> 100 % in 60 s"
    )
    often = Member(KEYS[2], "b", State.IN, flips=20)
    assert line(tmp_path, move, often) == "127.0.2.1 back: 5 passes, held 300 s (20 flips); 6 of 6 in"


def test_a_drained_target_comes_back_by_a_person(tmp_path: Path) -> None:
    """No passes were waited for: the drain ended."""
    move = Move(1, 0, KEYS[2], "b", State.DRAINED, State.IN, Rule.HEALTHY)
    assert line(tmp_path, move, Member(KEYS[2], "b", State.IN, flips=1)) == "127.0.2.1 back; 6 of 6 in"


def test_what_somebody_asked_for_says_who(tmp_path: Path) -> None:
    """Rules' own names mean nothing to who reads history: "out (operator)", "out (listing)"."""
    drained = Member(KEYS[2], "b", State.DRAINED)
    move = Move(1, 0, KEYS[2], "b", State.IN, State.DRAINED, Rule.OPERATOR)
    assert line(tmp_path, move, drained) == "127.0.2.1 out by a person's drain; 5 of 6 stay"
    moved = structs.replace(move, cause="host b1 is drained; web-1.2 serves at 127.0.2.12 instead", fate=Fate.MOVED)
    assert line(tmp_path, moved, drained) == (
        "127.0.2.1 out by a drain of its host: host b1 is drained; web-1.2 serves at 127.0.2.12 instead; 5 of 6 stay"
    )
    ended = structs.replace(move, cause="web-1 there was terminated", fate=Fate.TERMINATED)
    assert line(tmp_path, ended, drained) == ("127.0.2.1 out by a person: web-1 there was terminated; 5 of 6 stay")
    gone = structs.replace(move, after=None, rule=Rule.LISTING)
    assert line(tmp_path, gone, drained).startswith("127.0.2.1 out by its list: not in it any more")
    told = (line(tmp_path, each, drained) for each in (move, moved, ended, gone))
    assert all(ASKED_FOR[0] in text for text in told), "an incident's record takes them for no trouble"


@pytest.mark.parametrize(
    ("cause", "fate"),
    [
        ("host b1 is gone, as a person said", Fate.GONE),
        ("host unreachable", None),
        ("the service there was terminated", None),
    ],
)
def test_a_persons_drain_is_told_as_such_whatever_the_target_died_of(
    tmp_path: Path, cause: str, fate: Fate | None
) -> None:
    """A dead target keeps its cause when it is drained; its beginning was once taken for a drain of its host."""
    move = Move(1, 0, KEYS[2], "b", State.KEPT, State.DRAINED, Rule.OPERATOR, cause, fate=fate)
    told = line(tmp_path, move, Member(KEYS[2], "b", State.DRAINED, cause=cause, fate=fate))
    assert told == "127.0.2.1 out by a person's drain; 5 of 6 stay"


def test_one_that_never_served_joins(tmp_path: Path) -> None:
    """It isn't back: it has never been there."""
    move = Move(1, 0, KEYS[2], "b", State.PENDING, State.IN, Rule.HEALTHY)
    told = line(tmp_path, move, Member(KEYS[2], "b", State.IN, joined=1))
    assert told == "127.0.2.1 joins; 6 of 6 in; weight 10 % -> 100 % in 60 s"


def test_a_removal_says_what_was_seen_who_stays_and_the_budget(tmp_path: Path) -> None:
    """A limit is only understood with its two numbers."""
    move = Move(1, 0, KEYS[2], "b", State.IN, State.OUT, Rule.FALL, "timeout", MICRO, MICRO)
    out = Member(KEYS[2], "b", State.OUT, cause="timeout", votes=Votes(0, 3))
    assert line(tmp_path, move, out) == (
        "127.0.2.1 dead, out: timeout, 0 of 3 checkers see it healthy; 5 of 6 stay; budget 2.0 -> 1.0"
    )
