"""Ten thousand hosts in one process, each with the very decider that a real agent has, to try a fleet out on.

Nothing runs on them: an attempt counts as running from its start to its stop. They answer at one port and keep their
memories in one file. Who is deaf, how slow they are, which attempts ended, and who lost its disk is for whoever tries
something out to say, when the process starts or, by a small file (:mod:`fencepost.dev.agent_control`), while it runs.

Awkward truth: when this process starts again, all its agents do, and what was placed on them is found running, as if
it had outlived them; a real machine that restarts would have it down.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core.capacity.host import (
    Again,
    Ended,
    Host,
    HostEvent,
    HostMemory,
    HostSettings,
    Persist,
    Reply,
    Started,
    Told,
    Unwritten,
)
from fencepost.core.capacity.messages import FromHost, ToHost
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.dev.agent_memories import AgentMemories
from fencepost.dev.crowded import Crowded
from fencepost.ports import Unavailable

log = logging.getLogger(__name__)

Answering = Callable[[FromHost], None]
BITS = 63


def clock() -> Instant:
    """As a real agent's: nanoseconds since the machine started, suspended time counted."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Member(Struct, eq=False):
    """One host: its decider, its zone, when somebody last asked it (event loop's clock) and when it last registered."""

    host: Host
    zone: str
    addresses: tuple[str, ...]
    asked: float = 0.0
    joined: float | None = None
    joins: int = 0
    deaf: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.host.settings.name


class ManyHosts:
    """All hosts of one process. ``answering`` is False while it isn't known how long a lease is.

    ``asked`` counts questions, ``strangers`` those for hosts that aren't here, ``answers`` answers, ``commits`` writes
    to the file.
    """

    def __init__(self, memories: AgentMemories, names: Mapping[str, str], room: int, lease: Duration) -> None:
        """``names`` gives each host's zone. Raises ``Unavailable``."""
        self.memories = memories
        self.room = room
        self.members: dict[str, Member] = {}
        self.crowded: Crowded | None = None
        self.answering = lease > 0
        self.asked = self.strangers = self.answers = self.commits = 0
        self._time = asyncio.get_running_loop().time()
        self._before: dict[str, Host] = {}
        self._pending: list[tuple[Answering, FromHost]] = []
        self._heard: dict[str, list[ToHost]] = {}
        self._lost = ""
        known = memories.read()
        for number, (name, zone) in enumerate(names.items()):
            addresses = tuple(addresses_of(number, room))
            self.members[name] = Member(Host(HostSettings(name, fresh_for=lease)), zone, addresses, self._time)
            memory = known.get(name)
            self.begin(name, memory, memory.set.ids - memory.over if memory is not None else ())
        self.round()

    def begin(self, name: str, memory: HostMemory | None, running: Collection[str]) -> None:
        """Start a host's agent."""
        event = Started(memory, secrets.randbits(BITS), secrets.randbits(BITS), tuple(sorted(running)))
        self.happen(self.members[name].host, event, None)

    def told(self, message: ToHost, answer: Answering) -> None:
        """One question."""
        self.asked += 1
        member = self.members.get(message.host)
        if member is None:
            self.strangers += 1
            return
        if member.deaf or not self.answering:
            return
        if self.crowded is None:
            self.serve(member, message, answer)
            return
        loop = asyncio.get_running_loop()
        loop.call_at(self.crowded.done_at(loop.time()), self._late, member, message, answer)

    def _late(self, member: Member, message: ToHost, answer: Answering) -> None:
        self.serve(member, message, answer)
        self.round()

    def serve(self, member: Member, message: ToHost, answer: Answering) -> None:
        """Answer a question now, or at the end of the round if something must be written first."""
        member.asked = self._time
        self.happen(member.host, Told(message), answer)

    def happen(self, host: Host, event: HostEvent, answer: Answering | None) -> None:
        """One event of one host."""
        before = copy(host)
        effects = host.on(event, clock())
        if not effects:
            return
        last = effects[-1]
        if isinstance(effects[0], Persist):
            if isinstance(event, Told):
                self._heard.setdefault(host.settings.name, []).append(event.message)
            self._before.setdefault(host.settings.name, before)
        elif not self._before or host.settings.name not in self._before:
            if answer is not None and isinstance(last, Reply):
                self.answers += 1
                answer(last.message)
            return
        if answer is not None and isinstance(last, Reply):
            self._pending.append((answer, last.message))

    def round(self) -> None:
        """Write down what the round changed, then say what rests on it. If it can't be written, nothing happened."""
        self._time = asyncio.get_running_loop().time()
        if self._lost:
            for member in self.members.values():
                self.happen(member.host, Again(), None)
        if not self._before:
            return
        before, pending, heard = self._before, self._pending, self._heard
        self._before, self._pending, self._heard = {}, [], {}
        members = self.members
        try:
            changed = {name: members[name].host.memory for name in before}
            self.memories.write({name: memory for name, memory in changed.items() if memory is not None})
        except Unavailable as error:
            for name, host in before.items():
                members[name].host = host
                for asked in heard.get(name, [None]):
                    host.on(Unwritten(error.in_full, asked), clock())
            if error.in_full != self._lost:
                log.error("what needs to be remembered isn't answered: %s", error.in_full)  # noqa: TRY400
            self._lost = error.in_full
            return
        self._lost = ""
        self.commits += 1
        self.answers += len(pending)
        for answer, message in pending:
            answer(message)

    def lease_lasts(self, lease: Duration) -> None:
        """Take up how long a stamp is worth something."""
        for member in self.members.values():
            member.host.settings = replace(member.host.settings, fresh_for=lease)
        self.answering = True

    def end(self, ids: Collection[str]) -> None:
        """These attempts end by themselves, wherever they run."""
        wanted = frozenset(ids)
        for member in self.members.values():
            for id_ in sorted(member.host.running & wanted):
                self.happen(member.host, Ended(id_), None)
        self.round()

    def restart(self, names: Collection[str], *, lost: bool = False) -> None:
        """These hosts' agents start again; with ``lost``, on an empty disk."""
        for name in names:
            member = self.members.get(name)
            if member is not None:
                self.begin(name, None if lost else member.host.memory, member.host.running)
        self.round()

    def chosen(self, words: Sequence[str]) -> Iterator[Member]:
        """Those meant by names, ``zone:a`` or ``*``."""
        names = frozenset(words)
        for member in self.members.values():
            if "*" in names or member.name in names or f"zone:{member.zone}" in names:
                yield member

    def due(self, due_after: Callable[[str, int], Duration]) -> Sequence[Member]:
        """Those that the API must be told of: never registered, or not asked for so long."""
        now = asyncio.get_running_loop().time()
        return [
            each
            for each in self.members.values()
            if not each.deaf
            and (
                each.joined is None or (now - max(each.joined, each.asked)) * SECOND > due_after(each.name, each.joins)
            )
        ]


def names_of(hosts: int, zones: Sequence[str]) -> dict[str, str]:
    """``h00000``, ``h00001`` ... with the zones in turn."""
    width = max(5, len(str(hosts - 1)))
    return {f"h{number:0{width}}": zones[number % len(zones)] for number in range(hosts)}


def addresses_of(number: int, room: int) -> Iterator[str]:
    """Addresses for a host's instances, on loopback (127.64.0.0/10), where nothing answers and nothing gets out."""
    for at in range(number * room, (number + 1) * room):
        low = at % (1 << 22)
        yield f"127.{64 + (low >> 16)}.{(low >> 8) & 255}.{low & 255}"
