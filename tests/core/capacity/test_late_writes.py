"""A write that was given up may yet be done: what it was about gets no order before it can't be done any more."""

import numpy as np
import pytest
from test_mass_lapse import R, answer, manager

from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import (
    Answered,
    Away,
    Effect,
    Facts,
    HostsRead,
    Ids,
    Lease,
    Op,
    Prove,
    Tick,
    Write,
    Wrote,
)
from fencepost.core.instant import Instant

ONE: Ids = np.array([7])


def facts(version: int, left: int = 0) -> Facts:
    """The row of the one host: held, told, with a set of this version."""
    one, word, yes = np.ones(1, np.int64), np.ones(1, np.uint64), np.ones(1, np.bool_)
    held = np.full(1, Lease.HELD, np.int8)
    return Facts(ONE, one, word, held, word, word, one * left, yes, one * version, ~yes)


def begun(effects: tuple[Effect, ...], op: Op) -> bool:
    """Whether such a write about the host begins."""
    return any(isinstance(each, Write) and each.op is op and 7 in each.ids for each in effects)


def answered(leases: HostLeases, now: Instant) -> Answered:
    """The host answers, with a set older than the row's."""
    one, word, yes = np.ones(1, np.int64), np.ones(1, np.uint64), np.ones(1, np.bool_)
    return Answered(ONE, one * leases.owner.epoch, one, word, word, one * now, word, one * 0, yes)


def given_up(op: Op) -> tuple[HostLeases, Instant, tuple[Effect, ...]]:
    """A manager whose write of this kind about the host got no answer, and what it does once the row, read again, is as
    it was and the host has answered.
    """
    leases = manager(R, np.arange(0))
    answer(leases, np.arange(300), R)
    now = R
    if op is Op.LAPSE:
        others = np.delete(np.arange(300), 7)
        while not begun(leases.on(Tick(), now), Op.LAPSE):
            now += R // 4
            answer(leases, others, now)
    leases.on(Away(op, ONE), now)
    read = leases.on(HostsRead("life", 300, facts(1)), now)
    return leases, now, (*read, *leases.on(answered(leases, now + 1), now + 1))


@pytest.mark.parametrize("op", [Op.LAPSE, Op.MARK])
def test_no_order_before_the_row_is_written_over(op: Op) -> None:
    """etcd #15247's kind of delay at the store: a lapse sent before the host's answer must not be done after an order
    that rests on it. So the row is written first, which whatever is under way then finds changed.
    """
    leases, now, heard = given_up(op)
    assert begun(heard, Op.CLEAR)
    assert not any(isinstance(each, Prove) for each in heard)
    after = leases.on(Wrote(Op.CLEAR, True, facts(1)), now + 2)
    assert any(isinstance(each, Prove) and 7 in each.ids for each in after)


def test_other_writes_given_up_need_no_such_thing() -> None:
    """A boot noted late says what was so; the proof follows at once."""
    _, _, heard = given_up(Op.BOOT)
    assert any(isinstance(each, Prove) and 7 in each.ids for each in heard)
