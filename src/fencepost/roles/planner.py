"""The planner's hands: mirrors of rows, inputs and DNS, and what doesn't agree between them.

The planner process also runs a load balancer for each pool: both read rows and write rows, and neither calls the other.
An endpoint is looked at again when its row, its pool, its settings, an order or its records changed, or when a hold on
it can expire; so one change costs the same however many endpoints there are.
"""

import asyncio
import logging
import time
from collections import defaultdict
from pathlib import Path

import msgspec

from fencepost.core.effects import Effect, Publish, ReadDns, ReadHead, ReadInputs, Survey, Wake
from fencepost.core.events import DnsRead, Event, HeadRead, InputsRead, Outrun, Published, Standing, Surveyed, Woke
from fencepost.core.fence import Marker, plausible
from fencepost.core.store import Head, Order, Plan, Row, Wanted
from fencepost.core.traffic.desired import desired
from fencepost.core.traffic.dns_planner import DnsPlanner, PlannerSettings, gathered_at, needs_adoption
from fencepost.core.traffic.membership import Membership
from fencepost.ports import DnsPort, HistoryRow, Inputs, Misconfigured, StorePort
from fencepost.roles import clock
from fencepost.roles.bodies import read_body
from fencepost.roles.configuration import Running
from fencepost.roles.domains import Domains
from fencepost.roles.history import note
from fencepost.roles.loop import Condition, Drill, drive, first_of
from fencepost.roles.status.replaced import put_replaced, takes_place
from fencepost.settings.core_settings import offer
from fencepost.settings.schema import Endpoint

log = logging.getLogger(__name__)


