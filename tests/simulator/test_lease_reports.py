"""What broke leases elsewhere, on the deciders that ship, in virtual time: each test is named by its public report."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.admission import next_renewal, phase
from fencepost.core.capacity.fleet_store import Change, Claim
from fencepost.core.capacity.host import Host, HostMemory, HostSettings, Reply, Started, Told
from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.host_table import HostTable
from fencepost.core.capacity.launches import BOUND, Gate
from fencepost.core.capacity.lease_calls import (
    HostsRead,
    Lease,
    Op,
    ShardRead,
    ShardWritten,
    Tick,
    WriteShard,
    lease_settings,
)
from fencepost.core.capacity.messages import Check, Instance, InstanceSet, Newer, Order
from fencepost.core.capacity.rows import CalibrationRow, HostRow, ShardRow
from fencepost.core.capacity.shard_owner import ShardOwner
from fencepost.core.capacity.token import Token
from fencepost.core.instant import HOUR, MILLISECOND, MINUTE, SECOND, Duration
from fencepost.roles.fleet.calibrated import settings_from
from fencepost.simulator.fleet.simulate import RENEW, FleetSimulation
from fencepost.simulator.fleet.walk import EPOCH
from fencepost.simulator.scenarios import SCENARIOS
from fencepost.simulator.schedule import Upset
from fencepost.simulator.walked import Walked
from fencepost.world.reference_fleet import ReferenceRows

LEASE = lease_settings("m", 1, 1, RENEW).lease
Line = tuple[int, str, str]


def fleet(
    *upsets: Upset, hosts: int = 5, managers: int = 1, lasts: Duration = 12 * MINUTE, quiet: Duration = 5 * MINUTE
) -> tuple[Walked, list[Line]]:
    """A fleet of one shard with these upsets, walked; every promise held, and all recovered. Who did what, when."""
    scenario = structs.replace(
        SCENARIOS["fleet"], hosts=hosts, shards=1, managers=managers, lasts=lasts, quiet=quiet, mean=2 * MILLISECOND
    )
    told: list[Line] = []
    walked = FleetSimulation(1, scenario, upsets).run(lambda at, who, what, _: told.append((at, who, what)))
    assert not walked.promise, (walked.promise, walked.words, told[-20:])
    return walked, told


def when(told: list[Line], pattern: str) -> list[int]:
    """The times at which something happened."""
    return [at for at, _, what in told if re.search(pattern, what)]


def test_nomad_3035_a_manager_restarts_with_live_hosts() -> None:
    """None lapses; one that died with it does, after a full wait from the start on."""
    walked, told = fleet(Upset(2 * MINUTE, "manager-crash"), Upset(2 * MINUTE, "host-dies", 3, MINUTE, 1))
    assert walked.seen["lapsed"] == 1
    (lapsed,), taken = when(told, "lease of h003 lapse"), when(told, "takes shard")
    assert lapsed - taken[-1] >= LEASE


def test_nomad_3840_a_manager_that_lost_its_epoch_acts() -> None:
    """Refused when it acts, by the store and by the host, whatever it believed when it began."""
    rows = ReferenceRows("life")
    rows.commit(None, [(Change(ShardRow(1, 1, "new", 2), 0), Change(HostRow("h", "a", "x:1"), 0))])
    old = Claim(1, "old", 1, "life")
    assert rows.commit(old, [(Change(HostRow("h", "a", "x:1", lease="lapsed"), 1),)]) is None
    host = Host(HostSettings("h"), HostMemory(7))
    host.on(Started(HostMemory(7), 7, 1), 0)
    host.on(Told(Check("h", Token(2, 1, 5))), 0)
    order = Order("h", Token(1, 9, 4), 1, 0, InstanceSet(1, (Instance("web-1.1"),)))
    assert host.on(Told(order), 0) == (Reply(Newer("h", Token(2, 1, 5))),)
    assert not host.running


@pytest.mark.parametrize("hosts", [1, 2, 5])
@pytest.mark.parametrize("lasts", [35 * SECOND, 2 * MINUTE])
def test_nomad_pr_14474_answers_in_the_inbox_come_before_the_time(hosts: int, lasts: Duration) -> None:
    """A manager stands still for longer than any lease; what was answered meanwhile is heard before it may judge.

    Of one host or two the rule against a mass lapse says nothing, so it isn't what keeps them here.
    """
    upsets = (Upset(n * 3 * MINUTE, "manager-pause", 0, lasts) for n in range(1, 4))
    walked, _ = fleet(*upsets, hosts=hosts, lasts=16 * MINUTE)
    assert walked.seen["upset manager-pause"] == 3
    assert "lapsed" not in walked.seen


def test_nomad_pr_14474_a_manager_hears_its_inbox_before_it_lets_time_pass() -> None:
    """The last second of a lease is over while its renewal lies there, and the manager stood still for only a moment.

    So short a sleep lengthens no lease, and of one host no rule against a mass lapse says anything.
    """
    scenario = structs.replace(SCENARIOS["fleet"], hosts=1, shards=1, managers=1, mean=2 * MILLISECOND)
    simulation = FleetSimulation(1, scenario, ())
    walk, (manager,), (host,) = simulation.walk, simulation.managers, simulation.hosts.values()
    simulation.begin(EPOCH + HOUR)
    walk.run(EPOCH + 2 * MINUTE)
    hosts, clock = manager.leases.hosts, manager.process.clock
    host.cut_until = EPOCH + HOUR
    while hosts.ends[0] - clock(walk.now) > SECOND:
        walk.run(walk.now + SECOND // 10)
    assert hosts.lease[0] == Lease.HELD
    walk.now += 3 * SECOND
    assert hosts.ends[0] < clock(walk.now)
    token = Token(manager.leases.owner.epoch, int(hosts.number[0]), int(hosts.nonce[0]))
    host.hear(Check(host.name, token), manager.take, manager.settings.owner)
    manager.woken()
    assert hosts.busy[0] != Op.LAPSE
    assert hosts.ends[0] == clock(walk.now) + LEASE


def test_nomad_28555_a_host_returns_long_after_its_lapse() -> None:
    """It is checked all the while, and granted anew at its first answer; what ran there stops."""
    walked, told = fleet(Upset(MINUTE, "host-partition", 2, 6 * MINUTE))
    assert walked.seen["lapsed"] == 1
    assert len(when(told, "grants h002")) == 2
    assert when(told, "grants h002")[-1] - 7 * MINUTE < 15 * SECOND


@pytest.mark.parametrize("managers", [1, 2])
def test_kubernetes_6228_24200_the_store_is_away_for_two_hours(managers: int) -> None:
    """No lease lapses, not even if the shard changes hands when it is back: each host has a full interval first."""
    away = Upset(2 * MINUTE, "fleet-store-away", 0, 2 * HOUR)
    killed = Upset(2 * HOUR + 121 * SECOND, "manager-crash", 0)
    walked, _ = fleet(away, killed, managers=managers, lasts=2 * HOUR + 14 * MINUTE, hosts=4)
    assert walked.seen["granted"] == 4
    assert {"taken over", "lapsed"}.isdisjoint(walked.seen) or managers == 1 or walked.seen["taken over"] == 1
    assert "lapsed" not in walked.seen


def test_kubernetes_6228_24200_a_host_silent_meanwhile_has_an_interval_when_the_store_is_back() -> None:
    """Its lease would have ended long ago; it is asked before that is held against it."""
    away = Upset(2 * MINUTE, "fleet-store-away", 0, 20 * MINUTE)
    silent = Upset(3 * MINUTE, "host-partition", 0, 19 * MINUTE + RENEW * 9 // 10)
    walked, _ = fleet(away, silent, lasts=32 * MINUTE, hosts=1)
    assert walked.seen["upset host-partition"] == 1
    assert "lapsed" not in walked.seen


def test_kubernetes_24597_every_host_is_silent_at_once() -> None:
    """It is taken for the manager's own fault: of forty at most a tenth lapse, and then no more."""
    walked, _ = fleet(Upset(2 * MINUTE, "hosts-silent", 0, 4 * MINUTE), hosts=40)
    assert walked.seen.get("lapsed", 0) <= 4


