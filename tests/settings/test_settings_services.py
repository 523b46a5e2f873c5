"""SRV records beside an endpoint: what is refused at load, and what `check` says of them (RFC 2782)."""

import pytest
from test_settings_meaning import HEAD, THREE, cautions, text
from test_settings_refused import BASE, said

from fencepost.core.traffic.desired import Offer
from fencepost.settings import judge
from fencepost.settings.core_settings import offer

ASKS = BASE.replace('name = "api.example.test"', 'name = "api.example.test"\nsrv = "_HTTP._tcp"')
KEY = {"K": "hmac-sha256:k:c2VjcmV0"}


def other(name: str) -> str:
    """One more endpoint."""
    return f'[[endpoint]]\nname = "{name}"\npool = "web"\n'


def test_an_endpoint_may_ask_for_srv_records() -> None:
    """The service in lower case; each target at its own port, the others at their probe's."""
    region = judge(ASKS.replace('"192.0.2.2"', '{ addr = "192.0.2.2", port = 81 }'), "region.toml", {}).region
    assert region is not None
    (endpoint,) = region.endpoints
    assert endpoint.srv == "_http._tcp"
    asked = offer(region, endpoint)
    assert asked == Offer("_http._tcp", region.pools[0].probe.url.port, {"192.0.2.2": 81})
    plain = judge(BASE, "region.toml", {}).region
    assert plain is not None
    assert offer(plain, plain.endpoints[0]) is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("http", "is no service as SRV names one"),
        ("_http", "is no service as SRV names one"),
        ("_http._quic", "is no service as SRV names one"),
        ("_much-too-long-for-one._tcp", "is no service as SRV names one"),
        ("_http._tcp.example.test", "is no service as SRV names one"),
        ("_fencepost._tcp", "is no service"),
        ("_wildcard._tcp", 'begins with "_wildcard", which is kept for markers'),
    ],
)
def test_what_is_no_service(wrong: str, why: str) -> None:
    """RFC 6335 section 5.1: 15 letters, digits, hyphens; and none of the labels that markers stand under."""
    (found,) = said(ASKS.replace("_HTTP._tcp", wrong))
    if wrong == "_fencepost._tcp":
        assert 'begins with "_fencepost", which is kept for markers' in found
    else:
        assert why in found


@pytest.mark.parametrize("provider", ["route53", "clouddns"])
def test_a_provider_that_keeps_none_is_said(provider: str) -> None:
    """Rather refused than half done."""
    source = ASKS.replace('"embedded"', f'"{provider}"')
    if provider == "clouddns":
        source = source.replace(
            "[safety]", 'project = "a-project"\nmanaged_zone = "z"\ntoken = { env = "K" }\n[safety]'
        )
    (found,) = [each for each in said(source) if "variable K" not in each]
    assert "asks for SRV records, which are not kept on" in found


def test_names_that_could_not_be() -> None:
    """A wildcard, a name that is too long, one that reaches into another domain, and ones that are somebody else's."""
    (found,) = said(ASKS.replace('"api.example', '"*.example'))
    assert "is a wildcard, and no SRV record can stand beside one" in found
    long = ".".join(["a" * 59] * 3 + ["b" * 55]) + ".test"
    assert said(BASE.replace("example.test", "test").replace("api.test", long)) == []
    (found,) = said(ASKS.replace("example.test", "test").replace("api.test", long))
    assert "and with srv it may have 235 at most" in found
    both = ASKS.replace('"example.test"', '["example.test", "_tcp.api.example.test"]', 1)
    (found,) = said(both)
    assert "which lies in _tcp.api.example.test, another domain" in found
    (found,) = said(ASKS + other("_http._tcp.api.example.test"))
    assert "is where the SRV records of endpoint api.example.test stand" in found
    (found,) = said(ASKS + other("a-192-0-2-9.api.example.test"))
    assert "has the form of a host that SRV records of endpoint api.example.test name" in found
    assert said(ASKS + other("_ldap._tcp.api.example.test") + other("a-192-0-2-9.example.test")) == []


def test_srv_counts_in_what_one_transaction_holds() -> None:
    """A pool that fits as addresses alone may not fit with its SRV records and hosts."""
    many = ", ".join(f'"10.0.{n // 250}.{n % 250}"' for n in range(500))
    assert said(BASE.replace('"192.0.2.1", "192.0.2.2"', many)) == []
    (found,) = said(ASKS.replace('"192.0.2.1", "192.0.2.2"', many))
    assert "is too big: changing its 504 addresses takes" in found
    assert "(old, new, SRV records and marker)" in found


def test_check_says_what_weights_are_worth() -> None:
    """Without SRV records they count for the limits only; with them they reach who asks."""
    real = HEAD.replace('"embedded"', '"rfc2136"\nserver = "192.0.2.53"\nkey = { env = "K" }')
    source = text(THREE, head=real).replace("'10.0.1.2'", '{ addr = "10.0.1.2", weight = 3 }')
    name = next(line for line in source.splitlines() if line.startswith("name") and "." in line)
    (found,) = cautions(source, KEY)
    assert "count for the limits only; srv" in found
    (found,) = cautions(source.replace(name, f'{name}\nsrv = "_http._tcp"'), KEY)
    assert "reach those callers alone that ask for SRV records (_http._tcp)" in found


def test_more_srv_records_than_bind_takes_is_said() -> None:
    """Both families stand in one SRV set, and BIND takes 100 records of a type at a name."""
    real = HEAD.replace('"embedded"', '"rfc2136"\nserver = "192.0.2.53"\nkey = { env = "K" }')
    source = text({"a": 60, "b": 1, "c": 1}, head=real)
    six = ", ".join(f'"2001:db8::{n:x}"' for n in range(1, 60))
    assert "[pool" in source
    source = source.replace("a = [", f"a = [{six}, ", 1)
    name = next(line for line in source.splitlines() if line.startswith("name") and "." in line)
    assert cautions(source, KEY) == []
    (found,) = cautions(source.replace(name, f'{name}\nsrv = "_http._tcp"'), KEY)
    assert "has 121 addresses, each with a SRV record, and BIND takes 100" in found
