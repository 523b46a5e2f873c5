"""``fencepost import``: what it writes loads, and says of each name exactly what is served, or why it is left out."""

import contextlib
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from called import call
from hypothesis import given
from hypothesis import strategies as st
from imported import DOMAIN, SETS, Drawn, asked, full, loaded, octodns, route53, zonefile

from fencepost.core.record_set import content
from fencepost.importing import Book, Served, choose, write
from fencepost.importing import octodns as octodns_reader
from fencepost.importing import route53_json as route53_reader
from fencepost.importing import zonefile as zonefile_reader
from fencepost.importing.records import RecordSet, Source
from fencepost.ports import Misconfigured

PEERS = Path(__file__).parents[2] / ".venv/peers/bin/python"
SERVED = Served(('provider = "embedded"',), "a test")
Reader = Callable[[Book, Path], object]
READERS: dict[str, tuple[Callable[[Mapping[str, Drawn]], str], Reader]] = {
    "zonefile": (zonefile, zonefile_reader.read),
    "octodns": (octodns, lambda book, path: octodns_reader.read(book, path, DOMAIN)),
    "route53-json": (route53, lambda book, path: route53_reader.read(book, path.read_text(), str(path))),
}


def read(kind: str, text: str, folder: Path) -> Source:
    """What a text in one of the formats holds."""
    path = folder / "source"
    path.write_text(text)
    book = Book()
    READERS[kind][1](book, path)
    return book.source()


