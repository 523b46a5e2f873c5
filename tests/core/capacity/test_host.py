"""A host obeys only the newest token and a fresh stamp, starts nothing twice, and survives a crash anywhere."""

import pytest

from fencepost.core.capacity.host import (
    ApplyNetwork,
    Ended,
    Host,
    HostEffect,
    HostMemory,
    HostSettings,
    Persist,
    Reply,
    Start,
    Started,
    StartFailed,
    Stop,
    Told,
)
from fencepost.core.capacity.messages import (
    Answer,
    Check,
    FromHost,
    Instance,
    InstanceSet,
    NetworkAnswer,
    NetworkOrder,
    NetworkState,
    Newer,
    Order,
    ToHost,
)
from fencepost.core.capacity.token import NO_TOKEN, Token

FRESH = 30


def settings(kept: int | None = 1000) -> HostSettings:
    """A host whose stamps are worth 30 ticks."""
    return HostSettings("h1", fresh_for=FRESH, ended_kept=kept)


def started(memory: HostMemory | None = None, *running: str, boot: int = 7, now: int = 0) -> Host:
    """A host that has begun."""
    host = Host(settings())
    host.on(Started(memory, 99, boot, running), now)
    return host


def told(host: Host, message: ToHost, now: int) -> tuple[HostEffect, ...]:
    """What a message brings about."""
    return host.on(Told(message), now)


def answered(effects: tuple[HostEffect, ...]) -> FromHost:
    """The last effect's message."""
    assert isinstance(effects[-1], Reply)
    return effects[-1].message


def set_of(version: int, *ids: str) -> InstanceSet:
    """A set of attempts."""
    return InstanceSet(version, tuple(Instance(each) for each in ids))


T1 = Token(1, 1, 11)


def granted(*ids: str) -> Host:
    """A host that holds a lease and runs these at version 1, as of tick 10."""
    host = started()
    told(host, Check("h1", T1), 10)
    if ids:
        told(host, Order("h1", T1, 7, 10, set_of(1, *ids)), 10)
    return host


def test_a_check_is_answered_with_a_stamp_and_only_a_new_token_is_written_first() -> None:
    """A fleet at rest costs no disk writes: the usual check carries a token that is known."""
    host = started()
    first = told(host, Check("h1", T1), 10)
    assert [type(each) for each in first] == [Persist, Reply]
    assert told(host, Check("h1", T1), 12) == (Reply(Answer("h1", T1, 7, 12, 99, 0)),)


@pytest.mark.parametrize("token", [Token(0, 9, 9), Token(1, 0, 11), Token(1, 1, 12)])
def test_an_older_token_or_another_grant_of_the_same_number_is_told_what_outdates_it(token: Token) -> None:
    """A manager that lost its epoch is refused at the host too (hashicorp/nomad #3840)."""
    host = granted("web-1.1")
    messages: tuple[ToHost, ...] = (
        Check("h1", token),
        Order("h1", token, 7, 10, set_of(2)),
        NetworkOrder("h1", token, (NetworkState("web-1.1", 1, "d", b""),)),
    )
    for message in messages:
        assert told(host, message, 11) == (Reply(Newer("h1", T1)),)
    assert host.running == {"web-1.1"}


@pytest.mark.parametrize(
    ("boot", "stamp", "version", "token"),
    [
        (8, 10, 2, T1),  # a stamp of another start of the agent
        (7, 21, 2, T1),  # from the future
        (7, -10, 2, T1),  # exactly three renewals old
        (7, 10, 1, T1),  # no news
        (7, 10, 2, Token(1, 2, 11)),  # never met in a check
    ],
)
def test_what_isnt_fresh_news_under_the_current_token_changes_nothing(
    boot: int, stamp: int, version: int, token: Token
) -> None:
    """A paused manager that resumes after ten minutes (etcd #15247) starts nothing with what it had in hand."""
    host = granted("web-1.1")
    effects = told(host, Order("h1", token, boot, stamp, set_of(version, "web-2.1")), 20)
    assert effects == (Reply(Answer("h1", T1, 7, 20, 99, 1)),)


def test_a_stamp_is_worth_something_until_just_before_three_renewals() -> None:
    """The last tick at which an order counts; the manager waits for longer than that before it gives a host up."""
    host = granted()
    effects = told(host, Order("h1", T1, 7, 10, set_of(1, "web-1.1")), 10 + FRESH - 1)
    assert Start((Instance("web-1.1"),), 10 + FRESH) in effects


def test_a_message_lengthens_nothing() -> None:
    """Checks that arrive don't refresh a stamp given earlier, or a delayed order would be revived by them."""
    host = granted()
    for now in range(11, 60, 5):
        told(host, Check("h1", T1), now)
    assert not any(isinstance(each, Start) for each in told(host, Order("h1", T1, 7, 10, set_of(1, "web-1.1")), 60))


def test_never_granted_obeys_nothing() -> None:
    """The token of nobody is no grant."""
    host = started()
    effects = told(host, Order("h1", NO_TOKEN, 7, 0, set_of(1, "web-1.1")), 1)
    assert [type(each) for each in effects] == [Reply]


def test_a_set_is_taken_whole_stopping_before_starting() -> None:
    """Room and addresses are free before they are used again."""
    host = granted("web-1.1", "web-2.1")
    effects = told(host, Order("h1", T1, 7, 10, set_of(2, "web-2.1", "web-3.1", "web-3.1")), 12)
    assert [type(each) for each in effects] == [Persist, Stop, Start, Reply]
    assert effects[1:3] == (Stop(("web-1.1",)), Start((Instance("web-3.1"),), 40))
    assert answered(effects) == Answer("h1", T1, 7, 12, 99, 2)


