"""Many replays side by side: a process for each core, results in order of the jobs."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_parallel(work: Callable[..., Result], jobs: Sequence[tuple[Any, ...]]) -> Iterator[Result]:
    """Each job's result, as soon as it and all before it are there. Ctrl-C ends the processes."""
    pool = ProcessPoolExecutor(os.cpu_count() or 1, mp_context=get_context("fork"))
    try:
        yield from pool.map(work, *zip(*jobs, strict=True))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
