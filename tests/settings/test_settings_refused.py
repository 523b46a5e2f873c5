"""Everything that is refused at load: each with its line, its text, and what to write instead."""

import pytest

from fencepost.settings import judge

BASE = """\
[region]
name = "eu-1"
zones = ["a", "b", "c"]
[dns]
provider = "embedded"
domain = "example.test"
[safety]
max_out = "20%"
min_in = "50%"
[pool.web.probe]
url = "http://:8080/healthz"
interval = "10s"
timeout = "2s"
[pool.web.targets]
a = ["192.0.2.1", "192.0.2.2"]
b = ["192.0.2.3", "192.0.2.4"]
c = ["192.0.2.5", "192.0.2.6"]
[[endpoint]]
name = "api.example.test"
pool = "web"
"""


def said(text: str, *, ipv6: bool = True) -> list[str]:
    """Give the mistakes of a text as `check` prints them."""
    return [str(mistake) for mistake in judge(text, "region.toml", {}, ipv6=ipv6).mistakes]


def edited(old: str, new: str) -> str:
    assert BASE.count(old) >= 1
    return BASE.replace(old, new, 1)


def test_the_base_of_these_tests_is_right() -> None:
    """Else each of them could pass by another mistake."""
    assert said(BASE) == []


NAMES = [
    (
        'interval = "10s"',
        'intervall = "10s"',
        '12: unknown key "intervall" in [pool.web.probe]; did you mean "interval"?',
    ),
    ("[safety]", "[saftey]", "7: unknown table [saftey]; did you mean [safety]?"),
    (
        "[safety]",
        "[zones]\n[safety]",
        "7: unknown table [zones]; known here: region, dns, store, api, checkers, safety, fleet, pool, endpoint",
    ),
    ("[region]", 'ttl = "5s"\n[region]', '1: key "ttl" stands before any table; every key stands in a table'),
    ("[region]", "drills = true\n[region]", '1: key "drills" stands before any table; it belongs in [region]'),
    ("[safety]", 'owner = "x"\n[safety]', '7: unknown key "owner" in [dns]; it belongs in [region]'),
    ('"embedded"', '"bind"', '5: provider "bind" is a server that takes signed updates; write "rfc2136"'),
    ('"embedded"', '"unbound"', '5: provider "unbound" is not known; known here: embedded, rfc2136, route53, clouddns'),
    ('"embedded"', '"embeded"', '5: provider "embeded" is not known; did you mean "embedded"?'),
    (
        '"embedded"',
        '"route53"\nrequests = "0/s"',
        '6: requests "0/s" must be whole requests a second, 1 to 1000, like "2/s"',
    ),
    (
        '"embedded"',
        '"route53"\nzone_id = "/zones/1"',
        '6: zone_id "/zones/1" is no id of a hosted zone; write it as AWS shows it, like "Z0123456789ABC"',
    ),
    (
        "[safety]",
        '[store]\nkind = "postgresql"\n[safety]',
        '7: [store] has no dsn; "postgresql" needs one: dsn = { env = "FENCEPOST_DSN" }',
    ),
    (
        "[safety]",
        '[store]\nkind = "dynamodb"\ntable = "t"\n[safety]',
        '9: table "t" must be 3 to 255 of letters, digits, hyphen, underscore and dot',
    ),
    (
        "[safety]",
        'zone_id = "Z0"\n[safety]',
        '7: zone_id is for provider "route53", and provider is "embedded"; leave it out',
    ),
    (
        "[safety]",
        '[store]\ntable = "tab"\n[safety]',
        '8: table is for kind "dynamodb", and kind is "sqlite"; leave it out',
    ),
    (
        "http://:8080",
        "https://:8443",
        '11: url "https://:8443/healthz" has the kind "https", which is not built yet; use http or tcp',
    ),
    (
        "http://:8080",
        "htp://:8443",
        '11: url "htp://:8443/healthz" has the kind "htp", which is not known; did you mean "http"?',
    ),
    (
        "http://:8080/healthz",
        "8080",
        '11: url "8080" must begin with its kind, like "http://:8080/healthz" or "tcp://:5432"',
    ),
    (
        "http://:8080/healthz",
        "tcp://:1/x",
        '11: url "tcp://:1/x" is a tcp probe, which only connects; write no more than its port, like "tcp://:5432"',
    ),
    ("http://:8080/healthz", "tcp://", '10: a tcp probe needs a port, like "tcp://:5432", or each target its own'),
    ("http://:8080/healthz", "http://u:p@:8080/", None),
    (
        '"eu-1"',
        '"EU 1"',
        '2: name "EU 1" must be 1 to 32 of a to z, 0 to 9, hyphen and underscore, '
        "and begin and end with a letter or digit",
    ),
    ('name = "eu-1"\n', "", '1: [region] has no name; write name = "eu-1"'),
    ('domain = "example.test"\n', "", '4: [dns] has no domain; write domain = "example.com"'),
    ('name = "api.example.test"\n', "", '18: [[endpoint]] has no name; write name = "api.example.com"'),
    ("[[endpoint]]", "[endpoint]", "18: an endpoint is written [[endpoint]], with two brackets, once for each"),
    ('pool = "web"', 'pool = "wbe"', '20: there is no pool "wbe"; did you mean "web"?'),
    ("api.example.test", "api.example.org", "19: api.example.org is not in example.test, the domain of line 6"),
    (
        "api.example.test",
        ".x.example.test",
        '19: endpoint ".x.example.test" has an empty label (two dots together, or one at the start)',
    ),
    (
        "api.example.test",
        "a b.example.test",
        "19: endpoint \"a b.example.test\" has the character ' '; letters, digits, hyphen and underscore are usable",
    ),
    (
        "api.example.test",
        "_fencepost.example.test",
        '19: endpoint "_fencepost.example.test" begins with "_fencepost", which is kept for markers',
    ),
    ('zones = ["a", "b", "c"]', 'zones = ["a", "b", "a"]', '3: zones: "a" is there twice'),
]

