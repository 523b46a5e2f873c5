"""Every refusal of the Route 53 stand-in, in the words that reports quote (named at each), through a real SDK."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from route53_asked import DOMAIN, Asked, asked, record, refused

Change = tuple[str, dict[str, Any]]
STANDING: tuple[dict[str, Any], ...] = (
    record("w", "A", "192.0.2.1"),
    record("c", "CNAME", "elsewhere.test."),
    record("s", "A", "192.0.2.1", SetIdentifier="one", Weight=1),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Asked]:
    """One stand-in for all: what is refused changes nothing, which each test looks at."""
    with asked() as zone:
        zone.change(*(("CREATE", each) for each in STANDING))
        yield zone


@pytest.fixture
def zone(server: Asked) -> Iterator[Asked]:
    """The zone; its records must stand afterwards as they stood before."""
    before = server.listed()
    yield server
    assert server.listed() == before


def deleting(name: str, kind: str, more: str = "") -> str:
    """How refusals of a DELETE begin."""
    return f"Tried to delete resource record set [name='{name}.{DOMAIN}.', type='{kind}'{more}] but"


def unfit(problem: str, value: str) -> str:
    """How a value that isn't of its type is refused (external-dns #4792)."""
    return f"Invalid Resource Record: 'FATAL problem: {problem} encountered with '{value}''"


NOT_FOUND, MISMATCH = "it was not found", "the values provided do not match the current values"
ALIAS = {"HostedZoneId": "Z1", "DNSName": "x.test.", "EvaluateTargetHealth": False}

STALE: list[tuple[Change, str]] = [
    (("DELETE", record("gone", "A", "192.0.2.1")), f"{deleting('gone', 'A')} {NOT_FOUND}"),  # boto #2887
    (("DELETE", record("w", "AAAA", "2001:db8::1")), f"{deleting('w', 'AAAA')} {NOT_FOUND}"),
    (("DELETE", record("w", "A", "192.0.2.2")), f"{deleting('w', 'A')} {MISMATCH}"),  # external-dns #732
    (("DELETE", record("w", "A", "192.0.2.1", "192.0.2.2")), f"{deleting('w', 'A')} {MISMATCH}"),
    (("DELETE", record("w", "A", "192.0.2.1", ttl=61)), f"{deleting('w', 'A')} {MISMATCH}"),
    (("DELETE", record("w", "A", ttl=None, AliasTarget=ALIAS)), f"{deleting('w', 'A')} {MISMATCH}"),
    (("DELETE", record("s", "A", "192.0.2.1")), f"{deleting('s', 'A')} {NOT_FOUND}"),
    (
        ("DELETE", record("s", "A", "192.0.2.1", SetIdentifier="two", Weight=1)),
        f"{deleting('s', 'A', ', set-identifier=' + repr('two'))} {NOT_FOUND}",
    ),
    (
        ("DELETE", record("s", "A", "192.0.2.1", SetIdentifier="one", Weight=2)),
        f"{deleting('s', 'A', ', set-identifier=' + repr('one'))} {MISMATCH}",
    ),
    (  # cli53 #317
        ("CREATE", record("s", "A", "192.0.2.9", SetIdentifier="one", Weight=1)),
        f"Tried to create resource record set [name='s.{DOMAIN}.', type='A', set-identifier='one'] "
        "but it already exists",
    ),
    (
        ("CREATE", record("w", "A", "192.0.2.1")),
        f"Tried to create resource record set [name='w.{DOMAIN}.', type='A'] but it already exists",
    ),
]


@pytest.mark.parametrize(("change", "text"), STALE)
def test_what_is_stale_is_refused(zone: Asked, change: Change, text: str) -> None:
    """A DELETE that isn't exact, or a CREATE of what stands: this is what a fence is made of."""
    with refused("InvalidChangeBatch", text):
        zone.change(change)


def test_one_stale_change_refuses_all_and_every_reason_is_listed(zone: Asked) -> None:
    """external-dns #5939: several texts in one pair of brackets, and nothing of the batch done."""
    good = ("CREATE", record("good", "A", "192.0.2.1"))
    with refused("InvalidChangeBatch", STALE[0][1], STALE[2][1], STALE[-1][1]):
        zone.change(good, STALE[0][0], STALE[2][0], STALE[-1][0])


