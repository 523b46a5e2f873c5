"""A host's agent: hears managers, keeps the host's memory, runs its instances by a driver.

What to obey and what to answer is decided by :class:`~fencepost.core.capacity.host.Host`; this carries its effects out,
one event after the other. The usual check needs nothing carried out, so it is answered at once, also while instances
are being stopped: from the state as of before that, which is what is true then. So a slow stop costs no lease.

Anything that goes wrong half-way is treated as a death of the agent between two effects, for which the decider is made:
it begins again from its file, under another boot, and silently until that works. Only a memory that can't be written is
less than that: nothing has happened then, so the event counts as never come, and is not answered. From then on each
answer says so, and what an order would have started is refused for good, so that it may start elsewhere; each second it
is tried whether the memory can be written again, which ends that by itself. And an attempt that
ended has ended, whatever is written of it: it is told as down at once, so that the next one starts elsewhere. Should
the agent die before it is written, the next agent finds the same, as the attempt is in the set and doesn't run.

Awkward truth: on a full disk a host answers checks under the token that it has, and takes no orders and no new lease.
It keeps its instances and its lease; it would lose both if it fell silent, over a disk that they may not need. An agent
that starts on a full disk is silent all the same if something must be written first: if an attempt ended meanwhile.
"""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from copy import copy

from msgspec.structs import replace

from fencepost.core.capacity.host import (
    Again,
    ApplyNetwork,
    Ended,
    Host,
    HostEffect,
    HostEvent,
    HostSettings,
    Persist,
    Reply,
    Start,
    Started,
    StartFailed,
    Stop,
    Told,
    Unwritten,
)
from fencepost.core.capacity.messages import Answer, FromHost, ToHost
from fencepost.core.instant import Instant
from fencepost.ports import Misconfigured, PortError, Refused, Unavailable
from fencepost.ports.fleet import Driver
from fencepost.roles.fleet.agent_memory import MemoryFile
from fencepost.roles.fleet.agent_server import Answering

log = logging.getLogger(__name__)

LINE_MOST = 256
"""So many questions wait while one is carried out; further ones are as good as lost on the way."""
AGAIN_S = 1.0
"""When what went wrong is tried again."""
CAUSES_MOST, CAUSE_MOST = 64, 160
"""Of so many attempts that are down it is told why, in so many letters."""
BITS = 63
"""Of what is drawn: a store's numbers have 64, with a sign."""


def clock() -> Instant:
    """Nanoseconds since this machine started, the time that it was suspended counted too."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class NotWritten(Exception):  # noqa: N818  it says what happened
    """The memory can't be written; nothing has been done."""


