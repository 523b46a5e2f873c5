"""Adopting by order: the planner takes over what stands exactly as it stands, and goes on only once that is enacted."""

from core_values import NAME, ONE, OWNER, STORE, TWO, live, row
from msgspec import structs
from test_core_planner import THREE, planned, standing

from fencepost.core.effects import Publish, Wake
from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND
from fencepost.core.record_set import record_digest
from fencepost.core.store import Order
from fencepost.core.zone import Live


def test_an_adoption_by_order_names_the_exact_set_and_lasts_until_the_next_plan() -> None:
    """The row may take over one set, seen by a person, and no other."""
    made, _ = planned(standing(Live(NAME, None, TWO.a), row(), ONE, Order("o", "adopt", NAME, adopt="ab" * 8)))
    assert made is not None
    assert made.adopt == "ab" * 8
    after, _ = planned(standing(live(ONE, 8), structs.replace(made, store=STORE), TWO))
    assert after is not None
    assert after.adopt == ""


def test_an_adoption_changes_no_address_until_a_marker_shows_it() -> None:
    """The row takes over what stands as it stands; only once that is enacted does a plan go on to what is wanted."""
    unmarked = Live(NAME, None, TWO.a, TWO.aaaa, 300)
    order = Order("o", "adopt", NAME, adopt=record_digest(TWO.a, TWO.aaaa))
    made, effect = planned(standing(unmarked, row(), ONE, order))
    assert made is not None
    assert isinstance(effect, Publish)
    assert effect.plan.why == (f"{NAME}: takes over what stands",)
    assert (made.content, made.adopt) == (structs.replace(TWO, ttl=300), order.adopt)
    assert planned(standing(unmarked, made, ONE))[1] == Wake(SECOND), "it waits for the enactors"
    marker = Marker.of(OWNER, STORE[:4], made.generation, made.content, None, 1)
    after, _ = planned(standing(structs.replace(unmarked, marker=marker), made, ONE))
    assert after is not None
    assert (after.content, after.adopt) == (ONE, "")


def test_what_changed_since_the_person_saw_it_is_not_taken_over_as_it_stands() -> None:
    """The order names one exact set; the planner asks for what is wanted, and the enactors ask again."""
    order = Order("o", "adopt", NAME, adopt=record_digest(TWO.a, TWO.aaaa))
    made, _ = planned(standing(Live(NAME, None, THREE.a, THREE.aaaa, 300), row(), TWO, order))
    assert made is not None
    assert made.content == TWO


def test_an_adoption_needs_no_pool() -> None:
    """Before the first membership nothing is wanted; what stands can be taken over all the same."""
    order = Order("o", "adopt", NAME, adopt=record_digest(TWO.a, TWO.aaaa))
    made, _ = planned(standing(Live(NAME, None, TWO.a, TWO.aaaa, 60), None, None, order))
    assert made is not None
    assert made.content.a == TWO.a