CNAME = f"RRSet of type CNAME with DNS name {{}}{DOMAIN}. is not permitted"
NEIGHBOURS: list[tuple[Change, str]] = [
    (  # amazon.aws #2694
        ("UPSERT", record("w", "CNAME", "x.test.")),
        f"{CNAME.format('w.')} as it conflicts with other records with the same DNS name in zone {DOMAIN}.",
    ),
    (
        ("CREATE", record("", "CNAME", "x.test.")),
        f"{CNAME.format('')} at apex in zone {DOMAIN}.",
    ),  # bosh-bootloader #310
    (  # terraform-aws-open-next #24
        ("CREATE", record("c", "A", "192.0.2.1")),
        f"RRSet of type A with DNS name c.{DOMAIN}. is not permitted because a conflicting RRSet of type CNAME with "
        f"the same DNS name already exists in zone {DOMAIN}.",
    ),
    (  # chef-boneyard/route53 #100
        ("UPSERT", record("s", "A", "192.0.2.1")),
        f"RRSet with DNS name s.{DOMAIN}., type A cannot be created as other RRSets exist with the same name and type.",
    ),
    (  # external-dns #4345
        ("CREATE", record("w", "A", "192.0.2.2", SetIdentifier="two", Weight=1)),
        f"RRSet with DNS name w.{DOMAIN}., type A, SetIdentifier two cannot be created as a non-weighted set exists "
        "with the same name and type.",
    ),
    (
        ("CREATE", record("s", "A", "192.0.2.2", SetIdentifier="two", Region="eu-west-1")),
        f"RRSet with DNS name s.{DOMAIN}., type A, SetIdentifier two cannot be created as a non-latency set exists "
        "with the same name and type.",
    ),
    (  # aws-sdk-go-v2 #518
        ("CREATE", record("s", "A", "192.0.2.2", ttl=61, SetIdentifier="two", Weight=1)),
        f"RRSet with DNS name s.{DOMAIN}., type A, SetIdentifier two cannot be created as weighted sets must contain "
        "the same TTL.",
    ),
    (
        ("CREATE", record("sub", "SOA", "ns.test. admin.test. 1 2 3 4 5")),
        "A HostedZone must contain exactly one SOA record.",
    ),
    (  # moto #916
        ("CREATE", {**record("w", "A", "192.0.2.1"), "Name": "w.other.test."}),
        f"RRSet with DNS name w.other.test. is not permitted in zone {DOMAIN}.",
    ),
]


@pytest.mark.parametrize(("change", "text"), NEIGHBOURS)
def test_what_may_not_stand_together_is_refused(zone: Asked, change: Change, text: str) -> None:
    """CNAME beside anything, simple beside weighted, a name of another zone."""
    with refused("InvalidChangeBatch", text):
        zone.change(change)


def test_an_alias_leads_somewhere(zone: Asked) -> None:
    """pcorliss/ruby_route_53 #17: within the zone its target must be there, of its type, once the batch is done."""
    target = {"HostedZoneId": zone.zone_id, "DNSName": f"T.{DOMAIN}", "EvaluateTargetHealth": False}
    alias = record("al", "A", ttl=None, AliasTarget=target)
    found = f"Tried to create an alias that targets t.{DOMAIN}., type A in zone {zone.zone_id}, but that target was not"
    with refused("InvalidChangeBatch", f"{found} found"):
        zone.change(("CREATE", alias), ("CREATE", record("t", "AAAA", "2001:db8::1")))
    there = record("t", "A", "192.0.2.1")
    zone.change(("CREATE", alias), ("CREATE", there))
    zone.change(("DELETE", alias), ("DELETE", there))
    with refused("InvalidChangeBatch"):
        zone.change(("CREATE", {**alias, "AliasTarget": {**target, "DNSName": "a..test"}}))


def test_the_order_of_a_batch_matters(zone: Asked) -> None:
    """cookpad/roadworker #89: a CNAME ahead of the DELETE of what it replaces is refused."""
    old, new = ("DELETE", record("w", "A", "192.0.2.1")), ("CREATE", record("w", "CNAME", "x.test."))
    with refused("InvalidChangeBatch", NEIGHBOURS[0][1]):
        zone.change(new, old)
    zone.change(old, new)
    zone.change(("DELETE", new[1]), ("CREATE", old[1]))


