"""What a zone's checker is made of: its settings, its probers and the canaries that it must reach."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from fencepost.assembly.stores import open_store
from fencepost.roles import heartbeat
from fencepost.roles.loop import Condition
from fencepost.settings import Region

if TYPE_CHECKING:
    from fencepost.adapters.probe import Prober, ProbeResult, ProbeSettings, ProbeTarget
    from fencepost.roles.checker import CheckerSettings
    from fencepost.roles.checker.listing import Instances


def checker_main(region: Region, zone: str) -> Callable[[], Coroutine[Any, Any, None]]:
    """The checker of a zone; it follows configuration and membership rows: reloads and launched instances reach it."""

    async def main() -> None:
        from functools import partial

        from fencepost.adapters.probe_kinds import open_prober
        from fencepost.roles.checker import CheckerRole
        from fencepost.roles.checker.listing import follow

        condition, store = Condition(), open_store(region)
        role = CheckerRole(
            checker_settings(region, zone),
            open_prober=partial(open_prober, salt=zone),
            store=store,
            open_canaries=[partial(open_prober_of, *canary, salt=zone) for canary in canaries(region)],
            on_problem=partial(condition.now, "reports"),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(heartbeat.beat(f"checker/{zone}", store, condition))
            group.create_task(role.run(asyncio.Event()))
            group.create_task(
                follow(store, lambda loaded, instances: role.reload(checker_settings(loaded.region, zone, instances)))
            )

    return main


def checker_settings(region: Region, zone: str, instances: "Instances | None" = None) -> "CheckerSettings":
    """What a zone's checker probes, and how: every pool's every target, and each launched instance.

    Until it is known which instances there are (None), pools that launch them wait: what a checker last thought of an
    instance is kept over a restart only if it is in the first list.
    """
    from fencepost.adapters.probe import ProbeSettings, ProbeTarget
    from fencepost.roles.checker import CheckedPool, CheckerSettings
    from fencepost.settings.core_settings import health_settings

    pools = []
    for pool in region.pools:
        if pool.launch is not None and instances is None:
            continue
        url, capacity = pool.probe.url, pool.capacity
        probe = ProbeSettings(
            kind=url.kind,
            port=url.port,
            path=url.path,
            host=url.host,
            interval_ns=pool.probe.interval_ns,
            timeout_ns=pool.probe.timeout_ns,
            good_statuses=pool.probe.status,
            capacity_port=capacity.port or None if capacity else None,
            capacity_path=capacity.path if capacity else None,
        )
        targets = tuple(ProbeTarget(each.address, each.address, each.port or None) for each in pool.targets)
        known = {each.address for each in pool.targets}
        launched = instances.get(pool.name, ()) if instances else ()
        targets += tuple(ProbeTarget(key, key, port or None) for key, port in launched if key not in known)
        pools.append(CheckedPool(pool.name, health_settings(pool), probe, targets))
    return CheckerSettings(zone, tuple(pools))


def canaries(region: Region) -> "list[tuple[ProbeSettings, ProbeTarget]]":
    """The addresses that a checker must reach for its votes to count, each with how it is probed."""
    from fencepost.adapters.probe import ProbeSettings, ProbeTarget

    interval = min((pool.probe.interval_ns for pool in region.pools), default=10_000_000_000)
    return [
        (
            ProbeSettings(url.kind, url.port, url.path, interval // 2, interval // 4, url.host),
            ProbeTarget(str(url), url.host, url.port),
        )
        for url in region.canaries
    ]


def open_prober_of(
    settings: "ProbeSettings", target: "ProbeTarget", on_results: "Callable[[list[ProbeResult]], None]", *, salt: str
) -> "Prober":
    """A prober of one address."""
    from fencepost.adapters.probe_kinds import open_prober

    prober = open_prober(settings, on_results, salt=salt)
    prober.set_targets([target])
    return prober
