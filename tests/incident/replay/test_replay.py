"""The replay of October 2025: its hours beside the published ones, and what each guard buys (AWS's public summary)."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.incident.replay.guards import NONE, PRODUCTION, Guard, Guards, parse_guards
from fencepost.incident.replay.network import Network, NetworkValues
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario import Scenario
from fencepost.incident.replay.scenario_file import find_scenario, set_values
from fencepost.incident.replay.workers import Workers, WorkerValues

HOSTS = 5_000
"""Every rate scales with the hosts, so the hours are those of 100,000."""
OUTAGE_S = 157 * 60
HOUR = 3600


@pytest.fixture(scope="module")
def october() -> Scenario:
    """The scenario that is shipped."""
    return find_scenario("aws-2025-10-19")


@pytest.fixture(scope="module", params=(1, 2, 3))
def as_it_was(request: pytest.FixtureRequest, october: Scenario) -> Outcome:
    """As it was, three seeds."""
    return replay(october, Options(hosts=HOSTS, seed=request.param))


RAN: dict[object, Outcome] = {}


def guarded(scenario: Scenario, guards: Guards, *, operators: bool = True) -> Outcome:
    """The same outage, with these guards; run once for all tests of this file."""
    key = (tuple(scenario.values.items()), scenario.lasts_s, guards, operators)
    if key not in RAN:
        RAN[key] = replay(scenario, Options(hosts=HOSTS, guards=guards, operators=operators, outage_s=OUTAGE_S))
    return RAN[key]


def minutes(outcome: Outcome) -> tuple[float, float, float]:
    """More than 1 % of leases missing, launches failing, capacity out of DNS."""
    figures = outcome.figures
    return tuple((figures[key] or 0.0) / 60 for key in ("leases_missing_s", "launch_failing_s", "capacity_out_s"))  # type: ignore[return-value]


def ticks(scenario: Scenario) -> Iterator[tuple[str, int, int]]:
    """Each event with an hour that the replay has to come near: name, reported tick, seconds."""
    for event in scenario.events:
        if event.reported is not None and event.within_s is not None:
            yield event.name, event.reported, event.within_s


def test_every_event_comes_within_its_bound_of_the_published_hour(as_it_was: Outcome) -> None:
    """The endpoint empty at 23:48, leases back at 05:28, detected at 06:52, whole at 14:20, and the others."""
    far = {
        name: as_it_was.happened.get(name)
        for name, reported, within in ticks(as_it_was.scenario)
        if abs(as_it_was.happened.get(name, -HOUR) - reported) > within
    }
    assert not far
    assert len(list(ticks(as_it_was.scenario))) >= 10


def test_as_it_was_nothing_is_regained_until_people_step_in(as_it_was: Outcome) -> None:
    """From a hundred in a hundred thousand to nine tenths by 02:25; no progress from 02:40 to 04:14."""
    missing, times = as_it_was.series["leases_missing"], as_it_was.times
    first, restored = missing[0], missing[np.searchsorted(times, as_it_was.happened["dns-restored"])]
    stuck = missing[(times >= as_it_was.happened["dns-restored"] + 15 * 60) & (times <= 4.7 * HOUR)]
    assert first == pytest.approx(0.001)
    assert restored >= 0.9
    assert np.all(np.diff(stuck) >= 0)
    assert float(as_it_was.series["lease_queue"].max()) > 40 * as_it_was.options.hosts


@pytest.mark.parametrize("seed", [1, 2])
def test_the_fence_alone_means_that_nothing_happens_at_all(october: Scenario, seed: int) -> None:
    """Production's enactors go through the very schedule: no empty answer, so no outage."""
    outcome = replay(october, Options(hosts=HOSTS, seed=seed, guards=frozenset({Guard.FENCE})))
    assert outcome.figures["dns_empty_s"] == 0
    assert minutes(outcome) == (0, 0, 0)


