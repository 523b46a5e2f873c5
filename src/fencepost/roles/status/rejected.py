"""A configuration that was refused, made known through the store's findings: who reloads writes it, status reads it.

The form is ``findings()["config"]["region.toml"] == ("rejected@<nanoseconds since 1970>", text)``; a successful load
clears it.
"""

from collections.abc import Mapping

from msgspec import Struct

from fencepost.core.instant import Instant
from fencepost.ports import StorePort

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
