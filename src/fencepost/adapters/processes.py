"""Looks at other processes of this machine, by proc(5): when one started, and which were given something to carry."""

import os
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


def start_of(pid: int) -> int | None:
    """When a process started, in ticks since the machine did; None if it is gone, or dead and not waited for."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before may hold anything, spaces and brackets too
    return None if fields[0] in "ZX" else int(fields[19])


class Carriers(NamedTuple):
    """Processes that carry a mark: those that lead a session, and others."""

    leaders: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


def find(marked: str, named: str) -> dict[str, Carriers]:
    """Processes that were given ``marked`` in their environment, by what follows ``named`` in it.

    Those of other users can't be looked into, and aren't found.
    """
    found: dict[str, Carriers] = {}
    mark, name = marked.encode(), named.encode()
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        try:
            words = (entry / "environ").read_bytes().split(b"\0")
            leads = mark in words and os.getsid(pid) == pid
        except OSError:
            continue
        if mark not in words or start_of(pid) is None:
            continue
        for word in words:
            if word.startswith(name):
                key = os.fsdecode(word.removeprefix(name))
                leaders, others = found.get(key, Carriers())
                found[key] = Carriers((*leaders, pid), others) if leads else Carriers(leaders, (*others, pid))
    return found
