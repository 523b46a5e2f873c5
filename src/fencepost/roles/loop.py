"""The only event loop around a decider: tells it events, carries out its effects, waits where it says.

The decider decides; this carries values. A port's three exceptions become the event ``Failed`` with whose fault it was,
and are said once, not at every retry. Everything else that is raised is a defect: the role ends, says so, and the
supervisor starts it again.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol

from fencepost.core.decider import Decider
from fencepost.core.effects import Effect
from fencepost.core.events import Event, Failed, Failure, Woke
from fencepost.core.fence import NEVER, Generation
from fencepost.ports import Misconfigured, PortError, Refused, StorePort, Unavailable
from fencepost.roles import clock

log = logging.getLogger(__name__)


class Performer(Protocol):
    """What carries out a decider's effects; None answers an effect that isn't answered."""

    async def perform(self, effect: Effect) -> Event | None:
        """Carry out one effect. Raises a ``PortError``."""
        ...


class Condition:
    """How a role is doing, for its sign of life: "up", or the failure that it is in, and its words.

    ``generation`` is the newest one that it has read in DNS.
    """

    def __init__(self) -> None:
        self.state = "up"
        self.error = ""
        self.generation = NEVER
        self.failing: dict[str, PortError] = {}
        self.changed = asyncio.Event()
        """Set whenever state or words change; whoever tells of them clears it."""

    def reached(self, generation: Generation) -> None:
        """Note a generation that stands in DNS."""
        if generation > self.generation:
            self.generation = generation
            self.changed.set()

    def failed(self, call: str, error: PortError) -> bool:
        """Note a failure; whether it is news."""
        before = self.failing.get(call)
        self.failing[call] = error
        self._sum_up()
        return before is None or before.what != error.what

    def succeeded(self, call: str) -> bool:
        """Note a success; whether it ends a failure."""
        ended = self.failing.pop(call, None) is not None
        if ended:
            self._sum_up()
        return ended

    def now(self, call: str, error: PortError | None) -> None:
        """Note how a call went: its failure, or None for a success."""
        if error is not None:
            self.failed(call, error)
        else:
            self.succeeded(call)

    def _sum_up(self) -> None:
        self.changed.set()
        worst: PortError | None = next((e for e in self.failing.values() if isinstance(e, Misconfigured)), None)
        worst = worst or next(iter(self.failing.values()), None)
        if worst is None:
            self.state, self.error = "up", ""
            return
        self.state = "misconfigured" if isinstance(worst, Misconfigured) else "unavailable"
        self.error = worst.in_full


class Drill:
    """Stops the own process (SIGSTOP) right before a named effect, once, when a file asks for it: practice for the
    pause between reading and writing of October 2025. Only a region with ``drills = true`` gets one.

    The store has one writer, and other tasks of the process write too; so it stops between their calls.
    """

    def __init__(self, folder: Path, role: str, store: StorePort) -> None:
        self.folder = folder
        self.role = role.replace("/", "-")
        self.store = store

    async def before(self, effect: str) -> None:
        """Stop here if ``<folder>/stop-before-<effect>.<role>`` exists; the file is taken away first."""
        asked = self.folder / f"stop-before-{effect}.{self.role}"
        try:
            asked.unlink()
        except OSError:
            return
        await self.store.at_rest(lambda: os.kill(os.getpid(), signal.SIGSTOP))


async def drive(
    decider: Decider, performer: Performer, condition: Condition, drill: Drill | None = None, name: str = ""
) -> None:
    """Run a decider until cancelled."""
    event: Event = Woke()
    while True:
        answer: Event | None = None
        for effect in decider.on(event, clock.now()):
            if drill is not None:
                await drill.before(type(effect).__name__)
            answer = await carry_out(effect, performer, condition, name)
        if answer is None:
            raise TypeError(
                f"{type(decider).__name__} asked for nothing that is answered, after {type(event).__name__}"
            )
        event = answer


async def carry_out(effect: Effect, performer: Performer, condition: Condition, name: str) -> Event | None:
    """One effect; a port's failure comes back as the event ``Failed``."""
    call = f"{name} {type(effect).__name__}".strip()
    try:
        answer = await performer.perform(effect)
    except PortError as error:
        if condition.failed(call, error):
            log.warning("%s: %s", call, error.in_full)
        return Failed(type(effect).__name__, failure_of(error))
    if condition.succeeded(call):
        log.info("%s works again", call)
    return answer


def failure_of(error: PortError) -> Failure:
    """Which of the three it is."""
    match error:
        case Misconfigured():
            return Failure.MISCONFIGURED
        case Refused():
            return Failure.REFUSED
        case Unavailable():
            return Failure.UNAVAILABLE
    return Failure.UNAVAILABLE


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Return when the first of several waits does; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, PortError):
                log.debug("a wait ended early: %s", result)
