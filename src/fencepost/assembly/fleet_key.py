"""The fleet's key: what seals the words of managers and agents. Made on first start, as long as nobody has made it."""

import os
import secrets
from hashlib import blake2b
from pathlib import Path

from fencepost.assembly.places import write_secret
from fencepost.ports import Misconfigured
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.paging import pages
from fencepost.roles.whole_file import why_unwritten
from fencepost.settings.schema import Secret
from fencepost.settings.secret import is_drawn, read_secret

SHORTEST = 16
"""Characters; what we make has 43."""


def make_fleet_key(secret: Secret, region: str = "") -> None:
    """Draw a key (mode 0600), unless the file is there or it comes from the environment. Raises ``Misconfigured``.

    Its folder isn't made: it may be the region's, which is only away. ``region`` is the path of the region's file, if
    it has one: an empty key where that region draws its own is drawn anew.
    """
    if not secret.file:
        return
    if not Path(secret.file).parent.is_dir():
        hint = f"make it: mkdir -p {Path(secret.file).parent}"
        raise Misconfigured("the fleet's key can't be made: its folder is missing", where=secret.file, hint=hint)
    try:
        ours = is_drawn(secret, region, os.environ)
        write_secret(Path(secret.file), secrets.token_urlsafe(32) + "\n", over_empty=ours)
    except OSError as error:
        rights = "its folder must be one that the user fencepost runs as can write"
        why, hint = why_unwritten(error, secret.file, rights)
        raise Misconfigured(f"the fleet's key can't be made: {why}", where=secret.file, hint=hint) from None


def is_written(file: Path) -> bool:
    """Whether something stands in it."""
    return file.exists() and file.stat().st_size > 0


async def draw_fleet_key(secret: Secret, region: str, rows: FleetStorePort) -> None:
    """:func:`make_fleet_key` for a manager: never in place of a key that hosts have, which is only lost here.

    With another key every host's words would be a stranger's, and no log but theirs would say why. Raises
    ``Misconfigured`` where the store knows hosts and the key is gone, and a ``PortError`` where that can't be known.
    """
    if not secret.file or is_written(Path(secret.file)):
        return
    async for page in pages(rows, "host", None, most=1):
        if page.rows:
            raise Misconfigured(
                "the fleet's key is gone, and hosts have it: with a new one none of them would be understood",
                where=secret.file,
                hint=f"copy it back from a host, mode 0600; for a new one write it there and on each host:"
                f" openssl rand -base64 32 > {secret.file}",
            )
        break
    make_fleet_key(secret, region)


def fleet_key(secret: Secret) -> bytes:
    """The key's bytes, for :class:`~fencepost.roles.fleet.wire.Wire`: 64 made from a text of any length.

    Raises ``Misconfigured``.
    """
    hint = "copy the region's fleet.key to each host, mode 0600"
    try:
        text = read_secret(secret, os.environ)
    except ValueError as error:
        raise Misconfigured(f"the fleet's key: {error}", hint=hint) from None
    if len(text) < SHORTEST:
        where = secret.file or secret.env
        raise Misconfigured(f"the fleet's key has fewer than {SHORTEST} characters", where=where, hint=hint)
    return blake2b(text.encode()).digest()
