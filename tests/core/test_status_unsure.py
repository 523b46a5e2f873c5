"""A promise that looked broken and couldn't be told: neither held nor broken, and people are told so."""

from msgspec import structs
from status_examples import facts

from fencepost.cli.screen import promise_line
from fencepost.roles.status.compose import compose
from fencepost.roles.status.page import page
from fencepost.roles.status.promise_watch import WATCHED


def test_what_can_not_be_told_is_not_held_and_not_broken() -> None:
    """`held` is null, the verdict stays what it was, and the line for people names it apart from what held."""
    example = facts()
    assert example.observer is not None
    unsure = {**dict.fromkeys(WATCHED, 0), "hold_stands": 2}
    checked = {**example.observer.checked, **dict.fromkeys(WATCHED, 7)}
    status = compose(structs.replace(example, observer=structs.replace(example.observer, checked=checked)))
    doubted = compose(
        structs.replace(example, observer=structs.replace(example.observer, checked=checked, unsure=unsure))
    )
    assert doubted.verdict == status.verdict
    assert (doubted.promises["hold_stands"].held, doubted.promises["hold_stands"].times_unsure) == (None, 2)
    assert doubted.promises["never_torn"].held is True
    assert promise_line(status).endswith("4 promises held (never_empty 7 checks)")
    assert promise_line(doubted).endswith("3 promises held (never_empty 7 checks) · can't be told: hold_stands")
    assert "can't be told" in page(doubted)


def test_what_was_seen_broken_is_broken_whatever_else_could_not_be_told() -> None:
    """A violation isn't softened by a doubt."""
    example = facts()
    assert example.observer is not None
    counts = {**dict.fromkeys(WATCHED, 0), "hold_stands": 1}
    seen = structs.replace(example.observer, broken=counts, unsure=counts)
    assert compose(structs.replace(example, observer=seen)).promises["hold_stands"].held is False
