"""The supervisor: starts the roles, starts again what dies, ends what is stuck holding the store's write lock.

It has no event loop and no thread, so that it can fork at any time. It never gives up on a role: waits grow to two
seconds and stay there, and a role that keeps dying is said to, each time. It knows nothing of what the roles do;
whether they do it is for the observer to say.

What the system refuses it (a fork where processes or memory are short, a file on a full disk) it asks for again, each
second or so, and says once: its own end would be that of every role, and of the answers that still go out.
"""

import contextlib
import json
import math
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct

from fencepost.roles.whole_file import replace_whole

RESTART_FIRST_S = 0.5
RESTART_MOST_S = 2.0
STEADY_S = 10.0
"""A role that lived so long is started again after the first, short wait."""
STOP_WITHIN_S = 5.0
"""So long after SIGTERM comes SIGKILL."""
STUCK_SAID_S = 2.0
STUCK_ENDED_S = 10.0
"""A process that has held the store's write lock so long without moving is said to, and then ended."""
ANSWERS_LOOK_S = 0.1
ANSWERS_WITHIN_S = 30.0
"""A server that doesn't answer by then is waited for no longer: the roles go on without it, and say so."""
LOOK_S = 1.0
"""How often it is asked whether a process is stuck, and what couldn't be written is tried again."""


class Spec(Struct, frozen=True):
    """A process to keep alive.

    ``start`` forks it and returns its pid, or raises ``OSError``; ``again_s`` overrides how long a restart waits. One
    ``on_call`` is started each time that somebody calls for it, and never by itself. One that has to ``wait_s`` is
    started so long after the others, or as soon as :meth:`Supervisor.hurry` is called. One that ``needs`` a server
    that is started beside it is first started when that answers (:class:`Supervisor`, ``answers``).
    """

    name: str
    start: Callable[[], int]
    again_s: float | None = None
    on_call: bool = False
    wait_s: float = 0.0
    needs: bool = False


class Child(Struct):
    """A process as it is now. Times are on the monotonic clock; ``pid`` 0 means not running."""

    spec: Spec
    pid: int = 0
    started: float = 0.0
    due: float = 0.0
    wait: float = RESTART_FIRST_S
    restarts: int = 0
    last_exit: str = ""
    refused: str = ""
    """Why it couldn't be started, as was said; "" once it was."""


class Ended(NamedTuple):
    """How a process ended: its exit code, or minus the signal's number; and whether it is started again unasked."""

    code: int
    again: bool


class Tell(Protocol):
    """Takes a line for people: whose, what, and how it ended if that is what it tells. Never blocks."""

    def __call__(self, name: str, text: str, ended: Ended | None = None, /) -> None:
        """Tell it."""
        ...


class Calls(Protocol):
    """What others of our processes ask for, by descriptors that are watched. Nothing here may block, or raise."""

    def fds(self) -> Collection[int]:
        """What is to be watched."""
        ...

    def heard(self, fd: int, supervisor: "Supervisor") -> None:
        """There is something to read."""
        ...

    def ended(self, name: str, how: str) -> None:
        """A process on call has ended: "exited (signal 15)" or the like."""
        ...


