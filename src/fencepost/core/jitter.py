"""Jitter as a hash of what it is for, so that it needs no state and replays.

Two enactors backing off after the same refusal must not meet again at the same instant; a test in virtual time must
come out the same twice. A hash of (who, what, attempt) gives both.
"""

from hashlib import blake2b

from fencepost.core.instant import Duration


def jitter(spread: Duration, *what: object) -> Duration:
    """A length in [0, spread), the same for the same words: ``jitter(SECOND, "enactor/b", 3)``."""
    if spread <= 0:
        return 0
    digest = blake2b("\x1f".join(map(str, what)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % spread
