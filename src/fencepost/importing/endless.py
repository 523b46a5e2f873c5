"""Which files are read at all: those that end, and within memory.

A device has no size and no end, so it is refused by its kind. A pipe is read: whoever fills it is the user's own.
"""

from pathlib import Path

from fencepost.ports import Misconfigured


def refuse_endless(path: Path, most: int) -> None:
    """Raise ``Misconfigured`` for a device, and for a file of more than ``most`` bytes; ``OSError`` for none at all."""
    if path.is_char_device() or path.is_block_device():
        raise Misconfigured("is a device, no file", where=str(path))
    if path.stat().st_size > most:
        raise Misconfigured(f"is too large: at most {most} bytes are read", where=str(path))
