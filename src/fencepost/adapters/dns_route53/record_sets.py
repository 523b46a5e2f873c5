"""Resource record sets as the API lists and takes them, and the two forms in which we write addresses.

The *simple* form is one set of all addresses. The *weighted* form is a set for each address, of which Route 53 answers
one a question; sets of one name and type are told apart by their identifiers. Ours are the addresses themselves, but
for the first, which is always ``fencepost``: a CREATE is only refused where a set with that identifier stands, so two
writers who both saw nothing must have one in common, whatever addresses they bring.
"""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from fencepost.core.dns_numbers import TTL_MAX
from fencepost.core.record_set import Content
from fencepost.ports import Unavailable

FIRST_IDENTIFIER = "fencepost"
_ROUTED = {
    "AliasTarget": "alias",
    "Region": "latency",
    "Failover": "failover",
    "GeoLocation": "geolocation",
    "GeoProximityLocation": "geoproximity",
    "CidrRoutingConfig": "IP-based",
    "MultiValueAnswer": "multivalue",
    "TrafficPolicyInstanceId": "traffic policy",
    "HealthCheckId": "health-checked",
}


class RecordSet(Struct, frozen=True, gc=False):
    """One record set. ``values`` are spelled and ordered as listed, since a DELETE has to repeat them.

    ``weight`` is -1 for a set without one. ``odd`` says what else it is (alias, latency …); such a set is never ours,
    and never written.
    """

    owner: str
    type: str
    ttl: int = 0
    values: tuple[str, ...] = ()
    identifier: str = ""
    weight: int = -1
    odd: str = ""

    @property
    def simple(self) -> bool:
        """Whether it is the only one of its name and type, and plain."""
        return not self.identifier and self.weight < 0 and not self.odd


def from_api(listed: Mapping[str, Any]) -> RecordSet:
    """A set as ListResourceRecordSets gives it. Raises ``Unavailable`` for a TTL that is none (RFC 2181 section 8)."""
    if not 0 <= listed.get("TTL", 0) <= TTL_MAX:
        said = f"its answer makes no sense: {listed['Name']} has a TTL of {listed['TTL']} s"
        raise Unavailable(said, where="Route 53")
    odd = next((word for key, word in _ROUTED.items() if key in listed), "")
    return RecordSet(
        listed["Name"],
        listed["Type"],
        listed.get("TTL", 0),
        tuple(record["Value"] for record in listed.get("ResourceRecords", ())),
        listed.get("SetIdentifier", ""),
        listed.get("Weight", -1),
        odd,
    )


def to_api(given: RecordSet) -> dict[str, Any]:
    """The set as ChangeResourceRecordSets takes it."""
    made: dict[str, Any] = {
        "Name": given.owner,
        "Type": given.type,
        "TTL": given.ttl,
        "ResourceRecords": [{"Value": value} for value in given.values],
    }
    if given.identifier:
        made |= {"SetIdentifier": given.identifier, "Weight": given.weight}
    return made


def address_sets(owner: str, value: Content, *, weighted: bool) -> tuple[RecordSet, ...]:
    """The sets that publish a content, A before AAAA."""
    weights = value.weights or (1,) * len(value.addresses)
    found: list[RecordSet] = []
    for kind, addresses, begin in (("A", value.a, 0), ("AAAA", value.aaaa, len(value.a))):
        if not addresses:
            continue
        if not weighted:
            found.append(RecordSet(owner, kind, value.ttl, addresses))
            continue
        found += [
            RecordSet(
                owner, kind, value.ttl, (address,), address if index else FIRST_IDENTIFIER, weights[begin + index]
            )
            for index, address in enumerate(addresses)
        ]
    return tuple(found)


class Family(Struct, frozen=True, gc=False):
    """What one name's A (or AAAA) sets say: addresses in canonical order, TTL, and weights if in the weighted form.

    ``other`` says what stands there instead, if it is nothing that we'd write.
    """

    addresses: tuple[str, ...] = ()
    ttl: int = 0
    weights: tuple[int, ...] = ()
    other: str = ""


def family_of(sets: list[RecordSet], kind: str) -> Family:
    """Read the sets of one name and type."""
    if not sets:
        return Family()
    try:
        return _read(sets, kind)
    except ValueError:
        return Family(other=f"{kind} unreadable")


def _read(sets: list[RecordSet], kind: str) -> Family:
    if len(sets) == 1 and sets[0].simple:
        return Family(_canonical(sets[0].values), sets[0].ttl)
    odd = next((each.odd for each in sets if each.odd), "")
    if odd or not all(_weighted_by_us(each) for each in sets):
        return Family(other=f"{kind} {odd or ('weighted' if sets[0].weight >= 0 else 'routed')}")
    weight_of = {_canonical(each.values)[0]: each.weight for each in sets}
    addresses = _canonical(tuple(weight_of))
    ttl = sets[0].ttl if len({each.ttl for each in sets}) == 1 else 0
    return Family(addresses, ttl, tuple(weight_of[address] for address in addresses))


def _weighted_by_us(each: RecordSet) -> bool:
    """Whether it is a set such as the weighted form has, by its identifier."""
    return each.weight >= 0 and len(each.values) == 1 and each.identifier in (FIRST_IDENTIFIER, each.values[0])


@lru_cache(maxsize=4096)
def _canonical(values: tuple[str, ...]) -> tuple[str, ...]:
    """Addresses in their one spelling and in numeric order; endpoints of one pool share them.

    Raises ``ValueError`` for one that is none.
    """
    return tuple(map(str, sorted(map(ipaddress.ip_address, values))))
