"""Carries out what the schedule of a fleet says: each upset at its time, and its end where it has one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import structs

from fencepost.core.capacity import attempts
from fencepost.core.capacity.rows import HostRow, InstanceRow, Word
from fencepost.core.instant import SECOND, Instant
from fencepost.simulator.chance import stream
from fencepost.simulator.fleet.hosts import SimHost
from fencepost.simulator.fleet.walk import EPOCH, Process
from fencepost.simulator.schedule import Upset

if TYPE_CHECKING:
    from fencepost.core.capacity.fleet_store import Fleet
    from fencepost.simulator.fleet.simulate import FleetSimulation

COPIES_EACH = 30 * SECOND
COPIES_KEPT = 40
LAUNCHED_MOST = 4


class FleetUpsets:
    """The upsets of one walk, carried out."""

    def __init__(self, fleet: "FleetSimulation") -> None:
        self.fleet = fleet
        self.walk = fleet.walk
        self.calm_at: Instant = EPOCH
        self.copies: list[Fleet] = []
        self.launched = 0
        self.chance = stream(fleet.seed, "people")
        self.acts: dict[str, Callable[[Upset], str]] = {
            "manager-crash": self.crash,
            "manager-pause": self.pause,
            "manager-cut-off": self.cut_manager,
            "clock-skew": self.skew,
            "wall-clock": self.wall,
            "fleet-store-away": self.store_away,
            "fleet-store-wiped": self.wipe,
            "fleet-store-restored": self.restore,
            "network-bad": self.network,
            "host-reboot": lambda upset: self.again(upset, "starts anew", lambda host: host.reboots()),
            "host-agent-restart": lambda upset: self.again(upset, "has its agent restarted", lambda host: host.begin()),
            "host-memory-lost": lambda upset: self.again(
                upset, "has lost its memory", lambda host: host.reboots(forgets=True)
            ),
            "host-partition": self.partition,
            "host-dies": self.die,
            "hosts-silent": self.silence,
            "host-slow": self.slow,
            "attempt-ends": self.end_attempt,
            "launch": lambda upset: self.launch(1 + upset.pick % LAUNCHED_MOST),
            "terminate": self.terminate,
            "host-drain": self.drain,
            "host-cordon": self.cordon,
            "take-over": self.take_over,
        } | dict.fromkeys(("commit-answer-lost", "commit-lost", "commit-late"), self.mishap)

    def begin(self, upsets: tuple[Upset, ...], calm_at: Instant) -> None:
        """Put them all into the heap."""
        self.calm_at = calm_at
        for upset in upsets:
            self.walk.push(EPOCH + upset.at, self.happen, upset)
        if any(upset.kind == "fleet-store-restored" for upset in upsets):
            self.walk.push(EPOCH + COPIES_EACH, self.copy)

    def happen(self, upset: Upset) -> None:
        """One upset, now."""
        words = self.acts[upset.kind](upset)
        if words:
            self.walk.watch.saw(f"upset {upset.kind}")
        self.walk.tell("upset", words or f"{upset.kind}: nothing to do", upset)

    def until(self, upset: Upset) -> Instant:
        """When it ends: never later than when all is to be calm."""
        return min(self.walk.now + upset.lasts, max(self.calm_at, self.walk.now))

    # Managers

    def manager(self, upset: Upset) -> "Process":
        """Which one it is about."""
        every = self.fleet.managers
        return every[upset.where % len(every)].process

    def crash(self, upset: Upset) -> str:
        """A manager dies; a moment later there is another in its place."""
        process = self.manager(upset)
        self.kill(process)
        return f"{process.name} crashes"

    def kill(self, process: Process) -> None:
        """The end of one manager's process, and the start of the next."""
        process.life += 1
        process.alive = False
        process.stopped_until = 0
        process.well_since = self.walk.now
        self.walk.push(self.walk.now + self.walk.latency.restart(), self.restart, (process, process.life))

    def restart(self, what: tuple[Process, int]) -> None:
        """It is there again, unless somebody killed it once more."""
        process, life = what
        if process.life == life:
            self.fleet.start(process)

    def pause(self, upset: Upset) -> str:
        """A manager is stopped."""
        process = self.manager(upset)
        process.stopped_until = process.well_since = self.until(upset)
        return f"{process.name} stands still for {upset.lasts // SECOND} s"

    def cut_manager(self, upset: Upset) -> str:
        """A manager can't reach the store."""
        process = self.manager(upset)
        process.no_store_until = self.until(upset)
        return f"{process.name} can't reach the store for {upset.lasts // SECOND} s"

    def take_over(self, upset: Upset) -> str:
        """For a while, whoever owns the shard is killed as soon as it has had it for some time."""
        shard = 1 + upset.where % self.fleet.of
        self.hunt((shard, self.until(upset), 8 * SECOND + upset.pick % (20 * SECOND)))
        return f"whoever owns shard {shard} is killed, for {upset.lasts // SECOND} s"

    def hunt(self, what: tuple[int, Instant, int]) -> None:
        """Kill the owner; the standby comes."""
        shard, until, each = what
        if self.walk.now >= until:
            return
        for manager in self.fleet.managers:
            if manager.shard == shard and manager.process.alive and manager.leases.owner.owning:
                self.walk.tell("upset", f"{manager.process.name} is killed")
                self.kill(manager.process)
                break
        self.walk.push(self.walk.now + each, self.hunt, what)

    def mishap(self, upset: Upset) -> str:
        """Something happens to a manager's next write."""
        process = self.manager(upset)
        kind = {"commit-answer-lost": "answer-lost", "commit-lost": "write-lost", "commit-late": "write-late"}
        process.mishap = (kind[upset.kind], max(SECOND, upset.lasts))
        return f"{upset.kind} at {process.name}"

    def skew(self, upset: Upset) -> str:
        """A clock runs at another rate."""
        every = [*(each.process for each in self.fleet.managers), *(host.process for host in self.fleet.hosts.values())]
        process = every[upset.where % len(every)]
        ppm = (-10_000, 10_000, 0, 5_000)[upset.pick % 4]
        process.skewed(self.walk.now, ppm)
        return f"the clock of {process.name} runs {ppm} ppm off"

    def wall(self, _: Upset) -> str:
        """A wall clock jumps. No process of a walk has one to read: that the roles read none is a test of theirs."""
        return "the wall clock jumps by an hour"

    # The store

    def store_away(self, upset: Upset) -> str:
        """Nobody reaches it."""
        self.walk.store_away_until = max(self.walk.store_away_until, self.until(upset))
        return f"the store is away for {(self.until(upset) - self.walk.now) // SECOND} s"

    def copy(self, _: None) -> None:
        """A backup."""
        self.copies = [*self.copies[-COPIES_KEPT + 1 :], self.walk.rows.copy()]
        self.walk.push(self.walk.now + COPIES_EACH, self.copy)

    def wipe(self, _: Upset) -> str:
        """A store that knows nothing."""
        self.walk.lives += 1
        self.walk.rows.wipe(f"life-{self.walk.lives}")
        self.walk.judge.lost()
        self.walk.noticed()
        return "the store is lost, and a new one is empty"

    def restore(self, upset: Upset) -> str:
        """A store that knows what it knew some time ago."""
        if not self.copies:
            return ""
        back = min(len(self.copies), 1 + upset.pick % 20)
        self.walk.lives += 1
        self.walk.rows.wipe(f"life-{self.walk.lives}", self.copies[-back])
        self.walk.judge.lost()
        self.walk.noticed()
        return f"the store is put back from a copy {back * 30 - 15} s old or so"

    # Hosts and messages

    def host(self, upset: Upset) -> SimHost:
        """Which one it is about."""
        every = list(self.fleet.hosts.values())
        return every[upset.where % len(every)]

    def again(self, upset: Upset, words: str, act: Callable[[SimHost], None]) -> str:
        """A host or its agent starts anew."""
        host = self.host(upset)
        if not host.process.alive:
            return ""
        act(host)
        return f"{host.name} {words}"

    def partition(self, upset: Upset) -> str:
        """Nothing reaches a host."""
        host = self.host(upset)
        host.cut_until = max(host.cut_until, self.until(upset))
        return f"{host.name} is cut off for {upset.lasts // SECOND} s"

    def silence(self, upset: Upset) -> str:
        """Nothing reaches any host."""
        for host in self.fleet.hosts.values():
            host.cut_until = max(host.cut_until, self.until(upset))
        return f"all hosts are cut off for {upset.lasts // SECOND} s"

    def die(self, upset: Upset) -> str:
        """A host is off."""
        host = self.host(upset)
        if not host.process.alive:
            return ""
        host.dies()
        if upset.pick % 2:
            return f"{host.name} dies for good"
        self.walk.push(self.until(upset), self.revive, host)
        return f"{host.name} is off for {upset.lasts // SECOND} s"

    def revive(self, host: SimHost) -> None:
        """It is on again."""
        if not host.process.alive:
            host.process.rebooted(self.walk.now)
            host.begin()
            self.walk.tell(host.name, "is on again")

    def slow(self, upset: Upset) -> str:
        """Stopping takes so long there, for a while."""
        host = self.host(upset)
        host.slow = upset.lasts
        self.walk.push(self.calm_at, lambda _: setattr(host, "slow", 0))
        return f"{host.name} takes {upset.lasts // SECOND} s to stop something"

    def network(self, upset: Upset) -> str:
        """Messages are lost, late and repeated."""
        self.walk.network_bad_until = self.until(upset)
        self.walk.loss = ((300, 200, 100), (100, 500, 300), (700, 0, 0), (0, 300, 500))[upset.pick % 4]
        return f"{self.walk.loss} of 1000 messages are lost, repeated, late, for {upset.lasts // SECOND} s"

    def end_attempt(self, upset: Upset) -> str:
        """Something that runs ends."""
        host = self.host(upset)
        ids = list(host.running)
        if not ids:
            return ""
        host.ends(ids[upset.pick % len(ids)])
        return f"{ids[upset.pick % len(ids)]} ends by itself"

    # People

    def launch(self, count: int) -> str:
        """So many instances more."""
        if self.walk.now < self.walk.store_away_until:
            return ""
        capacity = sum(host.room for host in self.fleet.hosts.values())
        live = sum(1 for row in self.fleet.instances() if row.state in ("waiting", "placed"))
        names = []
        for _ in range(min(count, capacity // 2 - live)):
            self.launched += 1
            names.append(f"i{self.launched}")
            self.walk.judge.write("person", None, InstanceRow(names[-1], "web"), 0)
        return f"launches {' '.join(names)}" if names else ""

    def terminate(self, upset: Upset) -> str:
        """One instance is to end."""
        rows = [row for row in self.fleet.instances() if row.state in ("waiting", "placed")]
        if not rows or self.walk.now < self.walk.store_away_until:
            return ""
        row = rows[upset.pick % len(rows)]
        at = self.walk.rows.table["instance", row.instance]
        self.walk.judge.write("person", None, attempts.ending(row), at.revision)
        return f"terminates {row.instance}"

    def say(self, name: str, word: Word) -> bool:
        """A person's word about a host; said again when the store answers."""
        at = self.walk.rows.table.get(("host", name))
        if self.walk.now < self.walk.store_away_until:
            self.walk.push(self.walk.store_away_until + SECOND, lambda _: self.say(name, word))
            return False
        if at is None or not isinstance(at.row, HostRow):
            return False
        return self.walk.judge.write("person", None, structs.replace(at.row, word=word), at.revision)

    def word(self, upset: Upset, word: Word) -> str:
        """A word, and its end."""
        host = self.host(upset)
        self.say(host.name, word)
        self.walk.push(self.until(upset), lambda _: self.say(host.name, ""))
        return f"{word} {host.name} for {upset.lasts // SECOND} s"

    def drain(self, upset: Upset) -> str:
        """Everything moves away."""
        return self.word(upset, "drain")

    def cordon(self, upset: Upset) -> str:
        """Nothing new comes."""
        return self.word(upset, "cordon")
