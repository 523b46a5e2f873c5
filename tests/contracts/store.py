"""What every store must do, whatever it is built on: one suite, run on each adapter and on the reference."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest

from fencepost.core.fence import Generation
from fencepost.core.instant import MILLISECOND, SECOND
from fencepost.core.record_set import content
from fencepost.core.store import Head, Order, Plan, Row
from fencepost.ports import Beat, Enacted, HistoryRow, Refused, StorePort, Waiter

Make: TypeAlias = Callable[[], StorePort]


def row(name: str, number: int, address: str = "192.0.2.1") -> Row:
    """A row as a planner makes it: not stamped yet."""
    return Row.of(name, Generation(0, number), content([address], 30), families="4")


def plan(expected: Head, number: int, *names: str, inputs: int = 0, spends: tuple[str, ...] = ()) -> Plan:
    """A plan that changes these endpoints."""
    return Plan(expected, number, inputs, tuple(row(name, number) for name in names), spends)


async def published(store: StorePort, number: int, *names: str) -> Head:
    """Publish on whatever the head is."""
    head = await store.publish(plan(await store.head(), number, *names))
    assert head is not None
    return head


async def quiet(waiter: Waiter) -> None:
    """The first looks at a store are changes, too: wait until three waits in a row have lasted their time."""
    now, lasted = asyncio.get_running_loop().time, 0
    while lasted < 3:
        began = now()
        await waiter.wait(200 * MILLISECOND)
        lasted = lasted + 1 if now() - began >= 0.19 else 0


def on_store(test: Callable[[Any, StorePort], Coroutine[Any, Any, None]]) -> Callable[[Any, Make], None]:
    """A test of one new store, closed at the end whatever happens."""

    def run(self: object, make: Make) -> None:
        async def go() -> None:
            store = make()
            try:
                await asyncio.wait_for(test(self, store), 60)
            finally:
                await store.close()

        asyncio.run(go())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


class StoreContract:
    """The suite; a subclass gives ``make``, which opens one new store."""

    @pytest.fixture
    def make(self) -> Make:
        """To be given by each subclass."""
        raise NotImplementedError

    @on_store
    async def test_a_new_store_is_empty_and_has_an_identity(self, store: StorePort) -> None:
        """A wiped store is told from the one read before by its identity: 16 hex digits, drawn when it is made."""
        head = await store.head()
        assert (head.number, head.nonce, head.inputs) == (0, "", 0)
        assert len(head.store) == 16
        assert set(head.store) <= set("0123456789abcdef")
        assert await store.newest_rows(None) == (head, ())
        found = await store.inputs()
        assert (found.snapshot, found.config, found.orders) == (0, b"", ())
        assert (dict(found.membership), dict(found.overrides)) == ({}, {})

    @on_store
    async def test_a_plan_is_stamped_with_store_nonce_and_inputs(self, store: StorePort) -> None:
        """Rows are keyed by their plan's nonce, so two writers can't make one generation with two contents."""
        first = await store.head()
        head = await store.publish(plan(first, 3, "api.example", inputs=2))
        assert head is not None
        assert (head.store, head.number, head.inputs) == (first.store, 3, 2)
        assert len(head.nonce) >= 8
        assert await store.head() == head
        (found,) = await store.rows_of("api.example")
        assert (found.store, found.nonce, found.inputs) == (head.mark, head.nonce, 2)
        assert found.generation == Generation(0, 3)

    @on_store
    async def test_a_plan_made_on_an_older_head_changes_nothing(self, store: StorePort) -> None:
        """Publishing is one compare-and-set: an outrun plan leaves no row and spends no order."""
        await store.put_order(Order("o1", "withdraw", "api.example"))
        old = await store.head()
        head = await published(store, 1, "api.example")
        assert await store.publish(plan(old, 2, "api.example", "www.example", spends=("o1",))) is None
        assert await store.head() == head
        assert len(await store.rows_of("api.example")) == 1
        assert await store.rows_of("www.example") == ()
        assert [order.id for order in (await store.inputs()).orders] == ["o1"]

    @on_store
    async def test_every_part_of_the_head_is_compared(self, store: StorePort) -> None:
        """Same number, other nonce (a restored store), other identity (a wiped one), other inputs: each is refused."""
        head = await published(store, 5, "api.example")
        for wrong in (
            Head("0" * 16, head.number, head.nonce, head.inputs),
            Head(head.store, head.number - 1, head.nonce, head.inputs),
            Head(head.store, head.number, "0" * 16, head.inputs),
            Head(head.store, head.number, head.nonce, head.inputs + 1),
        ):
            assert await store.publish(plan(wrong, 6, "api.example", inputs=wrong.inputs)) is None
        assert await store.publish(plan(head, 6, "api.example")) is not None

    @on_store
    async def test_of_many_planners_one_wins(self, store: StorePort) -> None:
        """Twenty plans on one head at once: one is published, nineteen are thrown away."""
        head = await store.head()
        outcomes = await asyncio.gather(*(store.publish(plan(head, 1, f"e{n}.example")) for n in range(20)))
        (won,) = [outcome for outcome in outcomes if outcome is not None]
        assert await store.head() == won
        assert len((await store.newest_rows(None))[1]) == 1

    @on_store
    async def test_a_plan_that_breaks_the_order_is_refused(self, store: StorePort) -> None:
        """`inputs_never_backward` and rising numbers hold in the store even against a planner gone wrong."""
        head = await store.publish(plan(await store.head(), 7, "api.example", inputs=4))
        assert head is not None
        with pytest.raises(Refused, match="does not come after"):
            await store.publish(plan(head, 7, "api.example", inputs=4))
        with pytest.raises(Refused, match="older inputs"):
            await store.publish(plan(head, 8, "api.example", inputs=3))
        with pytest.raises(Refused, match="twice"):
            await store.publish(plan(head, 8, "api.example", "api.example", inputs=4))
        with pytest.raises(Refused, match="no store can keep"):
            await store.publish(plan(head, 2**63, "api.example", inputs=4))
        assert await store.head() == head

    @on_store
    async def test_newest_rows_since_a_head_are_what_later_plans_changed(self, store: StorePort) -> None:
        """A reader that knows a head is given what changed after it, and nothing twice."""
        blank = await store.head()
        first = await published(store, 1, "a.example", "b.example", "c.example")
        second = await published(store, 2, "b.example")
        third = await published(store, 3, "b.example", "c.example")
        assert await store.newest_rows(third) == (third, ())
        for since, names in ((second, "bc"), (first, "bc"), (blank, "abc"), (None, "abc")):
            head, rows = await store.newest_rows(since)
            assert head == third
            assert sorted(found.name[0] for found in rows) == list(names)
            assert {found.name: found.generation.number for found in rows if found.name != "a.example"} == {
                "b.example": 3, "c.example": 3
            }  # fmt: skip

    @on_store
    async def test_newest_rows_since_an_unknown_head_are_all(self, store: StorePort) -> None:
        """A head of a lost store, or of a restored one's lost end, says nothing about what its reader has."""
        head = await published(store, 1, "a.example", "b.example")
        for unknown in (
            Head("0" * 16, head.number, head.nonce),
            Head(head.store, head.number, "f" * 16),
            Head(head.store, 9, "e" * 16),
        ):
            assert len((await store.newest_rows(unknown))[1]) == 2

    @on_store
    async def test_rows_of_an_endpoint_come_newest_first(self, store: StorePort) -> None:
        """Rollback and the lookup of what is ours read every kept row."""
        for number in (1, 2, 3):
            head = await store.head()
            changed = (row("a.example", number, f"192.0.2.{number}"), row("b.example", number))
            assert await store.publish(Plan(head, number, 0, changed)) is not None
        assert [found.generation.number for found in await store.rows_of("a.example")] == [3, 2, 1]
        addresses = [found.addresses for found in await store.kept_contents("a.example")]
        assert addresses == [("192.0.2.3",), ("192.0.2.2",), ("192.0.2.1",)]
        assert await store.rows_of("none.example") == ()

    @on_store
    async def test_spent_rows_are_all_but_the_newest_oldest_first(self, store: StorePort) -> None:
        """The janitor is told each old row's place and its endpoint's newest generation."""
        await published(store, 1, "a.example", "b.example")
        await published(store, 2, "a.example")
        await published(store, 3, "a.example", "c.example")
        spent = await store.spent_rows(9)
        found = [(old.name, old.generation.number, place, newest.number) for old, place, newest in spent]
        assert found == [("a.example", 1, 2, 3), ("a.example", 2, 1, 3)]
        assert len(await store.spent_rows(1)) == 1

    @on_store
    async def test_a_row_is_deleted_only_by_its_nonce(self, store: StorePort) -> None:
        """After a wiped store the same generation may come again: the janitor's row is named by its nonce."""
        first = await published(store, 1, "a.example")
        await published(store, 2, "a.example")
        assert not await store.delete_row("a.example", Generation(0, 1), "0" * 16)
        assert not await store.delete_row("a.example", Generation(0, 2), first.nonce)
        assert not await store.delete_row("b.example", Generation(0, 1), first.nonce)
        assert await store.delete_row("a.example", Generation(0, 1), first.nonce)
        assert not await store.delete_row("a.example", Generation(0, 1), first.nonce)
        assert [found.generation.number for found in await store.rows_of("a.example")] == [2]
        assert await store.spent_rows(9) == ()

    @on_store
    async def test_the_newest_row_is_never_deleted(self, store: StorePort) -> None:
        """`cleanup_spares_live`, also against a janitor gone wrong, and while others' rows are spent."""
        head = await published(store, 1, "a.example", "b.example")
        await published(store, 2, "b.example")
        assert not await store.delete_row("a.example", Generation(0, 1), head.nonce)
        assert len(await store.rows_of("a.example")) == 1

    @on_store
    async def test_each_change_of_inputs_raises_the_snapshot(self, store: StorePort) -> None:
        """Plans are ordered by the snapshot they were made from, so each change has a number; spending has none."""

        async def snapshot() -> int:
            return (await store.inputs()).snapshot

        assert await store.put_config(b"one", b"")
        assert await snapshot() == 1
        assert await store.put_config(b"one", b"one")
        assert await snapshot() == 1
        assert await store.put_membership("web", 0, b"m")
        await store.put_override("drain/192.0.2.1", b"d")
        await store.put_order(Order("o1", "release", "a.example", hold=3))
        assert await snapshot() == 4
        assert await store.drop_override("drain/192.0.2.1")
        assert not await store.drop_override("drain/192.0.2.1")
        assert not await store.put_membership("web", 0, b"n")
        assert await snapshot() == 5
        await store.put_report("a", "web", 1, b"r")
        await store.beat_report("a", "web", 1, b"b")
        await store.publish(plan(await store.head(), 1, "a.example", inputs=5, spends=("o1",)))
        found = await store.inputs()
        assert (found.snapshot, found.config, found.orders) == (5, b"one", ())
        assert dict(found.membership) == {"web": (1, b"m")}

    @on_store
    async def test_the_configuration_is_compare_and_set_on_the_one_that_stands(self, store: StorePort) -> None:
        """Of two reloads that were judged against the same configuration the slower one changes nothing."""
        assert not await store.put_config(b"two", b"one")
        assert (await store.inputs()).config == b""
        assert await store.put_config(b"one", b"")
        assert not await store.put_config(b"two", b"")
        assert not await store.put_config(b"one", b"")
        assert await store.put_config(b"two", b"one")
        assert not await store.put_config(b"three", b"one")
        found = await store.inputs()
        assert (found.config, found.snapshot) == (b"two", 2)

    @on_store
    async def test_membership_is_compare_and_set_on_its_version(self, store: StorePort) -> None:
        """Membership and removal budget are one row: the slower of two load balancers is refused and reads again."""
        assert await store.membership("web") == (0, b"")
        assert not await store.put_membership("web", 1, b"x")
        assert await store.put_membership("web", 0, b"x")
        assert not await store.put_membership("web", 0, b"y")
        assert await store.put_membership("web", 1, b"y")
        assert await store.membership("web") == (2, b"y")
        assert await store.membership("other") == (0, b"")

    @on_store
    async def test_an_order_is_done_once(self, store: StorePort) -> None:
        """An order put again since its answer was lost waits once; carried out, it isn't done again."""
        first, second = Order("o1", "withdraw", "a.example", by="ann"), Order("o2", "release", "b.example", hold=7)
        await store.put_order(first)
        await store.put_order(second)
        await store.put_order(first)
        assert (await store.inputs()).orders == (first, second)
        with pytest.raises(Refused, match="o1"):
            await store.put_order(Order("o1", "withdraw", "c.example"))
        await store.publish(plan(await store.head(), 1, "a.example", spends=("o1", "never-put")))
        await store.put_order(first)
        assert (await store.inputs()).orders == (second,)

    @on_store
    async def test_reports_and_heartbeats_stand_side_by_side(self, store: StorePort) -> None:
        """A heartbeat says that a report still stands; it must not take its place."""
        await store.put_report("b", "web", 1, b"body b")
        await store.beat_report("a", "web", 0, b"beat a")
        await store.beat_report("b", "web", 1, b"beat b1")
        await store.beat_report("b", "web", 1, b"beat b2")
        await store.put_report("b", "other", 1, b"another pool")
        assert list(await store.reports("web")) == [("a", b"", b"beat a"), ("b", b"body b", b"beat b2")]
        await store.put_report("b", "web", 2, b"body b2")
        assert list(await store.reports("web"))[1] == ("b", b"body b2", b"beat b2")

    @on_store
    async def test_the_last_enactment_of_each_endpoint_is_remembered(self, store: StorePort) -> None:
        """A note that comes late about an older generation doesn't hide the newer one."""
        newer = Enacted("a.example", Generation(0, 8), "enactor/a", 50, 1)
        healed = Enacted("a.example", Generation(0, 8), "enactor/c", 70, 2)
        held = Enacted("a.example", Generation(9, 3), "enactor/b", 80, 1)
        await store.note_enacted([newer, Enacted("b.example", Generation(0, 1), "enactor/b", 10, 1)])
        await store.note_enacted([Enacted("a.example", Generation(0, 7), "enactor/b", 60, 1)])
        assert (await store.enacted())["a.example"] == newer
        await store.note_enacted([healed])
        assert await store.enacted(["a.example", "none.example"]) == {"a.example": healed}
        await store.note_enacted([held])
        assert (await store.enacted())["a.example"] == held
        assert set(await store.enacted()) == {"a.example", "b.example"}
        assert await store.enacted([]) == {}

    @on_store
    async def test_findings_are_replaced_whole(self, store: StorePort) -> None:
        """Findings are what a role finds now: one that is gone from the list is gone."""
        foreign, ask = ("FOREIGN", "owner eu-2"), ("ASK", "adopt it")
        await store.put_findings("enactor/a", {"a.example": foreign, "b.example": ask})
        await store.put_findings("enactor/b", {"a.example": foreign})
        await store.put_findings("enactor/a", {"b.example": ask})
        assert await store.findings() == {"enactor/a": {"b.example": ask}, "enactor/b": {"a.example": foreign}}
        await store.put_findings("enactor/b", {})
        assert set(await store.findings()) == {"enactor/a"}

    @on_store
    async def test_history_is_read_on_from_where_one_was(self, store: StorePort) -> None:
        """`history --follow` asks for what came after the last id it has shown."""
        await store.note([HistoryRow("plan", "a.example", "planner", f"line {n}", at=n * 10) for n in range(5)])
        await store.note([])
        await store.note([HistoryRow("fenced", "b.example", "enactor/a", "line 5", at=50)])
        every = await store.history()
        assert [line.text for line in every] == [f"line {n}" for n in range(6)]
        ids = [line.id for line in every]
        assert ids == sorted(set(ids))
        assert [line.text for line in await store.history(after=ids[3])] == ["line 4", "line 5"]
        assert [line.text for line in await store.history(since=40)] == ["line 4", "line 5"]
        assert [line.text for line in await store.history(most=2)] == ["line 4", "line 5"]
        assert await store.history(most=0) == ()
        assert every[5] == HistoryRow("fenced", "b.example", "enactor/a", "line 5", 50, ids[5])

    @on_store
    async def test_a_sign_of_life_replaces_the_last(self, store: StorePort) -> None:
        """One line a role, whatever it has been through."""
        await store.beat(Beat("planner", 10, "0.1.0", "up", "", 1))
        await store.beat(Beat("enactor/a", 11, "0.1.0", "up", "", 1))
        again = Beat("planner", 12, "0.1.0", "unavailable", "no space is left", 2)
        await store.beat(again)
        found = {one.role: one for one in await store.beats()}
        assert set(found) == {"planner", "enactor/a"}
        assert found["planner"] == again

    @on_store
    async def test_wait_returns_at_a_change_and_at_the_latest_in_time(self, store: StorePort) -> None:
        """Roles sleep on the store: a change wakes them, one before the call counts, and silence ends it too."""
        waiter = store.waiter()
        await waiter.wait(0)
        await asyncio.wait_for(waiter.wait(MILLISECOND), 10)  # nothing changes: it ends all the same
        await store.put_config(b"one", b"")
        await asyncio.wait_for(waiter.wait(3600 * SECOND), 10)
        waiting = asyncio.create_task(waiter.wait(3600 * SECOND))
        await asyncio.sleep(0.01)
        await store.put_config(b"two", b"one")
        await asyncio.wait_for(waiting, 10)

    @on_store
    async def test_waiting_can_be_given_up(self, store: StorePort) -> None:
        """A role that is told to stop ends its wait; the next wait is whole."""
        waiter = store.waiter()
        await quiet(waiter)
        waiting = asyncio.create_task(waiter.wait(3600 * SECOND))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await store.put_config(b"one", b"")
        await asyncio.wait_for(waiter.wait(3600 * SECOND), 10)

    @on_store
    async def test_signs_of_life_wake_only_who_asked_for_reports_and_each_waiter_is_told_itself(
        self, store: StorePort
    ) -> None:
        """Most commits are beats: were they to wake every enactor, an idle region would never sleep."""
        plans, again, everything = store.waiter(), store.waiter(), store.waiter(reports=True)
        await asyncio.gather(*map(quiet, (plans, again, everything)))
        sleeping = asyncio.create_task(plans.wait(3600 * SECOND))
        await store.beat(Beat("planner", 1, "0.1.0", "up", "", 5))
        await asyncio.wait_for(everything.wait(3600 * SECOND), 10)
        await asyncio.sleep(0.15)
        assert not sleeping.done()
        await store.put_config(b"one", b"")
        await asyncio.wait_for(sleeping, 10)
        await asyncio.wait_for(again.wait(3600 * SECOND), 10)
