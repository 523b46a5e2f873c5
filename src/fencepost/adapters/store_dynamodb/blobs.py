"""Bodies too big to stand where they are named: kept in items of their own, which never change.

A body is written before the item that names it, under a name that nobody else draws; so whoever reads the name finds
the whole body, and a writer that dies in between leaves items that nobody reads. What is replaced is deleted
afterwards; a reader that was just about to read it looks at the root again.

*Cleaning up.* A body's name begins with the root's revision that its writer had read. The writer can publish the name
only by a compare-and-set on that very revision. So a body whose revision is below the root's, and that the root doesn't
name, will never be named, however long its writer sleeps: it may be deleted, without any clock.
"""

import secrets
from collections.abc import Iterable, Sequence

from msgspec import Struct

from fencepost.adapters.store_dynamodb.client import Client
from fencepost.adapters.store_dynamodb.items import BODY_MOST_BYTES, Item, key, pack, padded, unpack
from fencepost.ports import Refused

PARTITION = "blob"
BODY_TOTAL_BYTES = 64 * 1024 * 1024
"""Compressed; 170 items."""


class Blob(Struct, frozen=True, gc=False):
    """Where a body is: here (``inline``, packed), or in ``items`` items under ``name``."""

    inline: bytes = b""
    name: str = ""
    items: int = 0


NOTHING = Blob()
"""An empty body, or none."""


class GoneError(Exception):
    """A body was replaced and deleted since its name was read: read the root again."""


class Blobs:
    """Bodies of one table. What never changes needs reading only once: the bodies named last are remembered."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, bytes] = {}

    async def keep(self, body: bytes, *, inline_most: int, revision: int, what: str) -> Blob:
        """Write a body, if it is too big to stand inline. Raises ``Refused`` for one that is too big at all."""
        if not body:
            return NOTHING
        stored = pack(body)
        if len(stored) <= inline_most:
            return Blob(inline=stored)
        if len(stored) > BODY_TOTAL_BYTES:
            raise Refused(
                f"{what} has {len(body):,} bytes, {len(stored):,} compressed; the limit is {BODY_TOTAL_BYTES:,}",
                where=self._client.where,
                hint="split the region, or use the postgresql store",
            )
        name = f"{padded(revision)}#{secrets.token_hex(8)}"
        cuts = [stored[at : at + BODY_MOST_BYTES] for at in range(0, len(stored), BODY_MOST_BYTES)]
        await self._client.write({**_key(name, at), "body": {"B": cut}} for at, cut in enumerate(cuts))
        self._known[name] = body
        return Blob(name=name, items=len(cuts))

    async def read(self, blob: Blob) -> bytes:
        """A body. Raises :class:`GoneError`; ``ValueError`` if it is damaged."""
        if not blob.name:
            return unpack(blob.inline) if blob.inline else b""
        known = self._known.get(blob.name)
        if known is not None:
            return known
        await self.load([blob])
        return self._known[blob.name]

    async def load(self, blobs: Iterable[Blob]) -> None:
        """Read several bodies together, as :meth:`read` does."""
        wanted = {blob.name: blob for blob in blobs if blob.name and blob.name not in self._known}
        keys = [_key(blob.name, at) for blob in wanted.values() for at in range(blob.items)]
        cuts = {item["sk"]["S"]: bytes(item["body"]["B"]) for item in await self._client.fetch(keys)}
        for name, blob in wanted.items():
            found = [cuts.get(f"{name}#{at:05d}") for at in range(blob.items)]
            whole = [cut for cut in found if cut is not None]
            if len(whole) < blob.items:
                raise GoneError(name)
            self._known[name] = unpack(b"".join(whole))

    async def delete(self, blobs: Iterable[Blob]) -> None:
        """Delete bodies that nothing names any more, or ever will."""
        await self._client.write(deletes=[_key(blob.name, at) for blob in blobs for at in range(blob.items)])

    def remember_only(self, names: frozenset[str]) -> None:
        """Forget the bodies that aren't named any more."""
        for name in self._known.keys() - names:
            del self._known[name]

    async def left_over(self, named: frozenset[str], revision: int) -> Sequence[Item]:
        """The items of bodies that can't be named any more: below this revision of the root, which names others."""
        found = await self._client.query(PARTITION, after="0", to=padded(revision), names="pk, sk")
        return [item for item in found if item["sk"]["S"].rpartition("#")[0] not in named]


def _key(name: str, at: int) -> dict[str, Item]:
    return key(PARTITION, f"{name}#{at:05d}")
