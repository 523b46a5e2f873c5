"""What a supervisor on this machine says of its processes, if one runs here for the region."""

import json
from pathlib import Path

from fencepost.settings import Region


def supervised(region: Region) -> dict[str, int | None] | None:
    """Each process's pid (None while it is down) by name; None if no supervisor of this region runs here."""
    from fencepost import assembly
    from fencepost.cli.regions import running_supervisor

    folder = assembly.state_folder(region)
    if running_supervisor(folder) is None:
        return None
    return {name: each["pid"] for name, each in read(folder).items()}


def read(folder: Path) -> dict[str, dict[str, int | None]]:
    """``processes.json`` as the supervisor last wrote it; empty if there is none."""
    try:
        known: dict[str, dict[str, int | None]] = json.loads((folder / "processes.json").read_text())["processes"]
    except (OSError, ValueError, KeyError):
        return {}
    return known
