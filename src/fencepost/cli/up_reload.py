"""SIGHUP to ``up``: a terminal's end, or a reload beside the supervisor, which waits for nothing and ends by nothing.

Which of the two can't be asked once the signal is there: a terminal that was hung up answers nothing any more, so that
isatty(3) takes it for none. Hence what there was is noted at the start.
"""

import os
import signal
from collections.abc import Callable

from fencepost.cli.terminal import interactive
from fencepost.settings import Region


class Terminal:
    """The terminal that a run was started on, as far as one of its three streams is one."""

    def __init__(self) -> None:
        self.shown = interactive()
        """Whether a person looks on: stdout is a terminal."""
        self._fds = [fd for fd in (0, 1, 2) if os.isatty(fd)]

    def gone(self) -> bool:
        """Whether there was one, and it was hung up: also where stdout goes to a file or a pipe."""
        return any(not os.isatty(fd) for fd in self._fds)


def reload_aside(region: Region, tell: Callable[[str, str], None]) -> None:
    """Reload in a process of its own; what came of it becomes a line, also that none could be started."""
    try:
        first = os.fork()
    except OSError as error:
        tell("reload", not_started(error))
        return
    if first:
        os.waitpid(first, 0)
        return
    try:  # nothing may lead out of here: it would be a second supervisor
        if not os.fork():
            from fencepost.cli.reload import by_signal

            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            tell("reload", by_signal(region))
    except OSError as error:
        tell("reload", not_started(error))
    finally:
        os._exit(0)


def not_started(error: OSError) -> str:
    """Why there was no reload, and what to do."""
    return f"not done: {error.strerror or error}; what ran before runs on. Send the signal again, or  fencepost reload"
