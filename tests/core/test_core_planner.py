"""The planner: numbers, holds, adoptions, orders; a pure function of what it surveyed."""

import pytest
from core_values import BOTH_FAMILIES, NAME, ONE, OWNER, STORE, TWO, contents, live, row
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.effects import Effect, Publish, ReadDns, ReadHead, ReadInputs, Survey, Wake
from fencepost.core.events import (
    DnsRead,
    Failed,
    Failure,
    HeadRead,
    InputsRead,
    Outrun,
    Published,
    RowsRead,
    Standing,
    Surveyed,
    Woke,
)
from fencepost.core.fence import Foreign, Generation, Hold
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND
from fencepost.core.record_set import NOTHING, Content, content
from fencepost.core.store import CONTESTED_AT, Head, Order, Row, Wanted
from fencepost.core.traffic.dns_planner import DnsPlanner, PlannerSettings, difference
from fencepost.core.traffic.load_balancer import gathering_since
from fencepost.core.zone import Live, lacks_family

NOW = 1_000 * SECOND
HEAD = Head(f"{STORE}beef", 7, "n7", 3)
THREE = content(["192.0.2.3"], 30)
REPAIR = Hold("repair", 5)


def surveying(settings: PlannerSettings | None = None) -> DnsPlanner:
    """A planner that has read head, inputs and DNS, as its pass does."""
    planner = DnsPlanner(settings or PlannerSettings("planner", OWNER))
    assert planner.on(Woke(), NOW) == (ReadHead(),)
    assert planner.on(HeadRead(HEAD), NOW) == (ReadInputs(),)
    assert planner.on(InputsRead(4), NOW) == (ReadDns(),)
    assert planner.on(DnsRead(), NOW) == (Survey(),)
    return planner


def planned(standing: Standing, highest: int = 0, now: int = NOW) -> tuple[Row | None, Effect]:
    """The one row planned for an endpoint (None if it stays as it is), and the effect."""
    (effect,) = surveying().on(Surveyed((standing,), highest), now)
    if isinstance(effect, Publish):
        assert len(effect.plan.rows) <= 1
        return (effect.plan.rows[0] if effect.plan.rows else None), effect
    return None, effect


def asks(value: Content, families: str = "4") -> Wanted:
    """What the inputs ask."""
    return Wanted(value, families)


def standing(
    at: Live, newest: Row | None, wanted: Content | None = ONE, *orders: Order, enacted: bool = False
) -> Standing:
    """One endpoint as surveyed."""
    return Standing(NAME, at, newest, asks(wanted) if wanted is not None else None, orders, enacted)


def test_the_first_plan_is_one_above_head_and_every_marker() -> None:
    """A marker may have outlived its store: a new store must not number below it."""
    made, effect = planned(standing(Live(NAME), None), highest=11)
    assert isinstance(effect, Publish)
    assert (effect.plan.number, effect.plan.expected, effect.plan.inputs) == (12, HEAD, 4)
    assert made is not None
    assert (made.content, made.generation, made.hold) == (ONE, Generation(0, 12), None)
    assert planned(standing(Live(NAME), None), highest=2)[1].plan.number == 8  # type: ignore[attr-defined]


def test_an_endpoint_as_wanted_stays_as_it_is() -> None:
    """Generations are per endpoint: a plan of one change costs one write."""
    assert planned(standing(live(), row()))[1] == Wake(SECOND)


def test_a_change_of_inputs_is_a_new_row_at_the_endpoints_epoch() -> None:
    """The epoch belongs to the endpoint and only a hold raises it."""
    made, _ = planned(standing(live(ONE, 3, 9), row(ONE, 3, 9), TWO))
    assert made is not None
    assert (made.content, made.generation) == (TWO, Generation(9, 8))