def test_with_every_guard_the_same_outage_loses_no_lease_and_no_capacity(october: Scenario) -> None:
    """Forced, since the fence would have prevented it: launches fail while the store is away, and not much longer."""
    outcome = guarded(october, PRODUCTION)
    missing, failing, out = minutes(outcome)
    assert outcome.figures["broken_leases_max"] == round(0.001 * HOSTS)
    assert missing == 0
    assert out == 0
    assert 157 < failing <= 220


def test_the_lease_clock_alone_keeps_every_lease(october: Scenario) -> None:
    """The store's absence says nothing about a host."""
    assert minutes(guarded(october, frozenset({Guard.LEASE_CLOCK})))[0] == 0


def test_readiness_alone_and_the_velocity_limit_alone_keep_capacity_in_dns(october: Scenario) -> None:
    """Neither shortens anything else: the storm and the launches are as they were."""
    bare = minutes(guarded(october, NONE))
    ready, bounded = (minutes(guarded(october, frozenset({guard}))) for guard in (Guard.READINESS, Guard.VELOCITY))
    assert bare[2] > 30
    assert ready == (bare[0], bare[1], 0)
    assert bounded[:2] == bare[:2]
    assert bounded[2] < 3


def test_admission_and_the_network_throttle_recover_with_nobody_at_the_keyboard(october: Scenario) -> None:
    """Three hours sooner than people did, and nothing taken out of DNS."""
    outcome = guarded(october, frozenset({Guard.ADMISSION, Guard.NETWORK_THROTTLE}), operators=False)
    missing, failing, out = minutes(outcome)
    assert missing <= 210
    assert failing <= 240
    assert out == 0
    assert (outcome.figures["recovery_ratio"] or 9) <= 1.1


def test_as_it_was_leases_never_come_back_with_nobody_at_the_keyboard(october: Scenario) -> None:
    """Nothing broken any more, and nothing recovers: the load sustains itself."""
    outcome = guarded(october, NONE, operators=False)
    assert "leases-back" not in outcome.happened
    assert float(outcome.series["leases_missing"][-1]) > 0.99


def test_a_guard_for_one_stage_moves_the_load_to_the_next_and_sooner(october: Scenario) -> None:
    """The trap of admission alone: leases are back two hours sooner, and capacity leaves DNS for longer."""
    bare, admission = guarded(october, NONE), guarded(october, frozenset({Guard.ADMISSION}))
    assert admission.happened["leases-back"] < bare.happened["leases-back"] - 2 * HOUR
    assert admission.happened["zones-removed"] < bare.happened["zones-removed"]
    assert minutes(admission)[2] > minutes(bare)[2]


def test_a_lease_clock_that_gives_up_too_soon_buys_nothing_but_that_time(october: Scenario) -> None:
    """The trap of a grace of one hour in an outage of two and a half."""
    short = guarded(set_values(october, {"guards.grace": "1h"}), frozenset({Guard.LEASE_CLOCK}))
    bare = guarded(october, NONE)
    assert minutes(bare)[0] - minutes(short)[0] == pytest.approx(60, abs=8)


@pytest.mark.soak  # with 2,000 hosts in test_oracle, each time
@pytest.mark.parametrize(("rate", "comes_back"), [("20/s", True), ("33/s", True), ("36/s", False)])
def test_a_throttle_that_is_safe_at_first_is_too_high_once_renewals_are_back(
    october: Scenario, rate: str, comes_back: bool
) -> None:
    """The trap of a fixed rate: what is free for new leases falls as renewals return."""
    outcome = guarded(set_values(october, {"throttle.rate": rate}), NONE)
    assert ("leases-back" in outcome.happened) is comes_back


