"""Which shard a host or an instance belongs to: by a hash of its name, so that nobody has to agree on a list."""

from hashlib import blake2b


def shard_of(name: str, of: int) -> int:
    """The shard of a name, from 1 to ``of``: the same on every machine and in every version.

    Raises ``ValueError`` if there is no shard at all.
    """
    if of < 1:
        raise ValueError(f"{of} shards: there is at least one")
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") % of + 1
