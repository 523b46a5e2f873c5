"""SRV records beside an endpoint are a pure function of its content, and the marker tells all of it."""

import ipaddress

import pytest
from core_values import (
    NAME,
    ONE,
    OWNER,
    STORE,
    TWO,
    contents,
    four,
    generations,
    holds,
    live,
    numbers,
    row,
    six,
    weights,
)
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.events import Standing
from fencepost.core.fence import Foreign, Generation, Hold, Marker, digest
from fencepost.core.instant import SECOND
from fencepost.core.judge import DONE, Judgement, Kind, Pair, Remembered, judge
from fencepost.core.orders import canonical, content_faults
from fencepost.core.record_set import Content, Srv, again, content, is_canonical, pack, ports_of, unpack
from fencepost.core.repair import repair
from fencepost.core.service import Host, Pointer, Service, address_of, endpoint_beside, host_label, hosts_of, service_of
from fencepost.core.store import Wanted
from fencepost.core.traffic.desired import Offer, offered
from fencepost.core.traffic.dns_planner import difference, gathered_at, next_row
from fencepost.core.zone import Change, Live, after, exact

HTTP = "_http._tcp"
NOW = 1_000 * SECOND
HOLD = Hold("repair", 5)
PAIR = content({"192.0.2.10": 2, "192.0.2.11": 1}, 30, HTTP, 8080)
services = st.from_regex(r"_[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?\._(tcp|udp|sctp|dccp)", fullmatch=True)
targets = st.dictionaries(st.one_of(four, six), st.tuples(weights, st.integers(1, 65_535)), min_size=1, max_size=12)
offers = st.builds(
    lambda asked, service, ttl: content(
        {each: weight for each, (weight, _) in asked.items()},
        ttl,
        service,
        {each: port for each, (_, port) in asked.items()},
    ),
    targets,
    services,
    st.integers(1, 86_400),
)


def standing(value: Content, number: int = 1, hold: Hold | None = None) -> Live:
    """An endpoint with all that belongs beside it."""
    service = service_of(NAME, value)
    beside = (service,) if service is not None else ()
    return structs.replace(live(value, number, hold=hold), services=beside, hosts=hosts_of(value))


def test_the_records_of_two_addresses() -> None:
    """One SRV record an address, and a host for it to name (RFC 2782)."""
    value = content({"192.0.2.10": 2, "192.0.2.11": 1, "2001:db8::1": 1}, 30, HTTP, {
        "192.0.2.10": 8080, "192.0.2.11": 8081, "2001:db8::1": 8080,
    })  # fmt: skip
    six = "aaaa-20010db8000000000000000000000001"
    assert service_of(NAME, value) == Service(
        HTTP,
        30,
        (
            Pointer(0, 1, 8080, f"{six}.{NAME}"),
            Pointer(0, 1, 8081, f"a-192-0-2-11.{NAME}"),
            Pointer(0, 2, 8080, f"a-192-0-2-10.{NAME}"),
        ),
    )
    assert hosts_of(value) == (
        Host("a-192-0-2-10", ("192.0.2.10",), (), 30),
        Host("a-192-0-2-11", ("192.0.2.11",), (), 30),
        Host(six, (), ("2001:db8::1",), 30),
    )
    assert (service_of(NAME, ONE), hosts_of(ONE)) == (None, ())


@given(st.one_of(four, six))
def test_a_host_s_label_tells_its_address(address: str) -> None:
    """There and back, within a label's 63 bytes, and in no other spelling."""
    label = host_label(address)
    assert len(label) <= 63
    assert address_of(label) == str(ipaddress.ip_address(address))
    assert endpoint_beside(f"{label}.{NAME}") == NAME


@pytest.mark.parametrize(
    "name",
    ["a-1-2-3.x.test", "a-01-2-3-4.x.test", "a-1-2-3-4", "aaaa-20010DB8.x.test", f"aaaa-{'g' * 32}.x.test",
     "_http.x.test", "_http._tcp", "api.x.test", "a-1-2-3-400.x.test", "x._tcp.x.test"],
)  # fmt: skip
def test_what_stands_beside_nothing(name: str) -> None:
    """Names that only look like a service's or a host's."""
    assert endpoint_beside(name) is None


@given(offers)
def test_packed_content_comes_back_with_its_ports(value: Content) -> None:
    """Two bytes an address more, where ports differ; and the one canonical form."""
    assert value.srv is not None
    one = value.srv.ports[0] if len(value.srv.ports) == 1 else 0
    made = unpack(pack(value), v4=len(value.a), ttl=value.ttl, service=value.srv.service, port=one)
    assert made == value == again(value)
    assert is_canonical(value)
    assert list(ports_of(value)) == list(value.addresses)


@given(offers, generations, st.none() | holds, numbers)
def test_a_marker_always_carries_a_service(
    value: Content, generation: Generation, hold: Hold | None, writes: int
) -> None:
    """Whatever stands beside an endpoint can be put right, or taken away, by the marker alone."""
    marker = Marker.of(OWNER, STORE, generation, value, hold, writes)
    assert marker.content == value
    strings = marker.encode()
    assert all(len(string) <= 255 for string in strings)
    assert Marker.parse(strings) == marker
    assert strings[1].startswith(b"srv=")
    for other in ((*strings, b""), (strings[0], b"srv=http", *strings[2:])):
        assert Marker.parse(other) is None


