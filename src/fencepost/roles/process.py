"""A role as an operating system process: its log, its signals, its event loop.

Processes are forked from a parent that has imported what they share and runs no event loop and no thread of its own, so
ten of them are ready in a fraction of a second and share their code in memory.
"""

import asyncio
import contextlib
import ctypes
import logging
import logging.handlers
import os
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

from fencepost.ports import Misconfigured, PortError, Refused

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
LOG_BYTES = 4 * 2**20


def fork(name: str, main: Callable[[], Coroutine[Any, Any, None]], folder: Path, *, log_to_stderr: bool = False) -> int:
    """Start ``main`` in a new process that ends with this one; its pid. Call it from a process without threads."""
    parent = os.getpid()
    flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:  # nothing may lead out of here: it would be a second supervisor
        end_with_parent(parent)
        code = run(name, main, folder, log_to_stderr=log_to_stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def leave(code: int) -> NoReturn:
    """End a forked child without running what its parent meant to run at exit, whatever can't be written any more."""
    try:
        logging.shutdown()
        flush()
    finally:
        os._exit(code)


def flush() -> None:
    """Write out what a child would inherit and write again. On a full disk it is lost: a child matters more."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent dies, however it dies; it may have died already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(0)


def entitle(name: str) -> None:
    """Have ps and top show which role this process is: "fp enactor/b". The kernel keeps 15 bytes, prctl(2)."""
    short = name.removeprefix("target/")
    ctypes.CDLL(None).prctl(_PR_SET_NAME, f"fp {short}".encode()[:15], 0, 0, 0)


def run(name: str, main: Callable[[], Coroutine[Any, Any, None]], folder: Path, *, log_to_stderr: bool = False) -> int:
    """Run a role until SIGTERM, in this process; the exit code. Its log goes to ``folder/NAME.log``."""
    signal.signal(signal.SIGINT, signal.SIG_DFL if log_to_stderr else signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    entitle(name)
    write_log(name, folder, log_to_stderr=log_to_stderr)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(until_told(main, interruptible=log_to_stderr))
        except KeyboardInterrupt:
            return 130
        except Exception as error:
            refused = port_error(error)
            if refused is None:
                log.exception("%s: a defect; the supervisor starts it again", name)
                return 70
            log.error("%s: %s", name, refused)  # noqa: TRY400  a person reads this, not a traceback
            if refused.means:
                log.error("  means  %s", refused.means)  # noqa: TRY400
            if refused.hint:
                log.error("  try  %s", refused.hint)  # noqa: TRY400
            return code_of(refused)
    return 0


def port_error(error: BaseException) -> PortError | None:
    """The port's error that ended a role: by itself, or alone in a task group's; None for anything else.

    Where several tasks failed at once, the one that a person has to mend counts before one that may pass. A defect
    among them is a defect.
    """
    if isinstance(error, PortError):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    found = [port_error(each) for each in error.exceptions]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return min(known, key=lambda each: (2, 1, 3).index(code_of(each)))


def code_of(error: PortError) -> int:
    """The exit code: 2 for what a person configured, 1 for what is refused, 3 for what can't be reached."""
    return 2 if isinstance(error, Misconfigured) else 1 if isinstance(error, Refused) else 3


async def until_told(main: Callable[[], Coroutine[Any, Any, None]], *, interruptible: bool = False) -> None:
    """Run ``main`` until it ends or the process is told to: by SIGTERM, in the foreground by Ctrl-C too.

    A second Ctrl-C ends it at once.
    """
    task, loop = asyncio.ensure_future(main()), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)

    def interrupted() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        task.cancel()

    if interruptible:
        loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        await task
    except asyncio.CancelledError:
        log.info("stopped")


def write_log(name: str, folder: Path, *, log_to_stderr: bool) -> None:
    """Send this process's log to its own file, bounded in size, or to stderr.

    The folder isn't made here, by a role that may be a restarted one: a folder that is away (unmounted, moved) would
    be put back empty, and the store in it be taken for lost. Lines are lost until it is back; each one tries again.
    """
    logging.raiseExceptions = False  # a line that a full disk doesn't take is lost, without a traceback each
    handler: logging.Handler
    if log_to_stderr:
        handler = logging.StreamHandler()
    else:
        handler = logging.handlers.RotatingFileHandler(
            folder / f"{name.replace('/', '-')}.log", maxBytes=LOG_BYTES, backupCount=1, delay=True
        )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname).1s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
