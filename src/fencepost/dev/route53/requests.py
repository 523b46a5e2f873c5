"""Whether a batch's changes are well put: names made canonical, fields that must or must not come together.

What is wrong here is refused as ``InvalidInput`` before the zone is looked at, one fault at a time, in the words of
modernisation-platform #10072: "Expected exactly one of …, but found none in Change with [Action=…, Name=…, Type=…,
SetIdentifier=…]". A bad name or value is an ``InvalidChangeBatch`` of "Invalid Resource Record" texts instead
(gomodules/dns #7, danpilch/aws-dyndns #3).
"""

import msgspec

from fencepost.dev.route53 import limits
from fencepost.dev.route53.names import BadNameError, canonical
from fencepost.dev.route53.record_set import TYPES, Alias, Change, RecordSet
from fencepost.dev.route53.refusals import ApiError, invalid_change_batch, invalid_input
from fencepost.dev.route53.values import faults

ACTIONS = ("CREATE", "DELETE", "UPSERT")
POLICIES = "[Weight, Region, Failover, GeoLocation, or MultiValueAnswer]"


def well_put(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """The changes with canonical names. Raises ApiError."""
    refusals: list[str] = []
    found = []
    for change in changes:
        _check_fields(change)
        try:
            name = canonical(change.record_set.name)
        except BadNameError as error:
            refusals.append(str(error))
            continue
        record_set = msgspec.structs.replace(change.record_set, name=name)
        refusals += faults(record_set)
        if record_set.alias is not None:
            refusals += bad_target(record_set.alias)
        found.append(Change(change.action, record_set))
    if refusals:
        raise invalid_change_batch(refusals)
    return tuple(found)


def bad_target(alias: Alias) -> list[str]:
    """What is wrong with the name an alias leads to."""
    try:
        canonical(alias.name)
    except BadNameError as error:
        return [str(error)]
    return []


def _check_fields(change: Change) -> None:
    wanted = change.record_set
    if change.action not in ACTIONS:
        raise invalid_input(f"Invalid request: unknown Action {change.action!r}, one of {', '.join(ACTIONS)}")
    if wanted.type not in TYPES:
        raise invalid_input(f"Invalid request: unknown Type {wanted.type!r}, one of {', '.join(sorted(TYPES))}")
    _check_content(change)
    policies = wanted.routing()
    if wanted.set_identifier is None and policies:
        raise _wrong(change, "Missing field 'SetIdentifier'")
    named = len(policies) == 1 or (not policies and change.action == "DELETE")  # see `RecordSet.matches`
    if wanted.set_identifier is not None and not named:
        raise _wrong(change, f"Expected exactly one of {POLICIES}, but found {_number(policies)}")
    most = limits.SET_IDENTIFIER_CHARACTERS_MOST
    if wanted.set_identifier is not None and not 1 <= len(wanted.set_identifier) <= most:
        raise _wrong(change, f"SetIdentifier has 1 to {most} characters")
    if wanted.weight is not None and not 0 <= wanted.weight <= limits.WEIGHT_MOST:
        raise _wrong(change, f"Weight is 0 to {limits.WEIGHT_MOST}, not {wanted.weight}")
    if wanted.ttl is not None and not 0 <= wanted.ttl <= limits.TTL_MOST_S:
        raise _wrong(change, f"TTL is 0 to {limits.TTL_MOST_S}, not {wanted.ttl}")


def _check_content(change: Change) -> None:
    wanted: RecordSet = change.record_set
    plain = wanted.ttl is not None and wanted.values
    kinds = ("AliasTarget",) * bool(wanted.alias) + ("TTL and ResourceRecords",) * bool(plain)
    if len(kinds) != 1 or (wanted.alias and (wanted.ttl is not None or wanted.values)):
        either = "[AliasTarget, all of [TTL, and ResourceRecords], or TrafficPolicyInstanceId]"
        found = "none" if not kinds else "more than one"
        raise _wrong(change, f"Expected exactly one of {either}, but found {found}")


def _number(found: tuple[str, ...]) -> str:
    return "more than one" if found else "none"


def _wrong(change: Change, what: str) -> ApiError:
    wanted = change.record_set
    identifier = wanted.set_identifier if wanted.set_identifier is not None else "null"
    where = f"[Action={change.action}, Name={wanted.name}, Type={wanted.type}, SetIdentifier={identifier}]"
    return invalid_input(f"Invalid request: {what} in Change with {where}")
