"""A fleet whose store is away, slow or put back, and whose managers die meanwhile: no lease lapses of it.

In October 2025 the manager of EC2's hosts couldn't reach its database. Leases that nobody could renew ran out by the
ten thousand, and once the database was back, establishing them again took longer than they lasted. Real processes, a
real PostgreSQL, hosts with the decider of real agents; small here, and at 10,000 hosts and a lease of 30 s in
``make soak``. Rates are compared with what the same machine did in the same minute.
"""

import itertools
import socket
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
from agents import until
from fleet_stage import FleetStage, Lease, Watched
from msgspec.structs import replace
from postgresql import postgresql

from fencepost.assembly.fleet_key import fleet_key
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.messages import Answer, Check
from fencepost.core.capacity.rows import CalibrationRow, HostRow
from fencepost.core.capacity.token import Token
from fencepost.core.instant import SECOND
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, Wire
from fencepost.settings.schema import Secret


class Scale(NamedTuple):
    """How large, and how long. ``servers`` answer at once when answers are slow; ``share`` of that rate is wanted:
    little where others may use the machine meanwhile, since that shows a collapse as well."""

    hosts: int
    renew_s: float
    away_s: float
    slow_s: float
    servers: int
    share: float
    delay_s: float


SCALES = [
    pytest.param(Scale(300, 1, 5, 2, 16, 0.1, 0.02), id="small"),
    pytest.param(
        Scale(10_000, 10, 300, 90, 64, 0.95, 0.1), id="whole", marks=[pytest.mark.soak, pytest.mark.timeout(1800)]
    ),
]
SLOW = "40ms"


@pytest.fixture(scope="module", params=SCALES)
def scale(request: pytest.FixtureRequest) -> Scale:
    """Small, or as large as was promised."""
    found: Scale = request.param
    return found


@pytest.fixture(scope="module")
def stage(scale: Scale, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetStage]:
    """Hosts that are held by one manager, and two that stand by."""
    with postgresql() as server:
        stage = FleetStage(tmp_path_factory.mktemp("outage"), server, f"{scale.renew_s:g}s")
        try:
            stage.begin()
            stage.manage()
            stage.agents(scale.hosts, "--room", "8")
            took = stage.all_held(scale.hosts, 120)
            stage.manage()
            note(f"\n{scale.hosts} hosts held {took:.1f} s after they were started")
            yield stage
        finally:
            stage.close()


def note(text: str) -> None:
    """A figure, for whoever runs this with -s."""
    sys.stdout.write(f"{text}\n")


class Busy:
    """What processes use while the block runs, in cores, printed."""

    def __init__(self, stage: FleetStage, what: str) -> None:
        self.stage, self.what = stage, what

    def __enter__(self) -> None:
        self.before, self.at = self.stage.cpu(), time.monotonic()

    def __exit__(self, *_: object) -> None:
        after, took = self.stage.cpu(), time.monotonic() - self.at
        shares = {name: (after[name] - used) / took for name, used in self.before.items() if name in after}
        note(
            f"{self.what}, {took:.0f} s, in cores: " + ", ".join(f"{name} {each:.2f}" for name, each in shares.items())
        )


keys = (f"key-{number}" for number in itertools.count())


def launched(stage: FleetStage, within_s: float = 30) -> float:
    """Launch three instances, as soon as that is taken; how long it took until they were placed."""
    begun, key = time.monotonic(), next(keys)
    names = until(lambda: stage.launch(3, key)[2], within_s)
    stage.placed(names, within_s)
    return time.monotonic() - begun


def unchanged(stage: FleetStage, before: dict[str, Lease]) -> None:
    """Assert that no lease lapsed, and that none was given anew."""
    after = stage.leases()
    assert {lease for lease, _, _ in after.values()} == {"held"}
    assert {name: (before[name], after[name]) for name in before if before[name] != after[name]} == {}


