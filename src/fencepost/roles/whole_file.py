"""A small file replaced whole: who reads it finds the old one or the new one, never half of either."""

import os
from pathlib import Path


def replace_whole(path: Path, body: bytes, *, synced: bool = False) -> None:
    """Put ``body`` in the file's place. Raises ``OSError``, the old one kept and nothing of the new.

    With ``synced`` it outlives a power failure once this returns; of an error in the very last step, the folder's own
    sync, it isn't known which of the two stands.
    """
    new = path.with_suffix(".new")
    try:
        with new.open("wb") as file:
            file.write(body)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    if synced:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
