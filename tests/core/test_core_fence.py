"""Generations are ordered, and markers are read back exactly as written or not at all."""

import ipaddress

from core_values import contents, generations, holds, markers
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.fence import NEVER, Generation, Hold, Marker, digest, plausible
from fencepost.core.instant import SECOND
from fencepost.core.record_set import Content, content


@given(generations, generations)
def test_generations_compare_by_epoch_and_then_by_number(one: Generation, other: Generation) -> None:
    """A hold raises the epoch, so it outranks every plan made without knowing of it."""
    assert (one < other) == ((one.epoch, one.number) < (other.epoch, other.number))
    assert one >= NEVER


def test_a_generation_is_shown_by_its_number_and_its_epoch_only_if_there_is_one() -> None:
    """People see "8", not "0.8"."""
    assert str(Generation(0, 8)) == "8"
    assert str(Generation(7, 8)) == "8 (epoch 7)"


@given(markers)
def test_a_marker_is_read_back_as_it_was_written(marker: Marker) -> None:
    """Each string fits its length byte (RFC 1035 section 3.3)."""
    strings = marker.encode()
    assert all(0 < len(string) <= 255 for string in strings)
    assert Marker.parse(strings) == marker


def test_the_largest_marker_fits_a_route_53_value() -> None:
    """100 addresses of each family with weights and a hold: under 4,000 characters, quotes and spaces included."""
    four = {str(ipaddress.IPv4Address(0xC0000200 + n)): 1 + n for n in range(100)}
    six = {str(ipaddress.IPv6Address((0x20010DB8 << 96) + n)): 1 + n for n in range(100)}
    large = 10**18 - 1
    marker = Marker.of(
        "o" * 63, "ffff", Generation(large, large), content(four | six, 86_400), Hold("rollback", large, large), large
    )
    strings = marker.encode()
    assert sum(len(string) + 3 for string in strings) <= 4_000
    assert Marker.parse(strings) == marker


@given(st.lists(st.binary(max_size=300), max_size=4).map(tuple))
def test_anything_at_all_can_be_parsed_without_an_error(strings: tuple[bytes, ...]) -> None:
    """Others write TXT records too; what isn't a marker is None."""
    parsed = Marker.parse(strings)
    assert parsed is None or parsed.encode() == strings


@given(markers, st.data())
def test_a_marker_with_one_byte_changed_is_none_or_another_as_written(marker: Marker, data: st.DataObject) -> None:
    """There is one spelling of each marker, so comparing bytes (as RFC 2136 does) and comparing markers agree."""
    strings = list(marker.encode())
    at = data.draw(st.integers(0, len(strings) - 1))
    where = data.draw(st.integers(0, len(strings[at]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != strings[at][where]))
    strings[at] = strings[at][:where] + bytes((byte,)) + strings[at][where + 1 :]
    parsed = Marker.parse(tuple(strings))
    assert parsed is None or (parsed != marker and parsed.encode() == tuple(strings))


@given(markers, st.data())
def test_a_marker_cut_or_joined_otherwise_is_none(marker: Marker, data: st.DataObject) -> None:
    """A TXT record's strings are part of its identity: split elsewhere it is another record."""
    joined = b"".join(marker.encode())
    cut = data.draw(st.integers(1, len(joined)))
    parts = tuple(part for part in (joined[:cut], joined[cut:]) if part)
    parsed = Marker.parse(parts)
    assert parsed is None or parsed.encode() == parts


@given(contents, st.none() | holds, contents, st.none() | holds)
def test_the_digest_tells_contents_and_holds_apart(
    one: Content, hold: Hold | None, other: Content, other_hold: Hold | None
) -> None:
    """Identity is (generation, digest): after a lost store one number may come twice."""
    assert (digest(one, hold) == digest(other, other_hold)) == ((one, hold) == (other, other_hold))


@given(holds, st.integers(0, 10**18), st.integers(0, 10**18))
def test_a_hold_ends_by_a_release_that_reaches_it_or_by_its_time(hold: Hold, released: int, now_s: int) -> None:
    """A release names an epoch and ends holds up to it; 0 is no time."""
    ended = released >= hold.id or (hold.until_s > 0 and now_s >= hold.until_s)
    assert hold.ended(released, now_s * SECOND) == ended


def test_a_generation_that_nothing_of_ours_can_have_made_is_told() -> None:
    """A forged marker near the largest number would use up every number if plans were made above it."""
    now = 1_800_000_000 * SECOND
    assert plausible(Generation(1_800_000_001, 10**12), 7, now)
    assert not plausible(Generation(0, 10**12 + 1), 7, now)
    assert plausible(Generation(0, 10**12 + 1), 10**12 + 1, now), "our own, however it came about"
    assert not plausible(Generation(10**11, 7), 7, now)


def test_a_ttl_beyond_31_bits_is_no_marker_of_ours() -> None:
    """RFC 2181 section 8; it would be more than a record can carry."""
    marker = Marker.of("demo", "3fa2", Generation(1, 8), content(["192.0.2.1"], 2**31), Hold("repair", 1), 1)
    assert Marker.parse(marker.encode()) is None