@pytest.mark.soak  # with 2,000 hosts in test_oracle, each time
@pytest.mark.parametrize(
    ("change", "comes_back"),
    [
        ({"workers.knee": "1200", "workers.pool": "2400"}, True),
        ({"workers.knee": "1000", "workers.pool": "2000"}, False),
        ({"workers.establish_cost": "2500ms"}, True),
        ({"workers.establish_cost": "5s"}, False),
        ({"access.pooled_life": "480m"}, True),
        ({"access.pooled_life": "240m"}, False),
    ],
)
def test_left_alone_it_recovers_on_one_side_of_each_knee_only(
    october: Scenario, change: dict[str, str], comes_back: bool
) -> None:
    """Three times the workers, a quarter of the cost, or hardly any connection lost: less is not enough."""
    short = structs.replace(set_values(october, change), lasts_s=8 * HOUR)
    assert ("leases-back" in guarded(short, NONE, operators=False).happened) is comes_back


def test_the_same_seed_gives_the_same_run_and_another_seed_another(october: Scenario) -> None:
    """Chance comes from the seed alone."""
    short = structs.replace(october, lasts_s=8 * HOUR)
    one, same, other = (replay(short, Options(hosts=1_000, seed=seed)) for seed in (7, 7, 8))
    assert all(np.array_equal(one.series[name], same.series[name]) for name in one.series)
    assert one.happened == same.happened
    assert not all(np.array_equal(one.series[name], other.series[name]) for name in one.series)


@given(
    knee=st.integers(1, 50),
    pool=st.integers(1, 4),
    calls=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 40), st.booleans()), min_size=1, max_size=30),
)
def test_workers_lose_no_call_and_never_do_more_than_they_can(
    knee: int, pool: int, calls: list[tuple[int, int, bool]]
) -> None:
    """Each call comes out once, later than it came in, and no second has more work than the knee allows."""
    workers = Workers(WorkerValues(knee, knee * pool, 0.1, 0.1, 3.0, 10_000))
    came: dict[int, int] = {}
    done: dict[int, int] = {}
    for second in range(2_000):
        for ids, at, _ in workers.finished(second):
            for each in ids.tolist():
                assert each not in done
                assert came[each] == at < second
                done[each] = second
        for at, count, establish in calls:
            if at == second:
                ids = np.arange(len(came), len(came) + count)
                came.update(dict.fromkeys(ids.tolist(), second))
                workers.call(second, ids, np.full(count, establish))
        before = workers.busy
        workers.work(second)
        assert workers.busy <= max(before, knee * pool) + 1e-6
    assert done.keys() == came.keys()
    assert workers.waiting == 0


@given(st.lists(st.tuples(st.floats(0, 200), st.floats(0, 50), st.booleans()), min_size=1, max_size=60), st.booleans())
def test_no_change_of_network_state_is_lost_and_ages_are_true(
    steps: list[tuple[float, float, bool]], throttled: bool
) -> None:
    """What came in is held, waiting or done; an empty queue has no age, and none waits longer than there was time."""
    network = Network(NetworkValues(drain=3.0, resync=3.0, release=5.0), throttled)
    told = 0.0
    for index, (launched, ended, deliverable) in enumerate(steps):
        now = 12 * (index + 1)
        if not deliverable:
            network.hold(ended)
        network.step(now, 12, launched, ended if deliverable else 0.0, deliverable)
        told += launched + ended
        assert 0 <= network.work_s * 3.0 <= told + 1e-6
        assert network.work_s * 3.0 >= told - 3.0 * now - 1e-6
        assert 0 <= network.age_s(now) <= now
    assert network.ahead > 1e-6 or network.age_s(12 * len(steps)) == 0


def test_guards_are_read_by_name_and_a_slip_is_told_the_nearest() -> None:
    """ "production" is all of them."""
    assert parse_guards("production") == PRODUCTION
    assert parse_guards("fence, velocity") == {Guard.FENCE, Guard.VELOCITY}
    with pytest.raises(ValueError, match=r'"velocty" is no guard.*velocity'):
        parse_guards("velocty")
