"""Contents are canonical, and their packed form comes back as it went."""

import ipaddress
import random

import pytest
from core_values import contents, weighed
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.record_set import Content, content, pack, record_digest, unpack


@given(weighed, st.randoms(use_true_random=False))
def test_the_order_of_a_listing_means_nothing(given_weights: dict[str, int], chance: random.Random) -> None:
    """RFC 2181 section 5: a record set is a set; two listings of one set are one content."""
    items = list(given_weights.items())
    chance.shuffle(items)
    assert content(dict(items), 30) == content(given_weights, 30)


def test_spellings_of_one_address_are_one_address() -> None:
    """RFC 5952 gives an IPv6 address one spelling; people write others."""
    assert content(["2001:DB8:0:0::1"], 30) == content(["2001:db8::1"], 30)


@given(contents)
def test_packing_and_unpacking_gives_the_same_content(value: Content) -> None:
    """What a marker carries is what stood there, weights included."""
    assert unpack(pack(value), v4=len(value.a), ttl=value.ttl) == value


def test_a_hundred_addresses_of_each_family_take_2936_characters() -> None:
    """The size that a marker must be able to carry beside 200 addresses; Route 53 caps a value at 4,000."""
    four = [str(ipaddress.IPv4Address(0xC0000200 + n)) for n in range(100)]
    six = [str(ipaddress.IPv6Address((0x20010DB8 << 96) + n)) for n in range(100)]
    assert len(pack(content(four + six, 30))) == 2_936


@given(st.binary(max_size=60), st.integers(0, 8))
def test_unpacking_anything_gives_a_content_that_packs_to_it_or_a_value_error(text: bytes, v4: int) -> None:
    """What stands in DNS may have been written by anyone."""
    try:
        value = unpack(text, v4=v4, ttl=30)
    except ValueError:
        return
    assert pack(value) == text


@pytest.mark.parametrize(("weights", "said"), [({"192.0.2.1": 0}, "weight 0"), ({"192.0.2.1": 256}, "weight 256")])
def test_a_weight_that_is_no_byte_is_refused(weights: dict[str, int], said: str) -> None:
    """A weight is one byte in the marker; 0 would take the address out without saying so."""
    with pytest.raises(ValueError, match=said):
        content(weights, 30)


def test_what_is_no_address_is_refused() -> None:
    """The error names the text."""
    with pytest.raises(ValueError, match=r"192\.0\.2\.999"):
        content(["192.0.2.999"], 30)


def test_equal_weights_are_no_weights() -> None:
    """Only differences matter, so that a region without weights has markers without contents."""
    assert content({"192.0.2.1": 7, "192.0.2.2": 7}, 30).weights == ()


@given(contents, contents)
def test_the_digest_of_a_set_names_its_addresses_alone(one: Content, other: Content) -> None:
    """An unmarked set shows neither weights nor our TTL."""
    same = (one.a, one.aaaa) == (other.a, other.aaaa)
    assert (record_digest(one.a, one.aaaa) == record_digest(other.a, other.aaaa)) == same
