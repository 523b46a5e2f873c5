"""Instances as processes of this machine: each attempt a session of its own that outlives the agent.

An attempt has a folder, FOLDER/instances/ID: its log, its network state (network.json) and who it is (process.json).
The agent waits for it by a handle on the process (pidfd_open(2)), which works for children and for those found at a
start alike. Found they are in two ways: by pid and start time as noted, which tells a process from a later one of the
same pid; and by the environment that they were given, for those that an agent started in the moment of its death.

An attempt is its first process. When that ends, what is left of its process group is ended too.

Awkward truth: a process that leaves its process group isn't ended with it; containers and units are for that. Under
systemd the agent's unit needs KillMode=process, or systemd ends the instances with the agent (systemd.kill(5)). Logs
aren't rotated; those of the newest 50 attempts that ended are kept. And a process that not even SIGKILL ends (a dead
disk under it) keeps the agent silent, for it can't say that it stopped what it couldn't: the host is then given up.
"""

import asyncio
import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, json

from fencepost.adapters.processes import Carriers, find, start_of
from fencepost.core.capacity.command import filled
from fencepost.core.capacity.messages import Instance, NetworkState
from fencepost.ports import Refused, Unavailable

log = logging.getLogger(__name__)

POLITE_S = 5.0
"""So long after SIGTERM comes SIGKILL."""
KEPT = 50
LINE_BYTES, LINE_MOST = 4096, 120
"""So much of a log's end is looked at, and so many letters of its last line are told."""
OWN = "FENCEPOST_"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


class Known(Struct):
    """What process.json says: the attempt's first process, when it started (proc(5), field 22) and since which boot."""

    pid: int
    start: int
    boot: str


class Running(Struct, eq=False):
    """A process that is waited for. ``child`` is None if another agent started it."""

    pid: int
    handle: int
    gone: asyncio.Event
    child: "subprocess.Popen[bytes] | None" = None
    stopping: bool = False


