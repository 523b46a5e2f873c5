"""The Route 53 stand-in through a real SDK: what it keeps, and how it lists it (API reference, version 2013-04-01)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from route53_asked import DOMAIN, Asked, asked, client, listed, record, refused

from fencepost.dev.route53 import Route53Settings, running


@pytest.fixture
def zone() -> Iterator[Asked]:
    """A stand-in with one zone."""
    with asked() as found:
        yield found


def test_a_record_set_is_returned_as_it_was_given(zone: Asked) -> None:
    """Values in their order, a name in lower case with its final dot (Developer Guide, "DNS domain name format")."""
    zone.change(("CREATE", {**record("", "A", "192.0.2.2", "192.0.2.1"), "Name": f"WWW.{DOMAIN}"}))
    assert zone.listed() == [record("www", "A", "192.0.2.2", "192.0.2.1")]


def test_a_wildcard_comes_back_in_octal_and_is_the_same_name(zone: Asked) -> None:
    """external-dns #264 and #3028: ``*.x`` is listed as ``\\052.x``, and either deletes it."""
    zone.change(("CREATE", record("*.x", "A", "192.0.2.1")))
    assert [each["Name"] for each in zone.listed()] == [rf"\052.x.{DOMAIN}."]
    zone.change(("DELETE", record(r"\052.x", "A", "192.0.2.1")))
    assert zone.listed() == []


@pytest.mark.parametrize(
    "value", ['"a""b"', '"a" "b"', r'"a \"b\" \\ c"', r'"\101 \344"', f'"{"x" * 255}" "{"y" * 45}"']
)
def test_txt_round_trips(zone: Asked, value: str) -> None:
    """DNSControl #2854 and #2435: strings without a space between, quotes inside, 300 bytes."""
    zone.change(("CREATE", record("t", "TXT", value)))
    assert zone.listed()[0]["ResourceRecords"] == [{"Value": value}]
    zone.change(("DELETE", record("t", "TXT", value)))


def test_an_exact_delete_and_a_create_are_a_compare_and_set(zone: Asked) -> None:
    """API reference, ChangeResourceRecordSets: DELETE names all that stands; values may come in any order."""
    zone.change(("CREATE", record("w", "A", "192.0.2.1", "192.0.2.2")))
    zone.change(("DELETE", record("w", "A", "192.0.2.2", "192.0.2.1")), ("CREATE", record("w", "A", "192.0.2.3")))
    stale = record("w", "A", "192.0.2.1", "192.0.2.2")
    text = f"Tried to delete resource record set [name='w.{DOMAIN}.', type='A'] but the values provided do not match"
    with refused("InvalidChangeBatch", f"{text} the current values"):
        zone.change(("DELETE", stale), ("CREATE", record("other", "A", "192.0.2.9")))
    assert zone.listed() == [record("w", "A", "192.0.2.3")]


def test_upsert_makes_and_replaces(zone: Asked) -> None:
    """API reference, Change: UPSERT creates a set, or replaces it whatever stands."""
    zone.change(("UPSERT", record("u", "A", "192.0.2.1")))
    zone.change(("UPSERT", record("u", "A", "192.0.2.2", ttl=5)))
    assert zone.listed() == [record("u", "A", "192.0.2.2", ttl=5)]


def test_every_routing_policy_and_an_alias_are_kept(zone: Asked) -> None:
    """API reference, ResourceRecordSet: each field comes back."""
    target = {"HostedZoneId": zone.zone_id, "DNSName": f"w.{DOMAIN}.", "EvaluateTargetHealth": False}
    sets = [
        record("al", "A", ttl=None, AliasTarget=target),
        record("fa", "A", "192.0.2.1", SetIdentifier="p", Failover="PRIMARY", HealthCheckId="check"),
        record("ge", "A", "192.0.2.1", SetIdentifier="eu", GeoLocation={"ContinentCode": "EU"}),
        record("la", "A", "192.0.2.1", SetIdentifier="r", Region="eu-west-1"),
        record("mu", "A", "192.0.2.1", SetIdentifier="m", MultiValueAnswer=True),
        record("w", "A", "192.0.2.1", SetIdentifier="a", Weight=0),
        record("w", "A", "192.0.2.2", SetIdentifier="b", Weight=255),
    ]
    zone.change(*(("CREATE", each) for each in sets))
    assert zone.listed() == sets
    zone.change(*(("DELETE", each) for each in sets))
    assert zone.listed() == []


def test_terraform_leaves_out_multivalue_in_a_delete(zone: Asked) -> None:
    """moto #7153: it is let through on AWS."""
    whole = record("mu", "A", "192.0.2.1", SetIdentifier="m", MultiValueAnswer=True)
    zone.change(("CREATE", whole))
    bare = {name: value for name, value in whole.items() if name != "MultiValueAnswer"}
    with refused("InvalidInput"):
        zone.change(("UPSERT", bare))
    zone.change(("DELETE", bare))
    assert zone.listed() == []