def test_a_zone_keeps_its_soa_and_ns(zone: Asked) -> None:
    """terraform-provider-aws #37863 and airbnb/zonify #1; an exact DELETE of them is refused all the same."""
    sets = zone.client.list_resource_record_sets(HostedZoneId=zone.zone_id, MaxItems="2")["ResourceRecordSets"]
    ns, soa = sets
    assert (ns["Type"], soa["Type"]) == ("NS", "SOA")
    with refused("InvalidChangeBatch", "A HostedZone must contain exactly one SOA record."):
        zone.change(("DELETE", soa))
    with refused("InvalidChangeBatch", "A HostedZone must contain at least one NS record for the zone itself."):
        zone.change(("DELETE", ns))
    zone.change(("UPSERT", {**ns, "TTL": 60}))
    zone.change(("UPSERT", ns))


@pytest.mark.parametrize(
    "actions", [("CREATE", "CREATE"), ("DELETE", "DELETE"), ("UPSERT", "UPSERT"), ("CREATE", "DELETE")]
)
def test_a_set_is_changed_once_in_a_batch(zone: Asked, actions: tuple[str, str]) -> None:
    """API reference, ChangeResourceRecordSets; text as in cli53 #81."""
    text = f"The request contains an invalid set of changes for a resource record set 'A w.{DOMAIN}.'"
    with refused("InvalidChangeBatch", text):
        zone.change(*((action, record("w", "A", "192.0.2.1")) for action in actions))


def hosts(count: int) -> list[dict[str, Any]]:
    """So many record sets of one record."""
    return [record(f"h{number}", "A", "192.0.2.1") for number in range(count)]


RECORDS = "Number of records limit of 1000 exceeded."
CHARACTERS = "RDATA character limit of 32000 exceeded."


def test_a_batch_holds_1000_records(zone: Asked) -> None:
    """Developer Guide, "Quotas"; DNSControl #1114: an UPSERT counts twice."""
    with refused("InvalidChangeBatch", RECORDS):
        zone.change(*(("CREATE", each) for each in hosts(1001)))
    with refused("InvalidChangeBatch", RECORDS):
        zone.change(*(("UPSERT", each) for each in hosts(501)))
    with refused("InvalidChangeBatch", RECORDS):
        zone.change(*(("UPSERT", each) for each in hosts(500)), ("DELETE", record("w", "A", "192.0.2.1")))
    zone.change(*(("UPSERT", each) for each in hosts(500)))
    zone.change(*(("DELETE", each) for each in hosts(500)))


def test_a_batch_holds_32000_characters(zone: Asked) -> None:
    """external-dns #515 and DNSControl #908; quotes and spaces count, an UPSERT twice."""
    long = '"' + "x" * 198 + '"'
    texts = [record(f"t{number}", "TXT", long) for number in range(160)]
    with refused("InvalidChangeBatch", CHARACTERS):
        zone.change(*(("CREATE", each) for each in texts), ("CREATE", record("one", "TXT", '""')))
    with refused("InvalidChangeBatch", CHARACTERS):
        zone.change(*(("UPSERT", each) for each in texts[:81]))
    zone.change(*(("CREATE", each) for each in texts))
    zone.change(*(("DELETE", each) for each in texts))


def test_a_set_holds_400_records_of_4000_characters(zone: Asked) -> None:
    """external-dns #2642 (rancher #10253 has the text, of when it was 100); API reference, ResourceRecord."""
    many = [f"192.0.{number // 200}.{number % 200}" for number in range(401)]
    with refused("InvalidChangeBatch", "Cannot have more than 400 records in a RRSet."):
        zone.change(("CREATE", record("many", "A", *many)))
    zone.change(("CREATE", record("many", "A", *many[:400])))
    zone.change(("DELETE", record("many", "A", *many[:400])))
    string = '"' + "x" * 248 + '"'
    value = " ".join([string] * 16)[:-1] + '"'
    assert len(value) == 4015
    with refused("InvalidChangeBatch", unfit("ValueTooLong (Value is too long)", f"{value[:60]}...")):
        zone.change(("CREATE", record("long", "TXT", value)))
    fits = " ".join([string] * 15 + ['"' + "x" * 233 + '"'])
    assert len(fits) == 4000
    zone.change(("CREATE", record("long", "TXT", fits)))
    zone.change(("DELETE", record("long", "TXT", fits)))