@given(
    st.sampled_from([Live(NAME), live(), live(TWO, 9), live(TWO, 1, 5, REPAIR), Live(NAME, Foreign("eu-2"))]),
    st.sampled_from([None, row(), row(TWO, 2), row(TWO, 2, 5, REPAIR), row(NOTHING, 2, 6, Hold("withdraw", 6))]),
    st.sampled_from([None, ONE, TWO]),
    st.lists(
        st.sampled_from(
            [
                Order("1", "withdraw", NAME),
                Order("2", "rollback", NAME, content=THREE),
                Order("3", "release", NAME, hold=5),
                Order("4", "adopt", NAME, adopt="0" * 16),
            ]
        ),
        unique=True,
        max_size=3,
    ),
)
def test_a_plan_is_a_pure_function_of_what_was_surveyed(
    at: Live, newest: Row | None, wanted: Content | None, orders: list[Order]
) -> None:
    """Two planners that read the same make the same; none is ever empty without a withdrawal (never_empty)."""
    survey = Surveyed((standing(at, newest, wanted, *orders),), 9)
    effects = surveying().on(survey, NOW)
    assert effects == surveying().on(survey, NOW)
    if isinstance(effects[0], Publish):
        for made in effects[0].plan.rows:
            assert made.withdrawn or not lacks_family(made.content, made.families)
            assert newest is None or made.generation > newest.generation
            assert set(effects[0].plan.spends) == {order.id for order in orders}


@pytest.mark.parametrize("wanted", [Wanted(NOTHING, "4"), Wanted(TWO, "46"), Wanted(TWO, "")])
def test_no_plan_empties_a_family(wanted: Wanted) -> None:
    """never_empty and external-dns #2677: a source that gives nothing for one cycle removes nothing."""
    assert planned(Standing(NAME, live(), row(), wanted))[1] == Wake(SECOND)


def test_an_endpoint_that_left_the_inputs_stays() -> None:
    """external-dns #2858: absence from a listing is never a removal; only a withdrawal takes an endpoint away."""
    assert planned(standing(live(), row(), None))[1] == Wake(SECOND)


def test_a_marker_above_the_newest_row_is_adopted_with_its_hold() -> None:
    """A repair made without the store: taking its number without its content would undo it (hold_stands)."""
    made, effect = planned(standing(live(TWO, 1, 5, REPAIR), row()), highest=1)
    assert isinstance(effect, Publish)
    assert effect.plan.why == (f"{NAME}: repair",)
    assert made is not None
    assert (made.content, made.hold, made.generation) == (TWO, REPAIR, Generation(5, 8))


def test_a_marker_without_a_hold_is_adopted_by_number_alone() -> None:
    """A store that was lost or restored: what is wanted now goes above what stands."""
    for at in (live(TWO, 20), live(TWO, 1)):
        made, effect = planned(standing(at, row()), highest=20)
        assert made is not None
        assert (made.content, made.generation) == (ONE, Generation(0, 21))
        assert isinstance(effect, Publish)
        says = f"{NAME}: adopts generation {at.marker.generation.number}, takes out "  # type: ignore[union-attr]
        assert effect.plan.why[0].startswith(says), "whoever reads the history sees that callers' answer changes"
    made, _ = planned(standing(live(TWO, 20), None), highest=20)
    assert made is not None
    assert made.content == ONE


def test_the_later_of_two_holds_stands() -> None:
    """The marker's if it is later than the row's, else the row's: a later hold replaces earlier ones."""
    older, newer = Hold("rollback", 4), Hold("rollback", 9)
    made, _ = planned(standing(live(TWO, 1, 5, REPAIR), row(THREE, 2, 4, older)))
    assert made is not None
    assert (made.content, made.hold) == (TWO, REPAIR)
    assert planned(standing(live(TWO, 1, 5, REPAIR), row(THREE, 2, 9, newer)))[1] == Wake(SECOND)


