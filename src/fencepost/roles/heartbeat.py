"""A role's sign of life in the store: who, which process, which version, how it is doing."""

import asyncio
import logging
import os
import time

from fencepost import __version__
from fencepost.ports import Beat, PortError, StorePort
from fencepost.roles.loop import Condition

log = logging.getLogger(__name__)

EVERY_S = 5.0
LOOK_S = 0.25
"""A change of condition is told this soon."""


async def beat(role: str, store: StorePort, condition: Condition, notify: str = "") -> None:
    """Beat until cancelled. A store that doesn't take the beat costs the beat, nothing else."""
    told: tuple[str, str] = ("", "")
    due = 0.0
    while True:
        now = time.monotonic()
        if now >= due or told != (condition.state, condition.error):
            told, due = (condition.state, condition.error), now + EVERY_S
            try:
                await store.beat(
                    Beat(role, os.getpid(), __version__, condition.state, condition.error, time.time_ns(), notify)
                )
            except PortError as error:
                log.debug("no beat: %s", error)
        await asyncio.sleep(LOOK_S)
