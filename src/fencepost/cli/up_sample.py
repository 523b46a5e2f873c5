"""Which region ``up`` is about: one's own, or the sample, which it places; and forgetting the sample's earlier run.

Forgetting comes last, when nothing can refuse the start any more and the sample's places are held: a start that is
refused leaves everything as it was. So with ``--fresh`` the region is judged by the text that its file will have, not
by the one that stands there, which may be spoilt and is what one wants to be rid of.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fencepost.cli.folder import here, meant
from fencepost.cli.regions import SAMPLE_FOLDER, place_sample, shown
from fencepost.dev.sample import sample_text
from fencepost.ports import Misconfigured
from fencepost.settings import Region, SettingsError, judge, load
from fencepost.settings.loading import machine_has_ipv6

KEPT = ("supervisor.lock", "postgresql.dsn")
"""What a sample keeps: the lock that its start holds, and the password of a database that is made anew with it."""


class Chosen(NamedTuple):
    """The region, whether it is the sample, and what forgets an earlier run of it once nothing refuses the start."""

    region: Region
    sample: bool
    forget: Callable[[], None]


def choose(config: str | None, *, fresh: bool, provider: str, store: str) -> Chosen:
    """The region that is meant, the sample's files placed where they are missing.

    Raises ``Misconfigured`` for flags that don't go together, ``SettingsError`` for mistakes in the file.
    """
    found, other = meant(config), (provider, store) != ("embedded", "sqlite")
    if found is not None and other:
        hint = "leave out --provider and --store; a region of your own says both in its file"
        raise Misconfigured("--provider and --store are for the sample", where=shown(found.path), hint=hint)
    if found is None or (fresh and found.path.absolute() == here() / SAMPLE_FOLDER / "region.toml"):
        path = place_sample(provider=provider, store=store)
        if not fresh:
            return Chosen(load(shown(path)), True, nothing)
        return Chosen(as_placed(path, provider, store), True, lambda: forget(path.parent, provider, store))
    if fresh:
        hint = "leave out --fresh; a region of your own is kept, and what it has in DNS is taken up again"
        raise Misconfigured("--fresh is for the sample, and this is no sample", where=shown(found.path), hint=hint)
    return Chosen(load(shown(found.path)), False, nothing)


def nothing() -> None:
    """Forget nothing."""


def as_placed(path: Path, provider: str, store: str) -> Region:
    """The sample as its file says once it is placed anew. Raises ``SettingsError``."""
    report = judge(sample_text(provider, store), shown(path), ipv6=machine_has_ipv6())
    if report.region is None:
        raise SettingsError(report.mistakes)
    return report.region


def forget(folder: Path, provider: str, store: str) -> None:
    """Clear what an earlier run of the sample left, and place it anew. Its lock is held, and stays."""
    for name in os.listdir(folder):
        each = folder / name
        if name in KEPT:
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink(missing_ok=True)
    place_sample(provider=provider, store=store)
