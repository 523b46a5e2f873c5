"""Many replays side by side: a process for each core, results in order of the jobs."""

import ctypes
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from typing import Any, TypeVar

Result = TypeVar("Result")

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal to get when the parent is gone."""


def in_parallel(work: Callable[..., Result], jobs: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
    """Each job's result, as soon as it and all before it are there. Jobs are taken as they are handed to a process.

    Ctrl-C is the parent's alone, which then ends the others at once; they end with it too, however it ends.
    """
    with get_context("fork").Pool(os.cpu_count() or 1, _end_with, (os.getpid(),)) as pool:
        yield from pool.imap(_done, ((work, job) for job in jobs))


def _done(task: tuple[Callable[..., Result], tuple[Any, ...]]) -> Result:
    work, job = task
    return work(*job)


def _end_with(parent: int) -> None:
    """In a worker, before its first job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before it could be asked to tell
        os.kill(os.getpid(), signal.SIGKILL)
