"""The folder that a command is called in, which may be gone: removed under the shell that stands in it.

Nothing that is named in full needs it, so it is asked for in this one place, and what does need it says so.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from fencepost.ports import Misconfigured
from fencepost.settings.lookup import Found, find_config

GONE = Path("/dev/null/gone")
"""Stands for a folder that is gone: nothing can lie below it, and nothing can be written there."""


def here() -> Path:
    """The current folder; :data:`GONE` if it is."""
    try:
        return Path.cwd()
    except OSError:
        return GONE


def meant(config: str | None, samples: Iterable[Path] = ()) -> Found | None:
    """The file that is meant, or None. Raises ``Misconfigured`` for one named from a folder that is gone."""
    found = find_config(config, os.environ, here(), samples)
    if found is not None and found.path.is_relative_to(GONE):
        raise gone(found.path.relative_to(GONE))
    return found


def none_here(hint: str = "fencepost init    writes one") -> Misconfigured:
    """What to say where no file is meant."""
    return gone() if here() == GONE else Misconfigured("no region.toml here", where=str(here()), hint=hint)


def gone(path: Path = Path("region.toml")) -> Misconfigured:
    """What to say where the current folder would be needed."""
    hint = f"cd to a folder that is there, or name the file in full: --config /path/of/{path.name}"
    return Misconfigured("the current folder was removed", where=str(path), hint=hint)
