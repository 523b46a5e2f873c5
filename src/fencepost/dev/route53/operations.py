"""The actions: which request is which, and what each answers (API reference, "Actions", version 2013-04-01)."""

import re
from collections.abc import Callable
from typing import TypeAlias

from fencepost.dev.route53 import documents, limits, zones
from fencepost.dev.route53.account import Account, HostedZone, Submitted
from fencepost.dev.route53.documents import element, record_set, text
from fencepost.dev.route53.http import Reply, Request
from fencepost.dev.route53.listing import most_asked, page
from fencepost.dev.route53.refusals import ApiError, malformed

Action: TypeAlias = Callable[[Account, Request, "tuple[str, ...]", int], Reply]

ZONE, KIND = r"((?:/hostedzone/)?[^/]+)", r"(hostedzone|healthcheck)"
ROUTES = (
    ("POST", r"/hostedzone", "CreateHostedZone"),
    ("GET", r"/hostedzone", "ListHostedZones"),
    ("GET", r"/hostedzonesbyname", "ListHostedZonesByName"),
    ("GET", r"/hostedzonesbyvpc", "ListHostedZonesByVPC"),
    ("GET", r"/hostedzonecount", "GetHostedZoneCount"),
    ("GET", rf"/hostedzonelimit/{ZONE}/MAX_RRSETS_BY_ZONE", "GetHostedZoneLimit"),
    ("POST", rf"/hostedzone/{ZONE}/rrset", "ChangeResourceRecordSets"),
    ("GET", rf"/hostedzone/{ZONE}/rrset", "ListResourceRecordSets"),
    ("GET", rf"/hostedzone/{ZONE}", "GetHostedZone"),
    ("POST", rf"/hostedzone/{ZONE}", "UpdateHostedZoneComment"),
    ("DELETE", rf"/hostedzone/{ZONE}", "DeleteHostedZone"),
    ("GET", r"/change/(?:/change/)?([^/]+)", "GetChange"),
    ("GET", rf"/tags/{KIND}/([^/]+)", "ListTagsForResource"),
    ("POST", rf"/tags/{KIND}/([^/]+)", "ChangeTagsForResource"),
    ("POST", rf"/tags/{KIND}", "ListTagsForResources"),
    ("GET", r"/healthcheck", "ListHealthChecks"),
)
_COMPILED = tuple((method, re.compile(rf"/2013-04-01{path}"), action) for method, path, action in ROUTES)


def route(request: Request) -> tuple[str, tuple[str, ...]]:
    """The action asked for, and the parts of its path. Raises ApiError."""
    for method, path, action in _COMPILED:
        match = path.fullmatch(request.path)
        if match is not None and method == request.method:
            return action, match.groups()
    raise ApiError("UnknownOperationException", f"no such operation here: {request.method} {request.path}", 404)


def list_record_sets(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """ListResourceRecordSets."""
    del now
    zone, asked = account.zone(parts[0]), request.query
    found = page(
        zone.listed(),
        name=asked.get("name"),
        kind=asked.get("type"),
        identifier=asked.get("identifier"),
        most=most_asked(asked, limits.PAGE_RECORD_SETS_MOST),
    )
    following = found.following
    pointer = "" if following is None else (
        text("NextRecordName", following.name)
        + text("NextRecordType", following.type)
        + text("NextRecordIdentifier", following.set_identifier)
    )  # fmt: skip
    return Reply(
        body=documents.document(
            "ListResourceRecordSetsResponse",
            element("ResourceRecordSets", *map(record_set, found.sets)),
            text("IsTruncated", following is not None),
            pointer,
            text("MaxItems", found.most),
        )
    )


def batch_of(request: Request) -> documents.Node:
    """A ChangeResourceRecordSets request's batch. Raises ApiError."""
    batch = documents.parse(request.body, "ChangeResourceRecordSetsRequest").find("ChangeBatch")
    if batch is None:
        raise malformed("ChangeResourceRecordSetsRequest has no ChangeBatch")
    return batch


def change_record_sets(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """ChangeResourceRecordSets."""
    zone: HostedZone = account.zone(parts[0])
    batch = batch_of(request)
    submitted = account.change(zone, documents.changes(batch), now, batch.findtext("Comment"))
    return Reply(body=documents.document("ChangeResourceRecordSetsResponse", change_info(submitted, now, "PENDING")))


def get_change(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """GetChange."""
    del request
    found = account.changes.get(parts[0])
    if found is None:
        raise ApiError("NoSuchChange", f"Could not find resource with ID: {parts[0]}", 404)
    return Reply(body=documents.document("GetChangeResponse", change_info(found, now)))


def change_info(change: Submitted, now: int, status: str | None = None) -> str:
    """A ChangeInfo element."""
    return zones.change_info(change, now, status)


def health_checks(account: Account, request: Request, parts: tuple[str, ...], now: int) -> Reply:
    """ListHealthChecks: there are none."""
    del account, request, parts, now
    inside = (element("HealthChecks"), text("IsTruncated", False), text("MaxItems", 100), text("Marker", ""))
    return Reply(body=documents.document("ListHealthChecksResponse", *inside))


ACTIONS: dict[str, Action] = {
    "CreateHostedZone": zones.create,
    "ListHostedZones": zones.list_all,
    "ListHostedZonesByName": zones.list_by_name,
    "ListHostedZonesByVPC": zones.list_by_vpc,
    "GetHostedZoneCount": zones.count,
    "GetHostedZoneLimit": zones.record_set_limit,
    "GetHostedZone": zones.get,
    "UpdateHostedZoneComment": zones.update_comment,
    "DeleteHostedZone": zones.delete,
    "ChangeResourceRecordSets": change_record_sets,
    "ListResourceRecordSets": list_record_sets,
    "GetChange": get_change,
    "ListTagsForResource": zones.list_tags,
    "ListTagsForResources": zones.list_tags_of_many,
    "ChangeTagsForResource": zones.change_tags,
    "ListHealthChecks": health_checks,
}
"""What each action does."""
CHANGING = frozenset(action for method, _, action in ROUTES if method != "GET" and action != "ListTagsForResources")
"""Actions after which a file that keeps the zones is written."""
