"""Which record sets are ours: the simple and the weighted form, sets with TTLs of their own, and everybody else's."""

from typing import Any

import pytest
from dns_scene import change, marker, standing
from msgspec import structs
from route53_stage import Route53Stage, server, simple, stage

from fencepost.adapters.dns_route53 import Route53Dns
from fencepost.adapters.dns_route53.names import marker_owner_of, owner_of, quote
from fencepost.core.judge import Kind, Pair, judge
from fencepost.core.record_set import Content, content
from fencepost.core.store import Row
from fencepost.core.zone import Change, Live

__all__ = ["server", "stage"]
NAME = "api.example.test"
OWNER = f"{NAME}."
VALUE = content({"192.0.2.1": 10, "192.0.2.2": 255, "2001:db8::1": 1}, 30)


def weighted(stage: Route53Stage) -> Route53Dns:
    """A port that keeps NAME in weighted sets."""
    return stage.port(weighted=frozenset((NAME,)))


def write(live: Live, number: int, value: Content = VALUE) -> Change:
    """The change to a content."""
    return Change(NAME, live, marker(number, value), value, "46" if value.aaaa else "4")


def shown(stage: Route53Stage) -> list[tuple[str, str, int, list[str]]]:
    """NAME's address sets: type, identifier, weight, values."""
    return [
        (
            each["Type"],
            each.get("SetIdentifier", ""),
            each.get("Weight", -1),
            [record["Value"] for record in each["ResourceRecords"]],
        )
        for each in stage.by_hand.at(OWNER)
    ]


def test_a_weighted_endpoint_is_a_set_for_each_address(stage: Route53Stage) -> None:
    """Weights as they are, 1 where all are equal; replaced whole; the first identifier is always the same."""

    async def act() -> None:
        port, other = weighted(stage), weighted(stage)
        await port.read()
        await other.read()
        assert await port.commit((write(port.live(NAME), 1),))
        assert shown(stage) == [
            ("A", "192.0.2.2", 255, ["192.0.2.2"]),
            ("A", "fencepost", 10, ["192.0.2.1"]),
            ("AAAA", "fencepost", 1, ["2001:db8::1"]),
        ]
        assert not await other.commit((write(other.live(NAME), 1, content(["198.51.100.1"], 30)),))
        await other.read()
        assert other.live(NAME) == port.live(NAME)
        assert other.live(NAME).content() == VALUE
        assert await other.commit((write(other.live(NAME), 2, content(["198.51.100.1"], 60)),))
        assert shown(stage) == [("A", "fencepost", 1, ["198.51.100.1"])]

    stage.run(act)


def healed(port: Route53Dns, number: int, value: Content, families: str) -> Change:
    """What an enactor does about NAME: it must be to heal it."""
    row = Row.of(NAME, marker(number, value).generation, value, families=families)
    row = structs.replace(row, store="ab12")
    judgement = judge(Pair(port.live(NAME), row), "eu-1")
    assert judgement.kind is Kind.HEAL
    assert judgement.change is not None
    return judgement.change


def test_the_form_is_switched_by_the_setting_alone(stage: Route53Stage) -> None:
    """Sets in the other form are drift: seen, and exchanged in one batch, both ways."""

    async def act() -> None:
        plain = stage.port()
        await plain.read()
        assert await plain.commit((write(plain.live(NAME), 1),))
        assert [each[1] for each in shown(stage)] == ["", ""]
        await plain.read()
        assert plain.live(NAME).verified()
        port = weighted(stage)
        await port.read()
        assert await port.commit((healed(port, 1, VALUE, "46"),))
        assert len(shown(stage)) == 3
        await port.read()
        assert port.live(NAME).verified()
        await plain.read()
        assert await plain.commit((healed(plain, 1, VALUE, "46"),))
        assert [each[1] for each in shown(stage)] == ["", ""]

    stage.run(act)


def test_weights_altered_by_hand_are_drift(stage: Route53Stage) -> None:
    """The addresses are right and the marker is; only how often each is answered isn't."""

    async def act() -> None:
        port = weighted(stage)
        await port.read()
        assert await port.commit((write(port.live(NAME), 1),))
        stands = stage.by_hand.at(OWNER)
        stage.by_hand.change(stands, [each | {"Weight": 77} for each in stands])
        assert list(await port.read()) == [NAME]
        assert await port.commit((healed(port, 1, VALUE, "46"),))
        assert sorted(each[2] for each in shown(stage)) == [1, 10, 255]

    stage.run(act)


def test_ttls_of_their_own_are_drift_and_exchanged_exactly(stage: Route53Stage) -> None:
    """A DELETE must name each set's own TTL, though an endpoint has only one."""

    async def act() -> None:
        value = content(["192.0.2.1", "2001:db8::1"], 30)
        port = stage.port()
        await port.read()
        assert await port.commit((write(port.live(NAME), 1, value),))
        stands = stage.by_hand.at(OWNER)
        stage.by_hand.change(stands, [each | {"TTL": 60 + index} for index, each in enumerate(stands)])
        assert list(await port.read()) == [NAME]
        assert await port.commit((healed(port, 1, value, "46"),))
        assert {each["TTL"] for each in stage.by_hand.at(OWNER)} == {30}

    stage.run(act)


