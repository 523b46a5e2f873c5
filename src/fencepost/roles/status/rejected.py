"""A configuration that was refused, made known through the store's findings: who reloads writes it, status reads it.

The form is ``findings()["config"]["region.toml"] == ("rejected@<nanoseconds since 1970>", text)``; a load or a start
clears it. A file that somebody mends and leaves is looked at where it lies, for as long as a refusal stands.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from fencepost.core.instant import Instant
from fencepost.core.traffic.membership import SERVING
from fencepost.ports import StorePort
from fencepost.settings import Region, check
from fencepost.settings.changes import changes, too_much

if TYPE_CHECKING:
    from fencepost.roles.status.facts import Facts

BY = "config"
ON = "region.toml"
_WORD = "rejected@"


class Rejected(Struct, frozen=True):
    """When (nanoseconds since 1970) a configuration was refused, and the mistakes found in it."""

    at: Instant
    text: str


async def put_rejected(store: StorePort, text: str, now: Instant) -> None:
    """Make known that a configuration was refused, and why. Raises a ``PortError``."""
    await store.put_findings(BY, {ON: (f"{_WORD}{now}", text)})


async def clear_rejected(store: StorePort) -> None:
    """A configuration was loaded: nothing is refused any more. Raises a ``PortError``."""
    await store.put_findings(BY, {})


def rejected(findings: Mapping[str, Mapping[str, tuple[str, str]]]) -> Rejected | None:
    """The refused configuration among all roles' findings, if there is one."""
    verdict, text = findings.get(BY, {}).get(ON, ("", ""))
    at = verdict.removeprefix(_WORD)
    if verdict == at or not at.isdecimal():
        return None
    return Rejected(int(at), text)


class OnDisk:
    """The file as it lies there, judged anew when it was written."""

    def __init__(self) -> None:
        self._seen: tuple[str, int, int, int] | None = None
        self._region: Region | None = None

    async def look(self, path: str) -> Region | None:
        """What the file says, None where it has mistakes or can't be read."""
        try:
            found = os.stat(path)
        except OSError:
            self._seen = None
            return None
        seen = (path, found.st_ino, found.st_size, found.st_mtime_ns)
        if seen != self._seen:
            self._region = (await asyncio.to_thread(check, path)).region
            self._seen = seen
        return self._region


def on_disk(facts: "Facts") -> Literal["", "asks", "fixed", "good"]:
    """How a refused file stands now: wrong (or not known), waiting for a yes, beyond a reload, or good again."""
    loaded = facts.store.loaded.region if facts.store and facts.store.loaded else None
    if facts.file is None or loaded is None:
        return ""
    if any(each.fixed for each in changes(loaded, facts.file).settings):
        return "fixed"
    rows = facts.store.pools if facts.store else {}
    serving = {name: frozenset(each.key for each in row.members if each.state in SERVING) for name, row in rows.items()}
    return "asks" if too_much(loaded, facts.file, serving) else "good"


def standing_refusal(facts: "Facts") -> Rejected | None:
    """The refusal, unless the file has been put back since to what runs."""
    refused = rejected(facts.store.findings) if facts.store else None
    loaded = facts.store.loaded if facts.store else None
    if refused is None or loaded is None or facts.file is None:
        return refused
    return None if changes(loaded.region, facts.file).nothing else refused
