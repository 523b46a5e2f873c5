"""Which record sets may share a name, and which refusal it is when they may not."""

from collections.abc import Iterable

from fencepost.dev.route53 import limits
from fencepost.dev.route53.record_set import RecordSet

KINDS = {
    "Weight": "weighted",
    "Region": "latency",
    "Failover": "failover",
    "GeoLocation": "geolocation",
    "MultiValueAnswer": "multivalue answer",
}
"""Routing policies, as refusals call them; only "weighted" was found in a report (external-dns #4345)."""


def conflict(zone: str, wanted: RecordSet, others: Iterable[RecordSet]) -> str | None:
    """Why `wanted` can't stand beside the `others` at its name, or None."""
    others = list(others)
    if wanted.type == "SOA" and wanted.name != zone:
        return "A HostedZone must contain exactly one SOA record."
    return beside_cname(zone, wanted, others) or beside_same_type(wanted, [o for o in others if o.type == wanted.type])


def beside_cname(zone: str, wanted: RecordSet, others: list[RecordSet]) -> str | None:
    """A CNAME stands alone (RFC 1034 section 3.6.2); texts as in amazon.aws #2694,
    terraform-aws-open-next #24 and bosh-bootloader #310."""
    what = f"RRSet of type {wanted.type} with DNS name {wanted.name} is not permitted"
    if wanted.type == "CNAME" and wanted.name == zone:
        return f"{what} at apex in zone {zone}"
    if wanted.type == "CNAME" and any(each.type != "CNAME" for each in others):
        return f"{what} as it conflicts with other records with the same DNS name in zone {zone}"
    if wanted.type != "CNAME" and any(each.type == "CNAME" for each in others):
        conflicting = "because a conflicting RRSet of type CNAME with the same DNS name already exists in zone"
        return f"{what} {conflicting} {zone}"
    return None


def beside_same_type(wanted: RecordSet, same: list[RecordSet]) -> str | None:
    """Simple and identified sets don't mix, nor do two routing policies, and weighted sets share a TTL.

    Texts as in chef-boneyard/route53 #100, external-dns #4345, aws-sdk-go-v2 #518 and airbnb/zonify #16. Whether a
    batch that gives all weighted sets of a name a new TTL by UPSERT is let through isn't known; here it isn't.
    """
    if not same:
        return None
    what = f"RRSet with DNS name {wanted.name}, type {wanted.type}"
    if wanted.set_identifier is None:
        return f"{what} cannot be created as other RRSets exist with the same name and type."
    what = f"{what}, SetIdentifier {wanted.set_identifier}"
    policy = wanted.routing()
    if any(each.routing() != policy for each in same):
        kind = KINDS[policy[0]]
        return f"{what} cannot be created as a non-{kind} set exists with the same name and type."
    if wanted.weight is not None and any(
        each.ttl != wanted.ttl for each in same if not each.alias and not wanted.alias
    ):
        return f"{what} cannot be created as weighted sets must contain the same TTL."
    if len(same) >= limits.SAME_NAME_SETS_MOST:
        kind = KINDS[policy[0]]
        return f"Exceeded limit on number of {kind} RRSets for {wanted.name}, type {wanted.type} in this zone."
    return None
