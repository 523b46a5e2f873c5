"""SIGHUP to ``up``: a reload beside the supervisor, which waits for nothing and ends by nothing."""

import os
import signal
from collections.abc import Callable

from fencepost.settings import Region


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
