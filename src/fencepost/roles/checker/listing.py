"""What a checker is to probe: the running configuration, and the launched instances in the pools' membership rows.

Membership is where instances are listed, pending ones too, so checkers probe exactly who is decided about. A row that
can't be read, or a store that is away, changes nothing: the last list stands.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from fencepost.core.traffic.membership import Membership
from fencepost.ports import Inputs, Misconfigured, PortError, StorePort
from fencepost.roles.bodies import read_body
from fencepost.roles.configuration import FOLLOW_S, Loaded, Running

log = logging.getLogger(__name__)

Instances: TypeAlias = Mapping[str, tuple[tuple[str, int], ...]]
"""By pool, the address and port of each launched instance; port 0 is the probe's."""


class Listed:
    """The instances of pools that launch them, decoded once a row."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.instances: dict[str, tuple[tuple[str, int], ...]] = {}

    def take(self, loaded: Loaded, inputs: Inputs) -> bool:
        """Take up the rows as they are now; whether another instance is to be probed than before."""
        before = dict(self.instances)
        launching = {pool.name for pool in loaded.region.pools if pool.launch is not None}
        for name in self.instances.keys() - launching:
            del self.instances[name]
        for name in launching:
            version, body = inputs.membership.get(name, (0, b""))
            if not version or self.versions.get(name) == version:
                continue
            try:
                row = read_body(Membership, body, f"pool {name}: its membership row")
            except Misconfigured as problem:
                log.warning("%s", problem)
            else:
                self.instances[name] = tuple((each.key, each.port) for each in row.members if each.source)
            self.versions[name] = version
        return self.instances != before


async def follow(store: StorePort, changed: Callable[[Loaded, Instances], Awaitable[None]]) -> None:
    """Call ``changed`` whenever another configuration is running, or other instances are listed; until cancelled."""
    running, listed = Running(), Listed()
    body = b""
    while True:
        try:
            inputs = await store.inputs()
        except PortError as error:
            log.debug("configuration: %s", error)
            await asyncio.sleep(0.2)
            continue
        loaded = running.take(inputs.config) if inputs.config else None
        news = inputs.config != body
        if news and running.problem is not None:
            log.warning("%s", running.problem)
        if loaded is not None:
            moved = listed.take(loaded, inputs)
            if moved or (news and running.problem is None):
                await changed(loaded, dict(listed.instances))
        body = inputs.config
        await asyncio.sleep(FOLLOW_S)
