"""Leases of many hosts that fall silent at one moment: none lapses, however their renewals were spread."""

import numpy as np
from taken_shards import owning

from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import (
    Answered,
    Facts,
    HostsRead,
    Ids,
    Lease,
    Op,
    Tick,
    Write,
)
from fencepost.core.instant import SECOND, Instant

R = 10 * SECOND
HOSTS = 300


def manager(now: Instant, gone: Ids) -> HostLeases:
    """One that has just taken a shard whose hosts are all held; a person says that some are gone."""
    leases = owning(R, now)
    every, ones, none = np.arange(HOSTS), np.ones(HOSTS, np.int64), np.zeros(HOSTS, np.int64)
    words, no = ones.astype(np.uint64), np.zeros(HOSTS, np.bool_)
    said = no.copy()
    said[gone] = True
    held = np.full(HOSTS, Lease.HELD, np.int8)
    facts = Facts(every, ones, words, held, words, words, none, ~no, none, said)
    leases.on(HostsRead("life", HOSTS, facts), now)
    return leases


def answer(leases: HostLeases, ids: Ids, now: Instant) -> None:
    """These hosts answer."""
    ones = np.ones(len(ids), np.int64)
    words, yes = ones.astype(np.uint64), np.ones(len(ids), np.bool_)
    epoch = ones * leases.owner.epoch
    leases.on(Answered(ids, epoch, ones, words, words, ones * now, words, ones * 0, yes), now)


def lapsed(leases: HostLeases, silent: Ids, since: Instant) -> int:
    """How many leases lapse while these hosts are silent: all had answered in the R before ``since``, evenly spread."""
    for host in range(HOSTS):
        answer(leases, np.array([host]), since - R + R * host // HOSTS)
    others = np.setdiff1d(np.arange(HOSTS), silent)
    count = 0
    for now in range(since, since + 5 * R, R // 20):
        if len(others):
            answer(leases, others, now)
        for effect in leases.on(Tick(), now):
            if isinstance(effect, Write) and effect.op is Op.LAPSE:
                assert set(effect.ids.tolist()) <= set(silent.tolist())
                count += len(effect.ids)
    return count


def test_hosts_cut_off_at_one_moment_keep_their_leases_though_these_end_one_by_one() -> None:
    """Renewals are spread over R, so the leases end over R: the first tenth mustn't lapse before it is known that more
    would (kubernetes #24597).
    """
    nobody = np.arange(0)
    assert lapsed(manager(R, nobody), np.arange(HOSTS), 2 * R) == 0
    assert lapsed(manager(R, nobody), np.arange(0, HOSTS, 3), 2 * R) == 0


def test_a_tenth_of_them_lapses() -> None:
    """As many as may die of themselves."""
    few = np.arange(0, HOSTS, 10)
    assert lapsed(manager(R, np.arange(0)), few, 2 * R) == len(few)


def test_hosts_that_a_person_says_are_gone_lapse_however_many_they_are() -> None:
    """He knows that it isn't our own fault."""
    every = np.arange(HOSTS)
    assert lapsed(manager(R, every), every, 2 * R) == HOSTS


def test_those_still_in_our_own_line_have_time_to_be_asked() -> None:
    """Of 300 hosts that were cut off together 280 answer at once when they are back; the last 20 wait for their turn.

    Fewer than a tenth are left by then. A manager that has two checks in flight asks some of them a minute after the
    first (found by simulated fleets where nobody had measured how long a check takes): no lease may lapse before.
    """
    leases = manager(0, np.arange(0))
    for now in range(0, 6 * R, R // 20):
        assert not lapses(leases, now)
    back, later = np.arange(280), np.arange(280, HOSTS)
    answer(leases, back, 6 * R)
    for now in range(6 * R, 7 * R - R // 10, R // 20):
        answer(leases, back, now)
        assert not lapses(leases, now)
    answer(leases, later[:-1], 7 * R - R // 10)
    assert not lapses(leases, 7 * R - R // 10)
    assert lapses(leases, 7 * R + R // 20) == {HOSTS - 1}


def lapses(leases: HostLeases, now: Instant) -> set[int]:
    """The hosts whose lease is let lapse as time is noticed."""
    effects = [each for each in leases.on(Tick(), now) if isinstance(each, Write) and each.op is Op.LAPSE]
    return {id_ for each in effects for id_ in each.ids.tolist()}