def test_odd_spellings_are_exchanged_as_they_stand(stage: Route53Stage) -> None:
    """A DELETE repeats values as they are listed: an IPv6 address in capitals, a marker of several quoted strings."""

    async def act() -> None:
        old = marker(1, content(["2001:db8::1"], 30))
        raw = quote(old.encode()).replace('" "', '""')
        made = [simple(OWNER, "AAAA", 30, "2001:DB8:0::1"), simple(marker_owner_of(NAME), "TXT", 300, raw)]
        stage.by_hand.change([], made)
        port = stage.port()
        await port.read()
        assert port.live(NAME) == standing(NAME, 1, "2001:db8::1")
        assert await port.commit((change(port.live(NAME), 2, "2001:db8::2"),))

    stage.run(act)


ALIAS = {
    "AliasTarget": {"HostedZoneId": "Z2FDTNDATAQYW2", "DNSName": "x.cloudfront.net.", "EvaluateTargetHealth": False}
}
FOREIGN: dict[str, list[dict[str, Any]]] = {
    "A alias": [{"Name": OWNER, "Type": "A", **ALIAS}],
    "A latency": [simple(OWNER, "A", 60, "192.0.2.1", SetIdentifier="x", Region="eu-west-1")],
    "A failover": [simple(OWNER, "A", 60, "192.0.2.1", SetIdentifier="x", Failover="PRIMARY")],
    "A geolocation": [simple(OWNER, "A", 60, "192.0.2.1", SetIdentifier="x", GeoLocation={"CountryCode": "*"})],
    "A weighted": [simple(OWNER, "A", 60, "192.0.2.1", SetIdentifier="blue", Weight=1)],
    "A multivalue": [simple(OWNER, "A", 60, "192.0.2.1", SetIdentifier="x", MultiValueAnswer=True)],
    "AAAA alias": [simple(OWNER, "A", 30, "192.0.2.1"), {"Name": OWNER, "Type": "AAAA", **ALIAS}],
    "CNAME": [simple(OWNER, "CNAME", 60, "elsewhere.example.")],
    "NS": [simple(OWNER, "NS", 60, "ns.elsewhere.example.")],
    "CNAME at its marker": [simple(f"_fencepost.{OWNER}", "CNAME", 60, "elsewhere.example.")],
}


@pytest.mark.parametrize("form", [False, True], ids=["simple", "weighted"])
@pytest.mark.parametrize("other", FOREIGN)
def test_what_is_routed_otherwise_is_shown_and_never_touched(stage: Route53Stage, other: str, form: bool) -> None:
    """Alias, latency, failover, geolocation, others' weighted sets: no write is even sent; their sets stay."""

    async def act() -> None:
        stage.by_hand.change([], FOREIGN[other])
        before = stage.by_hand.sets()
        port = weighted(stage) if form else stage.port()
        assert list(await port.read()) == [NAME]
        assert other in port.live(NAME).other
        stage.server.calls.clear()
        assert not await port.commit((change(port.live(NAME), 1, "192.0.2.9"),))
        assert "ChangeResourceRecordSets" not in stage.server.calls
        row = Row.of(NAME, marker(1, VALUE).generation, VALUE, families="46")
        assert judge(Pair(port.live(NAME), row), "eu-1").kind is Kind.FOREIGN
        await port.read()
        assert stage.by_hand.sets() == before

    stage.run(act)


def test_somebody_s_sets_beside_ours_refuse_the_write(stage: Route53Stage) -> None:
    """An alias made since the read: refused by Route 53, told apart from a lost race only by reading again."""

    async def act() -> None:
        port = stage.port()
        await port.read()
        stage.by_hand.change([], FOREIGN["A weighted"])
        assert not await port.commit((change(port.live(NAME), 1, "192.0.2.9"),))
        await port.read()
        assert port.live(NAME).other == ("A weighted",)

    stage.run(act)


def test_other_types_at_the_name_are_left_alone(stage: Route53Stage) -> None:
    """MX, CAA, TXT of others (lego #1351): not looked at, not touched."""

    async def act() -> None:
        kept = [
            simple(OWNER, "CAA", 60, '0 issue "letsencrypt.org"'),
            simple(OWNER, "MX", 60, "10 mail.example."),
            simple(OWNER, "TXT", 60, '"v=spf1 -all"', '"second"'),
        ]
        stage.by_hand.change([], kept)
        port = stage.port()
        await port.read()
        assert port.live(NAME) == Live(NAME)
        assert await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
        found = [each for each in stage.by_hand.at(owner_of(NAME)) if each["Type"] != "A"]
        assert [each["Type"] for each in found] == ["CAA", "MX", "TXT"]

    stage.run(act)
