"""The load balancers' hands: one pass for each pool, from the checkers' reports to its membership row.

They run in the planner's process, woken by the store, and share nothing with the planner but the store. What a file
says of a pool comes from the configuration row, so a pass judges by the same settings everywhere.

The instances of a pool that launches them are targets too, by the fleet's rows beside the pool's own. Those rows say
who joined, who was ended, and whose host has lapsed; rows that are missing, or can't be read, say nothing.

What can't be read costs what it speaks of and nothing else, and is told in a log line, a finding and the sign of life:
a report that checker's vote, an override itself, a membership row its pool's passes, and of the configuration the last
good one stands.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fencepost.core.effects import Wake
from fencepost.core.instant import SECOND, Duration
from fencepost.core.traffic.allowance import why_kept
from fencepost.core.traffic.launched import by_hosts, launched, why_dead
from fencepost.core.traffic.load_balancer import LoadBalancer, ReportsRead, WriteMembership
from fencepost.core.traffic.membership import MICRO, SERVING, Fate, Listing, Member, Membership, Move, Rule, State
from fencepost.core.traffic.verdict import Beat, CheckerReport
from fencepost.ports import DnsPort, HistoryRow, Inputs, Misconfigured, PortError, StorePort
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles import clock
from fencepost.roles.bodies import read_body
from fencepost.roles.configuration import Loaded, Running
from fencepost.roles.domains import Domains
from fencepost.roles.fleet.serving import ServingRows
from fencepost.roles.history import tell
from fencepost.roles.loop import Condition
from fencepost.roles.overrides import StoredOverride, of_pool, readable
from fencepost.settings.core_settings import health_settings, listed_targets, pool_settings, safety_settings
from fencepost.settings.schema import Pool

log = logging.getLogger(__name__)


class PoolPass:
    """One pool's decider and what was last read for it, decoded once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.decider = LoadBalancer()
        self.reports: dict[str, tuple[bytes, CheckerReport]] = {}
        self.row: tuple[int, Membership | None] = (0, None)
        self.unreadable: dict[str, Misconfigured] = {}

    def vote(self, zone: str, body: bytes, beat: bytes) -> tuple[CheckerReport, Beat] | None:
        """A checker's report, decoded if it is another than last time, and its heartbeat; None without both.

        None too if one can't be read, which :attr:`unreadable` then tells.
        """
        self.unreadable.pop(zone, None)
        if not body or not beat:
            return None
        what = f"pool {self.name}: the report of checker/{zone}"
        try:
            if zone not in self.reports or self.reports[zone][0] != body:
                self.reports[zone] = (body, read_body(CheckerReport, body, what))
            return self.reports[zone][1], read_body(Beat, beat, what)
        except Misconfigured as problem:
            self.unreadable[zone] = problem
            return None

    def membership(self, version: int, body: bytes) -> Membership | None:
        """The pool's row, decoded if it is another version; None before the first. Raises ``Misconfigured``."""
        if self.row[0] != version or (version and self.row[1] is None):
            what = f"pool {self.name}: its membership row"
            self.row = (version, read_body(Membership, body, what) if version else None)
        return self.row[1]


