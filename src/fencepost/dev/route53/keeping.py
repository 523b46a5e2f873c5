"""An account in a file, so that a stand-in comes back with what it had: JSON, replaced whole after each change.

For trying out: it is written before the answer goes out, and not synced to disk.
"""

import os
from pathlib import Path

import msgspec

from fencepost.dev.route53.account import Account, HostedZone
from fencepost.dev.route53.record_set import RecordSet

FORMAT = "fencepost.route53-stand-in/1"


class KeptZone(msgspec.Struct, frozen=True):
    """A hosted zone as the file has it."""

    id: str
    name: str
    caller_reference: str
    comment: str | None
    vpcs: tuple[tuple[str, str], ...]
    name_servers: tuple[str, ...]
    tags: dict[str, str]
    sets: list[RecordSet]


class Kept(msgspec.Struct, frozen=True):
    """The file."""

    schema: str
    made: int
    zones: list[KeptZone]


def write(account: Account, path: Path) -> None:
    """Replace the file. Raises OSError."""
    zones = [
        KeptZone(
            zone.id, zone.name, zone.caller_reference, zone.comment, zone.vpcs, zone.name_servers, zone.tags,
            list(zone.listed()),
        )
        for zone in account.zones.values()
    ]  # fmt: skip
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(msgspec.json.encode(Kept(FORMAT, account.made, zones)))
    os.replace(beside, path)


def read(account: Account, path: Path) -> None:
    """Take up what the file has, if there is one. Raises OSError, and ValueError for a file that isn't ours."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    try:
        kept = msgspec.json.decode(content, type=Kept)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a file of this stand-in: {error}") from error
    if kept.schema != FORMAT:
        raise ValueError(f"its schema is {kept.schema!r}, not {FORMAT!r}")
    account.made = kept.made
    for each in kept.zones:
        zone = HostedZone(
            each.id, each.name, each.caller_reference, each.comment, each.vpcs, each.name_servers, each.tags
        )
        for record_set in each.sets:
            here = {**zone.sets.get(record_set.name, {}), record_set.key: record_set}
            zone.put({record_set.name: here})
        account.zones[zone.id] = zone
