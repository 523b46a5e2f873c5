"""A role's sign of life in the store: who, which process, which version, how it is doing."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable

from fencepost import __version__
from fencepost.ports import Beat, PortError, StorePort
from fencepost.roles.loop import Condition
from fencepost.roles.machine import host_name, this_machine

log = logging.getLogger(__name__)

EVERY_S = 5.0
"""Counted from the hour, so that a region's signs of life fall together: every change of the store wakes each role."""
REST_S = 0.25
"""A change of condition is told at once, but no two signs of life come closer together than this."""
STANDBY = "/standby"
"""Ends the name under which a manager beats while the shard is another's: a sign of life stands under its name alone,
so two that run would else each wipe out the other's."""


async def beat(role: str | Callable[[], str], store: StorePort, condition: Condition, notify: str = "") -> None:
    """Beat until cancelled, under the name that it has then. A store that doesn't take the beat costs the beat,
    nothing else."""
    while True:
        condition.changed.clear()
        try:
            reached = condition.generation.number
            name = role if isinstance(role, str) else role()
            await store.beat(
                Beat(
                    name,
                    os.getpid(),
                    __version__,
                    condition.state,
                    condition.error,
                    time.time_ns(),
                    notify,
                    reached,
                    this_machine(),
                    host_name(),
                )
            )
        except PortError as error:
            log.debug("no beat: %s", error)
        await asyncio.sleep(REST_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EVERY_S - time.time() % EVERY_S):  # 3.11's wait_for can lose a cancellation
                await condition.changed.wait()
