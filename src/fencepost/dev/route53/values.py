"""Whether a record set's values are of its type: faults in the words of the API's ``FATAL problem`` texts.

Found in reports: ARRDATAIllegalIPv4Address (gomodules/dns #7), ARRDATANotSingleField (danpilch/aws-dyndns #3),
InvalidCharacterString (external-dns #4792), CharacterStringTooLong (boto3 #1462), duplicates (external-dns #1929), more
records than a set may have (rancher #10253, when that was 100). The like-named others are ours, after the same pattern:
a client should look at "Invalid Resource Record", not at them.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator

from fencepost.dev.route53 import limits
from fencepost.dev.route53.names import BadNameError, labels
from fencepost.dev.route53.record_set import RecordSet

STRING_BYTES_MOST = 255
"""RFC 1035 section 3.3: a character string has one byte of length."""
SINGLE = ("CNAME", "SOA")
"""Types with one value (API reference, ResourceRecord)."""


def faults(given: RecordSet) -> Iterator[str]:
    """What is wrong with each value."""
    if given.type in SINGLE and len(given.values) > 1:
        yield _invalid(f"TooManyValues ({given.type} takes one value)", given.name)
    if len(given.values) > limits.SET_RECORDS_MOST:
        yield f"Cannot have more than {limits.SET_RECORDS_MOST} records in a RRSet."
    if len(set(given.values)) < len(given.values):
        twice = next(value for value in given.values if given.values.count(value) > 1)
        yield f"Duplicate Resource Record: '{twice}'"
    check = CHECKS.get(given.type)
    for value in given.values:
        if len(value) > limits.VALUE_CHARACTERS_MOST:
            yield _invalid("ValueTooLong (Value is too long)", f"{value[:60]}...")
            continue
        if not value.isascii() or not value.isprintable():
            yield _invalid("UnsupportedCharacter (Value contains unsupported characters)", value)
            continue
        fault = check(value) if check else None
        if fault:
            yield _invalid(fault, value)


def _invalid(fault: str, value: str) -> str:
    return f"Invalid Resource Record: 'FATAL problem: {fault} encountered with '{value}''"


def address(version: int) -> Callable[[str], str | None]:
    """A check of addresses: A (4) or AAAA (6)."""
    kind, prefix = f"IPv{version}", "A" if version == 4 else "AAAA"

    def check(value: str) -> str | None:
        if " " in value:
            return f"{prefix}RRDATANotSingleField (Value contains spaces)"
        try:
            fits = ipaddress.ip_address(value).version == version and "%" not in value
        except ValueError:
            fits = False
        return None if fits else f"{prefix}RRDATAIllegal{kind}Address (Value is not a valid {kind} address)"

    return check


def domain(value: str) -> str | None:
    """One domain name."""
    if " " in value:
        return "RRDATANotSingleField (Value contains spaces)"
    try:
        labels(value)
    except BadNameError as error:
        return str(error).removeprefix("FATAL problem: ").partition(" encountered with ")[0]
    return None


def fields(kind: str, *checks: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """So many fields, parted by spaces, each with its own check."""

    def check(value: str) -> str | None:
        parts = value.split()
        if len(parts) != len(checks):
            return f"{kind}RRDATAWrongFields (Value has {len(parts)} fields, not {len(checks)})"
        return next((fault for each, part in zip(checks, parts, strict=True) if (fault := each(part))), None)

    return check


def number(most: int) -> Callable[[str], str | None]:
    """A whole number from 0."""

    def check(value: str) -> str | None:
        fits = value.isascii() and value.isdigit() and int(value) <= most
        return None if fits else f"RRDATANotANumber (Value is not a number from 0 to {most})"

    return check


_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_UNIT = re.compile(r"\\[0-7]{3}|\\.|.", re.DOTALL)


def strings(value: str) -> str | None:
    """Quoted strings parted by spaces, each of at most 255 bytes."""
    found = list(_STRING.finditer(value))
    rest = _STRING.sub("", value)
    if not found or rest.strip(" \t"):
        return "InvalidCharacterString (Value should be enclosed in quotation marks)"
    if any(len(_UNIT.findall(each[1])) > STRING_BYTES_MOST for each in found):
        return "CharacterStringTooLong (Value is too long)"
    return None


def caa(value: str) -> str | None:
    """Flags, a tag and a quoted value (RFC 8659 section 4)."""
    match = re.fullmatch(r'(\d{1,3}) ([A-Za-z0-9]{1,15}) ("(?:[^"\\]|\\.)*")', value)
    if match is None or int(match[1]) > 255:
        return "CAARRDATAInvalid (Value is not flags, a tag and a quoted value)"
    return None


CHECKS: dict[str, Callable[[str], str | None]] = {
    "A": address(4),
    "AAAA": address(6),
    "CAA": caa,
    "CNAME": domain,
    "MX": fields("MX", number(65535), domain),
    "NS": domain,
    "PTR": domain,
    "SOA": fields("SOA", domain, domain, *[number(2**32 - 1)] * 5),
    "SPF": strings,
    "SRV": fields("SRV", number(65535), number(65535), number(65535), domain),
    "TXT": strings,
}
"""What is checked; other types are taken as they come."""
