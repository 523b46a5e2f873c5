"""The folder that a command is called in, which may be gone, and those that a start makes.

Nothing that is named in full needs the first, so it is asked for in this one place, and what does need it says so.

A region's folder is made where a person starts the region, and nowhere else. A role that is started again may find it
away (unmounted, moved aside): made anew, it would have an empty store made in it, and what is only away taken for lost.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from fencepost.ports import Misconfigured
from fencepost.settings import Region
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


def made(folder: Path) -> None:
    """Make a folder at a start; where it can't be, what needs it says why."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)


def make_secrets_folders(region: Region) -> None:
    """Make the folders of those secrets that are drawn at the first start: the API's token and the fleet's key."""
    for secret in (region.api.token, region.fleet.key if region.fleet is not None else None):
        if secret is not None and secret.file:
            made(Path(secret.file).parent)


def make_for_one_role(region: Region, folder: Path) -> None:
    """Make what ``run ROLE`` needs, unless the store belongs in there: then the folder may be away.

    Awkward truth: a unit of systemd starts its role again by the same words as a person the first time.
    """
    store = Path(region.store.path).absolute() if region.store.kind == "sqlite" else None
    if store is not None and store.is_relative_to(folder.absolute()):
        return
    made(folder)
    make_secrets_folders(region)