class LoadBalancers:
    """All pools of the region, one after the other, whenever the store changed or time asks for it."""

    def __init__(
        self, name: str, store: StorePort, dns: Domains, copy: Path | None = None, fleet: FleetStorePort | None = None
    ) -> None:
        self.name = name
        self.fleet = ServingRows(fleet) if fleet is not None else None
        self.store = store
        self.waiter = store.waiter(reports=True)
        self.dns = dns
        self.passes: dict[str, PoolPass] = {}
        self.configuration = Running(copy)
        self.words_of: Mapping[str, bytes] = {}
        self.words: tuple[StoredOverride, ...] = ()
        self.ignored: dict[str, Misconfigured] = {}
        self.told: dict[str, str] = {}

    async def run(self, condition: Condition) -> None:
        """Balance until cancelled."""
        while True:
            try:
                wait = await self.balance(condition)
                if condition.succeeded("load balancer"):
                    log.info("load balancer works again")
            except PortError as error:
                wait = SECOND
                if condition.failed("load balancer", error):
                    log.warning("load balancer: %s", error)
            await self.waiter.wait(wait)

    async def balance(self, condition: Condition) -> Duration:
        """One pass over all pools; how long the next may wait."""
        inputs = await self.store.inputs()
        loaded = self.configuration.take(inputs.config)
        unreadable: dict[str, Misconfigured] = {}
        wait = SECOND
        if loaded is not None:
            if self.fleet is not None and any(pool.launch is not None for pool in loaded.region.pools):
                await self.fleet.read()
                if isinstance(self.fleet.problem, Misconfigured):
                    unreadable["the fleet's rows"] = self.fleet.problem
            for pool in loaded.region.pools:
                work = self.passes.setdefault(pool.name, PoolPass(pool.name))
                try:
                    wait = min(wait, await self.balance_pool(loaded, pool, inputs))
                except Misconfigured as problem:
                    unreadable[f"pool {pool.name}"] = problem
                unreadable |= {f"checker/{zone} on pool {pool.name}": told for zone, told in work.unreadable.items()}
        if self.configuration.problem is not None:
            unreadable["configuration"] = self.configuration.problem
        unreadable |= {f"override {name}": problem for name, problem in self.heard(inputs)[1].items()}
        await self.complain(unreadable, condition)
        return wait

    def heard(self, inputs: Inputs) -> tuple[tuple[StoredOverride, ...], dict[str, Misconfigured]]:
        """The overrides that can be read, and what is wrong with each other one; decoded if they are others."""
        if inputs.overrides != self.words_of:
            self.words_of = inputs.overrides
            self.words, self.ignored = readable(inputs.overrides)
        return self.words, self.ignored

    async def complain(self, unreadable: Mapping[str, Misconfigured], condition: Condition) -> None:
        """Tell what can't be read: once where it is new or over, in the sign of life as long as it lasts."""
        before, self.told = self.told, {on: str(problem) for on, problem in unreadable.items()}
        if before == self.told:
            return
        for on in before.keys() - self.told.keys():
            condition.succeeded(on)
            log.info("%s can be read again", on)
        news = []
        for on, problem in unreadable.items():
            if before.get(on) != self.told[on]:
                log.warning("%s", problem)
                news.append(self.history("finding", on, self.told[on]))
                condition.failed(on, problem)
        try:
            found = {on: ("unreadable", text) for on, text in self.told.items()}
            await self.store.put_findings(self.name, found)
        except PortError as error:
            log.debug("findings not stored: %s", error)
        await tell(self.store, news)

    async def balance_pool(self, loaded: Loaded, pool: Pool, inputs: Inputs) -> Duration:
        """One pool's pass."""
        work = self.passes.setdefault(pool.name, PoolPass(pool.name))
        version, body = inputs.membership.get(pool.name, (0, b""))
        row = work.membership(version, body)
        event = await self.read(loaded, pool, work, inputs, row, version)
        wait = SECOND
        for effect in work.decider.on(event, clock.now()):
            match effect:
                case WriteMembership(expected_version=expected, row=made):
                    wrote = await self.store.put_membership(pool.name, expected, msgspec.json.encode(made))
                    if wrote:
                        await self.tell(pool, row, made)
                    await asyncio.sleep(0)
                case Wake(after=after):
                    wait = after
        return wait

    async def read(
        self, loaded: Loaded, pool: Pool, work: PoolPass, inputs: Inputs, row: Membership | None, version: int
    ) -> ReportsRead:
        """Everything that the pass needs."""
        reports, beats = [], []
        for zone, body, beat in await self.store.reports(pool.name):
            vote = work.vote(zone, body, beat)
            if vote is not None:
                reports.append(vote[0])
                beats.append(vote[1])
        unheard, fleet = False, loaded.region.fleet
        if row is None and pool.launch is not None and self.fleet is not None and fleet is not None:
            unheard = not await self.fleet.heard(pool.name, fleet.shards)
        listing = msgspec.structs.replace(self.listing(loaded, pool, row), unheard=unheard)
        return ReportsRead(
            settings=pool_settings(loaded.region, pool),
            listing=listing,
            reports=tuple(reports),
            beats=tuple(beats),
            overrides=tuple(of_pool(pool.name, self.heard(inputs)[0])),
            row=row,
            version=version,
            published=await self.published(loaded, pool) if row is None else frozenset(),
        )

    def listing(self, loaded: Loaded, pool: Pool, row: Membership | None) -> Listing:
        """The pool's targets as the file and the fleet's rows list them.

        Whole only if the rows could be read on this pass: an instance may run at an address that has left the file,
        and would be taken out only because nobody could say so. A first row has a rule of its own, ``unheard``.
        """
        targets = listed_targets(pool)
        if pool.launch is None or self.fleet is None:
            return Listing(targets, loaded.revision, confirmed=loaded.confirmed)
        instances = launched(pool.name, self.fleet.rows, row, frozenset(target.key for target in targets))
        both = (*by_hosts(targets, self.fleet.rows, row), *instances.targets)
        whole = row is None or self.fleet.current
        return Listing(both, loaded.revision, whole, instances.ended, loaded.confirmed)

    async def published(self, loaded: Loaded, pool: Pool) -> frozenset[str] | None:
        """The addresses that DNS answers for the pool's endpoints now; None if DNS can't be read."""
        try:
            await self.dns.read()
        except PortError:
            return None
        addresses: set[str] = set()
        for endpoint in loaded.region.endpoints:
            if endpoint.pool == pool.name:
                live = self.dns.live(endpoint.name)
                addresses.update(live.a, live.aaaa)
        return frozenset(addresses)

    async def tell(self, pool: Pool, before: Membership | None, after: Membership) -> None:
        """History of what this pass moved."""
        known = before.moved if before is not None else 0
        rows = [line for move in after.moves if move.number > known and (line := self.line(pool, move, after))]
        if before is not None and after.suspect and not before.suspect:
            rows.append(self.history("finding", pool.name, f"suspect: {after.suspect}; removals are slowed"))
        if before is not None and after.panic != before.panic:
            words = "fail open: too much looks dead at once, nothing is removed" if after.panic else "fail open is over"
            rows.append(self.history("finding", pool.name, words))
        await tell(self.store, rows)

    def line(self, pool: Pool, move: Move, row: Membership) -> HistoryRow | None:
        """A move in words; None for what needs no line (a pool's first targets)."""
        serving = sum(member.state in SERVING for member in row.members)
        stay = f"{serving} of {len(row.members)} stay"
        member = next((each for each in row.members if each.key == move.key), None)
        if move.after is State.KEPT and member is not None:
            limit = why_kept(member, row, safety_settings(pool.safety), clock.now())
            return self.history("kept", pool.name, f"{move.key} {why_dead(member)}, KEPT, {limit}; {sight(member)}")
        if move.before is State.KEPT and move.after is State.IN:
            return self.history("back", pool.name, f"{move.key} passes again; it was kept all the while")
        if move.before in SERVING and move.after not in SERVING:
            if move.rule is Rule.FALL and member is not None:
                left = f"budget {(move.tokens + move.cost) / MICRO:.1f} -> {move.tokens / MICRO:.1f}"
                out = f"{move.key} {why_dead(member)}, out: {sight(member)}"
                return self.history("removed", pool.name, f"{out}; {stay}; {left}")
            return self.history("removed", pool.name, f"{move.key} {asked_for(move)}; {stay}")
        if move.after in SERVING and move.before not in SERVING and move.before is not None:
            how = came_back(pool, member) if move.before is State.OUT and member is not None else ""
            came = "joins" if move.before is State.PENDING else f"back{how}"
            ramps = f"; {ramping(pool)}" if member is not None and member.joined else ""
            return self.history("back", pool.name, f"{move.key} {came}; {serving} of {len(row.members)} in{ramps}")
        return None

    def history(self, kind: str, pool: str, text: str) -> HistoryRow:
        """A line of history by this load balancer."""
        return HistoryRow(kind, pool, self.name, text, clock.now())