@given(
    st.integers(1, 1000), st.integers(1, 60_000), st.integers(1, 600_000), st.integers(1, 60).map(lambda s: s * SECOND)
)
def test_kubernetes_44887_no_call_outlasts_a_lease(limit: int, mean_ms: int, slow_ms: int, renew: Duration) -> None:
    """However slow the service was when it was calibrated, a call is given up within one renewal: a lease has three."""
    row = CalibrationRow("hosts", limit, mean_ms * MILLISECOND, slow_ms * MILLISECOND, 1.0)
    assert settings_from(row, lease_settings("m", 1, 1, renew)).attempt <= renew


def test_kubernetes_47671_a_taker_has_another_duration_configured() -> None:
    """The record's counts if it is longer, and an order says how long its sender takes it for good."""
    owner = ShardOwner(lease_settings("short", 1, 1, 2 * SECOND))
    owner.read(ShardRead("life", None), 0)
    assert owner.claim(0)
    assert owner.wait == lease_settings("short", 1, 1, 2 * SECOND).lease
    row = ShardRow(1, 1, "long", 1, lasts=LEASE)
    owner.read(ShardRead("life", row), 0)
    _, asked = owner.read(ShardRead("life", row), MINUTE)
    (taking,) = (each.row for each in asked if isinstance(each, WriteShard))
    assert owner.wait == LEASE
    leases = HostLeases(owner.settings)
    leases.owner = owner
    leases.on(ShardWritten(taking), MINUTE)
    facts = HostTable().facts((), "life")
    leases.on(HostsRead("life", 1, facts), MINUTE)
    assert leases.hosts.ends.tolist() == [MINUTE + LEASE]
    assert taking.lasts == LEASE, "whoever takes it from this one at once waits as long"
    lasting = {}
    for now in range(MINUTE, MINUTE + LEASE + MINUTE, SECOND):
        for beat in leases.on(Tick(), now):
            if isinstance(beat, WriteShard):
                lasting[now] = beat.row.lasts
                leases.on(ShardWritten(beat.row), now)
    assert {lasts for now, lasts in lasting.items() if now < MINUTE + LEASE} == {LEASE}, "while such leases may last"
    assert {lasts for now, lasts in lasting.items() if now >= MINUTE + LEASE} == {owner.settings.lease}
    host = Host(HostSettings("h", fresh_for=30 * SECOND))
    host.on(Started(HostMemory(7), 7, 1), 0)
    host.on(Told(Check("h", Token(1, 1, 1))), 0)
    order = Order("h", Token(1, 1, 1), 1, 0, InstanceSet(1, (Instance("web-1.1"),)), lasts=6 * SECOND)
    host.on(Told(order), 6 * SECOND)
    assert not host.running
    host.on(Told(order), 6 * SECOND - 1)
    assert host.running == {"web-1.1"}


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_etcd_15247_12528_a_manager_resumes_after_ten_minutes(hosts: int) -> None:
    """It looks whose the shard is before it lets anything lapse; the other has it, and nothing lapses.

    Of one host or two the rule against a mass lapse says nothing, so it isn't what keeps them here.
    """
    walked, told = fleet(Upset(MINUTE, "manager-pause", 0, 10 * MINUTE), managers=2, lasts=18 * MINUTE, hosts=hosts)
    assert len(when(told, "takes shard")) == 2
    assert "lapsed" not in walked.seen


