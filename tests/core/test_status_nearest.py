"""The name that was probably meant: only where it is really near."""

import pytest

from fencepost.roles.status.nearest import really_near

NAMES = ("api.example.test", "www.example.test", "b", "127.0.2.1")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("apj.example.test", "api.example.test"),
        ("WWWW.example.test", "www.example.test"),
        ("api.exampel.test", "api.example.test"),
        ("apii", ""),
        ("ns1.example.test", ""),
        ("mail.example.test", ""),
        ("10.0.0.1", ""),
        ("x" * 300, ""),
    ],
)
def test_a_name_is_suggested_only_for_a_slip(word: str, meant: str) -> None:
    """What shares a domain isn't near for that: `ns1` once was answered with "did you mean api?"."""
    assert really_near(word, NAMES) == meant


def test_of_two_that_are_equally_near_none_is_suggested() -> None:
    """A guess between two is no suggestion."""
    assert really_near("api3.example.test", ("api1.example.test", "api2.example.test")) == ""
