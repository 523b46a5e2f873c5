"""What a test does to its own process: the event loop stands still, the descriptors run out."""

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def stand_still(seconds: float) -> None:
    """Block the loop, as a long computation or a slow disk would."""
    time.sleep(seconds)


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    """For the length of the block this process can open nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        with suppress(OSError):
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
