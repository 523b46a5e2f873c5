"""Records for the tests of ``fencepost import``: drawn sets, written in each format, and what came out of it."""

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from hypothesis import strategies as st

from fencepost.core.record_set import Content
from fencepost.core.traffic.desired import desired
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.settings import Region, judge

DOMAIN = "example.com"


class Drawn(NamedTuple):
    """One name's records: addresses, a CNAME's target, or where an NS or MX points; at most one kind of the last."""

    a: tuple[str, ...]
    aaaa: tuple[str, ...]
    ttl: int
    points: str = ""


V4 = st.sampled_from([f"192.0.2.{n}" for n in range(1, 7)] + ["198.51.100.7", "203.0.113.250"])
V6 = st.sampled_from(["2001:db8::1", "2001:db8::2", "2001:db8:0:1::a", "2001:DB8::B"])
LABELS = st.sampled_from(["api", "www", "*", "a-b", "x_y", "0", "xn--bcher-kva", "n" * 63, "mail", "-", "api.eu"])
TTLS = st.sampled_from([0, 1, 5, 30, 300, 86_400, 86_401, 2_147_483_647])


def unique(values: st.SearchStrategy[str], most: int) -> st.SearchStrategy[tuple[str, ...]]:
    """A few different addresses, in any order."""
    return st.lists(values, max_size=most, unique_by=str.lower).map(tuple)


SETS = st.dictionaries(
    LABELS, st.builds(Drawn, unique(V4, 4), unique(V6, 3), TTLS, st.sampled_from(["", "", "", "MX"])), max_size=6
)


def full(label: str) -> str:
    """A label's whole name."""
    return f"{label}.{DOMAIN}"


def zonefile(sets: Mapping[str, Drawn]) -> str:
    """As a master file."""
    lines = [f"$ORIGIN {DOMAIN}.", "@ 300 IN SOA ns admin 1 3600 600 86400 60", "@ 300 IN NS ns"]
    for label, drawn in sets.items():
        for kind, values in (("A", drawn.a), ("AAAA", drawn.aaaa)):
            lines += [f"{label} {drawn.ttl} IN {kind} {value}" for value in values]
        lines += [f"@ 300 IN {drawn.points} 10 {label}"] if drawn.points else []
    return "\n".join(lines) + "\n"


def octodns(sets: Mapping[str, Drawn]) -> str:
    """As octoDNS writes it; JSON is YAML."""
    tops = [{"type": "NS", "ttl": 300, "values": [f"ns.{DOMAIN}."]}]
    pointed = [{"exchange": f"{full(label)}.", "preference": 10} for label, drawn in sets.items() if drawn.points]
    tops += [{"type": "MX", "ttl": 300, "values": pointed}] if pointed else []
    found: dict[str, object] = {"": tops}
    for label, drawn in sets.items():
        both = (("A", drawn.a), ("AAAA", drawn.aaaa))
        found[label] = [{"type": kind, "ttl": drawn.ttl, "values": list(values)} for kind, values in both if values]
    return json.dumps({name: value for name, value in found.items() if value}, indent=1)


def route53(sets: Mapping[str, Drawn]) -> str:
    """As the aws command lists it."""

    def one(name: str, kind: str, ttl: int, values: tuple[str, ...]) -> dict[str, object]:
        shown = name.replace("*", r"\052", 1) + "."
        return {"Name": shown, "Type": kind, "TTL": ttl, "ResourceRecords": [{"Value": value} for value in values]}

    found = [one(DOMAIN, "SOA", 900, ("ns. admin. 1 7200 900 1209600 86400",))]
    pointed = tuple(f"10 {full(label)}." for label, drawn in sets.items() if drawn.points)
    found += [one(DOMAIN, "MX", 300, pointed)] if pointed else []
    for label, drawn in sets.items():
        both = (("A", drawn.a), ("AAAA", drawn.aaaa))
        found += [one(full(label), kind, drawn.ttl, values) for kind, values in both if values]
    return json.dumps({"ResourceRecordSets": found})


def loaded(text: str) -> Region:
    """The region that a text says; the test fails with its mistakes if it has any."""
    report = judge(text, "region.toml", os.environ, ipv6=True)
    assert not report.mistakes, f"{[str(each) for each in report.mistakes]}\n{text}"
    assert report.region is not None
    return report.region


def asked(region: Region) -> dict[str, Content]:
    """What each endpoint would answer while every target serves."""
    found = {}
    for endpoint in region.endpoints:
        members = tuple(Member(each.address, each.zone, State.IN, 1) for each in region.pool(endpoint.pool).targets)
        wanted = desired(endpoint.records, endpoint.ttl_s, Membership(endpoint.pool, members=members))
        assert wanted is not None
        found[endpoint.name] = wanted.content
    return found
