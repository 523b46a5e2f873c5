"""The least that AWS has to allow: an IAM policy limited to this region's names, their types, and the two actions used.

Route 53 can be told which names may be changed by condition keys (Developer Guide, "Using IAM policy conditions for
fine-grained access control"): normalised names are in lower case, without a final dot, and with ``*`` as ``\\052``.
"""

from typing import Any

import msgspec

from fencepost.adapters.dns_route53.names import marker_owner_of, owner_of
from fencepost.settings import Region

POLICY_CHARACTERS_MOST = 6_144
"""A managed policy's size, white space not counted (IAM User Guide, "IAM and AWS STS quotas")."""


def least_policy(region: Region, partition: str = "aws") -> dict[str, Any]:
    """The policy as IAM takes it. Where the names would make it too big, it allows the whole domain's instead.

    ``partition`` is "aws-cn" in China and "aws-us-gov" in GovCloud.
    """
    exact = _policy(region, sorted(_names(region)), "StringEquals", partition)
    if len(msgspec.json.encode(exact)) <= POLICY_CHARACTERS_MOST:
        return exact
    wide = sorted(each for domain in region.dns.domains for each in (domain, f"*.{domain}"))
    return _policy(region, wide, "StringLike", partition)


def _names(region: Region) -> set[str]:
    return {
        owner.removesuffix(".")
        for endpoint in region.endpoints
        for owner in (owner_of(endpoint.name), marker_owner_of(endpoint.name))
    }


def _policy(region: Region, names: list[str], compares: str, partition: str) -> dict[str, Any]:
    zone_id = region.dns.option("zone_id")
    single = bool(zone_id) and len(region.dns.domains) == 1
    zone = f"arn:{partition}:route53:::hostedzone/{zone_id if single else '*'}"
    find = [] if single else [_allow("FindTheHostedZone", ["ListHostedZonesByName"], "*")]
    read = ["ListResourceRecordSets", *(["GetHostedZone"] if zone_id else [])]
    write = _allow("WriteTheseNamesOnly", ["ChangeResourceRecordSets"], zone)
    allowed = {
        "route53:ChangeResourceRecordSetsRecordTypes": ["A", "AAAA", "TXT"],
        "route53:ChangeResourceRecordSetsActions": ["CREATE", "DELETE"],
    }
    conditions: dict[str, dict[str, list[str]]] = {"ForAllValues:StringEquals": allowed}
    conditions.setdefault(f"ForAllValues:{compares}", {})["route53:ChangeResourceRecordSetsNormalizedRecordNames"] = (
        names
    )
    write["Condition"] = conditions
    return {"Version": "2012-10-17", "Statement": [*find, _allow("Read", read, zone), write]}


def _allow(sid: str, actions: list[str], resource: str) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": [f"route53:{action}" for action in actions], "Resource": resource}
