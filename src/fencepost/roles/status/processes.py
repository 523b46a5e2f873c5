"""Processes of this machine: what the supervisor's file says of them, and what /proc does."""

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from fencepost.core.instant import SECOND, Instant
from fencepost.ports import Beat
from fencepost.roles.machine import this_machine
from fencepost.roles.status.facts import Process, StoreFacts


def read_processes(held: Mapping[str, Any]) -> tuple[dict[str, Process], Instant]:
    """What ``processes.json`` holds, and when its supervisor started (0: it doesn't run); a dead one's word is void."""
    try:
        booted = booted_at()
    except (OSError, ValueError):
        return {}, 0
    supervisor = held.get("supervisor")
    started = started_at(supervisor, booted)
    if not started or not isinstance(supervisor, int) or not alive(supervisor):
        return {}, 0
    try:
        found = msgspec.convert(held.get("processes", {}), type=dict[str, Process])
    except msgspec.ValidationError:
        return {}, started
    return {name: structs.replace(each, started=started_at(each.pid, booted)) for name, each in found.items()}, started


def stuck_writer(held: Mapping[str, Any]) -> tuple[int, float] | None:
    """Who holds the store's write lock and doesn't move, and for how many seconds, as ``processes.json`` has it."""
    match held.get("stuck_writer"):
        case {"pid": int(pid), "held_s": int() | float() as seconds}:
            return pid, float(seconds)
    return None


def logs_in(folder: str) -> frozenset[str]:
    """The log files in a region's folder, which a supervisor of ours writes and systemd doesn't."""
    try:
        return frozenset(name for name in os.listdir(folder) if name.endswith(".log")) if folder else frozenset()
    except OSError:
        return frozenset()


def pids_of(stored: StoreFacts | None, running: Mapping[str, Process]) -> set[int]:
    """Every process of this machine that is said to be a role's."""
    beats = stored.beats if stored is not None else ()
    supervised = {each.pid for each in running.values() if each.pid is not None}
    return supervised | {beat.pid for beat in beats if is_here(beat)}


def is_here(beat: Beat) -> bool:
    """Whether a sign of life came from this machine, so that its pid can be looked up."""
    return beat.machine in ("", this_machine())


def supervisor_of(held: Mapping[str, Any]) -> set[int]:
    """The supervisor's pid, as ``processes.json`` has it, if there is one."""
    pid = held.get("supervisor")
    return {pid} if isinstance(pid, int) else set()


def gone(pids: Iterable[int]) -> frozenset[int]:
    """Those of these pids that no process of this machine has, or only one that has died and wasn't waited for.

    A sign of life by a pid of this machine that is gone says nothing any more.
    """
    return frozenset(pid for pid in pids if pid > 0 and not alive(pid))


def stopped(pids: Iterable[int]) -> frozenset[int]:
    """Those of these pids whose process was stopped (SIGSTOP, or a debugger) and didn't go on since.

    That is told apart from a slow machine at once: a process that only waits for its turn is never in this state.
    """
    return frozenset(pid for pid in pids if pid > 0 and is_stopped(pid))


def is_stopped(pid: int) -> bool:
    """Whether /proc says so; what it hides isn't known to be."""
    try:
        return stat_of(pid)[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def alive(pid: int) -> bool:
    """Whether a process of this machine has this pid. Another user's counts too, also where /proc hides it."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    try:
        return stat_of(pid)[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return True


def stat_of(pid: int) -> list[bytes]:
    """What proc_pid_stat(5) holds, from field 3 (the state) on. Raises OSError.

    Read without a file object: the status document asks for dozens of processes each second, and that is a third of it.
    """
    file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 4096).rpartition(b")")[2].split()
    finally:
        os.close(file)


def booted_at() -> Instant:
    """When this machine started (nanoseconds since 1970, to 10 ms). Raises OSError or ValueError without /proc."""
    return time.time_ns() - int(float(Path("/proc/uptime").read_text().split()[0]) * SECOND)


def started_at(pid: object, booted: Instant) -> Instant:
    """When a process started (nanoseconds since 1970, to 10 ms); 0 if there is none. proc_pid_stat(5), field 22."""
    if not isinstance(pid, int) or pid <= 0:
        return 0
    try:
        ticks = int(stat_of(pid)[19])
    except (OSError, IndexError):
        return 0
    return max(1, booted + ticks * (SECOND // 100))


def load_processes(folder: Path) -> dict[str, Any]:
    """``processes.json`` of a region's folder; empty where there is none."""
    try:
        held = msgspec.json.decode((folder / "processes.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return held if isinstance(held, dict) else {}