def test_what_ended_is_down_and_never_started_again() -> None:
    """An instance that somebody ended stays ended, though a store put back from a copy asks for it again."""
    host = granted("web-1.1", "web-2.1")
    host.on(Ended("web-1.1"), 11)
    host.on(StartFailed("web-2.1"), 11)
    told(host, Order("h1", T1, 7, 10, set_of(2)), 12)
    effects = told(host, Order("h1", T1, 7, 10, set_of(3, "web-1.1", "web-2.1", "web-1.2")), 13)
    assert Start((Instance("web-1.2"),), 40) in effects
    assert answered(effects) == Answer("h1", T1, 7, 13, 99, 3, ("web-1.1", "web-2.1"))


def test_ended_attempts_go_by_age_only_on_a_clock_that_a_reboot_never_turns_back() -> None:
    """Not by number: a backup of last week asks for what ended last week. The host's own clock begins at 0 again."""
    host = granted("web-1.1", "web-2.1", "web-3.1")
    told(host, Order("h1", T1, 7, 10, set_of(2, "web-2.1", "web-3.1")), 12)
    assert host.memory is not None
    again = started(host.memory, "web-2.1", "web-3.1", boot=8, now=3)
    again.on(Ended("web-2.1"), 900)
    assert again.memory is not None
    assert again.memory.over == {"web-1.1", "web-2.1"}
    again.on(Ended("web-3.1"), 1003)
    assert again.memory.over == {"web-2.1", "web-3.1"}
    told(again, Check("h1", T1), 5000)
    told(again, Order("h1", T1, 8, 5000, set_of(3, "web-2.1", "web-9.1")), 5000)
    assert "web-2.1" in again.memory.over, "it stands in the set, so it must be known to be over"


def test_after_a_restart_what_doesnt_run_is_down_and_what_isnt_asked_for_is_stopped() -> None:
    """Nothing is started at a start: what an agent finds running goes on, no more."""
    host = granted("web-1.1", "web-2.1")
    again = Host(settings())
    effects = again.on(Started(host.memory, 5, 8, ("web-2.1", "web-9.1")), 30)
    assert [type(each) for each in effects] == [Persist, Stop]
    assert effects[1] == Stop(("web-9.1",))
    assert answered(told(again, Check("h1", T1), 31)) == Answer("h1", T1, 8, 31, 99, 1, ("web-1.1",))


def test_what_may_have_started_although_it_was_given_up_is_stopped() -> None:
    """A driver that doesn't know whether an attempt started leaves one that was told as down: it must not run."""
    host = granted("web-1.1")
    host.on(StartFailed("web-1.1"), 11)
    again = Host(settings())
    assert again.on(Started(host.memory, 5, 8, ("web-1.1",)), 30) == (Stop(("web-1.1",)),)


def test_memory_gone_is_another_incarnation_that_stops_what_runs() -> None:
    """Whoever places instances must see that this host knows nothing any more."""
    again = Host(settings())
    effects = again.on(Started(None, 5, 8, ("web-1.1",)), 30)
    assert effects == (Persist(HostMemory(5, ended=(("web-1.1", 0),))), Stop(("web-1.1",)))
    assert told(again, Check("other", T1), 31) == ()


def network(token: Token, *states: tuple[str, int, str]) -> NetworkOrder:
    """Network states without a body."""
    return NetworkOrder("h1", token, tuple(NetworkState(*each, b"") for each in states))


def test_network_states_never_go_back_and_the_answer_says_what_is_there() -> None:
    """Publishers race: an older version, or another text under the same number, is refused by telling what stands."""
    host = granted("web-1.1", "web-2.1")
    host.on(Ended("web-2.1"), 11)
    taken = told(host, network(T1, ("web-1.1", 5, "a"), ("web-2.1", 1, "a"), ("web-9.1", 1, "a")), 12)
    assert [type(each) for each in taken] == [Persist, ApplyNetwork, Reply]
    assert answered(taken) == NetworkAnswer("h1", 7, 99, (("web-1.1", 5, "a"),), ("web-2.1", "web-9.1"))
    for older in (("web-1.1", 4, "z"), ("web-1.1", 5, "b")):
        assert told(host, network(T1, older), 13) == (Reply(NetworkAnswer("h1", 7, 99, (("web-1.1", 5, "a"),))),)
    again = told(host, network(T1, ("web-1.1", 5, "a")), 14)
    assert [type(each) for each in again] == [ApplyNetwork, Reply]


def test_a_token_never_met_takes_no_network_state() -> None:
    """Only the grant that the host acknowledged may order anything."""
    host = granted("web-1.1")
    assert told(host, network(Token(2, 1, 1), ("web-1.1", 5, "a")), 12) == (Reply(NetworkAnswer("h1", 7, 99, ())),)


def test_a_restart_puts_network_states_in_place_again() -> None:
    """A crash after they were written, before they were in place, must not leave an answer that isn't true."""
    host = granted("web-1.1")
    told(host, network(T1, ("web-1.1", 5, "a")), 12)
    again = Host(settings())
    effects = again.on(Started(host.memory, 5, 8, ("web-1.1",)), 30)
    assert effects == (ApplyNetwork((NetworkState("web-1.1", 5, "a", b""),)),)
