"""Route 53's spellings of names and of TXT values, and the order it lists names in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.adapters.dns_route53.names import (
    endpoint_of,
    listing_key,
    marker_owner_of,
    owner_of,
    quote,
    unquote,
)

STRINGS = st.lists(st.binary(max_size=255), min_size=1, max_size=4).map(tuple)


@given(STRINGS)
def test_any_strings_come_back(strings: tuple[bytes, ...]) -> None:
    """DNSControl #2854, #2435: 300 bytes, quotes, backslashes, bytes of no character; strings stay apart."""
    value = quote(strings)
    assert unquote(value) == strings
    assert value.isascii()
    assert value.isprintable()


@pytest.mark.parametrize(
    ("value", "strings"),
    [
        ('"a""b"', (b"a", b"b")),
        ('"a" "b"', (b"a", b"b")),
        ('  "a"\t"b"  ', (b"a", b"b")),
        (r'"\"\\"', (b'"\\',)),
        (r'"\303\244"', (b"\xc3\xa4",)),
        (r'"\000\377"', (b"\x00\xff",)),
        (r'"\;"', (b";",)),
        ('""', (b"",)),
        ("bare", None),
        ('"open', None),
        ('"a" b', None),
        ("", None),
    ],
)
def test_values_are_read_as_people_write_them(value: str, strings: tuple[bytes, ...] | None) -> None:
    """Route 53 keeps a value as it was given; escapes are octal (Developer Guide, TXT record type)."""
    assert unquote(value) == strings


@pytest.mark.parametrize(
    ("listed", "endpoint", "marks"),
    [
        ("api.example.com.", "api.example.com", False),
        ("API.Example.COM.", "api.example.com", False),
        ("\\052.example.com.", "*.example.com", False),
        ("*.example.com.", "*.example.com", False),
        ("_fencepost.api.example.com.", "api.example.com", True),
        ("_fencepost._wildcard.example.com.", "*.example.com", True),
        ("xn--bcher-kva.example.com.", "xn--bcher-kva.example.com", False),
        ("_dmarc.example.com.", "_dmarc.example.com", False),
    ],
)
def test_a_listed_name_is_an_endpoint_s(listed: str, endpoint: str, marks: bool) -> None:
    """external-dns #264, #3028: one name, however it is spelled."""
    assert endpoint_of(listed) == (endpoint, marks)


@pytest.mark.parametrize(
    "listed",
    [
        "\\100.example.com.",
        "a\\052.example.com.",
        "_wildcard.example.com.",
        "_fencepost._fencepost.example.com.",
        "_fencepost.\\052.example.com.",
        "a\\056b.example.com.",
        "\\344.example.com.",
    ],
)
def test_names_we_would_never_publish_are_nobody_s(listed: str) -> None:
    """They are another's, and passed over: none may be taken for an endpoint of ours."""
    assert endpoint_of(listed) is None


@pytest.mark.parametrize("name", ["api.example.com", "*.example.com", "example.com", "*.a-b.example.com"])
def test_our_names_are_spelled_as_listed_and_read_back(name: str) -> None:
    """A write's names must be those that a page shows, or the mirror would have two of one."""
    assert endpoint_of(owner_of(name)) == (name, False)
    assert endpoint_of(marker_owner_of(name)) == (name, True)
    assert "*" not in owner_of(name) + marker_owner_of(name)


def test_names_are_listed_by_reversed_labels_with_their_dots() -> None:
    """API reference, ListResourceRecordSets, "Sort order": a hyphen comes before the dot."""
    listed = [
        "example.com.",
        "\\052.example.com.",
        "1.example.com.",
        "api-x.example.com.",
        "api.example.com.",
        "1.api.example.com.",
        "_fencepost.api.example.com.",
        "www.api.example.com.",
        "api0.example.com.",
    ]
    keys = [listing_key(owner).replace("\\052", "*") for owner in listed]
    assert keys == sorted(keys)