def test_a_release_ends_holds_up_to_the_one_it_names() -> None:
    """A release meant for one hold can't end a later one, however late it lands."""
    held = row(TWO, 2, 5, REPAIR)
    at = live(TWO, 2, 5, REPAIR)
    kept, effect = planned(standing(at, held, ONE, Order("o", "release", NAME, hold=4)))
    assert isinstance(effect, Publish)
    assert effect.plan.spends == ("o",)
    assert kept is None or (kept.hold, kept.content) == (REPAIR, TWO)
    for named in (5, 6):
        made, _ = planned(standing(at, held, ONE, Order("o", "release", NAME, hold=named)))
        assert made is not None
        assert (made.hold, made.content, made.released) == (None, ONE, named)
        assert made.generation == Generation(5, 8)


def test_a_release_of_a_hold_not_yet_adopted_is_not_forgotten() -> None:
    """Noted in the row, it ends the very hold that it names when its marker comes to be seen."""
    first, _ = planned(standing(live(), row(), ONE, Order("o", "release", NAME, hold=5)))
    assert first is not None
    assert first.released == 5
    made, _ = planned(standing(live(TWO, 1, 5, REPAIR), structs.replace(first, store=STORE)), highest=1)
    assert made is not None
    assert (made.hold, made.content) == (None, ONE)


def test_a_hold_ends_by_its_time_and_not_before() -> None:
    """Expiry is a release published by a planner on its own clock."""
    held = Hold("rollback", 5, until_s=2_000)
    surveyed = standing(live(TWO, 2, 5, held), row(TWO, 2, 5, held))
    assert planned(surveyed, now=2_000 * SECOND - 1)[0] is None
    made, _ = planned(surveyed, now=2_000 * SECOND)
    assert made is not None
    assert (made.hold, made.content, made.released) == (None, ONE, 5)


def test_a_withdrawal_leaves_a_tombstone_above_every_epoch_and_the_time() -> None:
    """Its epoch keeps every plan made without knowing of it below, also after the store is lost."""
    order = Order("o", "withdraw", NAME, by="ops", reason="gone")
    made, _ = planned(standing(live(ONE, 1, 3), row(ONE, 1, 3), ONE, order))
    assert made is not None
    assert (made.content, made.withdrawn, made.generation) == (NOTHING, True, Generation(1_000, 8))
    assert (made.by, made.reason) == ("ops", "gone")
    later, _ = planned(standing(live(ONE, 1, 5_000), row(ONE, 1, 5_000), ONE, Order("o", "withdraw", NAME)))
    assert later is not None
    assert later.generation.epoch == 5_002, "above what is known, and even: a repair's is odd"


def test_a_rollback_is_a_hold_that_the_next_pass_leaves_alone() -> None:
    """Without a hold a level-based planner would undo it at once."""
    made, _ = planned(standing(live(ONE, 2), row(ONE, 2), ONE, Order("o", "rollback", NAME, content=THREE)))
    assert made is not None
    assert (made.content, made.hold) == (THREE, Hold("rollback", 1_000))
    assert planned(standing(live(ONE, 2), made, ONE))[0] is None


def test_a_rollback_that_would_empty_a_family_is_spent_and_not_done() -> None:
    """never_empty: the older content lacks a family that is published today."""
    newest = row(BOTH_FAMILIES, families="46")
    order = Order("o", "rollback", NAME, content=ONE)
    made, effect = planned(Standing(NAME, live(BOTH_FAMILIES), newest, Wanted(BOTH_FAMILIES, "46"), (order,)))
    assert made is None
    assert isinstance(effect, Publish)
    assert effect.plan.spends == ("o",)


def test_another_owners_endpoint_is_left_alone() -> None:
    """D9 and D17 of the public reports: two controllers, one name; neither takes the other's."""
    assert planned(standing(live(owner="eu-2"), None))[1] == Wake(SECOND)
    assert planned(standing(live(TWO, 99, owner="eu-2"), row()), highest=99)[1] == Wake(SECOND)


