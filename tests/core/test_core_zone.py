"""The reference transaction: exact, and all or nothing."""

from collections.abc import Mapping

from core_values import NAME, ONE, OWNER, STORE, TWO, contents, generations, live
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.fence import Foreign, Generation, Hold, Marker
from fencepost.core.record_set import NOTHING, Content
from fencepost.core.zone import Batch, Change, Live, after, exact, transact

NAMES = ("a.example.test", "b.example.test", "c.example.test")


def change(seen: Live, value: Content = TWO, number: int = 2) -> Change:
    """The change of an enactor that saw this."""
    marker = Marker.of(OWNER, STORE, Generation(0, number), value, None, 1)
    return Change(seen.name, seen, marker, value, "4")


lives = st.builds(
    lambda name, value, generation, marked: Live(
        name, Marker.of(OWNER, STORE, generation, value, None, 1) if marked else None, value.a, value.aaaa, value.ttl
    ),
    st.sampled_from(NAMES),
    contents,
    generations,
    st.booleans(),
)
domains = st.lists(lives, unique_by=lambda standing: standing.name).map(
    lambda standing: {each.name: each for each in standing}
)


@given(domains, st.lists(lives, min_size=1, max_size=3, unique_by=lambda standing: standing.name), st.booleans())
def test_a_transaction_applies_whole_or_not(domain: Mapping[str, Live], seen: list[Live], true: bool) -> None:
    """never_torn: Route 53's ChangeBatch and RFC 2136 section 3.4 both apply all or nothing."""
    if true:
        seen = [domain.get(each.name, Live(each.name)) for each in seen]
    batch: Batch = tuple(change(each) for each in seen)
    before = dict(domain)
    replaced = transact(domain, batch)
    assert domain == before
    fits = all(exact(domain.get(each.name, Live(each.name)), each) for each in batch)
    assert (replaced is not None) == fits
    if replaced is not None:
        assert {name: standing.marker for name, standing in replaced.items()} == {c.name: c.marker for c in batch}
        assert all(standing.holds(TWO) for standing in replaced.values())


def test_whatever_changed_since_the_read_refuses_it() -> None:
    """RFC 2136 section 2.4: the marker, each address and each absence are prerequisites."""
    seen = live()
    for now in (
        structs.replace(seen, marker=None),
        structs.replace(seen, marker=Foreign("eu-2")),
        live(ONE, 2),
        structs.replace(seen, a=()),
        structs.replace(seen, a=(*ONE.a, "192.0.2.7")),
        structs.replace(seen, aaaa=("2001:db8::1",)),
    ):
        assert transact({NAME: now}, (change(seen),)) is None, now
        assert transact({NAME: seen}, (change(now),)) is None, now
    assert transact({NAME: seen}, (change(Live(NAME)),)) is None


def test_a_ttl_is_not_required() -> None:
    """RFC 2136 section 2.4.2: a prerequisite's TTL must be zero and is ignored."""
    seen = live()
    assert transact({NAME: structs.replace(seen, ttl=5)}, (change(seen),)) is not None


def test_a_marker_with_one_more_write_is_another_marker() -> None:
    """A heal makes what others had seen stale, though generation and digest stay."""
    seen = live()
    assert isinstance(seen.marker, Marker)
    healed = structs.replace(seen, marker=structs.replace(seen.marker, writes=2))
    assert transact({NAME: healed}, (change(seen),)) is None


def test_only_a_withdrawal_may_empty_a_published_family() -> None:
    """never_empty: no adapter may send the first; a tombstone's marker stays (its generation is never forgotten)."""
    seen = live()
    assert change(seen, NOTHING).empties()
    marker = Marker.of(OWNER, STORE, Generation(5, 2), NOTHING, Hold("withdraw", 5), 1)
    gone = Change(NAME, seen, marker, NOTHING, "4")
    assert not gone.empties()
    assert after(seen, gone) == Live(NAME, marker)


def test_records_of_other_types_are_left_alone() -> None:
    """What we don't write stays as it was."""
    seen = structs.replace(live(), other=("MX",))
    assert after(seen, change(seen)).other == ("MX",)
