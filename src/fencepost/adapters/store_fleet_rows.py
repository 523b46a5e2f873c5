"""How rows of the fleet stand in every store: as JSON, under kind and key, with a number that says whose shard it is.

A row's shard follows from its name and from how many shards there are. The latter may change, so what is kept is the
name's hash; the database takes its remainder.
"""

from hashlib import blake2b
from typing import Any

import msgspec

from fencepost.adapters.store_bodies import UnreadableError
from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.rows import FleetRow, Kind, ShardRow, kind_of

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(FleetRow).decode
_HALF = 2**63


def hash_of(key: str) -> int:
    """What a row's shard is computed from: :func:`~fencepost.core.capacity.shards.shard_of`'s hash less 2**63.

    Databases have no unsigned 64 bits.
    """
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") - _HALF


SHARD_IS = "(hash % {of} + {shift}) % {of} = {shard}"
"""SQL that finds a shard's rows, to be given the values of :func:`shard_values`."""


def shard_values(own: ShardRow) -> dict[str, int]:
    """``of``, ``shift`` and ``shard`` for :data:`SHARD_IS`."""
    return {"of": own.of, "shift": _HALF % own.of + own.of, "shard": own.shard - 1}


def decode(kind: Kind, key: str, body: bytes) -> FleetRow:
    """A row out of its body. Raises :class:`~fencepost.adapters.store_bodies.UnreadableError`."""
    try:
        row: Any = _decode(body)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise UnreadableError(f"fleet_row of kind {kind}", key, error) from error
    if kind_of(row) != kind or row.key != key:
        raise UnreadableError(f"fleet_row of kind {kind}", key, f"the row of {kind_of(row)} {row.key!r} stands there")
    return row  # type: ignore[no-any-return]  # as decoded


def versioned(kind: Kind, key: str, revision: int, body: bytes) -> Versioned:
    """A row and its revision. Raises as :func:`decode` does."""
    return Versioned(decode(kind, key, body), revision)


def shard_row(body: bytes | None, shard: int) -> ShardRow | None:
    """A shard's row out of its body, None if there is none. Raises as :func:`decode` does."""
    if body is None:
        return None
    row = decode("shard", str(shard), body)
    assert isinstance(row, ShardRow)  # its kind says so  # noqa: S101
    return row
