"""How values stand in DynamoDB items: keys, attributes and packed bodies.

Every item has a partition key ``pk`` and a sort key ``sk``, both text. Numbers in sort keys have 19 digits, so that
text order is number order. Endpoints' rows are spread over 4 partition keys by a hash of the name, since one partition
key takes only 1,000 write units a second.

Bodies are compressed: DynamoDB bills each KB written, an item may have 400 KB, and our JSON shrinks five- to tenfold.
"""

import zlib
from collections.abc import Mapping
from typing import Any, TypeAlias

from fencepost.ports import Refused

Item: TypeAlias = Mapping[str, Any]
"""An item, or a key, as the API has it: attribute name to {type: value}."""

ITEM_MOST_BYTES = 400 * 1024
"""DynamoDB's limit on an item, names and values together."""
BODY_MOST_BYTES = 380 * 1024
"""What we let one packed body have; the rest is for keys and names."""
SHARDS = 4
"""Of what there is one of for each endpoint. A new table on demand takes 4,000 write units a second."""
_PACK_FROM_BYTES = 512
_PLAIN, _DEFLATED = b"\0", b"\1"


def key(partition: str, sort: str) -> dict[str, Any]:
    """An item's key."""
    return {"pk": {"S": partition}, "sk": {"S": sort}}


PARTITIONS = ("root", "blob", "plan", "row", "old", "report", "beat", "finding", "enacted", "history", "fleet")
"""What our partition keys begin with, up to "#"."""


def is_ours(item: Item) -> bool:
    """Whether an item looks like one of a store's."""
    return str(item.get("pk", {}).get("S", "")).partition("#")[0] in PARTITIONS and "body" in item


def padded(number: int) -> str:
    """A number as it stands in sort keys; from 0 to 2**63 - 1."""
    return f"{number:019d}"


def shard(name: str) -> str:
    """Which of the 4 partitions a name's items are in: a hash that every process computes alike."""
    return f"{zlib.crc32(name.encode()) % SHARDS:x}"


ALL_SHARDS = tuple(f"{number:x}" for number in range(SHARDS))


def pack(body: bytes) -> bytes:
    """A body as it is stored."""
    if len(body) >= _PACK_FROM_BYTES:
        small = zlib.compress(body, 1)
        if len(small) < len(body):
            return _DEFLATED + small
    return _PLAIN + body


def unpack(stored: bytes) -> bytes:
    """The body again. Raises ``ValueError`` for anything that :func:`pack` doesn't make."""
    kind, rest = stored[:1], stored[1:]
    if kind == _PLAIN:
        return rest
    if kind != _DEFLATED:
        raise ValueError("a body that this version didn't write")
    try:
        return zlib.decompress(rest)
    except zlib.error as error:
        raise ValueError(f"a damaged body ({error})") from error


def packed(body: bytes, what: str, where: str) -> dict[str, bytes]:
    """A body as an attribute of one item. Raises ``Refused``, with the numbers, if it can't fit."""
    stored = pack(body)
    if len(stored) > BODY_MOST_BYTES:
        raise Refused(
            f"{what} has {len(body):,} bytes, {len(stored):,} compressed; one DynamoDB item takes {BODY_MOST_BYTES:,}",
            where=where,
            hint="make it smaller (fewer targets in a pool, say), or use the postgresql store",
        )
    return {"B": stored}


def text(item: Item, name: str) -> str:
    """A text attribute. Raises ``ValueError`` if there is none."""
    value = item.get(name, {}).get("S")
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is missing or no text")  # noqa: TRY004  it is the item's value
    return value


def number(item: Item, name: str) -> int:
    """A whole number. Raises ``ValueError`` if there is none."""
    value = item.get(name, {}).get("N")
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is missing or no number")  # noqa: TRY004  as above
    return int(value)


def body(item: Item, name: str = "body") -> bytes:
    """A packed body. Raises ``ValueError`` if there is none."""
    value = item.get(name, {}).get("B")
    if not isinstance(value, bytes):
        raise ValueError(f"{name!r} is missing or no bytes")  # noqa: TRY004  as above
    return unpack(value)
