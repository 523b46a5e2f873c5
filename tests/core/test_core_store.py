"""The reference store: one compare-and-set on a head, and deletes that name a nonce."""

from core_values import NAME, ONE, TWO, row
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.fence import Generation
from fencepost.core.store import Head, Order, Plan, Row, Tables, delete_row, publish, stamped

HEAD = Head("abcd0001", 3, "n3", 7)
ORDERS = (Order("o1", "withdraw", NAME), Order("o2", "release", NAME, hold=5))


def plan(expected: Head = HEAD, number: int = 4, spends: tuple[str, ...] = ()) -> Plan:
    """A plan with one row, as a planner makes it."""
    return Plan(expected, number, 8, (Row.of(NAME, Generation(0, number), TWO, families="4"),), spends)


def test_a_plan_made_on_another_head_changes_nothing() -> None:
    """inputs_never_backward: whoever was first has won, and the other throws its plan away."""
    tables = Tables(HEAD, (row(ONE, 3),), orders=ORDERS)
    for head in (
        structs.replace(HEAD, number=2),
        structs.replace(HEAD, nonce="n4"),
        structs.replace(HEAD, store="abcd0002"),
        structs.replace(HEAD, inputs=6),
    ):
        assert publish(tables, plan(head), "n9") is None


def test_a_plan_carries_its_rows_its_head_and_its_orders_at_once() -> None:
    """An order is carried out once: it is spent in the compare-and-set that publishes what it asked for."""
    tables = Tables(HEAD, (row(ONE, 3),), orders=ORDERS)
    after = publish(tables, plan(spends=("o1",)), "n4")
    assert after is not None
    assert after.head == Head("abcd0001", 4, "n4", 8)
    assert after.newest(NAME) == after.rows[0]
    assert (after.rows[0].nonce, after.rows[0].store, after.rows[0].inputs) == ("n4", "abcd", 8)
    assert after.rows[1:] == tables.rows
    assert after.orders == ORDERS[1:]


@given(st.lists(st.sampled_from([3, 4]), max_size=6))
def test_of_plans_made_on_one_head_one_is_published(numbers: list[int]) -> None:
    """However many planners race, each head has one successor."""
    tables, won = Tables(HEAD), 0
    for at, number in enumerate(numbers):
        after = publish(tables, plan(number=number + 1), f"nonce-{at}")
        won += after is not None
        tables = after or tables
    assert won == min(1, len(numbers))
    assert len(tables.rows) == won


def test_a_row_is_deleted_only_under_its_own_nonce() -> None:
    """After a wiped store the same generation may come again; that row isn't the one the janitor judged."""
    tables = Tables(HEAD, (row(TWO, 2), row(ONE, 1)))
    assert delete_row(tables, NAME, Generation(0, 1), "another") is None
    assert delete_row(tables, "www.example.test", Generation(0, 1), "0001-1") is None
    after = delete_row(tables, NAME, Generation(0, 1), "0001-1")
    assert after is not None
    assert after.rows == (row(TWO, 2),)
    assert delete_row(after, NAME, Generation(0, 1), "0001-1") is None


def test_a_missing_row_means_unknown() -> None:
    """Never withdrawn: a withdrawal is a row."""
    assert Tables(HEAD).newest(NAME) is None


def test_stamps_are_the_head_of_the_store_it_was_made_for() -> None:
    """A marker carries four digits of the identity of the store whose plan it is."""
    head, rows = stamped(plan(), "n4")
    assert head.mark == rows[0].store == "abcd"