def test_a_store_that_is_replaced_three_times_stops_until_a_person_says_so() -> None:
    """external-dns #5846: two stores with one owner would replace each other for ever."""
    newest = row()
    for count in range(1, CONTESTED_AT + 1):
        foreign = structs.replace(live(TWO, 5), marker=structs.replace(live(TWO, 5).marker, store="ffff"))  # type: ignore[type-var]
        made, _ = planned(standing(foreign, newest, ONE, enacted=True), highest=5)
        assert made is not None
        assert made.replaced == count
        newest = structs.replace(row(), replaced=count)
    assert newest.contested
    foreign = structs.replace(live(TWO, 6), marker=structs.replace(live(TWO, 6).marker, store="ffff"))  # type: ignore[type-var]
    assert planned(standing(foreign, newest, ONE, enacted=True), highest=6)[0] is None
    back, _ = planned(standing(foreign, newest, ONE, Order("o", "adopt", NAME), enacted=True), highest=6)
    assert back is not None
    assert back.replaced == 0


def test_what_was_never_enacted_is_not_counted_as_replaced() -> None:
    """A new store starts at zero and has enacted nothing, so it isn't the one that stops."""
    foreign = structs.replace(live(TWO, 5), marker=structs.replace(live(TWO, 5).marker, store="ffff"))  # type: ignore[type-var]
    made, _ = planned(standing(foreign, row(), ONE, enacted=False), highest=5)
    assert made is not None
    assert made.replaced == 0


def test_mere_shifts_of_weight_are_gathered_and_nothing_else_waits() -> None:
    """Removals and repairs go at once; capacity shifts are collected (30 s)."""
    even = content({"192.0.2.1": 2, "192.0.2.2": 1}, 30)
    odd = content({"192.0.2.1": 1, "192.0.2.2": 2}, 30)
    shift = Wanted(odd, "4", shift_since=NOW)
    at, newest = live(even, 2), row(even, 2)
    assert planned(Standing(NAME, at, newest, shift), now=NOW + 29_500 * MILLISECOND)[1] == Wake(500 * MILLISECOND)
    assert planned(Standing(NAME, at, newest, shift), now=NOW + 30 * SECOND)[0] is not None
    removal = Wanted(ONE, "4", shift_since=NOW)
    assert planned(Standing(NAME, at, newest, removal))[0] is not None
    assert planned(Standing(NAME, at, newest, shift, (Order("o", "withdraw", NAME),)))[0] is not None