@given(contents, st.none() | holds, generations)
def test_without_a_service_nothing_is_different(value: Content, hold: Hold | None, generation: Generation) -> None:
    """Markers and digests of endpoints without one are to the byte what they were before there were any."""
    from hashlib import sha256

    text = f"{','.join(value.a)}|{','.join(value.aaaa)}|{','.join(map(str, value.weights))}|{value.ttl}|{hold or ''}"
    assert digest(value, hold) == sha256(text.encode()).hexdigest()[:16]
    strings = Marker.of(OWNER, STORE, generation, value, hold, 1).encode()
    assert not any(string.startswith(b"srv=") for string in strings)
    assert (len(strings) > 1) is (hold is not None or bool(value.weights))


@given(offers, offers, st.none() | holds)
def test_the_digest_covers_service_and_ports(one: Content, other: Content, hold: Hold | None) -> None:
    """Another port, another service or none is another set, and so is another generation's."""
    assert one.srv is not None
    for differs in (
        structs.replace(one, srv=None),
        structs.replace(one, srv=structs.replace(one.srv, service="_x._udp")),
        structs.replace(one, srv=structs.replace(one.srv, ports=(one.srv.ports[0] % 65_535 + 1,))),
        other,
    ):
        assert (digest(differs, hold) == digest(one, hold)) is (differs == one)


@given(offers, st.one_of(contents, offers))
def test_a_change_leaves_exactly_what_its_content_asks(old: Content, new: Content) -> None:
    """Whatever stood by the old marker: services renamed, given up, taken up; addresses that came and went."""
    seen = standing(old)
    made = after(seen, Change(NAME, seen, live(new, 2).marker, new, ""))  # type: ignore[arg-type]
    assert made == standing(new, 2)
    assert made.holds(new)


def test_only_a_service_that_is_not_ours_yet_is_required() -> None:
    """A stranger's SRV records that came in between refuse the write; altered ones of ours are simply put right."""
    strange = (Service(HTTP, 60, (Pointer(0, 0, 1, "x.test"),)),)
    seen = live(ONE)
    took = Change(NAME, seen, live(PAIR, 2).marker, PAIR, "4")  # type: ignore[arg-type]
    assert exact(seen, took)
    assert not exact(structs.replace(seen, services=strange), took)
    ours = standing(PAIR)
    assert exact(structs.replace(ours, services=strange), Change(NAME, ours, live(TWO, 2).marker, TWO, "4"))  # type: ignore[arg-type]
    again_ = Change(NAME, ours, live(PAIR, 2).marker, PAIR, "4")  # type: ignore[arg-type]
    assert exact(structs.replace(ours, services=()), again_)


def verdict(at: Live, value: Content | None, number: int = 1, hold: Hold | None = None) -> Judgement:
    """Judged against a row of this content."""
    return judge(Pair(at, row(value, number, hold=hold) if value is not None else None), OWNER)


def test_what_is_astray_beside_is_healed_by_row_by_hold_and_by_file() -> None:
    """The row heals it; without one a hold's marker, or any marker with a service, for it carries its content."""
    hold = Hold("repair", 7)
    for held in (None, hold):
        whole = standing(PAIR, hold=held)
        assert verdict(whole, PAIR, hold=held) == DONE
        for bad in (structs.replace(whole, services=()), structs.replace(whole, hosts=whole.hosts[1:])):
            assert verdict(bad, PAIR, hold=held).kind is Kind.HEAL
            found = verdict(bad, None)
            assert found.kind is Kind.HEAL
            assert found.change is not None
            assert found.change.content == PAIR
            assert after(bad, found.change).holds(PAIR)
        assert verdict(whole, None).kind is Kind.LEAVE
    emptied = structs.replace(standing(PAIR), a=(), services=(), hosts=())
    known = Remembered(Generation(0, 1), digest(PAIR, None), PAIR, "4")
    assert judge(Pair(emptied, None, known), OWNER).kind is Kind.HEAL


def test_a_strangers_service_is_foreign() -> None:
    """At the service's name before we wrote, and not leading to our hosts: nothing is written, and it is said."""
    strange = (Service(HTTP, 60, (Pointer(0, 0, 1, "x.test"),)),)
    at = structs.replace(live(ONE), services=strange)
    assert verdict(at, PAIR, 2) == Judgement(Kind.FOREIGN, why=f"another's SRV records stand at {HTTP}.{NAME}")
    assert verdict(at, TWO, 2).kind is Kind.WRITE, "an endpoint that asks for none goes its way"
    assert verdict(Live(NAME, services=strange), PAIR).kind is Kind.FOREIGN
    mine = service_of(NAME, content(["192.0.2.77"], 30, HTTP, 1))
    assert mine is not None
    assert verdict(Live(NAME, services=(mine,)), PAIR).kind is Kind.WRITE, "left behind by a marker deleted by hand"
    assert verdict(Live(NAME, Foreign("eu-2"), services=(mine,)), PAIR).kind is Kind.FOREIGN