class Agent:
    """One host. :meth:`run` until cancelled; :meth:`told` hands it questions.

    ``checked`` is when somebody last asked it anything, on the event loop's clock.
    """

    def __init__(
        self, settings: HostSettings, memory: MemoryFile, driver: Driver, clock: Callable[[], Instant] = clock
    ) -> None:
        self.settings = settings
        self.host = Host(settings)
        self.memory = memory
        self.driver = driver
        self.clock = clock
        self.checked = asyncio.get_running_loop().time()
        self._as_of: Host | None = None
        self._line: deque[tuple[HostEvent, Answering]] = deque()
        self._wanted = asyncio.Event()
        self._lost: str = ""
        self._unstarted: dict[str, str] = {}
        self._trying = False
        driver.on_end(lambda id_: self._later(Ended(id_)))

    @property
    def begun(self) -> bool:
        """Whether it answers."""
        return self.host.memory is not None

    def lease_lasts(self, fresh_for: int) -> None:
        """Take up another length of the lease, from the next question on. Shorter is always safe."""
        self.settings = self.host.settings = replace(self.settings, fresh_for=fresh_for)

    def told(self, message: ToHost, answer: Answering) -> None:
        """One question: answered at once if nothing must be done for it, else in its turn."""
        self.checked = asyncio.get_running_loop().time()
        state = copy(self._as_of or self.host)
        if self._as_of is not None or not self._line:
            match state.on(Told(message), self.clock()):
                case (Reply(message=at_once),):
                    answer(self.with_causes(at_once))
                    return
        if len(self._line) < LINE_MOST:
            self._later(Told(message), answer)

    def round(self) -> None:
        """Nothing waits for the end of a round: a host alone has nothing to gather."""

    def _later(self, event: HostEvent, answer: Answering = lambda _: None) -> None:
        self._line.append((event, answer))
        self._wanted.set()

    async def run(self) -> None:
        """Carry out what is told, until cancelled. Raises ``Misconfigured`` for a memory that is another host's."""
        await self.begin()
        while True:
            while not self._line:
                self._wanted.clear()
                await self._wanted.wait()
            event, answer = self._line.popleft()
            await self.happen(event, answer)

    async def begin(self) -> None:
        """Start from the file, under another boot, as often as it takes."""
        while True:
            self.host = Host(self.settings)
            try:
                memory = self.memory.read()
                running = tuple(sorted(await self.driver.running()))
                event = Started(memory, secrets.randbits(BITS), secrets.randbits(BITS), running)
                host = Host(self.settings)
                await self.carry_out(host.on(event, self.clock()), lambda _: None)
            except (NotWritten, OSError, Refused, Unavailable) as error:
                self.failing(error)
                await asyncio.sleep(AGAIN_S)
                continue
            self.host = host
            self.works()
            if host.memory is not None:
                new = "a new incarnation" if memory is None else f"token {host.memory.token.place}"
                log.info("host %s: %s, %d attempts run", self.settings.name, new, len(host.running))
            return

    async def happen(self, event: HostEvent, answer: Answering) -> None:
        """One event, wholly."""
        before = copy(self.host)
        effects = self.host.on(event, self.clock())
        self._as_of = before
        try:
            failed = await self.carry_out(effects, answer)
            self.works()
        except NotWritten as error:
            self.host = before
            before.on(
                Unwritten(str(error)[:CAUSE_MOST], event.message if isinstance(event, Told) else None), self.clock()
            )
            self.failing(error)
            if isinstance(event, Ended | StartFailed):  # nobody says it again
                before.running -= {event.id}
                asyncio.get_running_loop().call_later(AGAIN_S, self._later, event)
            if not self._trying:
                self._trying = True
                asyncio.get_running_loop().call_later(AGAIN_S, self.try_again)
            return
        except (OSError, PortError) as error:
            self.failing(error)
            self._as_of = None
            await self.begin()
            return
        finally:
            self._as_of = None
        for id_ in failed:
            await self.happen(StartFailed(id_), lambda _: None)

    def try_again(self) -> None:
        """Find out whether the memory can be written again; also where nobody orders anything any more."""
        self._trying = False
        self._later(Again())

    async def carry_out(self, effects: Sequence[HostEffect], answer: Answering) -> list[str]:
        """Effects in their order; the attempts that couldn't be started.

        Raises ``NotWritten``, with nothing done, ``OSError`` or a ``PortError``, with something done.
        """
        failed: list[str] = []
        for effect in effects:
            match effect:
                case Persist(memory=memory):
                    try:
                        self.memory.write(memory)
                    except OSError as error:
                        raise NotWritten(f"{self.memory.path} can't be written: {error.strerror}") from error
                case Stop(ids=ids):
                    log.info("stopping %s", ", ".join(ids))
                    await asyncio.gather(*map(self.driver.stop, ids))
                case Start():
                    failed += await self.start(effect)
                case ApplyNetwork(states=states):
                    await self.driver.network(states)
                case Reply(message=message):
                    answer(self.with_causes(message))
        return failed

    def with_causes(self, message: FromHost) -> FromHost:
        """An answer, and why what it tells as down ended; for people, so nothing rests on it."""
        if not isinstance(message, Answer) or not message.down:
            return message
        some = message.down[:CAUSES_MOST]
        return replace(message, causes=tuple(self._unstarted.get(id_) or self.driver.cause(id_) for id_ in some))

    async def start(self, effect: Start) -> list[str]:
        """Start attempts while there is time; the ids of those that weren't."""
        failed = []
        for instance in effect.instances:
            if self.clock() >= effect.until:
                log.warning("%s is not started: by now it may run elsewhere", instance.id)
                self.unstarted(instance.id, "couldn't be started in time")
                failed.append(instance.id)
                continue
            try:
                await self.driver.start(instance)
                log.info("started %s", instance.id)
            except (Refused, Misconfigured, Unavailable) as error:
                log.warning("%s is not started: %s", instance.id, error.in_full)
                self.unstarted(instance.id, f"couldn't be started: {error.what}")
                failed.append(instance.id)
                if isinstance(error, Unavailable):  # it may run all the same, and is told as down
                    await self.driver.stop(instance.id)
        return failed

    def unstarted(self, id_: str, why: str) -> None:
        """Keep why an attempt wasn't started, of the newest."""
        self._unstarted[id_] = why[:CAUSE_MOST]
        for old in list(self._unstarted)[:-CAUSES_MOST]:
            del self._unstarted[old]

    def failing(self, error: Exception) -> None:
        """Say what is wrong, once."""
        text = error.in_full if isinstance(error, PortError) else str(error)
        if text != self._lost:
            log.error("host %s can't do what it is told, and doesn't answer that: %s", self.settings.name, text)
        self._lost = text

    def works(self) -> None:
        """Say that it is over."""
        if self.host.unable:
            return
        if self._lost:
            log.warning("host %s does what it is told again", self.settings.name)
        self._lost = ""


async def stop_quietly(task: "asyncio.Task[None]") -> None:
    """Cancel a task and wait for its end; being cancelled meanwhile isn't taken for that."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.result()
