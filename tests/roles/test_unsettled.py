"""The walk over unsettled names."""

from hypothesis import given
from hypothesis import strategies as st

from fencepost.roles.unsettled import Unsettled

NAMES = st.text("abc", min_size=1, max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["add", "settle", "walk"]), NAMES)))
def test_a_walk_gives_every_unsettled_name_once_in_order_from_the_cursor(acts: list[tuple[str, str]]) -> None:
    """Whatever was added and settled before, and in which order."""
    names, model = Unsettled(), set()
    for act, name in acts:
        if act == "add":
            names.add(name)
            model.add(name)
        elif act == "settle":
            names.discard(name)
            model.discard(name)
        ordered = sorted(model)
        expected = [n for n in ordered if n > name] + [n for n in ordered if n <= name]
        assert list(names.after(name)) == expected
        assert len(names) == len(model)