class ProcessDriver:
    """See :class:`~fencepost.ports.fleet.Driver`. ``given`` goes into each attempt's environment."""

    def __init__(self, folder: Path, given: Mapping[str, str] | None = None) -> None:
        self.folder = folder.resolve() / "instances"
        self.given = dict(given or {})
        self.attempts: dict[str, Running] = {}
        self.codes: dict[str, int] = {}
        self._told: Callable[[str], None] = lambda _: None

    def on_end(self, told: Callable[[str], None]) -> None:
        """Have ``told`` called with each attempt that ends by itself."""
        self._told = told

    async def running(self) -> Collection[str]:
        """All attempts that run, those of earlier agents taken over. Raises ``Unavailable``."""
        try:
            self.folder.mkdir(exist_ok=True)
            folders = {each.name: each for each in self.folder.iterdir() if each.is_dir()}
        except OSError as error:
            raise Unavailable(f"instances can't be looked up: {error.strerror}", where=str(self.folder)) from None
        marked = find(f"{OWN}INSTANCE_FOLDER={self.folder}", f"{OWN}INSTANCE=")
        for id_ in sorted({*folders, *marked} - set(self.attempts)):
            pid = noted(folders[id_]) if id_ in folders else 0
            there = marked.get(id_, Carriers())
            if not any(each and self.watch(id_, each) for each in (pid, *there.leaders)):
                end_strays(id_, there.others)
                with contextlib.suppress(OSError):
                    (self.folder / id_ / "process.json").unlink(missing_ok=True)
        return tuple(self.attempts)

    def _make(self, place: Path) -> None:
        """Make an attempt's folder. Not the agent's own: one that is away (unmounted, moved) isn't to be begun anew."""
        self.folder.mkdir(exist_ok=True)
        place.mkdir(exist_ok=True)

    async def start(self, instance: Instance) -> None:
        """Start an attempt's process. Raises ``Refused``, or ``Unavailable``."""
        if not _ID.fullmatch(instance.id):
            raise Refused("is no name for an attempt", where=repr(instance.id))
        command, place = filled(instance), self.folder / instance.id
        if not command or not command[0]:
            hint = "[fleet] or the pool's [pool.NAME.launch] has the command"
            raise Refused("there is no command to run", where=instance.id, hint=hint)
        try:
            child = self._spawn(command, place, self.environment(instance))
        except (OSError, ValueError) as error:
            raise Refused(f"{command[0]}: {getattr(error, 'strerror', None) or error}", where=instance.id) from None
        try:
            self.watch(instance.id, child.pid, child)
        except Unavailable:  # it would run unseen
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        known = Known(child.pid, start_of(child.pid) or 0, boot())
        with contextlib.suppress(OSError):  # it is found by its environment then
            (place / "process.json").write_bytes(json.encode(known))

    def _spawn(self, command: tuple[str, ...], place: Path, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        self._make(place)
        with (place / "log").open("ab") as out:
            return subprocess.Popen(  # noqa: S603  the command is what the region's file says, without a shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=place,
                env=environment,
                start_new_session=True,
            )

    def environment(self, instance: Instance) -> dict[str, str]:
        """An attempt's environment: the agent's, without what is the agent's own."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
        own = {
            "INSTANCE": instance.id,
            "INSTANCE_NAME": instance.name,
            "INSTANCE_POOL": instance.pool,
            "INSTANCE_ADDRESS": instance.address,
            "INSTANCE_PORT": str(instance.port) if instance.port else "",
            "NETWORK": str(self.folder / instance.id / "network.json"),
            "INSTANCE_FOLDER": str(self.folder),
        }
        return inherited | {OWN + name: value for name, value in (own | self.given).items()}

    def watch(self, id_: str, pid: int, child: "subprocess.Popen[bytes] | None" = None) -> bool:
        """Wait for a process's end in the background; whether it is there. Raises ``Unavailable``."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        except OSError as error:
            what = f"pid {pid} can't be waited for: {error.strerror}"
            raise Unavailable(
                what, where=id_, hint="LimitNOFILE= of the agent's unit, or a kernel before 5.3"
            ) from None
        running = self.attempts[id_] = Running(pid, handle, asyncio.Event(), child)
        asyncio.get_running_loop().add_reader(handle, self._ended, id_, running)
        return True

    def _ended(self, id_: str, running: Running) -> None:
        asyncio.get_running_loop().remove_reader(running.handle)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)  # before the pid is given back
        code = running.child.wait() if running.child is not None else None
        os.close(running.handle)
        self.attempts.pop(id_, None)
        running.gone.set()
        with contextlib.suppress(OSError):  # a disk turned read-only: that it ended is told all the same
            (self.folder / id_ / "process.json").unlink(missing_ok=True)
        self.tidy()
        if not running.stopping:
            if code is not None:
                self.codes[id_] = code
                for old in list(self.codes)[:-KEPT]:
                    del self.codes[old]
            log.warning("%s ended by itself (%s); its log is %s", id_, ended_as(code), self.folder / id_ / "log")
            self._told(id_)

    def cause(self, id: str) -> str:  # noqa: A002  the port's word
        """Its exit code or signal, and the last line of its log."""
        if id in self.attempts or not _ID.fullmatch(id):
            return ""
        said = last_line(self.folder / id / "log")
        return ended_as(self.codes.get(id)) + (f": {said}" if said else "")

    async def stop(self, id: str) -> None:  # noqa: A002  the port's word
        """End an attempt: SIGTERM, after 5 s SIGKILL, to its whole process group. Raises ``Unavailable``."""
        running = self.attempts.get(id)
        if running is None:
            return
        running.stopping = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(running.pid, number)
                os.killpg(running.pid, signal.SIGCONT)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(running.gone.wait(), POLITE_S)
                return
        raise Unavailable(f"pid {running.pid} doesn't end, even by SIGKILL", where=id, hint="look at its disk: D in ps")

    async def network(self, states: Sequence[NetworkState]) -> None:
        """Replace each attempt's network.json, whole. Raises ``Unavailable``."""
        for state in states:
            path = self.folder / state.id / "network.json"
            new = path.with_suffix(".new")
            try:
                self._make(path.parent)
                new.write_bytes(state.body)
                new.replace(path)
            except OSError as error:
                raise Unavailable(f"network state can't be written: {error.strerror}", where=str(path)) from None

    def tidy(self) -> None:
        """Remove the folders of attempts that ended long ago."""
        with contextlib.suppress(OSError):
            ended = [each for each in self.folder.iterdir() if each.name not in self.attempts]
            ended.sort(key=lambda each: each.stat().st_mtime_ns)
            for each in ended[:-KEPT]:
                shutil.rmtree(each, ignore_errors=True)

    def close(self) -> None:
        """Let go of the processes; they go on."""
        for running in self.attempts.values():
            asyncio.get_running_loop().remove_reader(running.handle)
            os.close(running.handle)
        self.attempts.clear()


def ended_as(code: int | None) -> str:
    """How a process ended, by what wait(2) says; None for one that another agent started, of which nobody knows."""
    if code is None:
        return "exit code unknown"
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"by {signal.Signals(-code).name}"
    return f"by signal {-code}"


def last_line(path: Path) -> str:
    """The last line with anything in it, without what a terminal could take for a command; "" if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LINE_BYTES))
            lines = file.read(LINE_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "".join(each if each.isprintable() else " " for each in said)[:LINE_MOST]


def boot() -> str:
    """This start of the machine: pids and start times of another one say nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def end_strays(id_: str, pids: Sequence[int]) -> None:
    """End what an attempt left behind when its first process ended and no agent was there to see it."""
    for pid in pids:
        log.warning("pid %d is left over from %s, which ended; it is ended too", pid, id_)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def noted(folder: Path) -> int:
    """The pid that an attempt's folder names, if it is still that process; 0 if not."""
    try:
        known = json.decode((folder / "process.json").read_bytes(), type=Known)
    except (OSError, ValueError):
        return 0
    return known.pid if known.boot == boot() and start_of(known.pid) == known.start else 0