def test_a_name_holds_100_weighted_sets(zone: Asked) -> None:
    """Developer Guide, "Managing over 100 weighted records"; text as in airbnb/zonify #16."""
    sets = [record("ww", "A", "192.0.2.1", SetIdentifier=str(number), Weight=1) for number in range(101)]
    with refused(
        "InvalidChangeBatch", f"Exceeded limit on number of weighted RRSets for ww.{DOMAIN}., type A in this zone."
    ):
        zone.change(*(("CREATE", each) for each in sets))
    zone.change(*(("CREATE", each) for each in sets[:100]))
    zone.change(*(("DELETE", each) for each in sets[:100]))


def test_a_zone_holds_10000_sets() -> None:
    """Developer Guide, "Quotas"; text as in DNSControl #908."""
    with asked() as zone:
        for at in range(0, 9000, 1000):
            zone.change(*(("CREATE", each) for each in hosts(at + 1000)[at:]))
        with refused("InvalidChangeBatch", f"Exceeded limit MAX_RRSETS_BY_ZONE for zone: {zone.zone_id}"):
            zone.change(*(("CREATE", record(f"x{number}", "A", "192.0.2.1")) for number in range(999)))
        zone.change(*(("CREATE", record(f"x{number}", "A", "192.0.2.1")) for number in range(998)))
        zone.change(("DELETE", record("x0", "A", "192.0.2.1")), ("CREATE", record("y", "A", "192.0.2.1")))


WRONG_IPV4 = "ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address)"
QUOTES = "InvalidCharacterString (Value should be enclosed in quotation marks)"
VALUES = [
    ("A", "ns-738.awsdns-28.net.", WRONG_IPV4),  # gomodules/dns #7
    ("A", "2001:db8::1", WRONG_IPV4),
    ("A", "192.0.2.01", WRONG_IPV4),
    ("A", "192.0.2.1, 192.0.2.1", "ARRDATANotSingleField (Value contains spaces)"),  # danpilch/aws-dyndns #3
    ("AAAA", "192.0.2.1", "AAAARRDATAIllegalIPv6Address (Value is not a valid IPv6 address)"),
    ("AAAA", "fe80::1%eth0", "AAAARRDATAIllegalIPv6Address (Value is not a valid IPv6 address)"),
    ("TXT", "bare", QUOTES),  # external-dns #4792
    ("TXT", '""a" "b""', QUOTES),  # terraform #10048
    ("TXT", '"a', QUOTES),
    ("TXT", '"\u00e9"', "UnsupportedCharacter (Value contains unsupported characters)"),  # \\351 is what it takes
    ("TXT", '"' + "x" * 256 + '"', "CharacterStringTooLong (Value is too long)"),  # boto3 #1462
    ("CNAME", "a..test", "DomainLabelEmpty (Domain label is empty)"),  # terraform #18482
    ("CNAME", "x" * 64 + ".test", "DomainLabelTooLong (Domain label is too long)"),
    ("CNAME", "a b.test", "RRDATANotSingleField (Value contains spaces)"),
    ("MX", "mail.test.", "MXRRDATAWrongFields (Value has 1 fields, not 2)"),
    ("MX", "65536 mail.test.", "RRDATANotANumber (Value is not a number from 0 to 65535)"),
    ("SRV", "1 2 x.test.", "SRVRRDATAWrongFields (Value has 3 fields, not 4)"),
    ("NS", "a..test", "DomainLabelEmpty (Domain label is empty)"),
    ("CAA", "0 issue ca.test", "CAARRDATAInvalid (Value is not flags, a tag and a quoted value)"),
    ("CAA", '256 issue "ca.test"', "CAARRDATAInvalid (Value is not flags, a tag and a quoted value)"),
]


