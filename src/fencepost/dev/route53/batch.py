"""A batch of changes, applied whole or not at all: pure, and the heart of the stand-in.

Changes are looked at in order, each against what the ones before it left. That order matters is reported: a CREATE of a
CNAME ahead of the DELETE of the A it replaces is refused (cookpad/roadworker #89). A refused change is passed over and
the rest is still judged, so that a refusal lists all that is wrong (external-dns #5939); then nothing is done.

An exact DELETE with a CREATE is a compare-and-set: that is all a fenced write needs (:func:`fencepost.core.zone.exact`
states the same rule over endpoints, and a test holds the two together).
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from fencepost.dev.route53 import limits
from fencepost.dev.route53.names import canonical, within
from fencepost.dev.route53.neighbours import conflict
from fencepost.dev.route53.record_set import Change, Key, RecordSet

Sets: TypeAlias = Mapping[str, Mapping[Key, RecordSet]]
"""A zone's record sets, by canonical name."""


class Outcome(msgspec.Struct, frozen=True):
    """What a batch comes to: the names it changed and what they have then, or why it was refused (then no names)."""

    names: Mapping[str, Mapping[Key, RecordSet]]
    refusals: tuple[str, ...]


def apply(zone: str, zone_id: str, live: Sets, count: int, changes: Sequence[Change]) -> Outcome:
    """The batch on a zone whose canonical name is `zone` and which has `count` record sets."""
    refusals = list(too_much(changes)) or [text for text in (repeated(changes)) if text]
    if refusals:
        return Outcome({}, tuple(refusals))
    after: dict[str, dict[Key, RecordSet]] = {}
    for change in changes:
        wanted = change.record_set
        if not within(wanted.name, zone):
            refusals.append(f"RRSet with DNS name {wanted.name} is not permitted in zone {zone}")
            continue
        here = after.setdefault(wanted.name, dict(live.get(wanted.name, {})))
        refusal = one(zone, here, change)
        if refusal is not None:
            refusals.append(refusal)
    refusals += apex(zone, after)
    refusals += aimless(zone_id, live, after, changes)
    grown = count + sum(len(sets) - len(live.get(name, {})) for name, sets in after.items())
    if grown > limits.ZONE_RECORD_SETS_MOST and grown > count:
        refusals.append(f"Exceeded limit MAX_RRSETS_BY_ZONE for zone: {zone_id}")
    return Outcome({} if refusals else after, tuple(refusals))


def one(zone: str, here: dict[Key, RecordSet], change: Change) -> str | None:
    """Make one change to the sets of its name, or say why it is refused."""
    wanted = change.record_set
    standing = here.get(wanted.key)
    if change.action == "DELETE":
        if standing is None:
            return f"Tried to delete resource record set {wanted.described()} but it was not found"
        if not wanted.matches(standing):
            what = f"Tried to delete resource record set {wanted.described()}"
            return f"{what} but the values provided do not match the current values"
        del here[wanted.key]
        return None
    if change.action == "CREATE" and standing is not None:
        return f"Tried to create resource record set {wanted.described()} but it already exists"
    others = {key: each for key, each in here.items() if key != wanted.key}
    refusal = conflict(zone, wanted, others.values())
    if refusal is None:
        here[wanted.key] = wanted
    return refusal


def too_much(changes: Sequence[Change]) -> Sequence[str]:
    """What is over a batch's limits (DNSControl #1114, #908). An alias has no ResourceRecord and counts nothing."""
    records = characters = 0
    for change in changes:
        times = 2 if change.action == "UPSERT" else 1
        records += times * len(change.record_set.values)
        characters += times * sum(map(len, change.record_set.values))
    found = []
    if records > limits.BATCH_RECORDS_MOST:
        found.append(f"Number of records limit of {limits.BATCH_RECORDS_MOST} exceeded.")
    if characters > limits.BATCH_CHARACTERS_MOST:
        found.append(f"RDATA character limit of {limits.BATCH_CHARACTERS_MOST} exceeded.")
    return found


def repeated(changes: Sequence[Change]) -> Sequence[str]:
    """Sets changed more than once other than by one DELETE followed by one CREATE (text: cli53 #81)."""
    seen: dict[tuple[str, Key], list[str]] = {}
    for change in changes:
        seen.setdefault((change.record_set.name, change.record_set.key), []).append(change.action)
    return [
        f"The request contains an invalid set of changes for a resource record set '{key[0]} {name}'"
        for (name, key), actions in seen.items()
        if len(actions) > 1 and actions != ["DELETE", "CREATE"]
    ]


def aimless(zone_id: str, live: Sets, after: Sets, changes: Sequence[Change]) -> Sequence[str]:
    """Aliases to names of this zone at which nothing of their type stands in the end (pcorliss/ruby_route_53 #17)."""
    found = []
    for wanted in (change.record_set for change in changes if change.action != "DELETE"):
        if wanted.alias is None or wanted.alias.zone != zone_id:
            continue
        target = canonical(wanted.alias.name)
        if all(kind != wanted.type for kind, _ in after.get(target, live.get(target, {}))):
            what = f"Tried to create an alias that targets {target}, type {wanted.type} in zone {zone_id}"
            found.append(f"{what}, but that target was not found")
    return found


def apex(zone: str, after: Sets) -> Sequence[str]:
    """What a zone's own name must keep (airbnb/zonify #1, terraform-provider-aws #37863)."""
    if zone not in after:
        return []
    types = [key[0] for key in after[zone]]
    found = []
    if types.count("SOA") != 1:
        found.append("A HostedZone must contain exactly one SOA record.")
    if "NS" not in types:
        found.append("A HostedZone must contain at least one NS record for the zone itself.")
    return found
