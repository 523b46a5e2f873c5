"""The token of a lease: which grant an order belongs to, so that a host obeys none from an older one.

The epoch comes first: taking a shard over raises it, which outdates every order of the manager before without a write
for each host. The nonce tells two grants with one number apart (a store put back from a copy may number one twice):
the host keeps the one it met first and answers that it knows something newer.
"""

from msgspec import Struct


class Token(Struct, frozen=True, gc=False, order=True, array_like=True):
    """``epoch`` of the shard's owner, ``number`` of the host's grant, and that grant's ``nonce`` (64 bits).

    Compare tokens with :meth:`outdates` only: the order of two nonces means nothing.
    """

    epoch: int = 0
    number: int = 0
    nonce: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """What is compared: epoch first, then number."""
        return self.epoch, self.number

    def outdates(self, other: "Token") -> bool:
        """Whether whoever knows this one must refuse the other: it is older, or another grant of the same number."""
        return other.place < self.place or (other.place == self.place and other.nonce != self.nonce)


NO_TOKEN = Token()
"""What a host knows that was never granted anything."""