def test_etcd_9888_many_take_overs_and_a_dead_host_lapses_all_the_same() -> None:
    """Each owner lives for less than a lease; the mark in the row says how much of the wait is left."""
    upsets = (Upset(2 * MINUTE, "take-over", 0, 5 * MINUTE, 10 * SECOND), Upset(150 * SECOND, "host-dies", 3, 0, 1))
    walked, told = fleet(*upsets, managers=2, lasts=14 * MINUTE)
    taken = [at for at in when(told, "takes shard") if at > 2 * MINUTE]
    assert len(taken) > 6
    assert max(later - at for at, later in pairwise(taken)) < LEASE
    assert when(told, "lease of h003 lapse")[0] < 6 * MINUTE
    assert walked.seen["lapsed"] == 1


def test_consul_9469_a_thousand_retry_after_a_take_over() -> None:
    """When each launch is told to come back is spread over the time that the backlog takes: the API's own gate."""
    gate = Gate(0)
    waits = np.array([gate.wait(1, BOUND, 10.0, (), MINUTE, f"client {number}") for number in range(1000)])
    assert waits.min() >= BOUND / 10 * SECOND
    counts, _ = np.histogram(waits, bins=10, range=(BOUND / 10 * SECOND, BOUND / 5 * SECOND))
    assert counts.sum() == 1000
    assert counts.min() > 60


