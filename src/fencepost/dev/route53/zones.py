"""Actions on hosted zones and their tags."""

from datetime import UTC, datetime

from fencepost.dev.route53 import documents, limits
from fencepost.dev.route53.account import Account, HostedZone, Submitted
from fencepost.dev.route53.documents import element, text
from fencepost.dev.route53.http import Reply, Request
from fencepost.dev.route53.listing import most_asked
from fencepost.dev.route53.names import BadNameError, canonical, order
from fencepost.dev.route53.refusals import ApiError, invalid_input, malformed

NANOSECONDS = 1_000_000_000


def change_info(change: Submitted, now: int, status: str | None = None) -> str:
    """A ChangeInfo element."""
    at = datetime.fromtimestamp(change.at / NANOSECONDS, UTC)
    return element(
        "ChangeInfo",
        text("Id", f"/change/{change.id}"),
        text("Status", status or change.status(now)),
        text("SubmittedAt", at.isoformat(timespec="milliseconds").replace("+00:00", "Z")),
        text("Comment", change.comment),
    )


def zone_element(zone: HostedZone) -> str:
    """A HostedZone element."""
    config = element("Config", text("Comment", zone.comment), text("PrivateZone", zone.private))
    return element(
        "HostedZone",
        text("Id", f"/hostedzone/{zone.id}"),
        text("Name", zone.name),
        text("CallerReference", zone.caller_reference),
        config,
        text("ResourceRecordSetCount", zone.count),
    )


def about(zone: HostedZone, *, created: bool = False) -> str:
    """What follows a HostedZone element: who serves it, or whose it is (a list, but for one just created)."""
    if zone.private:
        found = (element("VPC", text("VPCRegion", region), text("VPCId", name)) for region, name in zone.vpcs)
        return "".join(found) if created else element("VPCs", *found)
    return element("DelegationSet", element("NameServers", *(text("NameServer", name) for name in zone.name_servers)))


