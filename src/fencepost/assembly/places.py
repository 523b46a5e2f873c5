"""Where a region's files are on this machine: its folder and its key."""

import base64
import os
import secrets
from pathlib import Path

from fencepost.ports import Misconfigured
from fencepost.roles.whole_file import make_whole
from fencepost.settings import Region
from fencepost.settings.schema import Secret
from fencepost.settings.secret import TsigKey, read_tsig_key


def state_folder(region: Region) -> Path:
    """Where a region's files are: the embedded domain, local files, logs, processes.json."""
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given)
    beside = Path(region.path).parent
    own = Path(".fencepost") / region.name
    return beside if beside.match(str(own)) else beside / own


def tsig_key(region: Region) -> TsigKey:
    """The key that signs updates: the embedded server's own, or the one the file names. Raises ``Misconfigured``."""
    secret = region.dns.key or Secret(file=str(state_folder(region) / "tsig.key"))
    try:
        return read_tsig_key(secret, os.environ)
    except ValueError as error:
        hint = "compare it with the server's key"
        if "Permission denied" in str(error):
            hint = "be the user that fencepost runs as (ls -ln shows whose it is)"
        elif region.dns.key is None:
            hint = "fencepost up    makes it at the first start"
        raise Misconfigured(str(error), where=region.path, hint=hint) from None


def make_tsig_key(region: Region) -> None:
    """Draw the embedded server's key on first start."""
    draw_tsig_key(state_folder(region) / "tsig.key", f"fencepost-{region.name}")


def draw_tsig_key(path: Path, name: str) -> None:
    """Draw a key, as tsig-keygen would print it, unless the file is there and not empty; only its user may read it.

    Raises ``OSError``.
    """
    secret = base64.b64encode(secrets.token_bytes(32)).decode()
    write_secret(path, f'key "{name}" {{\n  algorithm hmac-sha256;\n  secret "{secret}";\n}};\n', over_empty=True)


def write_secret(path: Path, text: str, *, over_empty: bool = False) -> None:
    """Write a secret whole that only its user may read (mode 0600), unless the file is there. Raises ``OSError``.

    ``over_empty`` is for places where nobody but fencepost writes: an empty file there counts as missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    make_whole(path, text.encode(), over_empty=over_empty)
