"""What ``aws route53 list-resource-record-sets`` prints, as JSON.

Plain sets of addresses can be taken over. Alias, weighted, latency, geolocation, failover and multivalue sets answer by
rules of Route 53's own, which one set of addresses can't say: they are left out, and named with their kind. A name that
has one of these beside a plain set is left out whole.
"""

import json
from typing import Any

from fencepost.importing.records import ADDRESSES, POINTERS, Book
from fencepost.ports import Misconfigured

HINT = "aws route53 list-resource-record-sets --hosted-zone-id Z… > records.json"
RULES = {
    "AliasTarget": "an alias of Route 53's",
    "Weight": "weighted sets",
    "Region": "sets by latency",
    "GeoLocation": "sets by place (geolocation)",
    "GeoProximityLocation": "sets by place (geoproximity)",
    "CidrRoutingConfig": "sets by callers' networks",
    "Failover": "failover sets",
    "MultiValueAnswer": "multivalue sets",
    "TrafficPolicyInstanceId": "made by a traffic policy",
    "SetIdentifier": "one of several sets of one name",
}
"""The keys that make a set something else than a plain one, most telling first."""


def read(book: Book, body: str, where: str, domain: str = "") -> None:
    """Read the document into ``book``. Raises ``Misconfigured``, with the line where there is one."""
    try:
        document = json.loads(body)
    except json.JSONDecodeError as error:
        raise Misconfigured(f"is no JSON: {error.msg}", where=f"{where}:{error.lineno}", hint=HINT) from None
    except RecursionError:
        raise Misconfigured("is nested too deep", where=where, hint=HINT) from None
    sets = document.get("ResourceRecordSets") if isinstance(document, dict) else None
    if not isinstance(sets, list):
        raise Misconfigured('has no list "ResourceRecordSets"', where=where, hint=HINT)
    if document.get("IsTruncated") or document.get("NextToken"):
        raise Misconfigured("is only the beginning of the list", where=where, hint=f"without --max-items: {HINT}")
    tops = [each.get("Name") for each in sets if isinstance(each, dict) and each.get("Type") == "SOA"]
    top = domain or (tops[0] if tops else "")
    if not isinstance(top, str) or not top:
        raise Misconfigured("has no SOA to say which domain it is", where=where, hint="--domain example.com")
    try:
        book.domain(top)
    except ValueError as error:
        raise Misconfigured(f"the domain {top!a} {error}", where=where) from None
    for at, each in enumerate(sets):
        take(book, each, f"{where}: ResourceRecordSets[{at}]")


def take(book: Book, each: Any, where: str) -> None:
    """One set. Raises ``Misconfigured`` for what is none."""
    if not isinstance(each, dict) or not isinstance(each.get("Name"), str) or not isinstance(each.get("Type"), str):
        raise Misconfigured("has no Name or no Type", where=where, hint=HINT)
    name, kind = each["Name"], each["Type"]
    # A weight of 0 is one too.
    rule = next((said for key, said in RULES.items() if each.get(key) is not None and each[key] is not False), None)
    if rule is not None:
        if kind in (*ADDRESSES, "CNAME"):
            book.leave(name, rule)
        return
    listed, ttl = each.get("ResourceRecords"), each.get("TTL")
    if not isinstance(listed, list) or isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0:
        raise Misconfigured(f"{name} {kind} has no TTL or no ResourceRecords", where=where, hint=HINT)
    found = [each.get("Value") if isinstance(each, dict) else None for each in listed]
    texts = [value for value in found if isinstance(value, str) and value.strip()]
    if len(texts) != len(found) or not texts:
        raise Misconfigured(f"{name} {kind} has a record without a Value", where=where, hint=HINT)
    if kind == "TXT":
        book.marker(name)
    else:
        book.add(name, kind, ttl, [value.split()[-1] for value in texts] if kind in POINTERS else texts)
