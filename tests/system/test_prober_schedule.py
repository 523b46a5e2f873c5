"""The prober's schedule as plain values: first probes spread, jitter, rounds after a pause, lanes."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fencepost.adapters.probe import MS
from fencepost.adapters.probe_schedule import Rounds, jitter_ns, lane_limit, phases


@given(st.integers(1, 400), st.integers(10, 10_000), st.text(max_size=3))
def test_first_probes_are_spread(count: int, interval_ms: int, salt: str) -> None:
    """N targets that start together are sent at no more than 1.1 x N / interval in any second (Envoy #4132)."""
    interval_ns = interval_ms * MS
    offsets = sorted(phases([f"192.0.2.{n}" for n in range(count)], salt, interval_ns).values())
    assert len(offsets) == count
    assert all(0 <= offset < interval_ns for offset in offsets)
    window_ns = min(1_000 * MS, interval_ns)
    for place, start in enumerate(offsets):
        inside = sum(start <= offset < start + window_ns for offset in offsets[place:])
        assert inside <= 1.1 * count * window_ns / interval_ns + 1


def test_ten_thousand_start_evenly() -> None:
    """10,000 targets each 10 s: at most 1,100 first probes in any second, and each checker in its own order."""
    keys = [f"10.0.{n >> 8}.{n & 255}" for n in range(10_000)]
    offsets = phases(keys, "a", 10_000 * MS)
    a_second = Counter(offset // (1_000 * MS) for offset in offsets.values())
    assert max(a_second.values()) <= 1_100
    assert offsets != phases(keys, "b", 10_000 * MS)
    assert offsets == phases(reversed(keys), "a", 10_000 * MS)


def test_no_second_of_the_first_rounds_exceeds_the_rate() -> None:
    """With jitter, and where one round meets the next: at most 1.1 x N / interval in any second (Envoy #4132)."""
    count, interval_ns = 2_000, 10_000 * MS
    rounds: Rounds[None] = Rounds("a", interval_ns)
    for key, phase_ns in phases([f"192.0.2.{n}" for n in range(count)], "a", interval_ns).items():
        rounds.add(key, None, phase_ns)
    sent = []
    for now in range(0, 3 * interval_ns, 20 * MS):
        while due := rounds.pop_due(now):
            sent.append(now)
            rounds.next_round(now, *due[1:])
    tenths = Counter(at // (100 * MS) for at in sent)
    seconds = [sum(tenths[tenth + step] for step in range(10)) for tenth in range(290)]
    assert max(seconds) <= 1.1 * count / 10
    assert len(sent) >= 2.9 * count


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=40), st.integers(0, 999))
def test_rounds_go_on_whatever_the_pauses(pauses_ms: list[int], first_ms: int) -> None:
    """After any pause a target is due again within one interval and its jitter, once: no burst of missed rounds."""
    interval_ns = 1_000 * MS
    rounds: Rounds[str] = Rounds("a", interval_ns)
    rounds.add("t", "t", first_ms * MS)
    now, turns = 0, []
    for pause in pauses_ms:
        now += pause * MS
        due = rounds.pop_due(now)
        if due is None:
            continue
        due_ns, turn, key, first_ns, target = due
        turns.append(turn)
        rounds.next_round(now, turn, key, first_ns, target)
        assert rounds.pop_due(now) is None
        following = rounds.pop_due(now + interval_ns + interval_ns // 10)
        assert following is not None
        assert following[0] > now
        rounds.next_round(now, turn, key, first_ns, target)
        assert due_ns <= now
    assert turns == sorted(set(turns))


@given(st.text(max_size=20), st.integers(0, 1_000_000), st.integers(100, 10**11))
def test_jitter_is_small_and_repeatable(key: str, turn: int, interval_ns: int) -> None:
    """Jitter is a hash of target and round, under 10 % of the interval and never early; the first round has none."""
    value = jitter_ns(key, "a", turn, interval_ns)
    assert value == jitter_ns(key, "a", turn, interval_ns)
    assert 0 <= value * 100 <= 10 * interval_ns
    assert turn or value == 0


@given(st.integers(0, 20_000), st.integers(2, 60_000), st.data())
def test_a_lane_holds_rate_times_timeout(targets: int, interval_ms: int, data: st.DataObject) -> None:
    """Even if every target of the pool hangs, a lane holds them all, unless there aren't that many files."""
    timeout_ms = data.draw(st.integers(1, interval_ms - 1))
    limit = lane_limit(targets, interval_ms * MS, timeout_ms * MS, 1 << 20)
    assert limit >= targets * timeout_ms / interval_ms
    assert lane_limit(targets, interval_ms * MS, timeout_ms * MS, 100) <= 50
