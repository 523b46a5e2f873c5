"""The XML of the API: elements of requests read, elements of answers written.

A request's namespace isn't looked at; a document type is refused, so that no entity can be declared.
"""

from collections.abc import Iterable
from typing import TypeAlias
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from fencepost.dev.route53.record_set import Alias, Change, RecordSet
from fencepost.dev.route53.refusals import malformed

NAMESPACE = "https://route53.amazonaws.com/doc/2013-04-01/"
Node: TypeAlias = "ElementTree.Element"


def element(tag: str, *inside: str) -> str:
    """An element around markup."""
    return f"<{tag}>{''.join(inside)}</{tag}>"


def text(tag: str, value: object) -> str:
    """An element around text; nothing if the value is None. Booleans are written as XML Schema has them."""
    if value is None:
        return ""
    return element(tag, escape(str(value).lower() if isinstance(value, bool) else str(value)))


def document(tag: str, *inside: str) -> bytes:
    """A whole answer."""
    head = f'<?xml version="1.0"?>\n<{tag} xmlns="{NAMESPACE}">'
    return f"{head}{''.join(inside)}</{tag}>".encode()


def parse(body: bytes, root: str) -> Node:
    """The root element of a request, which must be called `root`. Raises ApiError."""
    if b"<!DOCTYPE" in body:
        raise malformed("document types are not accepted")
    try:
        found = ElementTree.fromstring(body)  # noqa: S314 - as above
    except ElementTree.ParseError as error:
        raise malformed(f"Unable to parse the request: {error}") from error
    for node in found.iter():
        node.tag = node.tag.rpartition("}")[2]
    if found.tag != root:
        raise malformed(f"{found.tag} is not valid, expected {root}")
    return found


def changes(batch: Node) -> tuple[Change, ...]:
    """The changes of a ChangeBatch, names and values as given. Raises ApiError."""
    found = batch.findall("Changes/Change")
    if not found:
        raise malformed("Changes must have at least one Change")
    return tuple(_change(each) for each in found)


def _change(node: Node) -> Change:
    record_set = node.find("ResourceRecordSet")
    action, name = node.findtext("Action"), node.findtext("ResourceRecordSet/Name")
    if record_set is None or not action or not name or not record_set.findtext("Type"):
        raise malformed("A Change has an Action and a ResourceRecordSet with a Name and a Type")
    alias, geo = record_set.find("AliasTarget"), record_set.find("GeoLocation")
    return Change(
        action,
        RecordSet(
            name=name,
            type=record_set.findtext("Type") or "",
            ttl=_integer(record_set, "TTL"),
            values=tuple(each.text or "" for each in record_set.findall("ResourceRecords/ResourceRecord/Value")),
            alias=None if alias is None else _alias(alias),
            set_identifier=record_set.findtext("SetIdentifier"),
            weight=_integer(record_set, "Weight"),
            region=record_set.findtext("Region"),
            failover=record_set.findtext("Failover"),
            geo=None if geo is None else tuple((each.tag, each.text or "") for each in geo),
            multi_value=_boolean(record_set, "MultiValueAnswer"),
            health_check=record_set.findtext("HealthCheckId"),
        ),
    )


def _alias(node: Node) -> Alias:
    zone, name = node.findtext("HostedZoneId"), node.findtext("DNSName")
    evaluate = _boolean(node, "EvaluateTargetHealth")
    if not zone or not name or evaluate is None:
        raise malformed("An AliasTarget has a HostedZoneId, a DNSName and EvaluateTargetHealth")
    return Alias(zone, name, evaluate)


def _integer(node: Node, tag: str) -> int | None:
    value = node.findtext(tag)
    if value is None:
        return None
    try:
        return int(value)
    except ValueError as error:
        raise malformed(f"{tag} is not a number: {value}") from error


def _boolean(node: Node, tag: str) -> bool | None:
    value = node.findtext(tag)
    if value is None:
        return None
    if value not in ("true", "false", "0", "1"):
        raise malformed(f"{tag} is neither true nor false: {value}")
    return value in ("true", "1")


def record_set(given: RecordSet) -> str:
    """A ResourceRecordSet element, its parts in the order of the API reference."""
    alias = given.alias
    return element(
        "ResourceRecordSet",
        text("Name", given.name),
        text("Type", given.type),
        text("SetIdentifier", given.set_identifier),
        text("Weight", given.weight),
        text("Region", given.region),
        "" if given.geo is None else element("GeoLocation", *(text(tag, value) for tag, value in given.geo)),
        text("Failover", given.failover),
        text("MultiValueAnswer", given.multi_value),
        text("TTL", given.ttl),
        element("ResourceRecords", *_values(given.values)) if given.values else "",
        ""
        if alias is None
        else element(
            "AliasTarget",
            text("HostedZoneId", alias.zone),
            text("DNSName", alias.name),
            text("EvaluateTargetHealth", alias.evaluate_health),
        ),
        text("HealthCheckId", given.health_check),
    )


def _values(values: Iterable[str]) -> Iterable[str]:
    return (element("ResourceRecord", text("Value", value)) for value in values)