@pytest.mark.parametrize(("kind", "value", "problem"), VALUES)
def test_a_value_is_of_its_type(zone: Asked, kind: str, value: str, problem: str) -> None:
    """Developer Guide, "Supported DNS record types"."""
    with refused("InvalidChangeBatch", unfit(problem, value)):
        zone.change(("CREATE", record("v", kind, value)))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("A", "192.0.2.1"), ("AAAA", "2001:DB8::1"), ("CAA", '0 issue "ca.test; account=1"'), ("CNAME", "x.test"),
        ("MX", "10 mail.test."), ("NS", "ns.test."), ("SRV", "1 2 65535 x.test."), ("TXT", '""'), ("PTR", "x.test."),
    ],
)  # fmt: skip
def test_what_is_of_its_type_is_taken(zone: Asked, kind: str, value: str) -> None:
    """And comes back as it was given."""
    zone.change(("CREATE", record("v", kind, value)))
    zone.change(("DELETE", record("v", kind, value)))


def test_duplicates_and_second_cnames(zone: Asked) -> None:
    """external-dns #1929; API reference, ResourceRecord: one value for CNAME and SOA."""
    with refused("InvalidChangeBatch", "Duplicate Resource Record: '192.0.2.1'"):
        zone.change(("CREATE", record("v", "A", "192.0.2.1", "192.0.2.2", "192.0.2.1")))
    with refused("InvalidChangeBatch", unfit("TooManyValues (CNAME takes one value)", f"v.{DOMAIN}.")):
        zone.change(("CREATE", record("v", "CNAME", "a.test.", "b.test.")))


NAMES = [
    (".x", "DomainLabelEmpty (Domain label is empty)"),  # external-dns #1517 and #421
    ("x" * 64, "DomainLabelTooLong (Domain label is too long)"),
    (".".join(["x" * 60] * 5), "DomainNameTooLong (Domain name is too long)"),
    ("b\u00fccher", "UnsupportedCharacter (Value contains unsupported characters)"),
    ("a b", "UnsupportedCharacter (Value contains unsupported characters)"),
    (r"\9", "UnsupportedCharacter (Value contains unsupported characters)"),
]


@pytest.mark.parametrize(("name", "problem"), NAMES)
def test_a_name_is_a_name(zone: Asked, name: str, problem: str) -> None:
    """RFC 1035 section 2.3.4; external-dns #1517: one bad name, and fifty good ones beside it must be tried again."""
    with refused("InvalidChangeBatch", f"FATAL problem: {problem} encountered with '{name}.{DOMAIN}.'"):
        zone.change(("CREATE", record(name, "A", "192.0.2.1")), ("CREATE", record("good", "A", "192.0.2.1")))


FIELDS = [
    (record("f", "A", ttl=None), "but found none"),  # modernisation-platform #10072
    (record("f", "A", "192.0.2.1", ttl=None), "but found none"),
    (record("f", "A"), "but found none"),  # aws-sdk-ruby #1119
    (record("f", "A", "192.0.2.1", AliasTarget=ALIAS), "but found more than one"),
    (record("f", "A", "192.0.2.1", Weight=1), "Missing field 'SetIdentifier'"),
    (record("f", "A", "192.0.2.1", SetIdentifier="x"), "but found none"),
    (record("f", "A", "192.0.2.1", SetIdentifier="x", Weight=1, Region="eu-west-1"), "but found more than one"),
    (record("f", "A", "192.0.2.1", SetIdentifier="x", Weight=256), "Weight is 0 to 255"),
    (record("f", "A", "192.0.2.1", SetIdentifier="x" * 129, Weight=1), "SetIdentifier has 1 to 128"),
    (record("f", "A", "192.0.2.1", ttl=2**31), "TTL is 0 to 2147483647"),
    (record("f", "MD", "x"), "unknown Type"),
]


@pytest.mark.parametrize(("given", "text"), FIELDS)
def test_fields_that_must_or_must_not_come_together(zone: Asked, given: dict[str, Any], text: str) -> None:
    """API reference, ResourceRecordSet; the form of the text as in modernisation-platform #10072."""
    with pytest.raises(ClientError, match="InvalidInput") as caught:
        zone.change(("CREATE", given))
    assert text in caught.value.response["Error"]["Message"]