def test_a_target_that_comes_back_over_a_minute_makes_two_plans_and_ends_at_full_weight() -> None:
    """Slow start goes by tenths; the last one must not be left out, nor each be a plan of its own."""
    newest = row(content({"192.0.2.1": 10, "192.0.2.2": 1}, 30), 2)
    newest = structs.replace(newest, made_at=NOW)
    began, plans = 0, 0
    for second in range(1, 200):
        now = NOW + second * SECOND
        tenth = min(10, max(1, second // 6))
        if second % 6 == 0 and second <= 60:
            began = gathering_since(began, 30 * SECOND, now)
        asked = Wanted(content({"192.0.2.1": 10, "192.0.2.2": tenth}, 30), "4", shift_since=began)
        made, _ = planned(Standing(NAME, live(newest.content, 2), newest, asked), now=now)
        if made is not None:
            newest, plans = structs.replace(made, generation=newest.generation), plans + 1
    assert plans == 2
    assert newest.content == content(["192.0.2.1", "192.0.2.2"], 30)


def test_a_release_that_names_a_hold_to_come_ends_none_to_come() -> None:
    """A typo, or a hostile order, must not undo every later repair before it is made."""
    newest = row(ONE, 2)
    far = Order("o", "release", NAME, hold=10**17)
    made, _ = planned(Standing(NAME, live(ONE, 2), newest, asks(ONE), (far,)))
    assert made is not None
    assert made.released < NOW // SECOND
    later = structs.replace(made, generation=newest.generation)
    held, _ = planned(Standing(NAME, live(ONE, 2), later, asks(ONE), (Order("w", "withdraw", NAME),)))
    assert held is not None
    assert held.hold is not None
    assert not held.hold.ended(held.released, NOW)


def test_a_forged_marker_is_neither_adopted_nor_planned_above() -> None:
    """The others go on with small numbers; this one waits for a person."""
    forged = live(ONE, 10**15)
    made, effect = planned(Standing(NAME, forged, row(ONE, 2), asks(TWO)))
    assert made is None
    assert not isinstance(effect, Publish)


@pytest.mark.parametrize(
    "order",
    [
        Order("o", "rollback", NAME, content=Content(("192.0.2.2", "192.0.2.1"), (), (), 30)),
        Order("o", "rollback", NAME, content=Content(("nonsense",), (), (), 30)),
        Order("o", "rollback", NAME, content=Content(("192.0.2.1",), (), (), -1)),
        Order("o", "rollback", NAME, content=ONE, until_s=-5),
        Order("o", "rollback", NAME, content=ONE, until_s=10**30),
        Order("o", "withdraw", NAME, until_s=10**30),
    ],
)
def test_an_order_that_no_marker_could_say_is_spent_without_effect(order: Order) -> None:
    """One odd order must stop neither its endpoint nor any other."""
    made, effect = planned(Standing(NAME, live(ONE, 2), row(ONE, 2), asks(ONE), (order,)))
    assert made is None
    assert isinstance(effect, Publish)
    assert effect.plan.spends == ("o",)


@given(contents, contents)
def test_of_two_inputs_the_plan_has_the_newer(first: Content, second: Content) -> None:
    """inputs_never_backward: content is a pure function of the snapshot it says it was made from."""
    families = ("4" if second.a else "") + ("6" if second.aaaa else "")
    made, _ = planned(Standing(NAME, live(first), row(first), Wanted(second, families)))
    assert (made is None) == (first == second)
    assert made is None or made.content == second


def test_a_plan_that_was_outrun_is_thrown_away() -> None:
    """Renumbered, it would say newer than its content is."""
    planner = surveying()
    planner.on(Surveyed((standing(Live(NAME), None),), 0), NOW)
    (wake,) = planner.on(Outrun(), NOW)
    assert isinstance(wake, Wake)
    assert wake.after <= 51 * MILLISECOND
    assert planner == DnsPlanner(planner.settings)
    assert surveying().on(Published(), NOW) == (ReadHead(),)


def test_failures_wait_longer_each_time_up_to_the_longest() -> None:
    """A store that is away isn't hammered; what only a person can mend is looked at once a minute."""
    planner = surveying()
    waits = []
    for _ in range(12):
        (wake,) = planner.on(Failed("ReadHead", Failure.UNAVAILABLE), NOW)
        assert isinstance(wake, Wake)
        waits.append(wake.after)
    assert all(50 * MILLISECOND <= wait <= 2 * SECOND for wait in waits)
    assert waits[-1] >= SECOND > waits[0]
    assert planner.on(Failed("Publish", Failure.MISCONFIGURED), NOW) == (Wake(MINUTE),)
    with pytest.raises(TypeError, match="RowsRead"):
        planner.on(RowsRead(), NOW)


def test_a_plan_names_every_address_that_comes_or_goes() -> None:
    """A drain of three targets, of a zone: the line named the last of them only, by the pool's last move."""
    six = tuple(f"192.0.2.{host}" for host in range(1, 7))

    def said(before: tuple[str, ...], after: tuple[str, ...], *, back: bool = False) -> str:
        old, new = (Row.of(NAME, Generation(0, 1), content(each, 5), None, families="4") for each in (before, after))
        return difference(old, new, Wanted(content(after, 5), "4", 0, back))

    assert said(six, six[3:]) == "takes out 192.0.2.1, 192.0.2.2, 192.0.2.3"
    assert said(six[3:], six, back=True) == "brings back 192.0.2.1, 192.0.2.2, 192.0.2.3"
    assert said(six[:5], six[1:]) == "takes out 192.0.2.1, adds 192.0.2.6"
    many = tuple(f"192.0.2.{host}" for host in range(1, 100))
    assert said(many, many[:1]).startswith("takes out 98 targets: 192.0.2.2, 192.0.2.3")
