"""The token of a lease: which grant an order belongs to, so that a host obeys none from an older one.

The epoch comes first: taking a shard over raises it, which outdates every order of the manager before without a write
for each host. The nonce tells two grants with one number apart (a store put back from a copy may number one twice):
the host keeps the one it met first and answers that it knows something newer.
"""

from typing import Annotated

from msgspec import Meta, Struct

Counted = Annotated[int, Meta(ge=0, le=1 << 62)]
"""What counts up, as it comes over the wire: more no store and no array takes, and there is still one to add."""
Drawn = Annotated[int, Meta(ge=0)]
"""What is drawn, as it comes over the wire: 64 bits without a sign."""


class Token(Struct, frozen=True, gc=False, order=True, array_like=True):
    """``epoch`` of the shard's owner, ``number`` of the host's grant, and that grant's ``nonce`` (64 bits).

    Compare tokens with :meth:`outdates` only: the order of two nonces means nothing.
    """

    epoch: Counted = 0
    number: Counted = 0
    nonce: Drawn = 0

    @property
    def place(self) -> tuple[int, int]:
        """What is compared: epoch first, then number."""
        return self.epoch, self.number

    def outdates(self, other: "Token") -> bool:
        """Whether whoever knows this one must refuse the other: it is older, or another grant of the same number."""
        return other.place < self.place or (other.place == self.place and other.nonce != self.nonce)


NO_TOKEN = Token()
"""What a host knows that was never granted anything."""