TARGETS = [
    ("c = [", "d = [", '17: zone "d" is not in zones of [region]; known here: a, b, c'),
    (
        '"192.0.2.4"',
        '"192.0.2.1"',
        "16: 192.0.2.1 is in pool web twice (first on line 15); list it once, with a weight",
    ),
    (
        '"192.0.2.4"',
        '"web1.example.test"',
        '16: target "web1.example.test" is not an address; write one like 192.0.2.10 or 2001:db8::10',
    ),
    (
        '"192.0.2.4"',
        '"192.0.2.0/24"',
        '16: target "192.0.2.0/24" is a network, not an address; write one like 192.0.2.10 or 2001:db8::10',
    ),
    ('"192.0.2.4"', '"0.0.0.0"', '16: target "0.0.0.0" is no one\'s address; callers would reach their own machine'),
    ('"192.0.2.4"', '"::"', '16: target "::" is no one\'s address; callers would reach their own machine'),
    (
        '"192.0.2.4"',
        '"224.0.0.1"',
        '16: target "224.0.0.1" is multicast, broadcast or reserved, so no one target answers there',
    ),
    (
        '"192.0.2.4"',
        '"255.255.255.255"',
        '16: target "255.255.255.255" is multicast, broadcast or reserved, so no one target answers there',
    ),
    ('"192.0.2.4"', '"::ffff:192.0.2.4"', '16: target "::ffff:192.0.2.4" is IPv4 written as IPv6; write 192.0.2.4'),
    ('"192.0.2.4"', '"fe80::1%eth0"', '16: target "fe80::1%eth0" names an interface, which DNS can\'t say'),
    (
        '"192.0.2.4"',
        '{ addr = "192.0.2.4", weight = 0 }',
        "16: weight 0 would never be answered; to take a target out use  fencepost drain",
    ),
    ('"192.0.2.4"', '{ addr = "192.0.2.4", weight = 256 }', "16: weight 256 must be 1 to 255"),
    (
        '"192.0.2.4"',
        '{ addr = "192.0.2.4", wieght = 2 }',
        '16: unknown key "wieght" in [pool.web.targets.b]; did you mean "weight"?',
    ),
    ('"192.0.2.4"', "{ weight = 2 }", '16: [pool.web.targets.b] has no addr; write addr = "192.0.2.10"'),
    (
        'b = ["192.0.2.3", "192.0.2.4"]',
        'b = "192.0.2.3"',
        '16: zone "b": must be a list of addresses, like b = ["192.0.2.10"]',
    ),
    (
        '["192.0.2.3", "192.0.2.4"]',
        '[\n"192.0.2.3",\n# not this one\n"192.0.2.1",\n]',
        "19: 192.0.2.1 is in pool web twice (first on line 15); list it once, with a weight",
    ),
    ('pool = "web"', 'pool = "web"\nrecords = ["AAAA"]', None),
    ('pool = "web"', 'pool = "web"\nrecords = ["MX"]', '21: records: "MX" is not known; known here: A, AAAA'),
]