def asked_for(move: Move) -> str:
    """How a target left that wasn't found dead: "out by ..." wherever somebody asked for it."""
    if move.rule is Rule.OPERATOR:
        match move.fate:
            case Fate.MOVED:
                return f"out by a drain of its host: {move.cause}"
            case Fate.TERMINATED:
                return f"out by a person: {move.cause}"
        return "out by a person's drain"
    if move.rule is Rule.LISTING:
        return "out by its list: not in it any more, or what ran there has ended"
    return f"out ({move.rule}: {move.cause})" if move.cause else f"out ({move.rule})"


def came_back(pool: Pool, member: Member) -> str:
    """What a target that was out has shown: its passes, and for how long it was held out at least."""
    health = health_settings(pool)
    hold = min(health.hold_ns * member.flips, health.hold_max_ns) // SECOND
    held = f", held {hold} s ({member.flips} flip{'' if member.flips == 1 else 's'})" if hold else ""
    return f": {health.rise} pass{'' if health.rise == 1 else 'es'}{held}"


def ramping(pool: Pool) -> str:
    """How the weight of a target that comes into service rises."""
    safety = safety_settings(pool.safety)
    return f"weight {safety.ramp_floor_ppm / 10_000:g} % -> 100 % in {safety.ramp_ns // SECOND} s"


def sight(member: Member) -> str:
    """How a target looks to the checkers, or what makes that of no account: the fate of its host."""
    if member.cause and why_dead(member) != "dead":
        return member.cause
    seen = f"{member.votes.healthy} of {member.votes.fresh} checkers see it healthy"
    return f"{member.cause}, {seen}" if member.cause else seen


async def run_load_balancers(
    name: str,
    domains: dict[str, DnsPort],
    store: StorePort,
    condition: Condition,
    copy: Path | None = None,
    fleet: FleetStorePort | None = None,
) -> None:
    """Every pool's load balancer, until cancelled; ``copy`` is the local copy of the newest configuration."""
    await LoadBalancers(name, store, Domains(domains), copy, fleet).run(condition)
