"""A sample's hosts: one for each address that a pool lists and launches instances for, each with an agent of its own.

The agents share one process, which must not take their instances along when it dies. So they don't start them
themselves: they ask the supervisor, over pairs of sockets made before either was forked. The supervisor forks a
stand-in as it forks a role, which costs a few megabytes and no interpreter's start, and tells the agent when it ends.
Whoever kills the supervisor kills the whole sample: that is the power failure of all its machines at once.

A host has a second address, so that something can be launched beside what the sample launches by itself.

What is said, one JSON array a packet: ``["running"]``, ``["start", ID, ADDRESS]``, ``["stop", ID]``, ``["kill", ID]``;
answered by ``["running", ID ...]``, ``["started", ID]`` or ``["refused", ID]``, and ``["ended", ID, HOW]``, which also
comes unasked. As soon as every host runs something, the supervisor starts what waited for that: checkers, which would
find targets dead that are yet to come.
"""

import contextlib
import ipaddress
import json
import os
import signal
import socket
from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct

from fencepost.settings import Region
from fencepost.settings.schema import Pool

PACKET_BYTES = 4096
PROGRAM = ("-m", "fencepost.dev.target")
"""What hosts of a sample run: anything else is no stand-in, and a sample is no place to run a program."""
SPARE = 10
"""How far a host's second address is from its first."""


class StandInHost(Struct, frozen=True):
    """A host of a sample: it runs stand-ins for ``pool`` at its ``addresses``, the listed one first."""

    name: str
    zone: str
    pool: str
    addresses: tuple[str, ...]

    @property
    def processes(self) -> tuple[str, ...]:
        """The supervisor's names for what it may run."""
        return tuple(map(process_at, self.addresses))


def process_at(address: str) -> str:
    """The supervisor's name for what runs at an address."""
    return f"target/{address}"


def stand_in_hosts(region: Region) -> tuple[StandInHost, ...]:
    """The hosts of a sample: a1, a2, b1 … for the addresses listed in its zones; none without a fleet of stand-ins."""
    found: list[StandInHost] = []
    counts: dict[str, int] = {}
    listed = {target.address for pool in region.pools for target in pool.targets}
    for pool in region.pools if region.fleet is not None else ():
        for target in pool.targets if launches_stand_ins(pool) else ():
            counts[target.zone] = counts.get(target.zone, 0) + 1
            addresses = (target.address, *spare(target.address, listed))
            found.append(StandInHost(f"{target.zone}{counts[target.zone]}", target.zone, pool.name, addresses))
    named = region.fleet.hosts if region.fleet is not None else ()
    return tuple(found) if not named or {host.name for host in found} <= set(named) else ()


def launches_stand_ins(pool: Pool) -> bool:
    """Whether what the pool launches is our own stand-in for a target."""
    return pool.launch is not None and pool.launch.command[1:3] == PROGRAM


def spare(address: str, listed: Collection[str]) -> tuple[str, ...]:
    """A second address on loopback for the host of a listed one, if there is one near."""
    first = ipaddress.ip_address(address)
    if first.version != 4 or not first.is_loopback:
        return ()
    second = str(ipaddress.IPv4Address(int(first) + SPARE))
    return (second,) if second not in listed and second.rpartition(".")[0] == address.rpartition(".")[0] else ()


class Caller(Protocol):
    """The supervisor, as far as it is asked here."""

    def call(self, name: str) -> bool:
        """Start a process that is on call; whether it runs now."""
        ...

    def pid_of(self, name: str) -> int:
        """A process's pid; 0 while it doesn't run."""
        ...

    def hurry(self) -> None:
        """Start what waited for others."""
        ...


class Line(Struct):
    """The two ends of one host's line, and its attempts that run, each with its process's name."""

    host: StandInHost
    supervisor: socket.socket
    agent: socket.socket
    attempts: dict[str, str]


class HostCalls:
    """The supervisor's end of all lines. Make it before forking; see :class:`~fencepost.roles.supervisor.Calls`."""

    def __init__(self, hosts: Sequence[StandInHost]) -> None:
        self.lines: dict[str, Line] = {}
        for host in hosts:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.setblocking(False)
            theirs.setblocking(False)
            self.lines[host.name] = Line(host, ours, theirs, {})
        self._by_fd = {line.supervisor.fileno(): line for line in self.lines.values()}
        self._by_process = {name: line for line in self.lines.values() for name in line.host.processes}

    def fds(self) -> Collection[int]:
        """What is to be watched."""
        return tuple(self._by_fd)

    def heard(self, fd: int, supervisor: Caller) -> None:
        """An agent asks for something."""
        line = self._by_fd[fd]
        try:
            asked = json.loads(line.supervisor.recv(PACKET_BYTES))
        except (OSError, ValueError):
            return
        match asked:
            case ["running"]:
                tell(line.supervisor, "running", *line.attempts)
            case ["start", str() as id_, str() as address]:
                self.start(line, id_, process_at(address), supervisor)
            case ["stop" | "kill" as how, str() as id_]:
                pid = supervisor.pid_of(line.attempts[id_]) if id_ in line.attempts else 0
                if not pid:
                    tell(line.supervisor, "ended", id_, "")
                    return
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM if how == "stop" else signal.SIGKILL)
                    os.kill(pid, signal.SIGCONT)

    def start(self, line: Line, id_: str, process: str, supervisor: Caller) -> None:
        """Start an attempt's process, unless another attempt has it."""
        free = line.attempts.get(id_, process) == process and process not in [
            name for other, name in line.attempts.items() if other != id_
        ]
        if free and process in line.host.processes and supervisor.call(process):
            line.attempts[id_] = process
            tell(line.supervisor, "started", id_)
        else:
            tell(line.supervisor, "refused", id_)
        if all(each.attempts for each in self.lines.values()):
            supervisor.hurry()

    def ended(self, name: str, how: str) -> None:
        """An instance's process has ended, so."""
        line = self._by_process.get(name)
        if line is None:
            return
        for id_ in [id_ for id_, process in line.attempts.items() if process == name]:
            del line.attempts[id_]
            tell(line.supervisor, "ended", id_, how)


def tell(to: socket.socket, *words: str) -> None:
    """Say something. An agent that doesn't read asks for what runs when it starts again."""
    with contextlib.suppress(OSError):
        to.send(json.dumps(words).encode())


def drain(end: socket.socket) -> None:
    """Throw away what was said to whoever had this end before."""
    with contextlib.suppress(OSError):
        while os.read(end.fileno(), PACKET_BYTES):
            pass