def test_a_store_away_for_many_leases_lets_none_lapse_though_managers_die(stage: FleetStage, scale: Scale) -> None:
    """Renewed by the hosts' own answers meanwhile, by whoever took over after; launches are refused by name, then work.

    One manager is killed during the outage, its successor right after it.
    """
    launched(stage)
    with Busy(stage, "at rest"):
        time.sleep(2 * scale.renew_s)
    before, epoch, asked, owner = stage.leases(), stage.shard().epoch, stage.counts(), stage.owner()
    stage.server.stop()
    stopped, key = time.monotonic(), next(keys)
    refused = stage.launch(1, key)
    assert refused[:2] == (503, "unavailable"), refused
    with Busy(stage, "without a store"):
        time.sleep(0.7 * scale.away_s)
    answered, passed = stage.counts()["answers"] - asked["answers"], time.monotonic() - stopped
    assert answered > 0.7 * scale.hosts * passed / scale.renew_s, "renewals go on in memory"
    note(f"renewals without a store: {answered / passed:.0f}/s of {scale.hosts / scale.renew_s:.0f}/s")
    assert stage.launch(1, key)[:2] == (503, "unavailable")
    stage.end(owner)
    stage.manage()
    time.sleep(0.3 * scale.away_s)

    stage.server.start()
    begun = time.monotonic()
    owner = stage.taken_over(epoch)
    took, epoch = time.monotonic() - begun, stage.shard().epoch
    stage.end(owner)
    begun = time.monotonic()
    stage.taken_over(epoch)
    again = time.monotonic() - begun
    worked = launched(stage)
    note(f"taken over {took:.1f} s after the store was back, again after {again:.1f} s, placed {worked:.1f} s later")
    stage.manage()
    time.sleep(4 * scale.renew_s)
    unchanged(stage, before)


def test_a_store_that_is_slow_lets_no_lease_lapse_though_managers_die(stage: FleetStage, scale: Scale) -> None:
    """Everything that needs the store takes longer; renewals don't need it."""
    before, epoch, owner = stage.leases(), stage.shard().epoch, stage.owner()
    stage.proxy.delay_s = scale.delay_s
    with Busy(stage, "with a slow store"):
        time.sleep(scale.slow_s / 2)
    worked = launched(stage)
    stage.end(owner)
    begun = time.monotonic()
    stage.taken_over(epoch)
    took = time.monotonic() - begun
    stage.manage()
    time.sleep(scale.slow_s / 2)
    again = launched(stage)
    note(f"slow: placed after {worked:.1f} s, taken over after {took:.1f} s, placed after {again:.1f} s")
    stage.proxy.delay_s = 0.0
    unchanged(stage, before)


def test_hosts_cut_off_for_longer_than_a_lease_lapse_only_if_a_person_says_so(stage: FleetStage, scale: Scale) -> None:
    """All silent at once is taken for our own fault (kubernetes #24597). Said to be gone they lapse, and come back."""
    before, instances = stage.leases(), stage.instances()
    stage.wish(deaf=["*"])
    time.sleep(4 * scale.renew_s)
    assert stage.leases() == before
    stage.say("gone", tuple(before))
    until(lambda: {lease for lease, _, _ in stage.leases().values()} == {"lapsed"}, 30)
    # Heard again before placement has seen that they lapsed, they would keep what runs on them, and rightly so.
    until(lambda: all(row.state != "placed" for row in stage.instances().values()), 60)
    asked, begun = stage.counts(), time.monotonic()
    stage.wish()
    took = stage.all_held(scale.hosts, 120)
    questions = (stage.counts()["asked"] - asked["asked"]) / scale.hosts
    note(f"heard again: {scale.hosts} held after {took:.1f} s, {questions:.2f} checks each")
    stage.say("resume", tuple(before))
    assert all(number == before[name][1] + 1 for name, (_, number, _) in stage.leases().items())

    def placed_again() -> bool:
        rows = stage.instances()
        return all(rows[name].state == "placed" and rows[name].attempt > instances[name].attempt for name in instances)

    until(placed_again, 60)
    note(f"instances placed again {time.monotonic() - begun:.1f} s after the hosts were heard")


def test_leases_dropped_all_at_once_are_established_again_at_the_calibrated_rate(
    stage: FleetStage, scale: Scale
) -> None:
    """With as many questions out as were found best on a quiet day, and about one question a host."""
    stage.wish(slow=SLOW, servers=scale.servers)
    stage.end_managers()
    row = measured(stage, scale.servers, 5.0 if scale.hosts > 1000 else 2.0)
    stage.calibrated(row)
    before = dropped(stage)
    since, asked = stage.snapshot(), stage.counts()["asked"]
    with Watched(lambda: stage.changed_hosts(since), 0.1) as granted, Busy(stage, "establishing leases again"):
        stage.manage()
        until(lambda: granted.samples and granted.samples[-1][1] >= scale.hosts, 120)
    asked = stage.counts()["asked"] - asked
    due = renewals_due(granted.samples, scale.renew_s)
    rate = rate_of(granted.samples, scale.hosts)
    stage.wish()
    note(f"{scale.hosts} granted at {rate:.0f}/s, calibrated {row.rate:.0f}/s: {rate / row.rate:.3f}")
    note(f"{asked / scale.hosts:.3f} checks a host; in flight {row.limit}, {row.service / 1e6:.1f} ms each")
    assert rate > scale.share * row.rate
    # Small, first renewals come before the end; where establishing takes longer, as many more as were due by then.
    most = 1.1 * scale.hosts if scale.share > 0.9 else 1.1 * scale.hosts + max(0.5 * scale.hosts, due)
    assert asked < most, (asked, due)
    stage.all_held(scale.hosts, 60)
    assert all(number == before[name].number + 1 for name, (_, number, _) in stage.leases().items())