def test_the_listing_is_by_reversed_labels_then_type(zone: Asked) -> None:
    """API reference, ListResourceRecordSets, "Sort order": "-" sorts ahead of the dot."""
    names = ["a", "x.a", "a-b", "b", "*.a", ""]
    zone.change(*(("CREATE", record(name, "TXT", '"x"')) for name in names))
    zone.change(("CREATE", record("a", "A", "192.0.2.1")))
    found = [(each["Name"].removesuffix(f"{DOMAIN}."), each["Type"]) for each in zone.listed()]
    assert found == [
        ("", "TXT"),
        ("a-b.", "TXT"),
        ("a.", "A"),
        ("a.", "TXT"),
        (r"\052.a.", "TXT"),
        ("x.a.", "TXT"),
        ("b.", "TXT"),
    ]


def test_pages_hold_300_and_lose_nothing(zone: Asked) -> None:
    """API reference, ListResourceRecordSets: 300 at most, whatever is asked; NextRecord… begin the next page."""
    names = [f"h{number:04}" for number in range(700)]
    for at in range(0, 700, 350):
        zone.change(*(("CREATE", record(name, "A", "192.0.2.1")) for name in names[at : at + 350]))
    first = zone.client.list_resource_record_sets(HostedZoneId=zone.zone_id, MaxItems="1000")
    assert (len(first["ResourceRecordSets"]), first["IsTruncated"], first["MaxItems"]) == (300, True, "300")
    assert first["NextRecordName"] == f"h0298.{DOMAIN}."  # after the zone's own NS and SOA
    assert [each["Name"] for each in zone.listed()] == [f"{name}.{DOMAIN}." for name in names]
    assert zone.server.calls.count("ListResourceRecordSets") == 1 + 3


def test_a_page_may_begin_between_the_weighted_sets_of_a_name(zone: Asked) -> None:
    """API reference: StartRecordIdentifier, where a page ended amid sets that share name and type."""
    sets = [record("w", "A", f"192.0.2.{n}", SetIdentifier=f"s{n}", Weight=n) for n in range(1, 6)]
    zone.change(*(("CREATE", each) for each in sets))
    found: list[dict[str, Any]] = []
    begin = {"StartRecordName": f"w.{DOMAIN}", "StartRecordType": "A"}
    while begin:
        page = zone.client.list_resource_record_sets(HostedZoneId=zone.zone_id, MaxItems="2", **begin)
        found += page["ResourceRecordSets"]
        names = {"StartRecordName": "NextRecordName", "StartRecordType": "NextRecordType"}
        names["StartRecordIdentifier"] = "NextRecordIdentifier"
        begin = {start: page[following] for start, following in names.items() if following in page}
    assert found == sets


def test_a_page_that_begins_at_a_type_alone_is_refused(zone: Asked) -> None:
    """API reference: "If you specify Type but not Name, Amazon Route 53 returns the InvalidInput error"."""
    with refused("InvalidInput"):
        zone.client.list_resource_record_sets(HostedZoneId=zone.zone_id, StartRecordType="A")
    with refused("InvalidInput"):
        zone.client.list_resource_record_sets(HostedZoneId=zone.zone_id, MaxItems="0")


def test_a_change_is_pending_then_in_sync() -> None:
    """API reference, GetChange."""
    with asked(insync_s=3600) as late:
        info = late.change(("CREATE", record("a", "A", "192.0.2.1")), comment="why")
        assert (info["Status"], info["Comment"]) == ("PENDING", "why")
        assert late.client.get_change(Id=info["Id"])["ChangeInfo"]["Status"] == "PENDING"
        late.server.within(lambda: setattr(late.server.account, "insync_ns", 0))
        done = late.change(("CREATE", record("b", "A", "192.0.2.1")))
        assert (done["Status"], late.client.get_change(Id=done["Id"])["ChangeInfo"]["Status"]) == ("PENDING", "INSYNC")
        with refused("NoSuchChange"):
            late.client.get_change(Id="C0NOWHERE")


def test_zones_come_and_go(zone: Asked) -> None:
    """CreateHostedZone, GetHostedZone, UpdateHostedZoneComment, the count, DeleteHostedZone."""
    sdk = zone.client
    made = sdk.create_hosted_zone(Name="other.test", CallerReference="1", HostedZoneConfig={"Comment": "mine"})
    other = made["HostedZone"]["Id"]
    assert made["Location"].endswith(other)
    assert len(made["DelegationSet"]["NameServers"]) == 4
    assert made["HostedZone"]["ResourceRecordSetCount"] == 2
    assert sdk.get_hosted_zone(Id=other)["DelegationSet"] == made["DelegationSet"]
    sdk.update_hosted_zone_comment(Id=other, Comment="yours")
    assert sdk.get_hosted_zone(Id=other)["HostedZone"]["Config"] == {"Comment": "yours", "PrivateZone": False}
    with refused("HostedZoneAlreadyExists"):
        sdk.create_hosted_zone(Name="other.test", CallerReference="1")
    assert sdk.get_hosted_zone_count()["HostedZoneCount"] == 2
    limit = sdk.get_hosted_zone_limit(Type="MAX_RRSETS_BY_ZONE", HostedZoneId=other)
    assert (limit["Limit"]["Value"], limit["Count"]) == (10_000, 2)
    extra = {"Name": "a.other.test.", "Type": "A", "TTL": 1, "ResourceRecords": [{"Value": "192.0.2.1"}]}
    for action in ("CREATE", "DELETE"):
        sdk.change_resource_record_sets(
            HostedZoneId=other, ChangeBatch={"Changes": [{"Action": action, "ResourceRecordSet": extra}]}
        )
        if action == "CREATE":
            with refused("HostedZoneNotEmpty"):
                sdk.delete_hosted_zone(Id=other)
    sdk.delete_hosted_zone(Id=other)
    with refused("NoSuchHostedZone"):
        sdk.get_hosted_zone(Id=other)


