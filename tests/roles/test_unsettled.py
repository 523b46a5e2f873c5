"""The walk over unsettled names."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fencepost.roles.unsettled import Unsettled

NAMES = st.text("abc", min_size=1, max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["add", "settle", "hurry", "walk"]), NAMES)))
def test_a_walk_gives_every_unsettled_name_once_in_order_from_the_cursor(acts: list[tuple[str, str]]) -> None:
    """Whatever was added and settled before, and in which order; first those in a hurry, as they came."""
    names, model = Unsettled(), set()
    hurried: dict[str, None] = {}
    for act, name in acts:
        if act == "add":
            names.add(name)
            model.add(name)
        elif act == "settle":
            names.discard(name)
            model.discard(name)
            hurried.pop(name, None)
        elif act == "hurry" and name in model:
            names.hurry([name])
            hurried.setdefault(name)
        ordered = sorted(model - hurried.keys())
        expected = [n for n in ordered if n > name] + [n for n in ordered if n <= name]
        assert list(names.after(name)) == [*hurried, *expected]
        assert len(names) == len(model)


def test_what_is_put_off_is_in_no_hurry_any_more() -> None:
    """It failed: it is passed over for a while, and comes in its place after that."""
    names = Unsettled()
    names.update(["a", "b", "c"])
    names.hurry(["c"])
    names.put_off("c", 10)
    assert list(names.after("", 9)) == ["a", "b"]
    assert list(names.after("", 10)) == ["a", "b", "c"]


def of(count: int) -> Unsettled:
    """So many names, n0000 and on."""
    names = Unsettled()
    names.update(f"n{at:04}" for at in range(count))
    assert len(list(names.after(""))) == count
    return names


def written(names: Unsettled, first: int, last: int) -> None:
    """Another has written from one to another."""
    several = [f"n{at:04}" for at in range(first, last + 1)]
    for name in several:
        names.discard(name)
    names.overtaken(several)


def test_where_another_writer_goes_on() -> None:
    """It is taken to go on after the last it wrote; of two at different places both are known."""
    names = of(1000)
    written(names, 100, 149)
    written(names, 700, 709)
    assert [name for name in names.after("") if names.overtakes(name)] == ["n0150", "n0710"]
    assert names.meets("n0099")
    assert not names.meets("n0098")
    written(names, 150, 199)
    written(names, 0, 4)
    assert [name for name in names.after("") if names.overtakes(name)] == ["n0005", "n0200", "n0710"]


def test_a_writer_that_came_to_its_end_is_nowhere() -> None:
    """What comes next is settled; and a name settled and then changed again is nobody's place any more."""
    names = of(20)
    for at in range(10, 15):
        names.discard(f"n{at:04}")
    written(names, 5, 9)
    assert not [name for name in names.after("") if names.overtakes(name)]
    written(names, 0, 2)
    names.discard("n0003")
    names.add("n0003")
    assert not [name for name in names.after("") if names.overtakes(name)]


def test_a_name_that_is_to_be_written_again_is_no_sign_of_a_writer() -> None:
    """What was altered by hand is ours to heal, and nobody works behind it."""
    names = of(10)
    names.overtaken(["n0004"])
    assert not names.meets("n0004")


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 60)), max_size=6), st.integers(0, 2**16))
def test_elsewhere_is_within_the_widest_stretch_and_not_at_its_beginning(
    blocks: list[tuple[int, int]], chance: int
) -> None:
    """Whatever others wrote: there nobody is met soon, neither who works at its beginning nor at the next one's."""
    names = of(1000)
    for first, more in blocks:
        written(names, first, min(999, first + more))
    left = list(names.after(""))
    begins = [at for at, name in enumerate(left) if at == 0 or names.overtakes(name)] + [len(left)]
    if len(begins) == 2 and not names.overtakes(left[0]):
        return  # nobody is known of
    widest = max(end - begin for begin, end in pairwise(begins))
    place = left.index(next(names.after(names.in_widest(10, lambda count: chance % count))))
    begin, end = next((b, e) for b, e in pairwise(begins) if b <= place < e)
    assert end - begin == widest
    assert place - begin >= widest // 4
    assert end - place >= widest // 4


def test_nothing_is_left_elsewhere_either() -> None:
    """Another has written all of them."""
    names = of(3)
    written(names, 0, 2)
    assert names.in_widest(10, lambda count: count - 1) == ""