def test_a_launch_is_refused_in_words_that_dont_stand_for_one_another(stage: FleetStage, scale: Scale) -> None:
    """Nothing is placed while no manager runs: a thousand are let in, then it is too fast; and with no room, no room.

    In October 2025 customers saw "request limit exceeded" beside "insufficient capacity", and what helps against one
    does nothing against the other.
    """
    stage.end_managers()
    accepted = stage.launch(1000, next(keys), "batch")
    assert accepted[0] == 202, accepted
    key = next(keys)
    status, said = stage.post("launch", {"pool": "batch", "count": 1000, "key": key})
    assert (status, said["error"]["kind"]) == (429, "request limit exceeded")
    assert said["error"]["retry_after_s"] >= 1
    stage.say("cordon", tuple(stage.hosts()))
    assert stage.launch(1, key, "batch")[:2] == (503, "insufficient capacity")
    stage.say("resume", tuple(stage.hosts()))
    stage.manage()
    stage.placed(accepted[2], 120)


def dropped(stage: FleetStage) -> dict[str, HostRow]:
    """Mark all leases as lapsed, as a manager would after 3R of silence; the rows as they were."""
    rows = stage.hosts()

    async def work(store: FleetStorePort) -> None:
        page = await store.rows("host")
        found = [at for at in page.rows if isinstance(at.row, HostRow)]
        for at_ in range(0, len(found), 500):
            some = found[at_ : at_ + 500]
            changes = [(Change(replace(at.row, lease="lapsed"), at.revision),) for at in some]
            written = await store.commit(None, changes)
            assert written is not None
            assert all(written.applied)

    stage.do(work)
    return rows


def rate_of(samples: Sequence[tuple[float, int]], count: int) -> float:
    """Leases a second from the first one on: between a tenth and nine tenths of all."""
    begin = next(place for place, each in enumerate(samples) if each[1] >= 0.1 * count)
    last = next(each for each in samples if each[1] >= 0.9 * count)
    if samples[begin] == last:  # all between two looks: then at least as fast as from the one to the other
        begin -= 1
    first = samples[begin]
    return (last[1] - first[1]) / (last[0] - first[0])


def renewals_due(samples: Sequence[tuple[float, int]], renew_s: float) -> float:
    """How many checks were due of leases that had been granted: one each R, of as many as there were by then."""
    ends = [*(at for at, _ in samples[1:]), time.monotonic()]
    return sum(count * (end - at) / renew_s for (at, count), end in zip(samples, ends, strict=True))


def measured(stage: FleetStage, in_flight: int, for_s: float) -> CalibrationRow:
    """What hosts do with so many questions out, asked under their present tokens, by one who does nothing else."""
    wire, epoch = Wire(fleet_key(Secret(file=str(stage.folder / "fleet.key")))), stage.shard().epoch
    rows = stage.hosts()
    host, _, port = next(iter(rows.values())).at.rpartition(":")
    packets = itertools.cycle(
        wire.pack("to host", 0, Check(name, Token(epoch, row.number, row.nonce)), DATAGRAM_BYTES)
        for name, row in rows.items()
    )
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.settimeout(5)
        udp.connect((host, int(port)))
        sent: dict[str, float] = {}
        took: list[float] = []
        names = itertools.cycle(rows)
        begun = time.perf_counter()
        while time.perf_counter() < begun + for_s:
            while len(sent) < in_flight:
                sent[next(names)] = time.perf_counter()
                udp.send(next(packets))
            found = wire.open_from_host(udp.recv(DATAGRAM_BYTES))
            assert found is not None
            assert isinstance(found[1], Answer)
            took.append(time.perf_counter() - sent.pop(found[1].host))
        rate = len(took) / (time.perf_counter() - begun)
    times = sorted(took)
    service, slowest = int(statistics.fmean(times) * SECOND), int(times[int(0.999 * len(times))] * SECOND)
    return CalibrationRow("hosts", in_flight, service, slowest, rate)
