"""Records that begin where cache lines do.

Of a million records those that are asked for lie far apart, and what they cost is the lines of memory that are touched
for the first time. A record of 64 bytes is one line, or two if it begins in the middle of one, as numpy's arrays do:
16 bytes behind the line's beginning.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LINE = 64
"""Bytes of a cache line, on every processor that this runs on."""


def records(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """So many records of zeros, the first at the beginning of a line."""
    wanted = size * np.dtype(dtype).itemsize
    memory = np.zeros(wanted + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + wanted].view(dtype)
