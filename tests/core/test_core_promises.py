"""The promises can be broken: each check says so when it is, and stays silent when it isn't."""

from core_values import ONE, TWO, live, row
from msgspec import structs

from fencepost.core.fence import NEVER, Generation, Hold
from fencepost.core.instant import SECOND
from fencepost.core.promises import Memory, cleaned, destroy, enact
from fencepost.core.record_set import NOTHING
from fencepost.core.zone import Live

REPAIR = Hold("repair", 5)
GONE = Hold("withdraw", 5)


def test_a_lower_generation_breaks_never_backward() -> None:
    """An equal one (a heal) doesn't."""
    memory, broken = enact(Memory(), live(ONE, 2))
    assert broken is None
    assert memory.enacted == Generation(0, 2)
    assert enact(memory, live(ONE, 2))[1] is None
    assert enact(memory, live(TWO, 3))[1] is None
    assert enact(memory, live(TWO, 1))[1] == "never_backward"


def test_no_address_breaks_never_empty_unless_withdrawn() -> None:
    """never_empty: only a tombstone may stand without addresses."""
    assert enact(Memory(), structs.replace(live(), a=()))[1] == "never_empty"
    assert enact(Memory(), live(NOTHING, 1, 5, GONE))[1] is None


def test_records_that_are_not_the_markers_break_never_torn() -> None:
    """never_torn: one plan's set, whole."""
    assert enact(Memory(), structs.replace(live(), a=("203.0.113.9",)))[1] == "never_torn"
    assert enact(Memory(), structs.replace(live(), marker=None))[1] == "never_torn"


def test_a_hold_stands_until_its_release_its_time_or_a_later_hold() -> None:
    """hold_stands, each way in which a hold may end and three in which it may not."""
    memory, _ = enact(Memory(), live(ONE, 1, 5, REPAIR))
    assert enact(memory, live(TWO, 2, 5))[1] == "hold_stands"
    assert enact(memory, live(TWO, 2, 5, Hold("rollback", 4)))[1] == "hold_stands"
    assert enact(memory, live(TWO, 2, 5, REPAIR))[1] == "hold_stands"
    assert enact(memory, live(ONE, 2, 5, REPAIR))[1] is None
    assert enact(memory, live(TWO, 2, 6, Hold("rollback", 6)))[1] is None
    assert enact(structs.replace(memory, released=5), live(TWO, 2, 5))[1] is None
    timed, _ = enact(Memory(), live(ONE, 1, 5, Hold("repair", 5, until_s=9)))
    assert enact(timed, live(TWO, 2, 5), 9 * SECOND - 1)[1] == "hold_stands"
    assert enact(timed, live(TWO, 2, 5), 9 * SECOND)[1] is None


def test_memory_falls_only_when_its_last_holder_dies() -> None:
    """Marker and records gone: nothing is left; marker gone: the newest row; the marker stands: all of it."""
    memory, _ = enact(Memory(), live(ONE, 3, 5, REPAIR))
    assert destroy(memory, structs.replace(live(ONE, 3, 5, REPAIR), a=()), None) == memory
    bare = structs.replace(live(ONE, 3, 5, REPAIR), marker=None)
    assert destroy(memory, bare, row(ONE, 2)).enacted == Generation(0, 2)
    assert destroy(memory, bare, row(ONE, 2)).held is None
    assert destroy(memory, bare, row(ONE, 3, 5, REPAIR)) == memory
    assert destroy(memory, bare, row(ONE, 9, 9, REPAIR)).enacted == Generation(5, 3)
    for left, newest in ((Live(bare.name), row()), (bare, None)):
        assert destroy(memory, left, newest) == Memory(highest=Generation(5, 3))


def test_the_live_and_the_newest_row_are_not_to_be_deleted() -> None:
    """cleanup_spares_live; but a row that only a hand made live again may go: the newest is there to follow."""
    one, two = Generation(0, 1), Generation(0, 2)
    first, _ = enact(Memory(), live(ONE, 1))
    assert cleaned(first, live(ONE, 1), one, two) == "cleanup_spares_live"
    assert cleaned(first, Live("x"), two, two) == "cleanup_spares_live"
    second, _ = enact(first, live(TWO, 2))
    assert cleaned(second, live(TWO, 2), one, two) is None
    again, _ = enact(destroy(second, Live("x"), row(TWO, 2)), live(ONE, 1))
    assert again.enacted == one
    assert cleaned(again, live(ONE, 1), one, two) is None
    assert NEVER < again.highest == two