def test_a_cname_beside_holds_up_nothing_else() -> None:
    """What can't be put right is told; a newer row is written all the same, and so is a heal of the rest."""
    whole = standing(PAIR)
    barred = structs.replace(whole, services=(Service(HTTP, other=("CNAME",)),))
    assert verdict(barred, PAIR) == Judgement(Kind.FOREIGN, why=f"a CNAME record stands at {HTTP}.{NAME}")
    assert verdict(barred, TWO, 2).kind is Kind.WRITE
    assert verdict(structs.replace(barred, hosts=()), PAIR).kind is Kind.HEAL
    assert verdict(structs.replace(barred, a=()), PAIR).kind is Kind.HEAL


def test_a_repair_keeps_the_service() -> None:
    """The family that isn't spoken of keeps its addresses and ports; a stranger's SRV set keeps no repair from it."""
    both = content({"192.0.2.10": 2, "2001:db8::1": 1}, 30, HTTP, {"192.0.2.10": 80, "2001:db8::1": 81})
    value = content(["192.0.2.7"], 30, HTTP, 90)
    change = repair(standing(both), None, value, owner=OWNER, store=STORE, now=0)
    assert ports_of(change.content) == {"192.0.2.7": 90, "2001:db8::1": 81}
    assert Marker.parse(change.marker.encode()) == change.marker
    strange = structs.replace(live(ONE), services=(Service(HTTP, 60, (Pointer(0, 0, 1, "x.test"),)),))
    assert repair(strange, None, value, owner=OWNER, store=STORE, now=0).content == content(["192.0.2.7"], 30)


def test_what_an_order_may_say_of_a_service() -> None:
    """A rollback's content comes as JSON from whoever holds the token: it must be one that a marker can say."""
    assert content_faults(PAIR) == []
    for srv, fault in (
        (Srv("http", (80,)), "content.srv.service"),
        (Srv(HTTP, (80, 81, 82)), "content.srv.ports"),
        (Srv(HTTP, (80, 70_000)), "content.srv: port 70000"),
        (Srv(HTTP, (80, 80)), "content: "),
    ):
        (found,) = content_faults(structs.replace(PAIR, srv=srv))
        assert found.startswith(fault)
    turned = structs.replace(PAIR, a=PAIR.a[::-1], weights=PAIR.weights[::-1])
    assert canonical(turned) == PAIR


def test_an_offer_gives_each_target_its_port() -> None:
    """A target's own, or that of its pool's probe."""
    made = offered({"192.0.2.1": 1, "192.0.2.2": 1}, 30, Offer(HTTP, 80, {"192.0.2.2": 81}))
    assert ports_of(made) == {"192.0.2.1": 80, "192.0.2.2": 81}
    assert offered({"192.0.2.1": 1}, 30, None) == content(["192.0.2.1"], 30)


@pytest.mark.parametrize("port", [0, 65_536])
def test_a_port_is_one(port: int) -> None:
    """Named with its address, as weights are."""
    with pytest.raises(ValueError, match=f"port {port} of 192.0.2.1 is not from 1 to 65535"):
        content(["192.0.2.1"], 30, HTTP, port)


def test_another_service_is_no_mere_shift() -> None:
    """SRV records asked for, or given up, don't wait for shifts of weights to be gathered; and the plan says so."""
    old = content({"192.0.2.1": 1, "192.0.2.2": 2}, 30)
    new = content({"192.0.2.1": 1, "192.0.2.2": 3}, 30, "_http._tcp", 8080)
    for before, after_ in ((old, new), (new, old)):
        newest = structs.replace(row(before), made_at=NOW)
        standing = Standing(NAME, live(before), newest, Wanted(after_, "4", shift_since=NOW), ())
        assert gathered_at(standing, 30 * SECOND) == 0
        made = next_row(standing, OWNER, 9, NOW, STORE)
        assert made is not None
        assert made.content == after_
    assert difference(row(old), row(new), None) == "SRV records none -> _http._tcp:8080"
    shift = structs.replace(new, weights=(1, 9))
    shifting = Standing(
        NAME, live(new), structs.replace(row(new), made_at=NOW), Wanted(shift, "4", shift_since=NOW), ()
    )
    assert gathered_at(shifting, 30 * SECOND) == NOW + 30 * SECOND


def test_a_marker_with_a_service_is_adopted_with_what_it_says() -> None:
    """A repair made without the store keeps its SRV records until it is released."""
    held = content({"192.0.2.9": 1}, 30, "_http._tcp", 8080)
    standing = Standing(NAME, live(held, 5, 9, HOLD), row(ONE, 5), Wanted(ONE, "4"), ())
    made = next_row(standing, OWNER, 8, NOW, STORE)
    assert made is not None
    assert (made.content, made.hold) == (held, HOLD)
