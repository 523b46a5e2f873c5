"""Processes that share a store with a test: ``python store_sqlite_child.py WHAT PATH …``."""

import asyncio
import os
import signal
import sqlite3
import sys
from pathlib import Path

from fencepost.adapters.store_sqlite import SqliteStore, database
from fencepost.core.fence import Generation
from fencepost.core.record_set import content
from fencepost.core.store import Head, Plan, Row
from fencepost.ports import PortError


def say(*words: object) -> None:
    """One line to the test."""
    print(*words, flush=True)  # noqa: T201  the test reads it


def plan(head: Head, *names: str) -> Plan:
    """The next plan on a head."""
    number = head.number + 1
    value = content(["192.0.2.1"], 30)
    return Plan(head, number, 0, tuple(Row.of(name, Generation(0, number), value, families="4") for name in names))


async def planner(path: str, name: str, times: int) -> None:
    """Publish plans of two rows until so many attempts were made; say each outcome."""
    store = SqliteStore.open(path)
    for _ in range(times):
        head = await store.publish(plan(await store.head(), f"{name}.example", "shared.example"))
        say("published", head.number, head.nonce) if head else say("outrun")
    await store.close()


def stopped(path: str) -> None:
    """Take the write lock, write, and stop as a paused machine would: without a word."""
    files = database.Database(Path(path), create=False)

    def work(db: sqlite3.Connection) -> None:
        db.execute("UPDATE head SET number = 99")
        say("stopping")
        os.kill(os.getpid(), signal.SIGSTOP)

    files.write(work)
    say("committed")


async def told(path: str, names: int) -> None:
    """Read, then publish a plan of so many rows; say what came of each, and again after each line from the test."""
    store: SqliteStore | None = None
    for _ in sys.stdin:
        try:
            store = store or SqliteStore.open(path)
            head = await store.head()
            say("read", head.number)
            after = await store.publish(plan(head, *(f"e{n}.example" for n in range(names))))
            say("published", after.number if after else None)
        except PortError as problem:
            say(type(problem).__name__, problem)
    if store is not None:
        await store.close()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["planner", path, name, times]:
            asyncio.run(planner(path, name, int(times)))
        case ["stopped", path]:
            stopped(path)
        case ["told", path, names]:
            asyncio.run(told(path, int(names)))
        case ["told", path, names, user]:
            os.setgroups([])
            os.setgid(int(user))
            os.setuid(int(user))
            asyncio.run(told(path, int(names)))