NUMBERS = [
    ("[safety]", 'ttl = "0s"\n[safety]', '7: ttl "0s" must be 1s to 1d'),
    ("[safety]", 'ttl = "2d"\n[safety]', '7: ttl "2d" must be 1s to 1d'),
    ("[safety]", 'ttl = "1500ms"\n[safety]', '7: ttl "1500ms" must be whole seconds; DNS knows no smaller ones'),
    ("[safety]", "ttl = 30\n[safety]", '7: ttl 30 has no unit; write "30s" for seconds'),
    (
        "[safety]",
        'ttl = "30"\n[safety]',
        '7: ttl "30" is no duration; write a number and its unit, like "500ms", "10s", "5m" or "7d"',
    ),
    ('max_out = "20%"', 'max_out = "120%"', '8: max_out "120%" is over 100%'),
    ('max_out = "20%"', "max_out = 0.2", '8: max_out 0.2 has no unit; write a share like "20%"'),
    (
        'max_out = "20%"',
        'max_out = "a fifth"',
        '8: max_out "a fifth" is no share; write a number and a per cent sign, like "20%"',
    ),
    (
        'min_in = "50%"',
        'min_in = "90%"',
        '9: min_in "90%" leaves 10 %, so max_out "20%" (line 8) can\'t be used; lower one of them',
    ),
    (
        'max_out = "20%"\n',
        'burst = "30%"\n',
        '8: burst "30%" is over max_out "20%" (the default), so it could never be spent; lower it',
    ),
    (
        'max_out = "20%"',
        'max_out = "5%"',
        '8: burst "10%" is over max_out "5%" (line 8), so it could never be spent; lower it',
    ),
    (
        "[pool.web.probe]",
        'rate = "5/s"\n[pool.web.probe]',
        '10: rate "5/s" is no rate; write a share and a time, like "5%/min"',
    ),
    (
        "[pool.web.probe]",
        'rate = "0%/s"\n[pool.web.probe]',
        '10: rate "0%/s" must be more than 0: the removal budget would never refill',
    ),
    (
        "[pool.web.probe]",
        "min_count = 7\n[pool.web.probe]",
        "10: min_count 7 is over the 6 targets of pool web, so none could ever go; lower it",
    ),
    (
        "[pool.web.probe]",
        "min_count = true\n[pool.web.probe]",
        "10: min_count true must be a whole number without quotes or unit, 1 to 1000000",
    ),
    ("[pool.web.probe]", 'fail_open = "20%"\n[pool.web.probe]', None),
    (
        "[pool.web.probe]",
        '[pool.web.safety]\nmin_in = "85%"\n[pool.web.probe]',
        '11: min_in "85%" leaves 15 %, so max_out "20%" (line 8) can\'t be used; lower one of them',
    ),
    (
        'timeout = "2s"',
        'timeout = "10s"',
        '13: timeout "10s" must be under interval "10s", or probes of one target overlap',
    ),
    ('timeout = "2s"', "fall = 0", "13: fall 0 must be 1 to 100"),
    ('timeout = "2s"', "rise = 0", "13: rise 0 must be 1 to 100"),
    ('timeout = "2s"', "status = [20]", "13: status: 20 must be 100 to 599"),
    ("[safety]", '[checkers]\ncanary = ["tcp://192.0.2.1:80"]\n[safety]', None),
    ("[safety]", '[checkers]\ncanary = ["tcp://gw.example.test:80"]\n[safety]', None),
    (
        "[safety]",
        'listen = "5300"\n[safety]',
        '7: listen "5300" must be an address and a port from 1 to 65535, like "127.0.0.1:5300"',
    ),
    (
        "[safety]",
        'listen = "::1:5300"\n[safety]',
        '7: listen "::1:5300" has an IPv6 address without brackets; write it like "[::1]:5300"',
    ),
    ("[region]", '[region]\ndrills = "yes"', '2: drills "yes" must be true or false, without quotes'),
]


