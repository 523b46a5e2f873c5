"""Names are brought to one form once, at the edge."""

import time
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.core.names import in_domain, longest_domain, marker_name, normalise

LABELS = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True)
NAMES = st.lists(LABELS, min_size=1, max_size=6).map(".".join)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("API.Example.COM.", "api.example.com"),  # RFC 4343
        ("*.Example.com", "*.example.com"),  # RFC 4592
        (r"\052.example.com.", "*.example.com"),  # external-dns #264, #3028
        ("bücher.example", "xn--bcher-kva.example"),  # RFC 5891
        ("BÜCHER。example．", "xn--bcher-kva.example"),  # UTS 46: other full stops
        ("_srv._tcp.example.com", "_srv._tcp.example.com"),
        ("a" * 63 + ".b", "a" * 63 + ".b"),
        ("com", "com"),
    ],
)
def test_a_name_has_one_form(written: str, name: str) -> None:
    """Every spelling of a name converges (external-dns #264), and the form is stable."""
    assert normalise(written) == name
    assert normalise(name) == name


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "is empty"),
        (".", "is empty"),
        (".x.example.com", "empty label"),  # external-dns #1517
        ("a..b", "empty label"),
        ("a b.c", "' '"),
        ("a/b.c", "'/'"),
        (r"\100.x", r"'\\'"),  # octal @ at Route 53, decimal d elsewhere
        ("a.*.c", "wildcard"),
        ("*", "wildcard"),
        ("a*.c", "'*'"),
        ("x" * 64 + ".c", "at most 63"),
        (".".join(["abcdefg"] * 32), "at most 253"),
        ("x" * 2000, "at most 253"),
        ("\u00ad.c", "nothing is left"),
        ("⒈com.c", "IDNA"),
        ("\ud800.c", "IDNA"),
    ],
)
def test_what_has_no_form_is_refused_with_its_reason(written: str, reason: str) -> None:
    """A refused name says why, so that the one bad among fifty can be mended (external-dns #421)."""
    with pytest.raises(ValueError, match=r".") as caught:
        normalise(written)
    assert reason in str(caught.value)


@given(st.one_of(NAMES, st.text(max_size=40)))
@example("ß.x")
@example("İ.x")
def test_normalising_twice_changes_nothing(text: str) -> None:
    """For any text: a name that comes out goes in again unchanged; nothing but ValueError is raised."""
    try:
        name = normalise(text)
    except ValueError:
        return
    assert normalise(name) == normalise(name + ".") == normalise(name.upper()) == name
    assert name.isascii()
    assert all(1 <= len(label) <= 63 for label in name.split("."))
    assert len(name) <= 253


def test_a_marker_stands_beside_its_endpoint() -> None:
    """Under the endpoint's own name, so that they share its domain; a wildcard's star is spelt out."""
    assert marker_name("api.example.com") == "_fencepost.api.example.com"
    assert marker_name("*.example.com") == "_fencepost._wildcard.example.com"


def test_two_endpoints_never_share_a_marker() -> None:
    """Over every short name of a small alphabet: names that could collide are refused."""
    seen: dict[str, str] = {}
    labels = ("*", "_wildcard", "_fencepost", "a", "b")
    for count in (2, 3):
        for parts in product(labels, repeat=count):
            try:
                name = normalise(".".join((*parts, "x")))
                marker = marker_name(name)
            except ValueError:
                continue
            assert seen.setdefault(marker, name) == name
            assert in_domain(marker, name) or name.startswith("*")
    assert len(seen) > 20


def test_the_longest_name_that_still_has_a_marker() -> None:
    """external-dns #3757: refused with the length that would fit."""
    name = ".".join(["a" * 60] * 3 + ["b" * 59])
    assert len(name) == 242
    assert len(marker_name(name)) == 253
    with pytest.raises(ValueError, match="at most 242"):
        marker_name("c" + name)


def test_a_name_lies_in_a_domain_by_whole_labels() -> None:
    """notexample.com is not in example.com."""
    assert in_domain("a.example.com", "example.com")
    assert in_domain("example.com", "example.com")
    assert not in_domain("notexample.com", "example.com")


@given(NAMES.map(str.lower), st.lists(NAMES.map(str.lower), max_size=4), st.integers(0, 5))
def test_the_longest_domain_is_found(name: str, others: list[str], cut: int) -> None:
    """The same as trying all of them."""
    domains = [*others, ".".join(name.split(".")[cut:]) or "x"]
    fitting = [domain for domain in domains if in_domain(name, domain)]
    assert longest_domain(name, domains) == max(fitting, key=len, default=None)


def test_a_hundred_thousand_names_pass_quickly() -> None:
    """Whole domains pass through here. The bound is 20 times what it takes, so that only a wrong complexity fails."""
    names = [f"Host-{number}.Example.com." for number in range(100_000)]
    before = time.process_time()
    found = [normalise(name) for name in names]
    assert time.process_time() - before < 3
    assert found[-1] == "host-99999.example.com"