def test_dynamolock_280_a_write_applies_and_its_reply_is_lost() -> None:
    """The row is read again and known for its own: no epoch is raised, no lease lost, nobody else takes over."""
    walked, _ = fleet(*(Upset(n * 7 * SECOND, "commit-answer-lost") for n in range(1, 40)))
    assert walked.seen["answer-lost"] > 30
    assert walked.seen["taken"] == 1
    assert {"taken over", "epoch raised", "lapsed"}.isdisjoint(walked.seen)


def test_amazon_dynamodb_lock_client_pr_116_a_heartbeat_is_in_flight_when_the_shard_changes_hands() -> None:
    """The late beat is refused, and no epoch is ever given twice: the row is compared as it was read."""
    rows = ReferenceRows("life")
    rows.commit(None, [(Change(ShardRow(1, 1, "old", 4, 10), 0),)])
    late = Change(ShardRow(1, 1, "old", 4, 11), 1)
    rows.commit(None, [(Change(ShardRow(1, 1, "new", 5, 11), 1),)])
    written = rows.commit(None, [(late,)])
    assert written is not None
    assert written.applied == (False,)
    copy = rows.copy()
    rows.wipe("life-2", copy)
    again = Change(ShardRow(1, 1, "old", 4, 12), 2)
    assert rows.commit(Claim(1, "old", 4, "life"), [(again,)]) is None
    walked, told = fleet(
        *(Upset(n * 20 * SECOND, "commit-late", n, 15 * SECOND) for n in range(1, 20)),
        Upset(MINUTE, "take-over", 0, 4 * MINUTE, 2 * SECOND),
        managers=2,
    )
    epochs = [int(re.sub(r".*epoch ", "", what)) for _, _, what in told if "epoch" in what]
    assert walked.seen["write-late"] > 5
    assert epochs == sorted(set(epochs))


@pytest.mark.parametrize("renew", [0, -1, -SECOND])
def test_redis_py_4279_a_lease_of_no_or_negative_seconds_is_refused(renew: Duration) -> None:
    """Such a lease would end before it began."""
    with pytest.raises(ValueError, match="longer than nothing"):
        lease_settings("m", 1, 1, renew)


def test_fleet_3271_a_mass_renewal_has_no_echo() -> None:
    """All five thousand are checked at the same instant, as after a take-over; the next hour's rate is even."""
    ids, now = np.arange(5000), 17 * MINUTE
    counts = np.zeros(3600)
    due = next_renewal(phase(ids, RENEW), now, RENEW)
    for _ in range(HOUR // RENEW):
        seconds, many = np.unique((due - now) // SECOND, return_counts=True)
        inside = seconds < 3600
        counts[seconds[inside]] += many[inside]
        due = due + RENEW
    settled = counts[20:]
    assert settled.std() / settled.mean() < 0.1
