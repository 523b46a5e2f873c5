"""What doesn't come into service, and a store that took another's place: told while somebody may have to see to it."""

from typing import Any

from msgspec import structs
from status_examples import NOW, POOL, made, member, problems, stored

from fencepost.core.instant import MINUTE, SECOND
from fencepost.core.traffic.membership import Member, State, Votes
from fencepost.roles.status.document import Status, when

LACKS = "passed from 0 of 3 zones: connection refused"
SINCE = NOW - 10 * MINUTE


def pending(key: str, **more: Any) -> Member:
    """A target that checkers see, and that never passed."""
    given = {"cause": LACKS, "healthy": False, "votes": Votes(0, 3), "served": False, "since": SINCE, "weight": 0}
    return member(key, State.PENDING, **{**given, **more})


def told(*members: Member) -> Status:
    """The document of a pool that has these beside those that serve."""
    serving = [each for each in POOL.members if each.state is State.IN]
    return made(store=stored(pools={"web": structs.replace(POOL, members=(*serving, *members))}))


def test_a_target_that_never_passes_is_said_with_what_it_lacks() -> None:
    """With another port than the pool's it was `1 pending` for ever: what, since when, why, what to do."""
    found = problems(told(pending("127.0.3.9", source="web-7.1")))["targets-pending", "web"]
    assert found.what == (
        f"127.0.3.9 (web-7.1) doesn't come into service: {LACKS}; mend it, or terminate what can't be mended"
    )
    assert (found.try_, found.since) == ("fencepost explain 127.0.3.9", when(SINCE))
    assert not found.needs_person, "callers are answered by the others, as where a dead target is out"


def test_many_that_never_pass_are_one_problem() -> None:
    """The most of them say what is wrong: a dozen new targets behind one firewall aren't a dozen notes."""
    slow = pending("127.0.1.20", cause="passed from 0 of 3 zones: timeout", since=SINCE - SECOND)
    status = told(slow, *(pending(f"127.0.2.{n}") for n in range(21, 32)))
    (found,) = [each for each in status.problems if each.id == "targets-pending"]
    assert found.what.startswith(
        "12 targets don't come into service (127.0.1.20, 127.0.2.21, 127.0.2.22 and 9 more);"
        f" 11 of them: {LACKS}; mend them"
    )
    assert (found.try_, found.since) == ("fencepost explain 127.0.2.21", when(SINCE - SECOND))


def test_a_start_has_its_time_and_what_is_told_elsewhere_is_told_once() -> None:
    """Five minutes more than the checks take at best (30 s here); none for who waits for a mode, or for checkers."""
    limit = 5 * MINUTE + 30 * SECOND
    assert ("targets-pending", "web") not in problems(told(pending("127.0.3.9", since=NOW - limit)))
    assert ("targets-pending", "web") in problems(told(pending("127.0.3.9", since=NOW - limit - 1)))
    for more in ({"would": State.IN, "cause": ""}, {"votes": Votes(0, 1)}, {"listed": False}):
        assert ("targets-pending", "web") not in problems(told(pending("127.0.3.9", **more))), more
