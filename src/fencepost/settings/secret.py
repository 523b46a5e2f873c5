"""Finds secrets where the file says they are. Nothing here, nor any error raised here, ever holds one in its text.

A secret lies in a file that only its user (and a group, as Debian keeps keys for ``bind``) can read, or in an
environment variable. TSIG keys are read as ``tsig-keygen`` prints them, or in the one line ``algorithm:name:secret``
of nsupdate.
"""

import base64
import binascii
import re
import stat
from collections.abc import Mapping
from os.path import normpath
from pathlib import Path

import msgspec

from fencepost.core.names import normalise
from fencepost.settings.mistakes import DeniedError, clean, nearest
from fencepost.settings.schema import Secret

ALGORITHMS = ("hmac-sha256", "hmac-sha512", "hmac-sha384", "hmac-sha224", "hmac-sha1")
"""TSIG algorithms that servers and RFC 8945 (section 6) still allow. SHA-1 is there for old servers."""

DRAWN = ("api.token", "fleet.key")
"""Names of the secrets drawn beside a region's state."""

_SIZE_MAX = 65536
_PATH_SHOWN = 1024  # a path is repeated whole, to be pasted
_KEY = re.compile(r'key\s+"?(?P<name>[^\s"{};]+)"?\s*\{(?P<body>[^{}]*)\}\s*;?', re.DOTALL)
_FIELD = re.compile(r'(algorithm|secret)\s+"?([^\s";]+)"?\s*;')


class TsigKey(msgspec.Struct, frozen=True, gc=False):
    """A key that signs updates (RFC 8945): its normalised name, its algorithm, its secret bytes."""

    name: str
    algorithm: str
    secret: bytes

    def __repr__(self) -> str:
        """Show everything but the secret."""
        return f"TsigKey(name={self.name!r}, algorithm={self.algorithm!r})"


def read_secret(secret: Secret, environ: Mapping[str, str]) -> str:
    """Give a secret's text without white space around it. Raises ValueError with the reason and what to do."""
    if secret.env:
        text = environ.get(secret.env)
        if text is None:
            raise ValueError(f'variable {secret.env} is not set; set it, or write {{ file = "…" }}')
        if not text.strip():
            raise ValueError(f"variable {secret.env} is empty")
        return text.strip()
    return _from_file(Path(secret.file))


def read_tsig_key(secret: Secret, environ: Mapping[str, str]) -> TsigKey:
    """Read a TSIG key. Raises ValueError with the reason and what to do."""
    text = read_secret(secret, environ)
    where = clean(secret.file or secret.env, _PATH_SHOWN)
    match = _KEY.search(text)
    if match is not None:
        fields = dict(_FIELD.findall(match["body"]))
        name, algorithm, packed = match["name"], fields.get("algorithm", ""), fields.get("secret", "")
    else:
        parts = text.split(":")
        algorithm, name, packed = parts if len(parts) == 3 else ("", "", "")
    if not name or not algorithm or not packed:
        raise ValueError(f"{where} holds no key; make one with  tsig-keygen fencepost > {Path(where).name}")
    algorithm = algorithm.lower().rstrip(".")
    if algorithm not in ALGORITHMS:
        near = nearest(algorithm, ALGORITHMS) or ALGORITHMS[0]
        raise ValueError(f"{where} has the unknown TSIG algorithm {clean(algorithm)!r}; use {near}")
    try:
        raw = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{where}: its secret is not base64; copy it whole from tsig-keygen") from None
    if not raw:
        raise ValueError(f"{where}: its secret is empty")
    try:
        return TsigKey(normalise(name), algorithm, raw)
    except ValueError as error:
        raise ValueError(f"{where}: its key's name {error}") from None


def is_drawn(secret: Secret, region: str, environ: Mapping[str, str]) -> bool:
    """Whether a region's token or fleet key lies where fencepost draws it unless told another place.

    ``region`` is the path of the region's file. An empty file there is what a start on a full disk left, so it counts
    as missing; one anywhere else is its owner's mistake.
    """
    state = environ.get("STATE_DIRECTORY", "").split(":")[0]
    places = {str(Path(normpath(Path(state) if state else Path(region).parent)) / name) for name in DRAWN}
    return secret.file in places


def is_empty(secret: Secret) -> bool:
    """Whether a secret's file is there, and holds nothing but white space. False where that can't be told."""
    path = Path(secret.file)
    try:
        return path.is_file() and path.stat().st_size <= _SIZE_MAX and not path.read_bytes().strip()
    except OSError:
        return False


def _from_file(path: Path) -> str:
    shown = clean(str(path), _PATH_SHOWN)
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{shown} is not a file")
        if found.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
            mode = stat.S_IMODE(found.st_mode)
            raise ValueError(f"{shown} can be read or changed by others (mode {mode:04o}); run  chmod 600 {shown}")
        if found.st_size > _SIZE_MAX:
            raise ValueError(f"{shown} has {found.st_size} bytes, too many for a secret")
        text = path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError(f"{shown} is not text") from None
    except FileNotFoundError:
        raise ValueError(f"{shown} is missing") from None
    except PermissionError as error:
        raise DeniedError(f"{shown} can't be read: {error.strerror}") from None
    except OSError as error:
        raise ValueError(f"{shown} can't be read: {error.strerror}") from None
    if not text:
        raise ValueError(f"{shown} is empty")
    return text