def create(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """CreateHostedZone."""
    del parts
    asked = documents.parse(request.body, "CreateHostedZoneRequest")
    name, reference = asked.findtext("Name"), asked.findtext("CallerReference")
    if not name or not reference:
        raise malformed("CreateHostedZoneRequest has a Name and a CallerReference")
    try:
        name = canonical(name)
    except BadNameError as error:
        raise ApiError("InvalidDomainName", str(error)) from error
    vpc, region = asked.findtext("VPC/VPCId"), asked.findtext("VPC/VPCRegion")
    private = asked.findtext("HostedZoneConfig/PrivateZone") == "true"
    if private and (not vpc or not region):
        raise invalid_input("When you're creating a private hosted zone (when you specify true for PrivateZone), "
                            "you must also specify values for VPCId and VPCRegion.")  # fmt: skip
    vpcs = ((region, vpc),) if vpc and region else ()
    zone = account.create(name, reference, comment=asked.findtext("HostedZoneConfig/Comment"), vpcs=vpcs)
    info = change_info(account.submitted(now), now, "PENDING")
    body = documents.document("CreateHostedZoneResponse", zone_element(zone), info, about(zone, created=True))
    return Reply(201, body, f"https://route53.amazonaws.com/2013-04-01/hostedzone/{zone.id}")


def get(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """GetHostedZone."""
    del request, now
    zone = account.zone(parts[0])
    return Reply(body=documents.document("GetHostedZoneResponse", zone_element(zone), about(zone)))


def update_comment(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """UpdateHostedZoneComment."""
    del now
    zone = account.zone(parts[0])
    zone.comment = documents.parse(request.body, "UpdateHostedZoneCommentRequest").findtext("Comment")
    return Reply(body=documents.document("UpdateHostedZoneCommentResponse", zone_element(zone)))


def delete(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """DeleteHostedZone."""
    del request
    account.delete(account.zone(parts[0]))
    info = change_info(account.submitted(now), now, "PENDING")
    return Reply(body=documents.document("DeleteHostedZoneResponse", info))


def count(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """GetHostedZoneCount."""
    del request, parts, now
    return Reply(body=documents.document("GetHostedZoneCountResponse", text("HostedZoneCount", len(account.zones))))


def list_all(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """ListHostedZones, in the order they were made; `marker` is the first one's id."""
    del parts, now
    most, marker = most_asked(request.query, limits.PAGE_ZONES_MOST), request.query.get("marker")
    listed = list(account.zones.values())
    if marker:
        listed = listed[listed.index(account.zone(marker)) :]
    following = listed[most] if len(listed) > most else None
    inside = (
        element("HostedZones", *map(zone_element, listed[:most])),
        text("Marker", marker),
        text("IsTruncated", following is not None),
        text("NextMarker", following.id if following else None),
        text("MaxItems", most),
    )
    return Reply(body=documents.document("ListHostedZonesResponse", *inside))


def list_by_name(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """ListHostedZonesByName: by reversed labels, then id."""
    del parts, now
    most, asked, first = (
        most_asked(request.query, limits.PAGE_ZONES_MOST),
        request.query.get("dnsname"),
        request.query.get("hostedzoneid"),
    )
    listed = sorted(account.zones.values(), key=lambda zone: (order(zone.name), zone.id))
    if asked is not None:
        try:
            begin = (order(canonical(asked)), (first or "").removeprefix("/hostedzone/"))
        except BadNameError as error:
            raise ApiError("InvalidDomainName", str(error)) from error
        listed = [zone for zone in listed if (order(zone.name), zone.id) >= begin]
    following = listed[most] if len(listed) > most else None
    inside = (
        element("HostedZones", *map(zone_element, listed[:most])),
        text("DNSName", asked),
        text("HostedZoneId", first),
        text("IsTruncated", following is not None),
        text("NextDNSName", following.name if following else None),
        text("NextHostedZoneId", following.id if following else None),
        text("MaxItems", most),
    )
    return Reply(body=documents.document("ListHostedZonesByNameResponse", *inside))


def list_by_vpc(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """ListHostedZonesByVPC: the private zones of one VPC, on one page."""
    del parts, now
    vpc, owner = (request.query.get("vpcregion", ""), request.query.get("vpcid", "")), "123456789012"
    found = (
        element(
            "HostedZoneSummary",
            text("HostedZoneId", zone.id),
            text("Name", zone.name),
            element("Owner", text("OwningAccount", owner)),
        )
        for zone in account.zones.values()
        if vpc in zone.vpcs
    )
    inside = (element("HostedZoneSummaries", *found), text("MaxItems", limits.PAGE_ZONES_MOST))
    return Reply(body=documents.document("ListHostedZonesByVPCResponse", *inside))


def record_set_limit(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """GetHostedZoneLimit, for the number of record sets."""
    del request, now
    limit = element("Limit", text("Type", "MAX_RRSETS_BY_ZONE"), text("Value", limits.ZONE_RECORD_SETS_MOST))
    inside = (limit, text("Count", account.zone(parts[0]).count))
    return Reply(body=documents.document("GetHostedZoneLimitResponse", *inside))


def tag_set(account: Account, kind: str, name: str) -> str:
    """A ResourceTagSet element. Raises ApiError."""
    tags = _tags(account, kind, name)
    found = (element("Tag", text("Key", key), text("Value", value)) for key, value in sorted(tags.items()))
    return element(
        "ResourceTagSet", text("ResourceType", kind), text("ResourceId", name), element("Tags", *found)
    )  # fmt: skip


def list_tags(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """ListTagsForResource."""
    del request, now
    return Reply(body=documents.document("ListTagsForResourceResponse", tag_set(account, *parts)))


def list_tags_of_many(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """ListTagsForResources: at most ten."""
    del now
    asked = documents.parse(request.body, "ListTagsForResourcesRequest").findall("ResourceIds/ResourceId")
    if not 1 <= len(asked) <= 10:
        raise invalid_input("Invalid request: ResourceIds has 1 to 10 ids")
    found = (tag_set(account, parts[0], each.text or "") for each in asked)
    return Reply(body=documents.document("ListTagsForResourcesResponse", element("ResourceTagSets", *found)))


def change_tags(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """ChangeTagsForResource."""
    del now
    tags = _tags(account, *parts)
    asked = documents.parse(request.body, "ChangeTagsForResourceRequest")
    for each in asked.findall("RemoveTagKeys/Key"):
        tags.pop(each.text or "", None)
    for each in asked.findall("AddTags/Tag"):
        tags[each.findtext("Key") or ""] = each.findtext("Value") or ""
    return Reply(body=documents.document("ChangeTagsForResourceResponse"))


def _tags(account: Account, kind: str, name: str) -> dict[str, str]:
    if kind != "hostedzone":
        raise ApiError("NoSuchHealthCheck", f"A health check with id {name} does not exist.", 404)
    return account.zone(name).tags