@pytest.mark.parametrize("kind", READERS)
@given(sets=SETS, everything=st.booleans())
def test_what_is_written_loads_and_asks_for_exactly_what_is_served(
    kind: str, sets: Mapping[str, Drawn], everything: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever stands in a zone: no mistake in the file, and each endpoint's content is the set that was read.

    TTLs of 0 and over a day can't be said; the nearest stands there. Every name with an address is in the file, as an
    endpoint or with the reason why not.
    """
    source = read(kind, READERS[kind][0](sets), tmp_path_factory.getbasetemp())
    chosen = choose(source, patterns=["*"] if everything else [])
    named = {full(label): drawn for label, drawn in sets.items() if drawn.a or drawn.aaaa}
    taken = {each.name for each in chosen.endpoints}
    assert taken | {each.name for each in chosen.left} >= named.keys()
    assert not taken & {each.name for each in chosen.left}
    expected = {
        name: content([*drawn.a, *drawn.aaaa], min(max(drawn.ttl, 1), 86_400))
        for name, drawn in named.items()
        if not drawn.points and (everything or max(len(drawn.a), len(drawn.aaaa)) >= 2)
    }
    assert taken == expected.keys()
    if taken:
        region = loaded(write("eu-1", source.domains, chosen, SERVED, "tcp://:443"))
        assert asked(region) == expected


def test_the_three_formats_say_the_same_of_the_same_records(tmp_path: Path) -> None:
    """A domain that moves from one to another stays what it is; so does the file, whatever order records stand in."""
    sets = {
        "www": Drawn(("192.0.2.2", "192.0.2.1"), (), 60),
        "api": Drawn(("192.0.2.1", "192.0.2.2"), (), 60),
        "*": Drawn(("192.0.2.1", "192.0.2.3"), ("2001:db8::1",), 300),
        "mail": Drawn(("192.0.2.7", "192.0.2.8"), (), 60, "MX"),
    }
    texts = set()
    for kind, (written, _) in READERS.items():
        source = read(kind, written(sets), tmp_path)
        texts.add(write("eu-1", source.domains, choose(source), SERVED, "tcp://:443"))
    assert len(texts) == 1
    text = texts.pop()
    assert "[pool.api]    # 2 endpoints answer these addresses\n" in text
    assert 'a = ["192.0.2.1", "192.0.2.2"]\n' in text
    assert "#   mail.example.com    an MX record points at it; --only takes it\n" in text


OCTODNS = """---
defaults: &defaults
  type: A
  ttl: 60
'':
  - {type: NS, values: [ns1.example.com., ns2.example.com.]}
  - type: MX
    values:
    - {exchange: mail.example.com., preference: 10}
api:
  type: A
  values:   # no ttl: octoDNS's default
  - 192.0.2.1
  - '192.0.2.2'
dual:
- type: A
  ttl: 60
  values: [192.0.2.3, 192.0.2.4]
- type: AAAA
  ttl: 60
  values: ["2001:db8::1", "2001:db8::2"]
'*.eu':
  type: A
  ttl: 30
  values: [192.0.2.5, 192.0.2.6]
mail: {type: A, ttl: 60, values: [192.0.2.7, 192.0.2.8]}
one: {type: A, ttl: 60, value: 192.0.2.9}
ignored: {type: A, ttl: 60, values: [192.0.2.9, 192.0.2.10], octodns: {ignored: true}}
moving:
  type: A
  ttl: 60
  values: [192.0.2.1, 192.0.2.2]
  dynamic:
    pools:
      one: {values: [{value: 192.0.2.1}]}
    rules:
    - pool: one
alias: {type: CNAME, ttl: 60, value: api.example.com.}
text: {type: TXT, ttl: 60, value: with an \\; in it}
"""
"""What octoDNS's own documentation shows of its YAML, and flow style, quotes, comments; ``defaults`` isn't a record."""

BY_OCTODNS = """
import json, sys
from octodns.provider.yaml import YamlProvider
from octodns.zone import Zone
zone = Zone("example.com.", [])
YamlProvider("config", sys.argv[1], enforce_order=False).populate(zone)
print(json.dumps({record.fqdn.rstrip("."): [record._type, record.ttl, sorted(record.values)] for record in zone.records
                  if record._type == "A" and not getattr(record, "dynamic", None) and not record.ignored}))
"""


def test_octodns_itself_reads_the_same_sets(tmp_path: Path) -> None:
    """octoDNS 1.22 on the same file: each plain A record, its TTL, its values."""
    if not PEERS.exists():
        pytest.skip("octoDNS isn't installed beside ours (make test does that)")
    text = OCTODNS.replace("defaults: &defaults\n  type: A\n  ttl: 60\n", "")
    (tmp_path / "example.com.yaml").write_text(text)
    done = subprocess.run(
        [str(PEERS), "-c", BY_OCTODNS, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    theirs = {name: (ttl, values) for name, (_, ttl, values) in json.loads(done.stdout).items()}
    book = Book()
    assert octodns_reader.read(book, tmp_path) == []
    source = book.source()
    assert {each.name: (each.ttl_a, sorted(each.a)) for each in source.sets if each.a} == theirs
    left = {each.name: each.why for each in choose(source).left}
    assert left == {
        "alias.example.com": "a CNAME record stands there",
        "ignored.example.com": "octoDNS is told to ignore it",
        "mail.example.com": "an MX record points at it; --only takes it",
        "moving.example.com": "a dynamic record of octoDNS, which answers by its own rules",
        "one.example.com": "one address, so nothing could ever be taken out; --only takes it",
    }


def test_a_file_that_bind_wrote_wants_its_domain(tmp_path: Path) -> None:
    """BIND 9.18 rewrites the file of a domain that takes updates, beginning "$ORIGIN .": it said "add() has ..."."""
    lines = ("$ORIGIN .", "$TTL 300", "example.test IN SOA ns.example.test. h.example.test. 1 2 3 4 5")
    more = ("$ORIGIN example.test.", "api A 192.0.2.1", " A 192.0.2.2")
    (tmp_path / "db").write_text("\n".join((*lines, *more, "")))
    done = call("import", "zonefile", "db", cwd=tmp_path)
    assert done.returncode == 2
    assert "SOA record stands at another name" in done.stderr
    assert "--domain" in done.stderr
    done = call("import", "zonefile", "db", "--domain", "example.test", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'name = "api.example.test"' in done.stdout


@pytest.mark.parametrize("name", ["config/", "config.yaml", "example.com.yaml"])
def test_octodns_a_place_that_is_not_there_is_said_so(name: str, tmp_path: Path) -> None:
    """A folder mistyped was told that its name doesn't say which domain it is."""
    done = call("import", "octodns", name, cwd=tmp_path)
    assert done.returncode == 2
    assert "no such file or directory" in done.stderr


def test_octodns_folders_merges_and_split_zones(tmp_path: Path) -> None:
    """A file a zone, a folder a zone with a file a record; YAML's anchors and merges; what isn't a zone is said."""
    (tmp_path / "production.yaml").write_text("providers: {}\nzones: {}\n")
    (tmp_path / "example.org.yaml").write_text(
        "base: &base {type: A, ttl: 60, values: [192.0.2.1, 192.0.2.2]}\napi:\n  <<: *base\n  ttl: 5\n"
    )
    split = tmp_path / "example.com."
    split.mkdir()
    (split / "api.yaml").write_text("api: {type: A, ttl: 60, values: [192.0.2.3, 192.0.2.4]}\n")
    (split / "$example.com.yaml").write_text("'': {type: NS, ttl: 60, value: ns1.example.com.}\n")
    book = Book()
    said = octodns_reader.read(book, tmp_path)
    assert [text for text in said if "production.yaml" in text] == said
    sets = {each.name: (each.ttl_a, each.a) for each in book.source().sets}
    assert sets["api.example.org"] == (5, ("192.0.2.1", "192.0.2.2"))
    assert sets["api.example.com"] == (60, ("192.0.2.3", "192.0.2.4"))
    assert book.source().domains == ("example.com", "example.org")


ROUTE53_RULES: list[dict[str, object]] = [
    {"Name": "w.example.com.", "Type": "A", "SetIdentifier": "one", "Weight": 0},
    {"Name": "lat.example.com.", "Type": "A", "SetIdentifier": "one", "Region": "eu-west-1"},
    {"Name": "geo.example.com.", "Type": "A", "SetIdentifier": "one", "GeoLocation": {"CountryCode": "*"}},
    {"Name": "fail.example.com.", "Type": "A", "SetIdentifier": "one", "Failover": "PRIMARY"},
    {"Name": "multi.example.com.", "Type": "A", "SetIdentifier": "one", "MultiValueAnswer": True},
]


def test_route_53s_own_rules_are_left_out_whole_and_named(tmp_path: Path) -> None:
    """Weighted (also of weight 0), latency, geolocation, failover, multivalue sets, aliases: none is half taken."""
    records = {"TTL": 60, "ResourceRecords": [{"Value": "192.0.2.1"}, {"Value": "192.0.2.2"}]}
    alias = {"AliasTarget": {"HostedZoneId": "Z1", "DNSName": "lb.example.net.", "EvaluateTargetHealth": False}}
    sets: list[dict[str, object]] = [
        *({**rule, **records} for rule in ROUTE53_RULES),
        {"Name": "example.com.", "Type": "A", **alias},
        {"Name": "api.example.com.", "Type": "A", **records},
        {"Name": "api.example.com.", "Type": "AAAA", **alias},
        {"Name": "www.example.com.", "Type": "A", **records},
    ]
    book = Book()
    route53_reader.read(book, json.dumps({"ResourceRecordSets": sets}), "r.json", DOMAIN)
    chosen = choose(book.source())
    assert [each.name for each in chosen.endpoints] == ["www.example.com"], "api has an alias for IPv6"
    assert {each.name.partition(".")[0]: each.why for each in chosen.left} == {
        "w": "weighted sets",
        "lat": "sets by latency",
        "geo": "sets by place (geolocation)",
        "fail": "failover sets",
        "multi": "multivalue sets",
        "example": "an alias of Route 53's",
        "api": "an alias of Route 53's",
    }


SOA = "$ORIGIN example.com.\n@ 60 SOA ns a 1 1 1 1 1\n"
BAD = [
    ("zonefile", "zone", SOA + "api 60 A 192.0.2.300\n", "zone:3"),
    ("zonefile", "zone", SOA + "api 60 A 192.0.2.1\napi 60 B 192.0.2.1\n", "zone:4"),
    ("zonefile", "zone", "$TTL soon\n" + SOA, "zone:1"),
    ("zonefile", "zone", "; a comment\n$TTL soon\n" + SOA, "zone:2"),
    ("zonefile", "zone", "api 60 A 192.0.2.1\n", "--domain"),
    ("zonefile", "zone", SOA + "$INCLUDE nowhere\n", "nowhere"),
    ("octodns", "example.com.yaml", "api:\n  type: A\n  value: [1\nb: 2\n", "example.com.yaml:4"),
    ("octodns", "example.com.yaml", "api:\n  ttl: 60\n", "example.com.yaml:2"),
    ("octodns", "example.com.yaml", "api:\n  type: A\n  ttl: soon\n  value: 192.0.2.1\n", "example.com.yaml:3"),
    ("octodns", "example.com.yaml", "api: !include other.yaml\n", "example.com.yaml:1"),
    ("octodns", "example.com.yaml", "api: {type: A, value: 192.0.2.1}\napi: {type: A}\n", "example.com.yaml:2"),
    ("octodns", "example.com.yaml", "- api\n", "example.com.yaml:1"),
    ("octodns", "example.com.yaml", "api: &a\n  <<: *a\n", "circles"),
    ("octodns", "zones.yaml", "api: {type: A, value: 192.0.2.1}\n", "--domain"),
    ("route53-json", "r.json", '{"ResourceRecordSets": [\n{"Name": \n]}', "r.json:3"),
    ("route53-json", "r.json", "[]", "r.json"),
    ("route53-json", "r.json", '{"ResourceRecordSets": [], "NextToken": "x"}', "--max-items"),
    ("route53-json", "r.json", '{"ResourceRecordSets": [{"Name": "a.", "Type": "SOA"}]}', "ResourceRecordSets[0]"),
]


@pytest.mark.parametrize(("kind", "file", "text", "place"), BAD, ids=[f"{each[0]}-{at}" for at, each in enumerate(BAD)])
def test_bad_input_is_refused_with_its_line(kind: str, file: str, text: str, place: str, tmp_path: Path) -> None:
    """What is wrong, where, and what to do; exit 2, nothing on stdout, no traceback."""
    (tmp_path / file).write_text(text)
    done = call("import", kind, file, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("error: ")
    assert place in done.stderr


@given(body=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_whatever_a_file_holds_it_is_read_or_refused(body: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A refusal in words for any bytes, never a traceback."""
    path = tmp_path_factory.getbasetemp() / "example.com.yaml"
    path.write_bytes(body)
    for kind in ("zonefile", "octodns"):
        try:
            READERS[kind][1](Book(), path)
        except (Misconfigured, OSError):
            continue
    with contextlib.suppress(Misconfigured):
        route53_reader.read(Book(), body.decode(errors="replace"), "r.json")


def test_the_person_picks(tmp_path: Path) -> None:
    """--only takes these, glue and single addresses too; --name takes what fits; a name that isn't there is refused."""
    (tmp_path / "zone").write_text(
        SOA + "@ MX 10 mx\nmx 60 A 192.0.2.1\napi 60 A 192.0.2.2\napi 60 A 192.0.2.3\nwww 60 A 192.0.2.4\n"
        "www 60 A 192.0.2.5\nblog CNAME www\n"
    )

    def taken(*flags: str) -> list[str]:
        done = call("import", "zonefile", "zone", "--json", *flags, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert sorted(asked(loaded(found["region_toml"]))) == [each["name"] for each in found["endpoints"]]
        return [each["name"].partition(".")[0] for each in found["endpoints"]]

    assert taken() == ["api", "www"]
    assert taken("--only", "mx.example.com", "--only", "API.example.com.") == ["api", "mx"]
    assert taken("--name", "w*.example.com") == ["www"]
    assert taken("--name", "*") == ["api", "www"], "glue by name only"
    for flags, what in (
        (("--only", "blog.example.com"), "a CNAME record stands there"),
        (("--only", "no.example.com"), "no address"),
        (("--name", "no*"), "no name there is taken"),
        (("--key", "k"), "goes with live"),
    ):
        done = call("import", "zonefile", "zone", *flags, cwd=tmp_path)
        assert done.returncode in (1, 2)
        assert done.stdout == ""
        assert what in done.stderr


def test_it_prints_a_file_and_touches_nothing(tmp_path: Path) -> None:
    """stdout is the file and nothing else; `check` takes it; what was left out stands in it and nowhere on disk."""
    (tmp_path / "zone").write_text(SOA + "api 60 A 192.0.2.2\napi 60 A 192.0.2.3\none 60 A 192.0.2.4\n")
    before = sorted(tmp_path.iterdir())
    done = call("import", "zonefile", "zone", "--probe", "http://:8080/healthz", "--region-name", "eu-7", cwd=tmp_path)
    assert (done.returncode, sorted(tmp_path.iterdir())) == (0, before)
    assert "zone a" in done.stderr
    (tmp_path / "region.toml").write_text(done.stdout)
    checked = call("check", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "region eu-7 · 1 endpoint, 1 pool, 2 targets, 1 zone" in checked.stdout
    assert "#   one.example.com    one address" in done.stdout
    assert loaded(done.stdout).pools[0].probe.url.port == 8080


def test_a_set_that_no_target_can_have_is_left_out_whole() -> None:
    """Part of a set would be a change: one multicast address keeps the two others out."""
    book = Book()
    book.domain(DOMAIN)
    book.add(full("odd"), "A", 60, ["192.0.2.1", "192.0.2.2", "224.0.0.1"])
    book.add(full("api"), "A", 60, ["192.0.2.1", "192.0.2.2"])
    book.add(full("n" * 64), "A", 60, ["192.0.2.1", "192.0.2.2"])
    chosen = choose(book.source())
    assert [each.name for each in chosen.endpoints] == [full("api")]
    assert sorted(each.why.partition(" ")[0] for each in chosen.left) == ["224.0.0.1", "as"]


def test_names_from_outside_can_not_break_out_of_a_comment_or_a_string() -> None:
    """A zone's content is others' words: a line break in a name, or in a reason, would be a line of the file."""
    book = Book()
    book.domain(DOMAIN)
    book.add(full("api"), "A", 60, ["192.0.2.1", "192.0.2.2"])
    book.leave('x\n[region]\nname = "evil"', "because\r\nof\x07 it")
    text = write("eu-1", (DOMAIN,), choose(book.source()), Served(('provider = "embedded"',), "a\nb"), "tcp://:443")
    assert loaded(text).name == "eu-1"
    assert sum(line.startswith("[region]") for line in text.splitlines()) == 1


def test_one_ttl_for_two_families_is_said() -> None:
    """An endpoint has one TTL: the shorter stands, with the other in a comment."""
    book = Book()
    book.domain(DOMAIN)
    book.add(full("api"), "A", 60, ["192.0.2.1", "192.0.2.2"])
    book.add(full("api"), "AAAA", 30, ["2001:db8::1"])
    chosen = choose(book.source())
    assert book.source().sets == (RecordSet(full("api"), ("192.0.2.1", "192.0.2.2"), ("2001:db8::1",), 60, 30),)
    assert (chosen.endpoints[0].content.ttl, "30 s and 60 s" in chosen.endpoints[0].note) == (30, True)
