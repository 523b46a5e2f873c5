"""Which shard a host or an instance belongs to: by a hash of its name, so that nobody has to agree on a list."""

from collections.abc import Iterable
from hashlib import blake2b

from fencepost.core.capacity.rows import ShardRow


def shard_of(name: str, of: int) -> int:
    """The shard of a name, from 1 to ``of``: the same on every machine and in every version.

    Raises ``ValueError`` if there is no shard at all.
    """
    if of < 1:
        raise ValueError(f"{of} shards: there is at least one")
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") % of + 1


def closed(rows: Iterable[ShardRow], of: int, life: str) -> tuple[int, ...]:
    """The shards of ``of`` whose hosts aren't all known yet in this life of the store: nothing is placed meanwhile."""
    opened = {row.shard for row in rows if row.open == life}
    return tuple(shard for shard in range(1, of + 1) if shard not in opened)
