"""Which region.toml is meant: said by flag, by environment, lying here, a sample running here, or the machine's own.

Parent folders are never searched: a command that changes records must not pick up a file its user didn't see.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

VARIABLE = "FENCEPOST_CONFIG"
SYSTEM = Path("/etc/fencepost/region.toml")


SAMPLE = Path(".fencepost/demo/region.toml")
"""Where the sample lies, from the folder that it was started in."""


def start_words(path: Path) -> list[str]:
    """What comes after ``fencepost`` to start the region of a file; the sample needs its stand-ins for targets."""
    return ["up", *(["--sample"] if is_sample(path) else []), "--config", str(path)]


def is_sample(path: Path) -> bool:
    """Whether a region's file is the built-in sample's, on whatever provider and store, and not somebody's own."""
    kept, folder = SAMPLE.parent.parent.name, path.parent
    return folder.parent.name == kept and folder.name.split("-")[0] == SAMPLE.parent.name


class Found(NamedTuple):
    """The file that is meant, and what said so: ``--config``, ``$FENCEPOST_CONFIG``, ``./region.toml``, ``sample``,
    ``/etc``."""

    path: Path
    by: str


def find_config(
    flag: str | None, environ: Mapping[str, str], cwd: Path, samples: Iterable[Path] = (), system: Path = SYSTEM
) -> Found | None:
    """Find the file that is meant, or None. What a flag or the environment names is taken even if it isn't there.

    `samples` are the files of samples that run here for this user, likeliest first; the caller knows where they
    register.
    """
    if flag:
        return Found(cwd / flag, "--config")
    named = environ.get(VARIABLE)
    if named:
        return Found(cwd / named, f"${VARIABLE}")
    here = cwd / "region.toml"
    if here.exists():
        return Found(here, "./region.toml")
    for sample in samples:
        if sample.exists():
            return Found(sample, "sample")
    if system.exists():
        return Found(system, "/etc")
    return None
