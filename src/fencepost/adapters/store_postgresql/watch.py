"""Wakes whoever waits for a change: a thread with a connection of its own that listens (LISTEN).

A writer tells (NOTIFY) within its transaction, so what it tells is there to be read. The listener also looks at head
and inputs each two seconds, so a notification that never came is made up for; and each time its connection is lost or
made anew counts as a change. While it can't connect nobody is told of anything but that: a waiter's own limit ends its
wait.

Most commits are signs of life and reports, and most waiters only care for plans and inputs: those are told on channels
of their own.
"""

import asyncio
import os
import select
import threading

import psycopg

from fencepost.adapters.store_postgresql.address import Address, quoted
from fencepost.adapters.store_postgresql.connection import connect
from fencepost.adapters.store_postgresql.plans import UnreadableError, head_and_snapshot
from fencepost.adapters.store_postgresql.session import Session
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import PortError

LOOK_EACH_S = 2.0
AGAIN_LEAST_S = 0.2
AGAIN_MOST_S = 2.0


class Watch:
    """What changed in the store, and who waits for it; one event loop's."""

    def __init__(self, address: Address, *, create: bool) -> None:
        self._address = address
        self._create = create
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken, self._waker = -1, -1
        self.connected = False
        self._heard_of_it = False
        self.changes = 0
        self.plan_changes = 0
        self.waiting: set[asyncio.Future[None]] = set()
        self.waiting_for_plans: set[asyncio.Future[None]] = set()

    def start(self) -> None:
        """Begin to listen, if that hasn't begun."""
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._woken, self._waker = os.pipe2(os.O_CLOEXEC)
            self._thread = threading.Thread(target=self._run, name="store-watch", daemon=True)
            self._thread.start()

    async def close(self) -> None:
        """End the thread and every wait."""
        self._stop.set()
        self._count(plans_too=True)
        self._wake(plans_too=True)
        if self._thread is not None:
            os.write(self._waker, b"x")
            await asyncio.to_thread(self._thread.join, 1.0)
            if not self._thread.is_alive():
                os.close(self._woken)
                os.close(self._waker)

    def _run(self) -> None:
        pause = AGAIN_LEAST_S
        while not self._stop.is_set():
            try:
                session = connect(self._address, create=self._create, given_up=self._stop)
                pause = AGAIN_LEAST_S
                try:
                    self._listen(session)
                    return
                finally:
                    self.connected = False
                    session.connection.close()
            except (psycopg.Error, PortError, UnreadableError):
                self._lost()
            self._stop.wait(pause)
            pause = min(pause * 2, AGAIN_MOST_S)

    def _lost(self) -> None:
        """Tell that the connection is lost, once."""
        if self._heard_of_it:
            self._heard_of_it = False
            self._tell(plans_too=True)

    def _listen(self, session: Session) -> None:
        """Tell of each change until the connection breaks or nobody is left to tell."""
        heard: set[str] = set()
        session.connection.add_notify_handler(lambda notice: heard.add(notice.channel))
        for channel in (self._address.plans, self._address.told):
            session.execute(f"LISTEN {quoted(channel)}")
        planned = head_and_snapshot(session)
        self.connected = self._heard_of_it = True
        told = self._tell(plans_too=True)
        while told and not self._stop.is_set():
            heard.clear()
            readable, _, _ = select.select([session.connection.fileno(), self._woken], [], [], LOOK_EACH_S)
            if self._woken in readable:
                break
            if readable:
                heard |= session.receive()
            else:
                before, planned = planned, head_and_snapshot(session)
                if planned != before:
                    heard.add(self._address.plans)
            if heard:
                told = self._tell(plans_too=self._address.plans in heard)

    def _tell(self, *, plans_too: bool) -> bool:
        """Count the change and wake the loop's waiters, if there are any; False if the loop is gone.

        Counted first and waiters looked at second, while a waiter stands there first and looks at the count second: one
        of the two sees the other.
        """
        assert self._loop is not None  # set before the thread starts  # noqa: S101
        self._count(plans_too=plans_too)
        if not self.waiting and not (plans_too and self.waiting_for_plans):
            return True
        try:
            self._loop.call_soon_threadsafe(lambda: self._wake(plans_too=plans_too))
        except RuntimeError:
            return False
        return True

    def _count(self, *, plans_too: bool) -> None:
        self.changes += 1
        self.plan_changes += plans_too

    def _wake(self, *, plans_too: bool) -> None:
        for changed in self.waiting | (self.waiting_for_plans if plans_too else set()):
            if not changed.done():
                changed.set_result(None)


class Waiter:
    """One task's view of a watch: it is told of every change since its own last wait, whoever else waits."""

    def __init__(self, watch: Watch, *, reports: bool) -> None:
        self._watch = watch
        self._reports = reports
        self._told = 0

    async def wait(self, most: Duration) -> None:
        """Return when something has changed since the last call returned, at the latest after ``most`` nanoseconds."""
        watch = self._watch
        watch.start()
        changed = asyncio.get_running_loop().create_future()
        waiting = watch.waiting if self._reports else watch.waiting_for_plans
        waiting.add(changed)
        try:
            if self._now() == self._told:
                await asyncio.wait((changed,), timeout=most / SECOND)
        finally:
            waiting.discard(changed)
            changed.cancel()
        self._told = self._now()

    def _now(self) -> int:
        return self._watch.changes if self._reports else self._watch.plan_changes
