"""``fencepost plan``: what would be written now, by the very deciders that write it. Nothing is done.

Preview and real run are one code path: the pools' pass and the planner's pass are those of the running roles, on ports
that read and don't write. The file is taken as it stands now, loaded or not, so this is also the preview of a reload.
"""

import time
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from fencepost.cli.loaded import loaded_in
from fencepost.cli.talk import Talk
from fencepost.core.effects import Publish, Wake
from fencepost.core.events import Event, Woke
from fencepost.core.fence import Hold, Marker
from fencepost.core.judge import Kind, Pair, judge
from fencepost.core.record_set import Content, record_digest
from fencepost.core.store import Head, Plan, Row
from fencepost.core.traffic.desired import desired
from fencepost.core.traffic.dns_planner import DnsPlanner, PlannerSettings
from fencepost.core.traffic.load_balancer import LoadBalancer, WriteMembership
from fencepost.core.traffic.membership import Membership
from fencepost.core.zone import Live
from fencepost.ports import Inputs, Refused, StorePort, Unavailable
from fencepost.roles import configuration
from fencepost.roles.configuration import Loaded
from fencepost.roles.domains import Domains
from fencepost.roles.load_balancer import LoadBalancers, PoolPass
from fencepost.roles.planner import PlannerHands
from fencepost.settings import Region
from fencepost.settings.changes import changes, too_much
from fencepost.settings.core_settings import offer


class ReadOnly:
    """A store of which the inputs are what they would be; whatever writes is a defect."""

    def __init__(self, store: StorePort | None, inputs: Inputs) -> None:
        self._store = store
        self._inputs = inputs

    async def inputs(self) -> Inputs:
        """What plans would be made from."""
        return self._inputs

    async def newest_rows(self, since: Head | None) -> Any:
        """The store's; none where there is no store yet."""
        return await self._store.newest_rows(since) if self._store is not None else (Head("0000"), ())

    async def enacted(self, names: Any = None) -> Mapping[str, Any]:
        """The store's."""
        return await self._store.enacted(names) if self._store is not None else {}

    async def reports(self, pool: str) -> Any:
        """The store's."""
        return await self._store.reports(pool) if self._store is not None else ()

    def waiter(self, **_: bool) -> "ReadOnly":
        """Nobody waits in a preview."""
        return self

    async def wait(self, most: int) -> NoReturn:
        """Nobody waits in a preview."""
        raise AssertionError(f"a preview waits for {most} ns")

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"a preview never calls {name}")


class Held(Struct, frozen=True):
    """An endpoint that a person holds: the hold, and what its pool would have it answer once that ends (None: nothing
    is wanted for it, so it stays as it is).
    """

    hold: Hold
    then: Content | None


class Preview(Struct):
    """What would be done: the plan (None: nothing), and all that it was made from.

    ``loaded`` is the configuration that runs (None: none yet), ``region`` the file's; ``before`` and ``after`` the
    membership rows as they are and as the file would make them. ``held`` are the endpoints that stand by a person's
    hold, whatever is planned for the others. ``head`` and ``inputs`` are the store's, as it was read (None: no store),
    and ``would`` is the configuration that the plan is made from.
    """

    region: Region
    loaded: Loaded | None
    before: dict[str, Membership]
    after: dict[str, Membership]
    rows: dict[str, Row]
    lives: dict[str, Live]
    left_alone: dict[str, str]
    plan: Plan | None
    read_s: float
    has_store: bool
    refusals: tuple[str, ...]
    held: dict[str, Held] = {}
    head: Head | None = None
    inputs: Inputs | None = None
    would: Loaded | None = None


async def preview(talk: Talk) -> Preview:
    """Read everything and decide, as the running roles would. Raises a ``PortError``."""
    began = time.monotonic()
    region = talk.region
    store: StorePort | None = talk.store
    try:
        inputs = await talk.within(talk.store.inputs(), "the store")
    except Unavailable:
        store, inputs = None, Inputs(0, b"", {}, {}, ())
    stored = inputs
    loaded = loaded_in(inputs)
    refuse_another_place(region, loaded)
    dns = await standing_in_dns(talk)
    same = loaded is not None and loaded.region == region
    would = (
        loaded
        if same and loaded is not None
        else Loaded(region, (loaded.revision if loaded else 0) + 1, time.time_ns())
    )
    inputs = msgspec.structs.replace(inputs, config=configuration.encode(would))
    before = {pool: msgspec.json.decode(body, type=Membership) for pool, (_, body) in inputs.membership.items() if body}
    after = dict(before)
    if not same:
        after |= await passed(talk, dns, would, ReadOnly(store, inputs), inputs)
        made = {
            pool: (inputs.membership.get(pool, (0, b""))[0] + 1, msgspec.json.encode(row))
            for pool, row in after.items()
        }
        inputs = msgspec.structs.replace(inputs, membership=made)
    hands = PlannerHands(
        PlannerSettings("plan", region.owner, gather=region.dns.gather_ns), dns, ReadOnly(store, inputs)
    )
    plan = await decided(hands)
    listed = {each.name for each in region.endpoints}
    gone = left_behind(dns, region.owner) - listed
    names = sorted(listed | gone | {row.name for row in (plan.rows if plan else ())})
    lives = {name: dns.live(name) for name in names}
    planned = hands.rows | {row.name: row for row in (plan.rows if plan else ())}
    return Preview(
        region,
        loaded,
        before,
        after,
        hands.rows,
        lives,
        {name: why for name in names if (why := alone(lives[name], planned.get(name), region.owner))},
        plan,
        time.monotonic() - began,
        store is not None,
        too_much(loaded.region, region) if loaded is not None and not same else (),
        held_in(region, lives, hands.rows, plan, after),
        hands.head if store is not None else None,
        stored if store is not None else None,
        would,
    )


def left_behind(dns: Domains, owner: str) -> set[str]:
    """Every name that has a marker of ours, whether the file has it or not."""
    found = ((name, marker_of(dns.live(name))) for name in dns.names())
    return {name for name, marker in found if marker is not None and marker.owner == owner}


def held_in(
    region: Region,
    lives: Mapping[str, Live],
    rows: Mapping[str, Row],
    plan: Plan | None,
    after: Mapping[str, Membership],
) -> dict[str, Held]:
    """The endpoints that stay as a person's hold says, by marker or row, and what would follow its end."""
    ends = {row.name for row in (plan.rows if plan else ()) if row.hold is None}
    settings = {each.name: each for each in region.endpoints}
    found = {}
    for name, live in lives.items():
        marker = marker_of(live)
        hold = marker.hold if marker else rows[name].hold if name in rows else None
        each = settings.get(name)
        theirs = marker is not None and marker.owner != region.owner
        if hold is None or each is None or name in ends or theirs:
            continue
        wanted = desired(each.records, each.ttl_s, after.get(each.pool), offer(region, each))
        found[name] = Held(hold, wanted.content if wanted else None)
    return found


def refuse_another_place(region: Region, loaded: Loaded | None) -> None:
    """Raise ``Refused`` where the file speaks of another place in DNS than what runs: no reload goes there."""
    if loaded is None:
        return
    differs = changes(loaded.region, region).settings
    moved = [each.said for each in differs if each.fixed and each.path.startswith(("dns.", "region."))]
    if moved:
        hint = "put it back; or end the region and start it again with the file as it is"
        what = f"a reload can't change {'; '.join(moved)}, so there is nothing to preview"
        raise Refused(what, where=region.path, hint=hint)


async def standing_in_dns(talk: Talk) -> Domains:
    """What stands in DNS now. Raises a ``PortError``."""
    from fencepost import assembly

    if talk.region.dns.provider == "embedded" and not (assembly.state_folder(talk.region) / "tsig.key").exists():
        return Domains({})  # a server that has never run: it is made at the first start
    return await talk.read_dns()


async def passed(talk: Talk, dns: Domains, would: Loaded, store: ReadOnly, inputs: Inputs) -> dict[str, Membership]:
    """Each pool's row as the load balancer's pass over the file's list, and the fleet's rows, would leave it.

    Raises a ``PortError`` if those can't be read: without them, what was launched would seem to have left the list.
    """
    if not inputs.membership or all(pool.launch is None for pool in would.region.pools):
        return await balanced(LoadBalancers("plan", store, dns), would, inputs)
    from fencepost.assembly.stores import fleet_store

    fleet = fleet_store(talk.region)
    try:
        hands = LoadBalancers("plan", store, dns, fleet=fleet)
        assert hands.fleet is not None  # as given  # noqa: S101
        await talk.within(hands.fleet.read(), "the store")
        if hands.fleet.problem is not None:
            raise hands.fleet.problem
        return await balanced(hands, would, inputs)
    finally:
        await fleet.close()


async def balanced(hands: LoadBalancers, would: Loaded, inputs: Inputs) -> dict[str, Membership]:
    """What each pool's pass would write."""
    found = {}
    for pool in would.region.pools:
        version, body = inputs.membership.get(pool.name, (0, b""))
        row = msgspec.json.decode(body, type=Membership) if body else None
        event = await hands.read(would, pool, PoolPass(pool.name), inputs, row, version)
        for effect in LoadBalancer().on(event, time.time_ns()):
            if isinstance(effect, WriteMembership):
                found[pool.name] = effect.row
    return found


async def decided(hands: PlannerHands) -> Plan | None:
    """The planner's own pass, up to where it would publish."""
    planner = DnsPlanner(hands.settings)
    event: Event = Woke()
    while True:
        answer: Event | None = None
        for effect in planner.on(event, time.time_ns()):
            if isinstance(effect, Publish):
                return effect.plan
            if isinstance(effect, Wake):
                return None
            answer = await hands.perform(effect)
        if answer is None:
            raise AssertionError("a planner's pass ended without an answer")
        event = answer


def alone(live: Live, row: Row | None, owner: str) -> str:
    """Why the enactors would leave an endpoint alone, or "". ``row`` is its row once the plan is published.

    Records that are exactly the row's are marked as ours without being asked about: no address changes by it.
    """
    if live.marker is None and row is None:
        return "unmarked records that are not known as ours" if not live.empty else ""
    asked = frozenset({record_digest(row.content.a, row.content.aaaa)}) if row is not None else frozenset()
    judgement = judge(Pair(live, row, ours=asked), owner)
    return judgement.why if judgement.kind in (Kind.FOREIGN, Kind.ASK) else ""


def marker_of(live: Live) -> Marker | None:
    """Its marker, if it is a readable one."""
    return live.marker if isinstance(live.marker, Marker) else None