class PlannerHands:
    """Carries out the planner's effects."""

    def __init__(self, settings: PlannerSettings, dns: Domains, store: StorePort, copy: Path | None = None) -> None:
        self.settings = settings
        self.dns = dns
        self.store = store
        self.waiter = store.waiter()
        self.head: Head | None = None
        self.rows: dict[str, Row] = {}
        self.timed: set[str] = set()
        self.inputs: Inputs | None = None
        self.endpoints: dict[str, Endpoint] = {}
        self.by_pool: dict[str, list[str]] = {}
        self.configuration = Running(copy)
        self.members: dict[str, tuple[int, Membership | None]] = {}
        self.wanted: dict[tuple[str, tuple[str, ...], int, str], Wanted | None] = {}
        self.orders: dict[str, list[Order]] = {}
        self.highest = 0
        self.has_read = False
        self.dirty: set[str] = set()
        self.gathering: set[str] = set()
        self.surveyed = False

    async def perform(self, effect: Effect) -> Event | None:
        """See :class:`~fencepost.roles.loop.Performer`."""
        surveyed, self.surveyed = self.surveyed, isinstance(effect, Survey)
        match effect:
            case Wake(after=after):
                if surveyed:  # and not after a plan that was outrun, or that couldn't be published
                    self.set_aside()
                await first_of(self.waiter.wait(after), self.dns.wait(after))
                return Woke()
            case ReadHead():
                return await self.read_head()
            case ReadInputs():
                self.take(await self.store.inputs())
                return InputsRead(self.inputs.snapshot if self.inputs else 0)
            case ReadDns():
                await self.read_dns()
                return DnsRead()
            case Survey():
                return await self.survey()
            case Publish(plan=plan):
                return await self.publish(plan)
            case _:
                raise TypeError(f"a planner doesn't ask for {type(effect).__name__}")

    def set_aside(self) -> None:
        """The decider found nothing to plan: what it was shown agrees, but for shifts that are still being gathered."""
        self.dirty &= self.gathering

    async def read_head(self) -> Event:
        """The head, and the newest rows as of it."""
        head, rows = await self.store.newest_rows(self.head)
        if self.head is not None and head.store != self.head.store:
            log.warning("the store is another one: %s instead of %s", head.mark, self.head.mark)
            self.rows.clear()
            self.timed.clear()
            self.inputs = None
            self.dirty.update(self.endpoints, self.dns.names())
        self.head = head
        for row in rows:
            self.rows[row.name] = row
            self.dirty.add(row.name)
            if row.hold is not None and row.hold.until_s:
                self.timed.add(row.name)
            else:
                self.timed.discard(row.name)
        return HeadRead(head)

    def take(self, inputs: Inputs) -> None:
        """Work out what changed between two snapshots of the inputs."""
        before, self.inputs = self.inputs, inputs
        self.take_orders(inputs)
        if before is not None and before.snapshot == inputs.snapshot:
            return
        if before is None or before.config != inputs.config:
            self.configure(inputs.config)
        for pool, (version, body) in inputs.membership.items():
            if pool not in self.members or self.members[pool][0] != version or before is None:
                self.members[pool] = (version, self.membership(pool, version, body))
                self.dirty.update(self.by_pool.get(pool, ()))
                self.wanted = {key: value for key, value in self.wanted.items() if key[0] != pool}

    def membership(self, pool: str, version: int, body: bytes) -> Membership | None:
        """A pool's row; None if it can't be read: nothing is asked of its endpoints then, so what stands stays."""
        try:
            return read_body(Membership, body, f"pool {pool}: its membership row, version {version},")
        except Misconfigured as problem:  # the load balancers, in this process, tell it to people
            log.warning("%s; its endpoints aren't planned", problem)
            return None

    def take_orders(self, inputs: Inputs) -> None:
        """The waiting orders. Carrying one out raises no snapshot, so they are looked at each time."""
        orders: dict[str, list[Order]] = defaultdict(list)
        for order in inputs.orders:
            orders[order.name].append(order)
        if orders != self.orders:
            self.dirty.update(orders, self.orders)
            self.orders = dict(orders)

    def configure(self, config: bytes) -> None:
        """Take up another configuration: every endpoint is looked at again, those that left it too."""
        self.dirty.update(self.endpoints)
        loaded = self.configuration.take(config)
        self.endpoints = {endpoint.name: endpoint for endpoint in loaded.region.endpoints} if loaded else {}
        by_pool: dict[str, list[str]] = defaultdict(list)
        for endpoint in self.endpoints.values():
            by_pool[endpoint.pool].append(endpoint.name)
        self.by_pool = dict(by_pool)
        self.members = {}
        self.wanted = {}
        self.dirty.update(self.endpoints)

    async def read_dns(self) -> None:
        """Bring the mirrors of DNS up to date. The first time all that they hold is new, whoever had it read before."""
        changed = await self.dns.read()
        if not self.has_read:
            changed.update(self.dns.names())
            self.has_read = True
        for name in changed:
            self.dirty.add(name)
            marker = self.dns.live(name).marker
            if isinstance(marker, Marker) and marker.owner == self.settings.owner and self.counts(marker):
                self.highest = max(self.highest, marker.generation.number)

    def counts(self, marker: Marker) -> bool:
        """Whether plans have to be numbered above a marker: not above a forged one, or no number would be left."""
        return plausible(marker.generation, self.head.number if self.head else 0, clock.now())

    def wants(self, name: str) -> Wanted | None:
        """What the inputs ask of an endpoint; one value for all endpoints that are alike."""
        endpoint = self.endpoints.get(name)
        if endpoint is None:
            return None
        key = (endpoint.pool, endpoint.records, endpoint.ttl_s, endpoint.srv)
        if key not in self.wanted:
            row, loaded = self.members.get(endpoint.pool), self.configuration.loaded
            asked = offer(loaded.region, endpoint) if loaded is not None else None
            self.wanted[key] = desired(endpoint.records, endpoint.ttl_s, row[1] if row else None, asked)
        return self.wanted[key]

    async def survey(self) -> Surveyed:
        """The endpoints that changed since they were last found in agreement."""
        self.gathering.clear()
        standings = []
        for at, name in enumerate(sorted(self.dirty | self.timed | self.orders.keys())):
            if at % 4096 == 4095:
                await asyncio.sleep(0)
            live = self.dns.live(name)
            if name not in self.endpoints and name not in self.rows and not isinstance(live.marker, Marker):
                continue
            standing = Standing(name, live, self.rows.get(name), self.wants(name), tuple(self.orders.get(name, ())))
            if needs_adoption(standing) and standing.row is not None:
                standing = msgspec.structs.replace(standing, enacted=await self.was_enacted(standing.row))
            if gathered_at(standing, self.settings.gather) > clock.now():
                self.gathering.add(name)  # a shift that is over is planned now, or was
            standings.append(standing)
        return Surveyed(tuple(standings), self.highest)

    async def was_enacted(self, row: Row) -> bool:
        """Whether this store's enactors are known to have enacted a row."""
        done = (await self.store.enacted([row.name])).get(row.name)
        return done is not None and done.generation >= row.generation

    async def publish(self, plan: Plan) -> Event:
        """Publish; afterwards say what the plan was for."""
        head = await self.store.publish(plan)
        if head is None:
            log.info("plan %d is thrown away: another planner was first", plan.number)
            return Outrun()
        reasons = sorted({why.partition(": ")[2] for why in plan.why}) or ["orders carried out"]
        names = ", ".join(row.name.partition(".")[0] for row in plan.rows[:5]) + (" ..." if len(plan.rows) > 5 else "")
        text = f"plan {plan.number}: {'; '.join(reasons)} ({names})"
        log.info("%s", text)
        rows = [HistoryRow("plan", names, self.settings.name, text, time.time_ns())]
        if takes_place(plan):
            await put_replaced(self.store, rows[0].at)
        await note(self.store, rows)
        return Published()


async def run_planner(
    settings: PlannerSettings,
    domains: dict[str, DnsPort],
    store: StorePort,
    condition: Condition,
    drill: Drill | None,
    copy: Path | None = None,
) -> None:
    """A DNS planner, until cancelled; ``copy`` is the local copy of the newest configuration."""
    await drive(DnsPlanner(settings), PlannerHands(settings, Domains(domains), store, copy), condition, drill)
