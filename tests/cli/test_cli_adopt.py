"""What `adopt` takes over, what it leaves and why, and what it shows before it asks."""

from pathlib import Path

import pytest
from msgspec import structs

from fencepost.cli.adopt import Left, Taking, ask, moves, refuse_unloaded, shown, taking
from fencepost.cli.preview import Preview
from fencepost.core.fence import Foreign, Generation, Hold, Marker
from fencepost.core.record_set import NOTHING, content, record_digest
from fencepost.core.store import CONTESTED_AT, Row
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured, Refused
from fencepost.roles.configuration import Loaded
from fencepost.settings import load

REGION = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
API = "api.example.test"
SIX = content([target.address for target in REGION.pools[0].targets], 5)
ODD = content(["127.0.1.1", "127.0.9.9"], 60)
POOL = Membership("web", members=tuple(Member(each, "a", State.IN, 1) for each in SIX.a))
UNMARKED = Live(API, None, ODD.a, (), 60)
OURS = Marker.of("demo", "beef", Generation(0, 1), SIX, None, 1)
ROW = Row.of(API, Generation(0, 2), SIX, None, families="4")
WITHDRAWN = Row.of(API, Generation(9, 2), NOTHING, Hold("withdraw", 9), families="4")
REPAIRED = Row.of(API, Generation(9, 2), SIX, Hold("repair", 9), families="4")


def found(live: Live, row: Row | None) -> Preview:
    """A preview with this at one endpoint."""
    rows = {API: row} if row is not None else {}
    return Preview(REGION, Loaded(REGION, 1, 1), {}, {"web": POOL}, rows, {API: live}, {}, None, 0.0, True, ())


@pytest.mark.parametrize(
    ("live", "row", "why", "settled"),
    [
        (structs.replace(UNMARKED, other=("CNAME",)), ROW, "a CNAME record stands there", False),
        (structs.replace(UNMARKED, marker=Foreign("eu-2")), ROW, 'its owner is "eu-2"', False),
        (structs.replace(UNMARKED, marker=Foreign("")), ROW, "no marker of ours", False),
        (structs.replace(UNMARKED, marker=structs.replace(OURS, owner="eu-2")), ROW, 'its owner is "eu-2"', False),
        (UNMARKED, WITHDRAWN, "is withdrawn", False),
        (UNMARKED, REPAIRED, "is held by a repair", False),
        (structs.replace(UNMARKED, marker=OURS), ROW, "is ours already (gen 1)", True),
        (structs.replace(UNMARKED, marker=OURS), REPAIRED, "is ours already", True),
        (Live(API), ROW, "has no record", True),
        (Live(API, None, SIX.a, (), 5), ROW, "known as ours", True),
    ],
)
def test_what_is_not_adopted_and_why(live: Live, row: Row, why: str, settled: bool) -> None:
    """Another owner's never; a held one would become what its hold says; one that is ours needs nothing."""
    left = taking(found(live, row), API)
    assert isinstance(left, Left)
    assert why in str(left.why)
    assert left.settled is settled


def test_the_order_names_the_exact_records_that_were_seen() -> None:
    """Also before any row is known; and for an endpoint that two stores fight for, which has a marker, "-"."""
    for row in (ROW, None, structs.replace(ROW, replaced=CONTESTED_AT)):
        taken = taking(found(UNMARKED, row), API)
        assert isinstance(taken, Taking)
        assert taken.seen == record_digest(ODD.a, ())
    contested = structs.replace(ROW, replaced=CONTESTED_AT)
    taken = taking(found(structs.replace(UNMARKED, marker=OURS), contested), API)
    assert isinstance(taken, Taking)
    assert (taken.contested, taken.seen) == (True, "-")


def test_it_shows_what_stands_and_what_the_next_plan_changes() -> None:
    """Both before anything is asked; a line for each address."""
    taken = taking(found(UNMARKED, ROW), API)
    assert isinstance(taken, Taking)
    said = shown(taken)
    assert said[0] == f" {API}   127.0.1.1, 127.0.9.9, ttl 60 s: no marker"
    assert said[1:] == [*(f"   +  {each}" for each in SIX.a[1:]), "   -  127.0.9.9", "   ~  ttl 60 s -> 5 s"]
    assert moves(taken) == (list(SIX.a[1:]), ["127.0.9.9"])
    assert "its pool asks for nothing yet" in shown(taken._replace(then=None))[1]
    assert "nothing changes" in shown(taken._replace(then=ODD))[1]


def test_where_the_next_plan_takes_more_than_half_away_the_name_is_said_again() -> None:
    """A target list that isn't what serves: an outage by move-in. --yes is no answer to that."""
    taken = Taking(UNMARKED, content(["127.0.1.2"], 60))
    with pytest.raises(Misconfigured) as caught:
        ask([taken], yes=True, said=None)
    assert "takes 2 of 2 addresses" in caught.value.what
    assert caught.value.hint == f"add --confirm {API}"
    ask([taken], yes=False, said=API)
    ask([Taking(UNMARKED, ODD)], yes=True, said=None)


def test_a_region_that_runs_on_another_file_is_reloaded_first() -> None:
    """What would follow can only be shown of the file that the planner goes by."""
    preview = found(UNMARKED, ROW)
    refuse_unloaded(preview)
    other = structs.replace(REGION, mode="observe")
    for wrong in (
        structs.replace(preview, loaded=None),
        structs.replace(preview, has_store=False),
        structs.replace(preview, loaded=Loaded(other, 1, 1)),
    ):
        with pytest.raises(Refused):
            refuse_unloaded(wrong)
