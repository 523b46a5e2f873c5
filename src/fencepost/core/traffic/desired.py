"""What the inputs ask of each endpoint: a pure function of its settings and its pool's membership row.

Nothing else may enter, or two planners with the same snapshot would make different plans and replace each other's for
ever. A pool that has no row yet, or serves nobody in a published family, asks for nothing: what stands stays.
"""

from collections.abc import Mapping

from msgspec import Struct

from fencepost.core.record_set import Content, content
from fencepost.core.store import Wanted
from fencepost.core.traffic.membership import SERVING, Membership, State


class Offer(Struct, frozen=True):
    """The service that an endpoint asks SRV records for, ``_http._tcp``: the port of each address that has its own.

    ``port`` is that of all others; a launched instance's own is in the membership row.
    """

    service: str
    port: int
    ports: Mapping[str, int] = {}


def desired(records: tuple[str, ...], ttl_s: int, row: Membership | None, offer: Offer | None = None) -> Wanted | None:
    """What an endpoint publishing ``records`` ("A", "AAAA") with this TTL should answer; None if it can't be told.

    With an ``offer``, by SRV records too.
    """
    if row is None:
        return None
    weights = {
        member.key: max(1, member.weight)
        for member in row.members
        if member.state in SERVING and ("AAAA" if ":" in member.key else "A") in records
    }
    families = ("4" if "A" in records else "") + ("6" if "AAAA" in records else "")
    launched = {member.key: member.port for member in row.members if member.port}
    if offer is not None and launched:
        offer = Offer(offer.service, offer.port, {**launched, **offer.ports})
    made = offered(weights, ttl_s, offer)
    if ("4" in families and not made.a) or ("6" in families and not made.aaaa):
        return None
    return Wanted(made, families, row.shift_since, comes_back(row))


def offered(weights: Mapping[str, int], ttl_s: int, offer: Offer | None) -> Content:
    """The content of addresses with their weights, by SRV records too if there is an offer.

    Raises ``ValueError`` as :func:`~fencepost.core.record_set.content` does.
    """
    if offer is None:
        return content(weights, ttl_s)
    return content(weights, ttl_s, offer.service, {key: offer.ports.get(key, offer.port) for key in weights})


def comes_back(row: Membership) -> bool:
    """Whether the newest change of the set in service brought a target back that had been in service before."""
    for move in reversed(row.moves):
        if (move.before in SERVING) is not (move.after in SERVING) and move.before is not None:
            return move.after in SERVING and move.before is not State.PENDING
    return False
