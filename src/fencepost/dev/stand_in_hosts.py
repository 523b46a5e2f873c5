"""A sample's hosts: one for each address that a pool lists and launches instances for, each with an agent of its own.

An agent must not take its instances along when it dies, so it doesn't start them itself: it asks the supervisor, over a
pair of sockets made before either was forked. The supervisor forks a stand-in as it forks a role, which costs a few
megabytes and no interpreter's start, and tells the agent when it ends. Whoever kills the supervisor kills the whole
sample: that is the power failure of all its machines at once.

What is said, one JSON array a packet: ``["running"]``, ``["start", ID]``, ``["stop", ID]`` and ``["kill", ID]``;
answered by ``["running", ID]`` ("" for nothing), ``["started", ID]`` or ``["refused", ID]``, and ``["ended", ID]``,
which also comes unasked. As soon as every host runs what it is to run, the supervisor starts what waited for that:
checkers, which would find targets dead that are yet to come.
"""

import contextlib
import json
import os
import signal
import socket
from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct

from fencepost.settings import Region

PACKET_BYTES = 4096


class StandInHost(Struct, frozen=True):
    """A host of a sample: ``process`` is the supervisor's name for what it runs, at ``address``, for ``pool``."""

    name: str
    zone: str
    pool: str
    address: str

    @property
    def process(self) -> str:
        """The supervisor's name for the host's instance."""
        return f"target/{self.address}"


def stand_in_hosts(region: Region) -> tuple[StandInHost, ...]:
    """The hosts of a sample: a1, a2, b1 … for the addresses listed in its zones; none without a fleet."""
    found: list[StandInHost] = []
    counts: dict[str, int] = {}
    for pool in region.pools if region.fleet is not None else ():
        for target in pool.targets if pool.launch is not None else ():
            counts[target.zone] = counts.get(target.zone, 0) + 1
            found.append(StandInHost(f"{target.zone}{counts[target.zone]}", target.zone, pool.name, target.address))
    return tuple(found)


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
    """The two ends of one host's line, and the attempt that its process is, "" while it runs none."""

    host: StandInHost
    supervisor: socket.socket
    agent: socket.socket
    attempt: str = ""


class HostCalls:
    """The supervisor's end of all lines. Make it before forking; see :class:`~fencepost.roles.supervisor.Calls`."""

    def __init__(self, hosts: Sequence[StandInHost]) -> None:
        self.lines: dict[str, Line] = {}
        for host in hosts:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.setblocking(False)
            theirs.setblocking(False)
            self.lines[host.name] = Line(host, ours, theirs)
        self._by_fd = {line.supervisor.fileno(): line for line in self.lines.values()}
        self._by_process = {line.host.process: line for line in self.lines.values()}

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
                tell(line.supervisor, "running", line.attempt)
            case ["start", str() as id_] if line.attempt in ("", id_):
                line.attempt = id_
                started = supervisor.call(line.host.process)
                line.attempt = id_ if started else ""
                tell(line.supervisor, "started" if started else "refused", id_)
                if all(each.attempt for each in self.lines.values()):
                    supervisor.hurry()
            case ["start", str() as id_]:
                tell(line.supervisor, "refused", id_)
            case ["stop" | "kill" as how, str() as id_]:
                pid = supervisor.pid_of(line.host.process)
                if not pid or line.attempt != id_:
                    tell(line.supervisor, "ended", id_)
                    return
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM if how == "stop" else signal.SIGKILL)
                    os.kill(pid, signal.SIGCONT)

    def ended(self, name: str) -> None:
        """An instance's process has ended."""
        line = self._by_process.get(name)
        if line is not None and line.attempt:
            id_, line.attempt = line.attempt, ""
            tell(line.supervisor, "ended", id_)


def tell(to: socket.socket, *words: str) -> None:
    """Say something. An agent that doesn't read asks for what runs when it starts again."""
    with contextlib.suppress(OSError):
        to.send(json.dumps(words).encode())


def drain(end: socket.socket) -> None:
    """Throw away what was said to whoever had this end before."""
    with contextlib.suppress(OSError):
        while os.read(end.fileno(), PACKET_BYTES):
            pass