def test_zones_are_listed_by_page_and_by_name(zone: Asked) -> None:
    """ListHostedZones turns pages by Marker, ListHostedZonesByName by reversed labels."""
    sdk = zone.client
    for name in ("b.test", "a.b.test", "c.test"):
        sdk.create_hosted_zone(Name=name, CallerReference=name)
    pages = sdk.get_paginator("list_hosted_zones").paginate(PaginationConfig={"PageSize": 3})
    assert [each["Name"] for page in pages for each in page["HostedZones"]] == [
        f"{DOMAIN}.", "b.test.", "a.b.test.", "c.test."
    ]  # fmt: skip
    found = sdk.list_hosted_zones_by_name(DNSName="b.test", MaxItems="2")
    assert [each["Name"] for each in found["HostedZones"]] == ["b.test.", "a.b.test."]
    assert (found["IsTruncated"], found["NextDNSName"]) == (True, "c.test.")
    with refused("InvalidDomainName"):
        sdk.list_hosted_zones_by_name(DNSName="a..test")


def test_private_zones_belong_to_a_vpc(zone: Asked) -> None:
    """CreateHostedZone with a VPC; GetHostedZone and ListHostedZonesByVPC say so."""
    vpc = {"VPCRegion": "eu-west-1", "VPCId": "vpc-1"}
    made = zone.client.create_hosted_zone(Name=DOMAIN, CallerReference="p", VPC=vpc)
    assert (made["VPC"], made["HostedZone"]["Config"]["PrivateZone"]) == (vpc, True)
    assert zone.client.get_hosted_zone(Id=made["HostedZone"]["Id"])["VPCs"] == [vpc]
    summaries = zone.client.list_hosted_zones_by_vpc(**vpc)["HostedZoneSummaries"]
    assert [f"/hostedzone/{each['HostedZoneId']}" for each in summaries] == [made["HostedZone"]["Id"]]
    with refused("InvalidInput"):
        zone.client.create_hosted_zone(Name="q.test", CallerReference="q", HostedZoneConfig={"PrivateZone": True})


def test_tags_and_health_checks(zone: Asked) -> None:
    """ChangeTagsForResource and both listings; there are no health checks."""
    about = {"ResourceType": "hostedzone", "ResourceId": zone.zone_id}
    zone.client.change_tags_for_resource(**about, AddTags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    zone.client.change_tags_for_resource(**about, RemoveTagKeys=["a"])
    one = zone.client.list_tags_for_resource(**about)["ResourceTagSet"]
    many = zone.client.list_tags_for_resources(ResourceType="hostedzone", ResourceIds=[zone.zone_id])["ResourceTagSets"]
    assert one["Tags"] == [{"Key": "b", "Value": "2"}]
    assert many == [one]
    assert zone.client.list_health_checks()["HealthChecks"] == []


def test_a_file_keeps_zones_over_a_restart(tmp_path: Path) -> None:
    """`--data`: what was answered stands after the next start, ids and tags too."""
    settings = Route53Settings(requests_per_s=None, zones=(DOMAIN,), data=str(tmp_path / "route53.json"))
    with running(settings) as server:
        first = Asked(server, server.create_zone(DOMAIN))
        first.change(("CREATE", record("w", "A", "192.0.2.1", SetIdentifier="a", Weight=3)))
        before = first.client.list_hosted_zones()["HostedZones"]
        stands = first.client.list_resource_record_sets(HostedZoneId=first.zone_id)["ResourceRecordSets"]
    with running(settings) as server:
        again = client(server.url)
        assert again.list_hosted_zones()["HostedZones"] == before
        assert again.list_resource_record_sets(HostedZoneId=first.zone_id)["ResourceRecordSets"] == stands
        assert listed(again, first.zone_id) == [record("w", "A", "192.0.2.1", SetIdentifier="a", Weight=3)]
    (tmp_path / "route53.json").write_text("{}")
    with pytest.raises(ValueError, match="not a file of this stand-in"), running(settings):
        pass


def test_a_place_that_is_taken_is_said(zone: Asked) -> None:
    """And nothing is left listening."""
    with pytest.raises(OSError, match="address already in use"), running(Route53Settings(listen=zone.server.url[7:])):
        pass