@pytest.mark.parametrize(("old", "new", "expected"), NAMES + TARGETS + NUMBERS)
def test_one_mistake_is_said_once_with_its_line(old: str, new: str, expected: str | None) -> None:
    """One mistake, one line: no cascade from a value that was taken for a default (gdnsd #90)."""
    found = said(edited(old, new))
    if expected is None:
        assert len(found) == 1
    else:
        assert found == [f"region.toml:{expected}"]


LISTENERS = [
    ('[dns]\nlisten = "127.0.0.1:5301"\n', '5: [api] listen "127.0.0.1:5301" is also [dns] listen "127.0.0.1:5301"'),
    ('[api]\nlisten = "localhost:5300"\n[dns]\n', "(the default): one port, two that listen; write another"),
    ('[dns]\nlisten = "0.0.0.0:5301"\n', '"0.0.0.0:5301"'),
    ('[dns]\nlisten = "[::]:5301"\n', '"[::]:5301"'),
]


@pytest.mark.parametrize(("new", "words"), LISTENERS)
def test_two_that_listen_on_one_port_are_refused(new: str, words: str) -> None:
    """`check` passed, and the API then never started: "api exited (code 2)", without a reason, four times."""
    found = said(edited("[dns]\n", new))
    assert len(found) == 1
    assert words in found[0]
    assert said(edited("[dns]\n", '[dns]\nlisten = "127.0.0.2:5301"\n')) == []


def test_the_api_cannot_listen_where_the_dns_server_is() -> None:
    """Also one that isn't ours."""
    there = BASE.replace('"embedded"', '"rfc2136"\nserver = "127.0.0.1:5301"\nkey = { env = "KEY" }')
    assert any('is also [dns] server "127.0.0.1:5301"' in text for text in said(there))


def test_a_mistyped_key_is_one_mistake() -> None:
    """`timout` also yielded 'timeout "2s" must be under interval', about a line that was right."""
    text = edited('interval = "10s"\ntimeout = "2s"', 'interval = "1s"\ntimout = "500ms"')
    assert said(text) == ['region.toml:13: unknown key "timout" in [pool.web.probe]; did you mean "timeout"?']
    assert said(edited("url = ", "ulr = ")) == [
        'region.toml:11: unknown key "ulr" in [pool.web.probe]; did you mean "url"?'
    ]


def test_a_target_with_a_port_is_told_the_form_that_has_one() -> None:
    """An address and a port is how everything else is written."""
    assert said(edited('"192.0.2.1"', '"192.0.2.1:8099"')) == [
        'region.toml:15: target "192.0.2.1:8099" has a port; write { addr = "192.0.2.1", port = 8099 }'
    ]
    six = said(edited('"192.0.2.1"', '"[2001:db8::1]:8099"'))
    assert '{ addr = "2001:db8::1", port = 8099 }' in six[0]


def test_a_domain_is_named_once() -> None:
    """It said: domain "example..test" "example..test" has an empty label. In a list it says which."""
    found = said(edited('domain = "example.test"', 'domain = "example..test"'))
    assert found[0] == (
        'region.toml:6: domain "example..test" has an empty label (two dots together, or one at the start)'
    )
    found = said(edited('domain = "example.test"', 'domain = ["example.test", "example..test"]'))
    assert any('"example..test" has an empty label' in each for each in found)


@pytest.mark.parametrize("value", ["svc.test", "10s", "127.0.0.1:53", "[svc.test]"])
def test_text_without_quotes_is_told_of_them(value: str) -> None:
    """It said "invalid value" and left the reader to find out why."""
    found = said(edited('domain = "example.test"', f"domain = {value}"))
    assert len(found) == 1
    assert found[0].endswith('text stands in quotes, like domain = "…"')
    assert "quotes" not in said(edited('domain = "example.test"', "domain = true"))[0].partition("must be")[0]
    assert "secret" not in " ".join(said(edited("[safety]", "key = secret-and-long\n[safety]")))
