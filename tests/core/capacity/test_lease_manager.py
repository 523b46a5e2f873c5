"""The lease manager driven as a replay does it: many hosts in virtual time, by the second, in arrays alone."""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from fencepost.core.admission import AdmissionSettings
from fencepost.core.capacity import lease_facts
from fencepost.core.capacity.calibrated import settings_from
from fencepost.core.capacity.lease_calls import (
    NO_IDS,
    Answered,
    Away,
    Facts,
    Forget,
    HostsRead,
    Ids,
    Lease,
    LeaseSettings,
    Op,
    Outdated,
    Prove,
    Proven,
    ReadHosts,
    ReadShard,
    Send,
    SendOrders,
    ShardRead,
    ShardWritten,
    Words,
    Write,
    WriteShard,
    Wrote,
    lease_settings,
)
from fencepost.core.capacity.lease_manager import Effect, LeaseManager, News
from fencepost.core.capacity.rows import CalibrationRow, ShardRow
from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant

R = 180 * SECOND
SETTINGS: LeaseSettings = lease_settings("m", 1, 1, R)


def by_the_second(rate: int) -> AdmissionSettings:
    """A calibration for steps of a second: so many calls are answered in one."""
    return AdmissionSettings(rate, SECOND, SECOND, SECOND, 3 * SECOND)


def untaken(count: int) -> Facts:
    """Rows of hosts that are known and were never granted anything."""
    kinds = (np.int64, np.uint64, np.int8, np.uint64, np.uint64, np.int64, np.bool_, np.int64, np.bool_)
    return Facts._make((np.arange(count), *(np.zeros(count, kind) for kind in kinds)))


class Replay:
    """A driver that keeps nothing but columns: hosts that answer within a second, and rows of a store."""

    def __init__(
        self, count: int, rate: int, admission: AdmissionSettings | None = None, settings: LeaseSettings = SETTINGS
    ) -> None:
        self.manager = LeaseManager(settings, admission or by_the_second(rate))
        self.took: Duration | None = None
        self.rows = untaken(count)
        self.shard: ShardRow | None = None
        self.away = False
        self.silent: NDArray[np.bool_] = np.zeros(count, np.bool_)
        self.known: NDArray[np.bool_] = np.zeros(count, np.bool_)
        self.asked: list[Send] = []
        self.tried: set[Op] = set()
        self.checks = self.calls = 0
        self.now: Instant = 0
        self.nonce = 0

    def second(self) -> None:
        """Hosts asked in the second before have answered; then time passes."""
        self.now += SECOND
        asked, self.asked = self.asked, []
        for send in asked:
            self.answer(send.ids[~self.silent[send.ids]])
        self.carry_out(self.manager.pass_time(self.now))

    def answer(self, ids: Ids) -> None:
        """Those who answered before have nothing new to tell; the others tell who they are, and what they run."""
        old = self.known[ids]
        if old.any():
            self.carry_out(self.manager.unchanged(ids[old], self.now, self.now, self.took))
        new = ids[~old]
        if len(new):
            hosts, count = self.manager.leases.hosts, len(new)
            born: Words = new.astype(np.uint64) + np.uint64(1)
            told = (born, np.full(count, self.now), born, np.zeros(count, np.int64), np.ones(count, np.bool_))
            epoch = np.full(count, self.manager.leases.owner.epoch)
            event = Answered(new, epoch, hosts.number[new], hosts.nonce[new], *told)
            self.carry_out(self.manager.on(event, self.now, self.took))
            self.known[new] = True

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """In order; the store answers at once, or not."""
        self.calls += 1
        for effect in effects:
            match effect:
                case Send():
                    self.asked.append(effect)
                    self.checks += len(effect.ids)
                case Forget():
                    self.asked.clear()
                case News() | SendOrders():
                    pass
                case _ if self.away:
                    write = isinstance(effect, Write)
                    self.tried |= {effect.op} if write else set()  # type: ignore[union-attr]
                    gone = Away(effect.op, effect.ids) if write else Away(Op.NONE, NO_IDS)  # type: ignore[union-attr]
                    self.carry_out(self.manager.on(gone, self.now))
                case ReadShard():
                    self.carry_out(self.manager.on(ShardRead("life", self.shard), self.now))
                case WriteShard(row=row):
                    self.shard = row
                    self.carry_out(self.manager.on(ShardWritten(row), self.now))
                case ReadHosts(waited=waited):
                    read = HostsRead("life", len(self.rows.ids), self.rows, waited)
                    self.carry_out(self.manager.on(read, self.now))
                case Prove(ids=ids):
                    seen = Proven("life", self.shard, lease_facts.of(self.rows, ids))
                    self.carry_out(self.manager.on(seen, self.now))
                case Write():
                    self.write(effect)

    def write(self, write: Write) -> None:
        """What a write makes of these rows."""
        self.nonce += len(write.ids)
        nonces = np.arange(self.nonce, self.nonce + len(write.ids), dtype=np.uint64)
        version = self.manager.leases.hosts.host_version[write.ids]
        facts = lease_facts.written(write, lease_facts.of(self.rows, write.ids), nonces, version=version)
        lease_facts.keep(self.rows, facts)
        self.carry_out(self.manager.on(Wrote(write.op, True, facts), self.now))

    def held(self) -> int:
        """Hosts that hold a lease and have told what they run."""
        return int(np.count_nonzero((self.rows.lease == Lease.HELD) & self.rows.reported))


