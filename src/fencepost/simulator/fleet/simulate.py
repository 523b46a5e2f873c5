"""One seed's walk of a fleet, from its first start to the end, where everything must be as the rows say."""

import time
from collections.abc import Callable

from msgspec import structs

from fencepost.core.capacity.attempts import free_room
from fencepost.core.capacity.calibrated import UNCALIBRATED
from fencepost.core.capacity.rows import CalibrationRow, HostRow, InstanceRow
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND, Duration, Instant
from fencepost.simulator.chance import stream
from fencepost.simulator.fleet.hosts import SimHost
from fencepost.simulator.fleet.judge import Judge
from fencepost.simulator.fleet.manager import SimManager
from fencepost.simulator.fleet.placer import SimPlacer
from fencepost.simulator.fleet.upsets import FleetUpsets
from fencepost.simulator.fleet.walk import EPOCH, PAUSE, Process, Walk
from fencepost.simulator.scenarios import Scenario
from fencepost.simulator.schedule import Upset
from fencepost.simulator.walked import Walked
from fencepost.simulator.watch import Broken

RENEW: Duration = 10 * SECOND
LOOK_EACH: Duration = 5 * SECOND
HOST_NUMBERS = (3, 5, 8, 12, 20, 40, 80)
HOST_WEIGHTS = (2, 4, 4, 4, 3, 2, 1)
SKEWS = (0, 0, 0, -10_000, 10_000, 3_000, -7_000)
SLOWEST = 110
"""So many times the mean takes the slowest check of a thousand, there and back."""
PERSON_AFTER: Duration = 2 * MINUTE
"""Where too many hosts are silent for any to lapse, a person says so long after all is calm which ones are gone."""


def calibration(seed: int, mean: Duration) -> CalibrationRow:
    """What a quiet day's measuring says where calls take so long one way; in half of the fleets nobody measured."""
    row = UNCALIBRATED
    if stream(seed, "calibration").randrange(2):
        row = structs.replace(row, service=2 * mean + PAUSE, slowest=SLOWEST * mean + PAUSE)
    return row