class Supervisor:
    """Keeps processes alive until told to stop.

    ``tell`` is given each thing worth a line, as (name, text). ``stuck`` answers which process holds the store's write
    lock and for how many seconds it has not moved, or None; it is asked about each second. ``reload`` is called at
    SIGHUP. ``calls`` are for processes on call. ``answers`` says whether the server that some need takes work; it is
    asked ten times a second until it first does, and may block for a moment.
    """

    def __init__(
        self,
        specs: Sequence[Spec],
        folder: Path,
        tell: Tell,
        *,
        stuck: Callable[[], tuple[int, float] | None] = lambda: None,
        reload: Callable[[], None] = lambda: None,
        calls: Calls | None = None,
        answers: Callable[[], bool] = lambda: True,
    ) -> None:
        self.children = [Child(spec, due=math.inf if spec.on_call else first_due(spec)) for spec in specs]
        self.calls = calls
        self.answers = answers
        self.answered = not any(spec.needs for spec in specs)
        self.unanswered_until = time.monotonic() + ANSWERS_WITHIN_S
        self.folder = folder
        self.tell = tell
        self.stuck = stuck
        self.reload = reload
        self.stopping = False
        self.hung_up = False
        self.look_due = 0.0
        self.unwritten = True
        self.said = ""
        self.lost = ""
        self.held: tuple[int, float] | None = None

    def run(self, gone_fd: int | None = None) -> None:
        """Supervise until SIGTERM, SIGINT, or ``gone_fd`` (a pipe from the process we work for) ends."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        os.set_blocking(reading, False)
        signal.set_wakeup_fd(writing)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._hang_up)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        asking = self.calls.fds() if self.calls is not None else ()
        watched = [reading, *([gone_fd] if gone_fd is not None else []), *asking]
        try:
            while not self.stopping:
                self.go_on()
                ready, _, _ = select.select(watched, [], [], self.pause())
                if reading in ready:
                    drain(reading)
                if gone_fd is not None and gone_fd in ready:
                    self.stopping = True
                for fd in ready:
                    if self.calls is not None and fd in asking:
                        self.calls.heard(fd, self)
        finally:
            self.stop_all()
            signal.set_wakeup_fd(-1)
            os.close(reading)
            os.close(writing)

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _hang_up(self, *_: object) -> None:
        self.hung_up = True

    def go_on(self) -> None:
        """A step, whatever the system refuses; said once, until a step is whole again."""
        try:
            self.step()
            self.said = ""
        except OSError as error:
            self.look_due = time.monotonic() + LOOK_S  # or what is refused each time would be asked for without end
            self.say_once(f"{error}; it goes on")

    def step(self) -> None:
        """Start what is due, reap what ended, end what is stuck, make known what changed. Raises ``OSError``."""
        now = time.monotonic()
        changed = self.reap(now)
        self.look_for_answers(now)
        for child in self.children:
            if not child.pid and child.due <= now and not self.stopping and self.may_start(child):
                changed |= self.start(child)
        self.unwritten |= changed
        if self.hung_up:
            self.hung_up = False
            self.reload()
        look = now >= self.look_due
        if look:
            self.look_due = now + LOOK_S
            self.unwritten |= self.look_at_writer()
        if changed or (look and self.unwritten):
            self.write()

    def may_start(self, child: Child) -> bool:
        """Whether what it needs answers, or did once: later on it is a role's own matter what is away."""
        return self.answered or not child.spec.needs

    def look_for_answers(self, now: float) -> None:
        """Ask the server that is needed, until it answers or the time for that is over."""
        if not self.answered:
            self.answered = now > self.unanswered_until or self.answers()

    def start(self, child: Child) -> bool:
        """Start a process, or have it due again; whether it was started."""
        try:
            child.pid = child.spec.start()
        except OSError as error:
            child.wait = min(child.wait * 1.5, RESTART_MOST_S)
            child.due = time.monotonic() + child.wait
            why = f"can't be started: {error.strerror or error}"
            if child.refused != why:
                child.refused = why
                self.tell(child.spec.name, f"{why}; tried again every {RESTART_MOST_S:.0f} s")
            return False
        child.started = time.monotonic()
        if child.refused:
            self.tell(child.spec.name, f"is started again (pid {child.pid})")
            child.refused = ""
        return True

    def child(self, name: str) -> Child | None:
        """The process of that name."""
        return next((child for child in self.children if child.spec.name == name), None)

    def call(self, name: str) -> bool:
        """Start a process that is on call; whether it runs now."""
        child = self.child(name)
        if child is None or not child.spec.on_call or self.stopping:
            return False
        if not child.pid and self.start(child):
            self.write()
        child.due = math.inf  # whoever called hears of it, and calls again
        return bool(child.pid)

    def pid_of(self, name: str) -> int:
        """A process's pid; 0 while it doesn't run."""
        child = self.child(name)
        return child.pid if child is not None else 0

    def hurry(self) -> None:
        """What waited for others needn't any more."""
        for child in self.children:
            if child.spec.wait_s and not child.started:
                child.due = min(child.due, 0.0)

    def say_once(self, text: str) -> None:
        """Say what is wrong, unless it is what was said last."""
        if text != self.said:
            self.said = text
            self.tell("supervisor", text)

    def pause(self) -> float:
        """How long nothing is due."""
        now = time.monotonic()
        waits = [child.due - now for child in self.children if not child.pid and self.may_start(child)]
        return max(0.0, min([1.0 if self.answered else ANSWERS_LOOK_S, *waits]))

    def reap(self, now: float) -> bool:
        """Take note of processes that ended; whether there were any."""
        found = False
        for child in self.children:
            if not child.pid:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self.ended(child, status, now)
                found = True
        return found

    def ended(self, child: Child, status: int, now: float) -> None:
        """Plan a process's restart and say how it ended."""
        lived = now - child.started
        child.wait = RESTART_FIRST_S if lived >= STEADY_S else min(child.wait * 1.5, RESTART_MOST_S)
        again = child.spec.again_s if child.spec.again_s is not None else child.wait
        if child.restarts == 0 and child.spec.again_s is None:
            again = RESTART_FIRST_S
        child.last_exit = how(status)
        pid, child.pid, child.due = child.pid, 0, now + again
        if child.spec.on_call:
            child.due = math.inf
            self.tell(child.spec.name, how(status, pid), Ended(os.waitstatus_to_exitcode(status), again=False))
            if self.calls is not None:
                self.calls.ended(child.spec.name, child.last_exit)
            return
        child.restarts += 1
        often = f"; {child.restarts} times now" if lived < STEADY_S and child.restarts > 3 else ""
        text = f"{how(status, pid)}, back in {again:.1f} s{often}"
        self.tell(child.spec.name, text, Ended(os.waitstatus_to_exitcode(status), again=True))

    def look_at_writer(self) -> bool:
        """Make known who holds the write lock and doesn't move; end it if it is ours. Whether that is news."""
        before, held = self.held, self.stuck()
        self.held = held if held is not None and held[1] >= STUCK_SAID_S else None
        if held is not None and held[1] >= STUCK_ENDED_S:
            self.end_stuck(held[0])
        return self.held != before

    def end_stuck(self, pid: int) -> None:
        """End a process of ours that holds the store's write lock and doesn't move (a stopped one can't let go)."""
        child = next((child for child in self.children if child.pid == pid), None)
        if child is None:
            return
        self.tell(child.spec.name, f"held the store's write lock for over 10 s (pid {pid}); it is ended")
        send(pid, signal.SIGKILL)

    def stop_all(self) -> None:
        """End every process: politely, then at once."""
        for child in self.children:
            send(child.pid, signal.SIGTERM)
            send(child.pid, signal.SIGCONT)
        limit = time.monotonic() + STOP_WITHIN_S
        while any(child.pid for child in self.children):
            for child in self.children:
                if child.pid and os.waitpid(child.pid, os.WNOHANG)[0]:
                    child.pid = 0
                elif child.pid and time.monotonic() > limit:
                    send(child.pid, signal.SIGKILL)
            time.sleep(0.01)
        self.write()

    def write(self) -> None:
        """Make known who runs, for ``status``: ``processes.json`` in the region's folder, replaced whole.

        What a full disk doesn't take now is written by a later look: pids of the dead would stand there for good.
        """
        known = {
            child.spec.name: {
                "pid": child.pid or None,
                "restarts": child.restarts,
                "last_exit": child.last_exit or None,
            }
            for child in self.children
            if child.started or not child.spec.on_call
        }
        stuck = {"pid": self.held[0], "held_s": round(self.held[1], 1)} if self.held is not None else None
        path = self.folder / "processes.json"
        try:
            document = {"supervisor": os.getpid(), "processes": known, "stuck_writer": stuck}
            replace_whole(path, json.dumps(document).encode())
        except OSError as error:
            self.unwritten = True
            text = f"can't write {path}: {error.strerror}"
            if text != self.lost:
                self.tell("supervisor", text)
            self.lost = text
        else:
            self.unwritten, self.lost = False, ""


def first_due(spec: Spec) -> float:
    """When a process is started first."""
    return time.monotonic() + spec.wait_s if spec.wait_s else 0.0


def how(status: int, pid: int = 0) -> str:
    """How a process ended, in words, and which it was if that is given: "died (signal 9, pid 4105)", "exited"."""
    code = os.waitstatus_to_exitcode(status)
    more = [f"signal {-code}" if code < 0 else f"code {code}"] if code else []
    more += [f"pid {pid}"] if pid else []
    return ("died" if code < 0 else "exited") + (f" ({', '.join(more)})" if more else "")


def send(pid: int, number: int) -> None:
    """Send a signal, unless there is nobody."""
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def drain(fd: int) -> None:
    """Empty a wake-up pipe."""
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass
