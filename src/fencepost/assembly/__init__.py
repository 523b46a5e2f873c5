"""Where parts meet: the only package that names concrete adapters, and what each role process is made of.

Adapters are imported only when a region's settings choose them.
"""

import asyncio
import base64
import gc
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from fencepost.assembly.checkers import checker_main
from fencepost.assembly.managers import host_manager_main
from fencepost.assembly.network_managers import network_manager_main
from fencepost.assembly.places import make_tsig_key, state_folder, tsig_key
from fencepost.assembly.providers import import_provider, listening, open_dns, open_witness
from fencepost.assembly.stores import fleet_store, import_store, open_store
from fencepost.core.instant import Duration
from fencepost.core.traffic.dns_enactor import EnactorSettings
from fencepost.core.traffic.dns_planner import PlannerSettings
from fencepost.core.traffic.janitor import JanitorSettings
from fencepost.ports import StorePort
from fencepost.roles import configuration, heartbeat
from fencepost.roles.loop import Condition, Drill
from fencepost.settings import Region
from fencepost.settings.providers import PROVIDERS

Main = Callable[[], Coroutine[Any, Any, None]]


def enactor_settings(region: Region, zone: str) -> EnactorSettings:
    """An enactor's settings; each zone's starts at its own place in the list, so that three don't begin alike."""
    names = sorted(endpoint.name for endpoint in region.endpoints)
    at = region.zones.index(zone) * len(names) // len(region.zones) if zone in region.zones and names else 0
    provider, cursor = PROVIDERS[region.dns.provider], names[at - 1] if at else ""
    room, at_once = provider.room, provider.at_once
    # Of a message's 200 endpoints mostly 50 or so fit: what is judged beyond a commit is judged again.
    batch = room.endpoints * max(1, at_once // 4)
    most = provider.at_once_most
    return EnactorSettings(f"enactor/{zone}", region.owner, batch, room, at_once, most, cursor=cursor)


def drill_of(region: Region, role: str, store: StorePort) -> Drill | None:
    """A role's drill, in regions that allow them."""
    return Drill(state_folder(region) / "drills", role, store) if region.drills else None


def enactor_main(region: Region, zone: str) -> Main:
    """The enactor of a zone."""

    async def main() -> None:
        from fencepost.roles.enactor import run_enactor

        name, condition = f"enactor/{zone}", Condition()
        store, dns = open_store(region), open_dns(region, zone)
        file = state_folder(region) / f"enactor-{zone}.known"
        notify = await listening(dns, region.dns.notify_at(zone))
        async with asyncio.TaskGroup() as group:
            group.create_task(heartbeat.beat(name, store, condition, notify))
            group.create_task(
                run_enactor(
                    enactor_settings(region, zone), dict(dns), store, file, condition, drill_of(region, name, store)
                )
            )

    return main


def planner_main(region: Region) -> Main:
    """The planner, with the load balancers beside it, and the keeper of the configuration row.

    Starting it loads nothing: who starts a region or a planner by hand loads the file (:func:`load_configuration`).
    """

    async def main() -> None:
        from fencepost.roles.load_balancer import run_load_balancers
        from fencepost.roles.planner import run_planner

        condition = Condition()
        store = open_store(region, create=True)
        planning, balancing = open_dns(region), open_dns(region)
        notify = await listening(planning)
        settings = PlannerSettings("planner", region.owner, gather=region.dns.gather_ns)
        async with asyncio.TaskGroup() as group:
            group.create_task(heartbeat.beat("planner", store, condition, notify))
            copy = state_folder(region) / "running.json"
            drill = drill_of(region, "planner", store)
            group.create_task(configuration.keep(store, region, copy))
            group.create_task(run_planner(settings, dict(planning), store, condition, drill, copy))
            fleet = fleet_store(region) if region.fleet is not None else None
            group.create_task(run_load_balancers("load balancer", dict(balancing), store, condition, copy, fleet))

    return main


def load_configuration(region: Region, by: str = "") -> None:
    """Make the file the running configuration, as a start by hand does; without a store yet, the planner will.

    ``by`` is who started it, for the history.
    Raises a ``PortError``.
    """

    async def put() -> None:
        store = open_store(region, create=True)
        try:
            await configuration.put(store, region, by=by)
        finally:
            await store.close()

    asyncio.run(put())


def janitor_main(region: Region) -> Main:
    """The clean-up."""

    async def main() -> None:
        from fencepost.roles.janitor import run_janitor

        condition = Condition()
        store = open_store(region)
        async with asyncio.TaskGroup() as group:
            group.create_task(heartbeat.beat("janitor", store, condition))
            group.create_task(
                run_janitor(
                    JanitorSettings(),
                    region.owner,
                    dict(open_dns(region)),
                    store,
                    condition,
                    drill_of(region, "janitor", store),
                )
            )

    return main


def dns_main(region: Region) -> Main:
    """The embedded DNS server. It needs no store; with one, it learns who wants to be told of changes."""

    async def main() -> None:
        from fencepost.roles.dns_server import DnsServer, DnsServerSettings
        from fencepost.roles.dns_server.listeners import tell_whom_to_notify

        key = tsig_key(region)
        server = DnsServer(
            DnsServerSettings(
                domains=region.dns.domains,
                data=str(state_folder(region) / "domain.db"),
                listen=str(region.dns.listen),
                keys={key.name: (key.algorithm, base64.b64encode(key.secret).decode())},
                transfer=region.dns.transfer,
            )
        )
        await server.start()
        gc.collect()
        gc.freeze()  # the names live long: no collection needs to walk them
        store, condition = open_store(region), Condition()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(heartbeat.beat("dns", store, condition))
                group.create_task(tell_whom_to_notify(store, server))
        finally:
            await server.stop()

    return main


def api_main(region: Region) -> Main:
    """The API, with the observer in it."""

    async def main() -> None:
        from fencepost.roles.api import run_api

        store, condition = open_store(region), Condition()
        async with asyncio.TaskGroup() as group:
            # A store of its own: a beat that waits for a stuck writer mustn't hold up the API's reading.
            group.create_task(heartbeat.beat("api", open_store(region), condition))
            witness, folder = open_witness(region), state_folder(region)
            observed = open_dns(region) if region.dns.place is None else None
            fleet = fleet_store(region) if region.fleet is not None else None
            group.create_task(
                run_api(region, store, open_dns(region), folder, witness=witness, observed=observed, fleet=fleet)
            )

    return main


ROLES: dict[str, Callable[..., Main]] = {
    "planner": planner_main,
    "enactor": enactor_main,
    "checker": checker_main,
    "janitor": janitor_main,
    "dns": dns_main,
    "api": api_main,
    "network-manager": network_manager_main,
}
"""Each role's name as ``fencepost run`` takes it; enactor and checker are one a zone."""

A_ZONE = ("enactor", "checker")


def roles_of(region: Region, again: Duration | None = None) -> dict[str, Main]:
    """Every role process of a region, by name, in the order in which they are best started.

    With ``again`` an instance that ended by itself is tried again where it was, each time after so long.
    """
    embedded = {"dns": dns_main(region)} if region.dns.provider == "embedded" else {}
    return (
        embedded
        | {"planner": planner_main(region)}
        | {f"enactor/{zone}": enactor_main(region, zone) for zone in region.zones}
        | {f"checker/{zone}": checker_main(region, zone) for zone in region.zones}
        | {"janitor": janitor_main(region), "api": api_main(region)}
        | fleet_roles_of(region, again)
    )


def fleet_roles_of(region: Region, again: Duration | None = None) -> dict[str, Main]:
    """The fleet's managers, in a region that has one."""
    if region.fleet is None:
        return {}
    shards = range(1, region.fleet.shards + 1)
    managers = {f"host-manager/{shard}": host_manager_main(region, shard, again) for shard in shards}
    return managers | {"network-manager": network_manager_main(region)}


def stand_ins_of(region: Region) -> dict[str, Main]:
    """The servers that a sample runs beside its roles, by name. Raises ``Misconfigured`` for one that isn't known."""
    from fencepost.dev.sample import read_stand_ins

    found: dict[str, Main] = {}
    folder = state_folder(region)
    for name in read_stand_ins(folder):
        if name == "route53-dev":
            from fencepost.dev.route53 import main_of

            found["route53"] = main_of(region, folder)
        else:
            from fencepost.dev.engines import engine

            found[name] = engine(name, region, folder)
    return found


def targets_of(region: Region) -> dict[str, Main]:
    """Stand-ins for a sample region's targets, a process each; hosts start those of a pool that launches."""
    from fencepost.dev import target

    found: dict[str, Main] = {}
    for pool in region.pools:
        for each in pool.targets:
            settings = target.TargetSettings(each.address, each.port or pool.probe.url.port)
            found[f"target/{each.address}"] = lambda settings=settings: target.run(settings)  # type: ignore[misc]
    return found


def import_shared(region: Region) -> None:
    """Import what several role processes need, before they are forked: it is loaded and held in memory once."""
    import uvloop  # noqa: F401  loading it is all that is wanted, here and below

    import fencepost.adapters.probe_kinds
    import fencepost.roles.checker
    import fencepost.roles.enactor
    import fencepost.roles.janitor
    import fencepost.roles.load_balancer
    import fencepost.roles.planner

    if region.fleet is not None:
        import fencepost.adapters.joining
        import fencepost.dev.stand_in_driver
        import fencepost.roles.fleet.agent_role
        import fencepost.roles.fleet.network_manager
        import fencepost.roles.fleet.placer
    import_store(region)
    import_provider(region)
    if region.dns.provider == "embedded":
        import fencepost.roles.dns_server  # noqa: F401  so
    gc.collect()
    gc.freeze()  # a collection in a fork would write to every page that it shares with the others


def stuck_writer(region: Region) -> Callable[[], tuple[int, float] | None]:
    """Asks which process holds the store's write lock, and for how many seconds it hasn't moved.

    A store that is a server sees to its own locks.
    """
    if region.store.kind != "sqlite":
        return lambda: None
    from fencepost.adapters.store_sqlite.writer import WriteLock

    return WriteLock(Path(os.path.realpath(region.store.path))).look


__all__ = [
    "A_ZONE",
    "ROLES",
    "Main",
    "dns_main",
    "enactor_settings",
    "import_shared",
    "load_configuration",
    "make_tsig_key",
    "open_dns",
    "open_store",
    "roles_of",
    "stand_ins_of",
    "state_folder",
    "stuck_writer",
    "targets_of",
    "tsig_key",
]