class FleetSimulation:
    """A fleet, about to be walked. ``upsets`` replaces the seed's own schedule (to shrink it)."""

    def __init__(self, seed: int, scenario: Scenario, upsets: tuple[Upset, ...] | None = None) -> None:
        self.seed, self.scenario = seed, scenario
        self.upsets = scenario.upsets(seed) if upsets is None else upsets
        chance = stream(seed, "fleet")
        lease = 3 * RENEW + 3 * RENEW // 50
        self.judge = Judge(lease)
        self.walk = walk = Walk(seed, self.judge, scenario.promises, scenario.mean)
        count = scenario.hosts or chance.choices(HOST_NUMBERS, HOST_WEIGHTS)[0]
        self.of = scenario.shards or chance.choice((1, 1, 2, 3))
        self.hosts: dict[str, SimHost] = {}
        for number in range(count):
            host = SimHost(walk, f"h{number:03}", "abc"[number % 3], chance.choice((2, 3, 4)), RENEW)
            host.process.skewed(EPOCH, chance.choice(SKEWS))
            self.hosts[host.name] = host
        self.judge.hosts = self.hosts
        calibrated = calibration(seed, walk.latency.mean)
        self.managers: list[SimManager] = []
        self.placers: list[SimPlacer] = []
        for shard in range(1, self.of + 1):
            for place in range(scenario.managers or chance.choice((1, 2, 2, 3))):
                process = Process(f"m{shard}{'abc'[place]}", chance.choice(SKEWS))
                self.managers.append(SimManager(walk, process, self.hosts, shard, self.of, RENEW, calibrated))
                self.placers.append(SimPlacer(self.managers[-1], self.ready))
        walk.changed = [act for pair in zip(self.managers, self.placers, strict=True) for act in
                        (pair[0].follow, pair[1].news)]  # fmt: skip
        self.drive = FleetUpsets(self)
        self.gone = False

    def start(self, process: Process) -> None:
        """A manager's process starts anew."""
        for manager, placer in zip(self.managers, self.placers, strict=True):
            if manager.process is process:
                manager.begin()
                placer.begin()

    def instances(self) -> list[InstanceRow]:
        """All instances' rows, in order."""
        return [at.row for at in self.walk.rows.changed("instance", None, 0) if isinstance(at.row, InstanceRow)]

    def ready(self, id_: str) -> bool:
        """Whether an attempt may serve: here, whether it runs at all."""
        return any(id_ in host.running for host in self.hosts.values())

    def run(self, told: Callable[[Instant, str, str, object], None] | None = None, _: object = None) -> Walked:
        """Walk to the end, or to the first promise broken."""
        began = time.process_time()
        walk, scenario, watch = self.walk, self.scenario, self.walk.watch
        watch.told = told
        calm_at = EPOCH + scenario.lasts - scenario.quiet
        promise = words = ""
        after: Duration = 0
        try:
            self.begin(calm_at)
            walk.run(calm_at)
            self.calm()
            after = self.recover(calm_at, EPOCH + scenario.lasts)
        except Broken as broken:
            promise, words = broken.promise, broken.words
        return Walked(
            self.seed, scenario.name, promise, words, walk.since, watch.moves, dict(watch.checked),
            dict(sorted(watch.seen.items())), after, time.process_time() - began, self.upsets,
        )  # fmt: skip

    def begin(self, calm_at: Instant) -> None:
        """Everything starts, one after the other."""
        for host in self.hosts.values():
            host.begin()
        for place, manager in enumerate(self.managers):
            self.walk.push(EPOCH + place * 50 * MILLISECOND, self.start, manager.process)
        self.walk.push(EPOCH + 45 * SECOND, lambda _: self.drive.launch(len(self.hosts)))
        self.drive.begin(self.upsets, calm_at)

    def calm(self) -> None:
        """Nothing goes wrong any more: whoever stood still goes on, clocks stay as they are."""
        walk = self.walk
        walk.store_away_until = min(walk.store_away_until, walk.now)
        for manager in self.managers:
            manager.process.mishap = ("", 0)
        walk.tell("upset", "all is calm")

    def recover(self, calm_at: Instant, end: Instant) -> Duration:
        """Walk on until all is as it should be; how long that took since all was calm. Then it stays so."""
        walk = self.walk
        walk.watch.checked["recovers"] += 1
        while (late := self.unsettled()) and walk.now < end:
            if walk.now >= calm_at + PERSON_AFTER:
                self.person()
            walk.run(min(walk.now + LOOK_EACH, end))
        walk.watch.judge("recovers" if late else None, ", ".join(late[:6]))
        took = walk.now - calm_at
        walk.run(end)
        late = self.unsettled()
        walk.watch.judge("recovers" if late else None, f"was as it should be, and no more: {', '.join(late[:6])}")
        return took

    def person(self) -> None:
        """Somebody looks which hosts are off for good, where too many are silent for any to lapse."""
        if not any(each.process.alive and each.leases.owner.owning and each.leases.mass for each in self.managers):
            return
        for host in self.hosts.values():
            at = self.walk.rows.table.get(("host", host.name))
            if at is None or not isinstance(at.row, HostRow) or at.row.word == "gone" or host.process.alive:
                continue
            if self.drive.say(host.name, "gone"):
                self.walk.watch.saw("mass lapse held up")
                self.walk.tell("person", f"says that {host.name} is gone")

    def unsettled(self) -> list[str]:
        """What isn't as it should be, in words."""
        rows, late = self.walk.rows, []
        for shard in range(1, self.of + 1):
            owned = rows.shard(shard)
            if owned is None or owned.open != rows.life:
                late.append(f"shard {shard} isn't open")
        wanted: dict[str, str] = {}
        for row in self.instances():
            if row.state == "placed":
                wanted[row.id] = row.host
                if row.old[0]:
                    late.append(f"{row.instance} still moves")
            elif row.state == "ending" or (row.state == "waiting" and self.has_room()):
                late.append(f"{row.instance} is {row.state}")
        for host in self.hosts.values():
            late += self.host_unsettled(host, {id_ for id_, name in wanted.items() if name == host.name})
        return late

    def has_room(self) -> bool:
        """Whether one more could be placed anywhere."""
        rows = self.walk.rows
        found = [at.row for at in rows.changed("host", None, 0)]
        return any(free_room(row, rows.life) for row in found if isinstance(row, HostRow))

    def host_unsettled(self, host: SimHost, wanted: set[str]) -> list[str]:
        """What isn't as it should be at one host."""
        rows = self.walk.rows
        at = rows.table.get(("host", host.name))
        row = at.row if at is not None and isinstance(at.row, HostRow) else None
        if not host.process.alive:
            held = row is not None and row.held(rows.life)
            return [f"{host.name} is dead and hasn't lapsed"] if held or wanted else []
        if row is None or not row.held(rows.life) or not row.reported:
            return [f"{host.name} isn't held"]
        if set(host.running) != wanted:
            runs, right = " ".join(sorted(host.running)), " ".join(sorted(wanted))
            return [f"{host.name} runs {runs or 'nothing'} instead of {right or 'nothing'}"]
        return []
