"""A small file replaced whole: who reads it finds the old one or the new one, never half of either."""

from pathlib import Path


def replace_whole(path: Path, body: bytes) -> None:
    """Put ``body`` in the file's place. Raises ``OSError``, the old one kept and nothing of the new."""
    new = path.with_suffix(".new")
    try:
        new.write_bytes(body)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