def walked(replay: Replay, lasts: Duration) -> None:
    """So long."""
    for _ in range(lasts // SECOND):
        replay.second()


def test_a_replay_of_many_hosts_is_driven_by_arrays_alone() -> None:
    """All are granted as fast as the service takes it; then each is checked once in R, and the book was never used."""
    replay = Replay(10_000, 400)
    walked(replay, 2 * R)
    assert replay.held() == 10_000
    before, calls = replay.checks, replay.calls
    walked(replay, R)
    assert 0.9 < (replay.checks - before) / 10_000 < 1.2
    assert replay.calls - calls < 4 * R // SECOND + 100
    assert not replay.manager.book.writes
    assert not len(replay.manager.book.table)


def test_the_store_is_away_for_three_leases_and_nothing_lapses() -> None:
    """In October 2025 the manager of EC2's hosts couldn't reach its database for hours, and all leases ran out."""
    replay = Replay(500, 400)
    walked(replay, R)
    replay.away = True
    walked(replay, 10 * R)
    replay.away = False
    walked(replay, 2 * R)
    assert replay.held() == 500
    assert replay.manager.counts.lapsed == 0
    assert replay.rows.number.tolist() == [1] * 500


def test_hosts_silent_while_the_store_is_away_are_not_let_lapse_before_they_were_asked_again() -> None:
    """kubernetes #6228, #24200: their time runs out while the store is away. Nothing is even tried then, since it might
    be written after all; once the store is back each is asked first, for a renewal's length.
    """
    replay = Replay(500, 400)
    walked(replay, 2 * R)
    replay.away = True
    replay.silent[:3] = True
    walked(replay, 10 * R)
    assert Op.LAPSE not in replay.tried
    replay.away = False
    replay.silent[0] = False
    walked(replay, R - 2 * SECOND)
    assert replay.manager.counts.lapsed == 0
    walked(replay, 2 * R)
    assert (replay.manager.counts.lapsed, replay.held()) == (2, 498)


def test_a_few_silent_hosts_lapse_and_come_back() -> None:
    """After a whole lease, and at their first answer."""
    replay = Replay(1_000, 400)
    walked(replay, 2 * R)
    replay.silent[:20] = True
    walked(replay, 5 * R)
    assert replay.manager.counts.lapsed == 20
    assert replay.held() == 980
    replay.silent[:] = False
    walked(replay, R)
    assert replay.held() == 1_000


def test_nothing_has_changed_is_short_for_the_same_answers() -> None:
    """What a driver needn't say again is taken from what the hosts told last."""
    short, long = Replay(3_000, 400), Replay(3_000, 400)
    for each in (short, long):
        walked(each, 2 * R)
    ids = np.concatenate([send.ids for send in short.asked])
    assert len(ids) > 1
    hosts, count, now = long.manager.leases.hosts, len(ids), long.now + SECOND
    epoch, stamp = np.full(count, long.manager.leases.owner.epoch), np.full(count, now)
    own = (hosts.number[ids], hosts.nonce[ids], hosts.boot[ids])
    told = (hosts.host_incarnation[ids], hosts.host_version[ids], hosts.whole[ids])
    said = long.manager.on(Answered(ids, epoch, *own, stamp, *told), now, SECOND // 2)
    assert short.manager.unchanged(ids, now, now, np.full(count, SECOND // 2)) == said == ()
    assert short.manager.leases.key() == long.manager.leases.key()
    assert short.manager.admission.key() == long.manager.admission.key()


def test_a_driver_that_waits_for_the_next_step_says_how_long_calls_took() -> None:
    """A calibration in milliseconds, and a step of a second: waiting for that isn't taken for a slow service."""
    call = 40 * MILLISECOND
    rates = []
    for took in (call, None):
        replay = Replay(10_000, 400, AdmissionSettings(400, call, call, call, 3 * SECOND))
        replay.took = took
        walked(replay, 20 * SECOND)
        rates.append(replay.manager.admission.rate)
    assert rates[0] >= 10_000
    assert rates[1] <= 440


def test_a_host_that_refuses_before_its_number_is_known_is_passed_over() -> None:
    """A refusal can overtake the reading that makes its host known: admission has no place for it yet."""
    manager = LeaseManager(SETTINGS, by_the_second(10))
    assert manager.on(Outdated(3, 1, 1, 1), SECOND) == ()


def test_what_was_asked_for_before_everything_is_forgotten_is_left_out() -> None:
    """Whose numbers nobody knows any more; the calls about the shard's row stay."""
    replay = Replay(50, 400)
    walked(replay, R)
    replay.away = True
    walked(replay, 10 * SECOND)
    replay.manager.leases.hosts.busy[:5] = Op.REREAD
    other = ShardRow(1, 1, "other", 9)
    effects = replay.manager.on(ShardRead("life", other), replay.now)
    assert any(isinstance(each, Forget) for each in effects)
    assert not any(isinstance(each, ReadHosts | Write | Prove | Send) for each in effects)
    assert replay.manager.admission.size == 0


class Hanging(Replay):
    """Some calls hang for four minutes, more than a lease: answers come when nobody waits for them any more, or never.

    ``hangs(ids, turn)`` says which; ``turn`` is how often each host was asked before. The service was said to be as
    slow as that when it was calibrated. ``least``: the least that was left of any lease since it was last reset.
    """

    RENEW, HANGS = 60 * SECOND, 240 * SECOND
    comes_late = True

    def __init__(self, count: int, limit: int, hangs: Callable[[Ids, Ids], NDArray[np.bool_]]) -> None:
        slow = CalibrationRow("hosts", limit, SECOND, self.HANGS, 1.0)
        settings = lease_settings("m", 1, 1, self.RENEW)
        super().__init__(count, count, settings_from(slow, settings), settings)
        self.hangs = hangs
        self.turn = np.zeros(count, np.int64)
        self.late: deque[tuple[Instant, Ids]] = deque()
        self.least = self.manager.settings.lease
        self.mass = False

    def second(self) -> None:
        """Those that don't hang are answered as always; the others late, with a stamp of when they were asked."""
        asked, self.asked = self.asked, []
        for send in asked:
            hang = self.hangs(send.ids, self.turn[send.ids])
            self.turn[send.ids] += 1
            if hang.any():
                self.late.append((self.now, send.ids[hang]))
            if not hang.all():
                self.asked.append(Send(send.ids[~hang], send.whole))
        super().second()
        while self.late and self.late[0][0] <= self.now - self.HANGS:
            stamp, ids = self.late.popleft()
            if self.comes_late:
                self.carry_out(self.manager.unchanged(ids, stamp, self.now))
        ends = self.manager.leases.hosts.ends[self.known]
        self.least = min(self.least, int(ends.min(initial=self.now + self.least)) - self.now)
        self.mass = self.mass or self.manager.leases.mass


def test_calls_that_hang_for_longer_than_a_lease_cost_nobody_his() -> None:
    """Kubernetes #44887: a renewal hung for a minute in a lease of 15 s, and was waited for.

    Here a tenth of all calls hang so, each host's tenth. Each is given up in time to ask again while a whole renewal of
    the lease is left, so it isn't for the rule against a mass lapse that none ends; what comes late does no harm.
    """
    replay = Hanging(200, 400, lambda ids, turn: (turn > 2) & ((turn + ids) % 10 == 9))
    walked(replay, 2 * replay.RENEW)
    asked, replay.least = replay.turn.copy(), replay.manager.settings.lease
    walked(replay, 40 * replay.RENEW)
    assert replay.held() == 200
    assert replay.manager.counts.lapsed == 0
    assert not replay.mass
    assert replay.least > replay.RENEW
    assert replay.rows.number.tolist() == [1] * 200
    assert (replay.turn - asked).min() >= 40, "each was asked in every period"


def test_hosts_whose_calls_always_hang_lapse_and_nobody_beside_them() -> None:
    """A twentieth of all never answers any more, nearly as many as may be asked at once; none before its time."""
    stuck = np.arange(200) % 20 == 0
    replay = Hanging(200, 12, lambda ids, turn: stuck[ids] & (turn > 5))
    replay.comes_late = False
    walked(replay, 4 * replay.RENEW)
    assert replay.held() == 200
    walked(replay, 3 * replay.RENEW)
    assert replay.manager.counts.lapsed == 0, "none before its time"
    walked(replay, 13 * replay.RENEW)
    assert (replay.rows.lease == Lease.LAPSED).tolist() == stuck.tolist()
    assert replay.rows.number[~stuck].tolist() == [1] * 190


HOUR_S = 3600


def checks_in_ten_seconds(replay: Replay, seconds: int) -> NDArray[np.int64]:
    """How many hosts were asked in each ten seconds."""
    found = []
    for _ in range(seconds // 10):
        before = replay.checks
        walked(replay, 10 * SECOND)
        found.append(replay.checks - before)
    return np.array(found)


@pytest.mark.parametrize("after", ["the first grants", "a take-over", "a silence of all"])
def test_after_a_mass_renewal_an_hour_has_no_echo(after: str) -> None:
    """fleetdm/fleet #3271: all enrolled at once came back at once, in each interval after.

    The whole manager, deciders and admission, with 4,000 hosts that all are asked at one moment and answered within a
    second; then each ten seconds of an hour. A second manager asks every host at its start; so does one whose hosts
    fell silent together, when they are heard again.
    """
    renew, count = 60 * SECOND, 4_000
    settings = lease_settings("m", 1, 1, renew)
    admission = AdmissionSettings(count, SECOND, SECOND, SECOND, 3 * SECOND, period=renew)
    replay = Replay(count, count, admission, settings)
    walked(replay, 30 * SECOND)
    if after == "a take-over":
        walked(replay, 5 * 60 * SECOND)
        assert replay.shard is not None
        replay.shard = structs.replace(replay.shard, owner="")
        replay.manager = LeaseManager(structs.replace(settings, owner="n"), admission)
        replay.known[:], replay.asked = False, []
        walked(replay, 30 * SECOND)
    elif after == "a silence of all":
        replay.silent[:] = True
        walked(replay, 4 * renew)
        replay.silent[:] = False
        walked(replay, renew)
    assert replay.held() == count
    walked(replay, 3 * renew)
    rates = checks_in_ten_seconds(replay, HOUR_S)
    assert abs(rates.mean() - count / 6) < 0.02 * count / 6, "each is asked once in a period, no oftener"
    assert rates.std() / rates.mean() < 0.1
    # An echo has the period of the renewals: it would stand out among sums over it.
    by_phase = rates.reshape(-1, 6).sum(0)
    assert by_phase.std() / by_phase.mean() < 0.1
    assert replay.manager.counts.lapsed == 0


def test_first_grants_count_as_well() -> None:
    """`status --json` said `granted: 0` of a manager that had granted 1,000 leases, since each host had yet to report,
    and after a new life of the store again (docs/operating/status.md, "since the manager's start")."""
    replay = Replay(1_000, 400)
    walked(replay, 2 * R)
    assert replay.manager.counts.granted == 1_000
    replay.silent[:20] = True
    walked(replay, 5 * R)
    replay.silent[:] = False
    walked(replay, 2 * R)
    assert replay.manager.counts.granted == 1_020
