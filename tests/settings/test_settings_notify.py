"""Where enactors take NOTIFY (RFC 1996): a place for each zone, on a primary that isn't ours."""

import pytest
from test_settings_refused import BASE, said

from fencepost.settings import judge
from fencepost.settings.changes import changes
from fencepost.settings.schema import HostPort, decode, encode

KEY = {"K": "hmac-sha256:k:c2VjcmV0"}
SIGNED = BASE.replace(
    'provider = "embedded"', 'provider = "rfc2136"\nserver = "127.0.0.1:5300"\nkey = { env = "K" }\nnotify = NOTIFY'
)


def with_notify(written: str) -> str:
    """The base, on a primary of its own, with that."""
    return SIGNED.replace("NOTIFY", written)


@pytest.mark.parametrize(
    "written",
    ['{ a = "127.0.0.1:5353", b = "[::1]:5353" }', '{ b = "[::1]:5353", a = "127.0.0.1:5353" }'],
)
def test_each_zone_has_a_place(written: str) -> None:
    """In any order; a zone that isn't named has none. It goes to JSON and back, and takes a restart."""
    region = judge(with_notify(written), "region.toml", KEY).region
    assert region is not None
    assert region.dns.notify_at("a") == HostPort("127.0.0.1", 5353)
    assert region.dns.notify_at("b") == HostPort("::1", 5353)
    assert region.dns.notify_at("c") is None
    assert decode(encode(region)) == region
    plain = judge(SIGNED.replace("notify = NOTIFY\n", ""), "region.toml", KEY).region
    assert plain is not None
    assert plain.dns.notify == ()
    (change,) = changes(plain, region).settings
    assert (change.path, change.needs_restart, change.fixed) == ("dns.notify", True, False)


REFUSED = [
    (
        '"127.0.0.1:5353"',
        '8: notify "127.0.0.1:5353" is not a table: each zone\'s enactor listens at a place of its own',
    ),
    ("{}", "8: notify: is empty; leave it out"),
    ('{ a = "127.0.0.1" }', '8: notify: a = "127.0.0.1" must be an address and a port from 1 to 65535'),
    ('{ a = "ns.example.com:53" }', '8: notify: a = "ns.example.com:53" must start with an address'),
    ("{ a = 5353 }", "8: notify: a = 5353 must be text in quotes"),
    ('{ d = "127.0.0.1:5353" }', "8: notify: there is no zone d; it is one of a, b, c"),
    (
        '{ a = "127.0.0.1:5353", b = "127.0.0.1:5353" }',
        "8: notify: a and b are both 127.0.0.1:5353: one NOTIFY wakes only one of two that share a port; write another",
    ),
    (
        '{ a = "127.0.0.1:5301" }',
        "8: notify: a is 127.0.0.1:5301, which is also [api] listen: one port, two that listen",
    ),
    (
        '{ a = "127.0.0.1:5300" }',
        "8: notify: a is 127.0.0.1:5300, which is also [dns] server: one port, two that listen",
    ),
]


@pytest.mark.parametrize(("written", "why"), REFUSED)
def test_places_that_no_enactor_could_have(written: str, why: str) -> None:
    """With the line, and what to write."""
    (found,) = [str(each) for each in judge(with_notify(written), "region.toml", KEY).mistakes]
    assert found.startswith(f"region.toml:{why}")


@pytest.mark.parametrize("provider", ["embedded", "route53"])
def test_other_providers_have_none(provider: str) -> None:
    """The embedded server learns from the store where its listeners are, and an API tells nobody anything."""
    text = BASE.replace('provider = "embedded"', f'provider = "{provider}"\nnotify = {{ a = "127.0.0.1:5353" }}')
    (found,) = said(text)
    assert f'notify is for provider "rfc2136", and provider is "{provider}"; leave it out' in found
