"""An order that can't be carried out is known as one before it is stored, and before it is planned."""

import pytest
from core_values import NAME, contents
from hypothesis import given
from msgspec import structs

from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.orders import canonical, content_faults, faults, seemly
from fencepost.core.record_set import NOTHING, Content
from fencepost.core.store import Order

GOOD = Content(("192.0.2.1", "192.0.2.2"), ("2001:db8::1",), (1, 2, 3), 30)
BACK = Order("o", "rollback", NAME, GOOD, 1_800_000_000, by="ops", reason="as it was")


def changed(**fields: object) -> Order:
    """A rollback with something else in its content."""
    return structs.replace(BACK, content=structs.replace(GOOD, **fields))


def test_what_the_commands_order_has_no_fault() -> None:
    """Each kind as the command line makes it (weights of three targets, an end, a release by its epoch, a digest)."""
    assert not faults(BACK)
    assert not faults(Order("o", "withdraw", NAME, until_s=0, by="ops", reason="moved: naïve, 日本語"))
    assert not faults(Order("o", "release", NAME, hold=1_800_000_000))
    assert not faults(Order("o", "adopt", NAME, adopt="ab" * 8))
    assert not faults(Order("o", "adopt", NAME, adopt="-"))


@pytest.mark.parametrize(
    ("order", "where"),
    [
        (changed(a=("garbage",), aaaa=(), weights=()), "content.a"),
        (changed(a=("::1",), aaaa=(), weights=()), "content.a"),
        (changed(aaaa=("192.0.2.1",)), "content.aaaa"),
        (changed(aaaa=("2001:DB8::1",)), "content.aaaa"),
        (changed(aaaa=("fe80::1%eth0",)), "content.aaaa"),
        (changed(a=("192.0.2.2", "192.0.2.1")), "content"),
        (changed(a=("192.0.2.1", "192.0.2.1")), "content"),
        (changed(a=("0.0.0.0", "192.0.2.2")), "content.a"),
        (changed(a=("192.0.2.1", "224.0.0.1")), "content.a"),
        (changed(a=("192.0.2.1", "255.255.255.255")), "content.a"),
        (changed(aaaa=("::",)), "content.aaaa"),
        (changed(aaaa=("ff02::1",)), "content.aaaa"),
        (changed(weights=(1, 2)), "content.weights"),
        (changed(weights=(999, 2, 3)), "content.weights"),
        (changed(weights=(0, 2, 3)), "content.weights"),
        (changed(weights=(7, 7, 7)), "content"),
        (changed(ttl=-1), "content.ttl"),
        (changed(ttl=0), "content.ttl"),
        (changed(ttl=2**40), "content.ttl"),
        (changed(a=(), aaaa=(), weights=()), "content"),
        (changed(a=tuple(f"10.0.{i // 250}.{i % 250}" for i in range(1_500)), weights=()), "content"),
        (structs.replace(BACK, until_s=-5), "until_s"),
        (structs.replace(BACK, until_s=10**30), "until_s"),
        (structs.replace(BACK, hold=7), "hold"),
        (structs.replace(BACK, reason="\x1b[2Jboo"), "reason"),
        (structs.replace(BACK, reason="one\ntwo"), "reason"),
        (structs.replace(BACK, by="\u202eops"), "by"),
        (structs.replace(BACK, reason="x" * 501), "reason"),
        (Order("o", "withdraw", NAME, content=GOOD), "content"),
        (Order("o", "release", NAME, hold=0), "hold"),
        (Order("o", "release", NAME, hold=10**30), "hold"),
        (Order("o", "release", NAME, hold=5, until_s=5), "until_s"),
        (Order("o", "adopt", NAME, adopt="zz"), "adopt"),
        (Order("o", "withdraw", NAME, adopt="ab" * 8), "adopt"),
    ],
)
def test_what_would_stop_a_planner_is_a_fault(order: Order, where: str) -> None:
    """RFC 1035, 3.3.14 and 4.2.2; and one order of 10^30 seconds stopped the plans of every other endpoint."""
    assert [fault.partition(":")[0] for fault in faults(order)] == [where]


@given(contents)
def test_content_without_a_fault_fits_a_marker(value: Content) -> None:
    """What passes here comes back from the marker that carries it (the fence needs it whole)."""
    if not content_faults(value):
        marker = Marker.of("demo", "0001", Generation(1, 1), value, Hold("rollback", 1, 2**33 - 1), 1)
        assert Marker.parse(marker.encode()) == marker
    assert content_faults(NOTHING)


@given(contents)
def test_a_listing_is_put_in_order_and_changes_no_meaning(value: Content) -> None:
    """RFC 2181, 5: a set has no order. Families aren't mixed up, and contradicting weights stay a fault."""
    if not value.weights:
        twice = structs.replace(value, a=value.a[::-1] + value.a, aaaa=value.aaaa[::-1])
        assert canonical(twice) == value
    backwards = structs.replace(
        value,
        a=value.a[::-1],
        aaaa=value.aaaa[::-1],
        weights=value.weights[: len(value.a)][::-1] + value.weights[len(value.a) :][::-1],
    )
    assert canonical(backwards) == value
    mixed = Content(("::1",), (), (), 30)
    assert canonical(mixed) is mixed
    doubled = Content(("192.0.2.1", "192.0.2.1"), (), (1, 2), 30)
    assert canonical(doubled) is doubled


def test_a_reason_stays_one_line() -> None:
    """A reason with an escape sequence or a line end could forge what stands above it."""
    assert seemly("\x1b[31mboo\n note  fake\u2028x ") == "[31mboo note fake x"
