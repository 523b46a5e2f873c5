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
from collections.abc import Sequence

import psycopg

from fencepost.adapters.store_bodies import UnreadableError
from fencepost.adapters.store_postgresql.address import Address, quoted
from fencepost.adapters.store_postgresql.connection import connect
from fencepost.adapters.store_postgresql.plans import head_and_snapshot
from fencepost.adapters.store_postgresql.session import Session
from fencepost.adapters.store_waiting import Changes
from fencepost.ports import PortError

LOOK_EACH_S = 2.0
AGAIN_LEAST_S = 0.2
AGAIN_MOST_S = 2.0


class Watch(Changes):
    """What changed in the store, and who waits for it; one event loop's."""

    def __init__(self, address: Address, *, create: bool) -> None:
        super().__init__()
        self.channels: Sequence[str] = (address.plans, address.told)
        """The first one tells of what plans are made of and from."""
        self._address = address
        self._create = create
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._woken, self._waker = -1, -1
        self.connected = False
        self._heard_of_it = False

    def planned(self, session: Session) -> object:
        """What differs after each change that the first channel tells of."""
        return head_and_snapshot(session)

    def start(self) -> None:
        """Begin to listen, if that hasn't begun."""
        if self._thread is None:
            self.loop = asyncio.get_running_loop()
            self._woken, self._waker = os.pipe2(os.O_CLOEXEC)
            self._thread = threading.Thread(target=self._run, name="store-watch", daemon=True)
            self._thread.start()

    async def close(self) -> None:
        """End the thread and every wait."""
        self._stop.set()
        self.note(plans_too=True)
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
            self.tell(plans_too=True)

    def _listen(self, session: Session) -> None:
        """Tell of each change until the connection breaks or nobody is left to tell."""
        heard: set[str] = set()
        session.connection.add_notify_handler(lambda notice: heard.add(notice.channel))
        for channel in self.channels:
            session.execute(f"LISTEN {quoted(channel)}")
        planned = self.planned(session)
        self.connected = self._heard_of_it = True
        told = self.tell(plans_too=True)
        poll = select.poll()
        for fd in (session.connection.fileno(), self._woken):
            poll.register(fd, select.POLLIN)
        while told and not self._stop.is_set():
            heard.clear()
            # Not select(2): a checker with a thousand connections has descriptors that it can't take.
            readable = [fd for fd, _ in poll.poll(LOOK_EACH_S * 1000)]
            if self._woken in readable:
                break
            if readable:
                heard |= session.receive()
            else:
                before, planned = planned, self.planned(session)
                if planned != before:
                    heard.add(self.channels[0])
            if heard:
                told = self.tell(plans_too=self.channels[0] in heard)
