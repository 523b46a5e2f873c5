"""What is refused at load beyond single values: names that are one, families nobody answers, sizes, broken files."""

from pathlib import Path

import pytest
from test_settings_refused import BASE, edited, said

from fencepost.settings import judge, load
from fencepost.settings.mistakes import SettingsError


def test_a_name_is_one_name_however_it_is_spelt() -> None:
    """Lower case, final dot, IDNA: one endpoint (RFC 4343; external-dns #264)."""
    text = BASE + '[[endpoint]]\nname = "API.Example.TEST."\npool = "web"\n'
    assert said(text) == [
        'region.toml:22: "API.Example.TEST." is endpoint api.example.test again (first on line 19); leave one out'
    ]
    text = BASE.replace("api.", "bücher.") + '[[endpoint]]\nname = "xn--bcher-kva.example.test"\npool = "web"\n'
    assert said(text) == [
        "region.toml:22: endpoint xn--bcher-kva.example.test is there twice (first on line 19); leave one out"
    ]


def test_one_bad_name_among_fifty_is_the_only_mistake() -> None:
    """external-dns #1517, #421: one bad label among 50 must not hide which one it is."""
    names = [f"host{number}" for number in range(50)] + [".x"]
    text = BASE + "".join(f'[[endpoint]]\nname = "{name}.example.test"\npool = "web"\n' for name in names)
    (found,) = said(text)
    assert ":172: " in found
    assert "empty label" in found


def test_a_name_whose_marker_would_not_fit_is_refused() -> None:
    """external-dns #3757: a 63-byte label fits beside its marker, a name of 253 characters does not."""
    assert said(BASE.replace("api.", "a" * 63 + ".")) == []
    long = ".".join(["a" * 60] * 4) + "."
    assert len(long + "t.test") <= 253
    (found,) = said(BASE.replace("example.test", "t.test").replace("api.", long))
    assert "its marker _fencepost." in found
    assert "at most 242" in found


def test_an_endpoint_belongs_to_the_longest_domain_that_fits() -> None:
    """A delegated child domain holds its own names (RFC 1034, 4.2)."""
    text = BASE.replace('"example.test"', '["test", "example.test", "other.org"]', 1)
    region = judge(text, "region.toml", {}).region
    assert region is not None
    assert region.endpoints[0].domain == "example.test"
    assert said(text.replace('"api.example.test"', '"x.com"')) == [
        "region.toml:19: x.com is in none of the domains of line 6"
    ]


def test_a_wildcard_is_an_endpoint() -> None:
    r"""external-dns #264, #3028: ``*.x`` comes back as ``\052.x`` and is the same name."""
    region = judge(BASE.replace('"api.', r"'\052.").replace('test"\npool', "test'\npool"), "region.toml", {}).region
    assert region is not None
    assert region.endpoints[0].name == "*.example.test"


def test_a_family_nobody_answers_is_refused() -> None:
    """An IPv6 target whose endpoints all say A would be probed, limited, and never used."""
    text = BASE.replace('"192.0.2.4"', '"2001:db8::4"').replace('pool = "web"', 'pool = "web"\nrecords = ["A"]')
    (found,) = said(text)
    assert found.startswith(
        "region.toml:16: target 2001:db8::4 is never answered: all endpoints of pool web say records = ["
    )


def test_both_families_are_published_if_the_pool_has_both() -> None:
    """Without `records` an endpoint publishes what its pool has."""
    text = BASE.replace('"192.0.2.4"', '"2001:DB8:0::4"')
    region = judge(text, "region.toml", {}).region
    assert region is not None
    assert region.endpoints[0].records == ("A", "AAAA")
    assert region.pools[0].targets[3].address == "2001:db8::4"
    assert said(text, ipv6=False) == ["region.toml:16: target 2001:db8::4 can't be probed: this machine has no IPv6"]


def test_an_endpoint_too_big_for_one_transaction_is_refused_with_the_numbers() -> None:
    """external-dns #515, DNSControl #908: too big alone is said before any write."""
    many = ", ".join(f'"10.0.{number // 250}.{number % 250 + 1}"' for number in range(2500))
    text = BASE.replace('"192.0.2.1", "192.0.2.2"', many)
    (found,) = said(text)
    assert "changing its 2504 addresses takes" in found
    assert "65535" in found
    assert said(BASE.replace('"192.0.2.1", "192.0.2.2"', ", ".join(many.split(", ")[:500]))) == []


@pytest.mark.parametrize(
    ("many", "said_of_it"),
    [
        ([f"10.0.0.{n}" for n in range(1, 97)], None),
        ([f"10.0.0.{n}" for n in range(1, 98)], "it has 101 addresses in its A record set, the provider holds 100"),
        ([f"2001:db8::{n:x}" for n in range(1, 102)], "101 addresses in its AAAA record set, the provider holds 100"),
        ([f"{net}{n}" for net in ("10.0.0.", "2001:db8::") for n in range(1, 97)], None),
    ],
)
def test_what_is_too_big_is_the_provider_s_word(many: list[str], said_of_it: str | None) -> None:
    """Route 53 holds 100 records in a set (rancher #10253), however few bytes; external-dns #515."""
    pools = BASE.replace('"192.0.2.1", "192.0.2.2"', str(many)[1:-1])
    found = said(pools.replace('"embedded"', '"route53"'))
    assert found == [] if said_of_it is None else said_of_it in found[0]
    assert said(pools) == []


def test_weighted_is_for_a_provider_that_has_it() -> None:
    """Only Route 53 has record sets of which each question is answered one."""
    text = BASE.replace('name = "api.example.test"', 'name = "api.example.test"\nweighted = true')
    assert "has no weighted record sets" in said(text)[0]
    assert said(text.replace('"embedded"', '"route53"')) == []


def test_rfc2136_needs_a_server_and_a_key() -> None:
    """Both are named, so that neither is found out at the first write."""
    text = BASE.replace('"embedded"', '"rfc2136"')
    assert said(text) == [
        'region.toml:4: [dns] has no server; "rfc2136" needs one: server = "192.0.2.53:53"',
        'region.toml:4: [dns] has no key; "rfc2136" needs one: key = { file = "tsig.key" }',
    ]
    named = text.replace("[safety]", 'server = "ns1.example.test"\nkey = { env = "K" }\n[safety]')
    assert said(named) == [
        'region.toml:7: server "ns1.example.test" must start with an address: '
        "finding one by name needs the DNS that is to be repaired",
        'region.toml:8: key: variable K is not set; set it, or write { file = "…" }',
    ]


def test_a_short_probe_is_the_long_one() -> None:
    """`probe = "http://…"` in [pool.NAME] is the url with every default."""
    short = BASE.replace(
        '[pool.web.probe]\nurl = "http://:8080/healthz"\ninterval = "10s"\ntimeout = "2s"\n',
        '[pool.web]\nprobe = "http://:8080/healthz"\n',
    )
    one, other = judge(BASE, "region.toml", {}).region, judge(short, "region.toml", {}).region
    assert one is not None
    assert other is not None
    assert one.pools[0].probe == other.pools[0].probe
    assert (
        said(short.replace("probe =", "url ="))[0]
        == 'region.toml:10: [pool.web] has no probe; write probe = "http://:8080/healthz"'
    )


def test_a_pool_without_targets_is_refused() -> None:
    """An endpoint of it could only be empty."""
    text = BASE + '[pool.spare]\nprobe = "tcp://:1"\n[pool.bare]\nprobe = "tcp://:1"\n[pool.bare.targets]\na = []\n'
    assert said(text) == [
        'region.toml:21: pool spare has no targets; write [pool.spare.targets] with a = ["192.0.2.10"]',
        'region.toml:25: pool bare has no targets; write [pool.bare.targets] with a = ["192.0.2.10"]',
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1: the file is empty; fencepost init writes one to begin with"),
        (" \n\n", "1: the file is empty; fencepost init writes one to begin with"),
        ("[region]\nname = eu\n", '2: broken TOML, column 8: invalid value; text stands in quotes, like name = "…"'),
        ("[region\nname = 1\n", "1: broken TOML, column 8: expected ']' at the end of a table declaration"),
        ('[region]\nname = "a"\nname = "b"\n', "3: broken TOML, column 11: this key is there twice"),
        ("[pool.a]\n[pool.a]\n", "2: broken TOML, column 8: [pool.a] stands in the file twice"),
        ('a = """\n\n', None),
        ("a = " + "[" * 70 + "]" * 70, "1: tables or lists stand more than 64 deep in one another"),
        ("a" + ".a" * 20_000 + " = 1", "1: tables or lists stand more than 64 deep in one another"),
        ("a = " + "9" * 5000, None),
        ("a = 0x" + "f" * 5000, None),
    ],
)
def test_broken_syntax_is_said_with_its_line(text: str, expected: str | None) -> None:
    """An empty or broken file changes nothing, and says where it broke."""
    found = said(text)
    assert len(found) >= 1
    if expected:
        assert found == [f"region.toml:{expected}"]


def test_what_is_no_file_is_a_mistake_too(tmp_path: Path) -> None:
    """Missing, a folder, not UTF-8: the same kind of refusal, never a traceback."""
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    for path, expected in (
        (tmp_path / "none.toml", "there is no such file; fencepost init writes one to begin with"),
        (tmp_path, "is not a file"),
        (tmp_path / "latin.toml", "is not UTF-8 (byte 5); save it as UTF-8"),
    ):
        with pytest.raises(SettingsError) as caught:
            load(path, {})
        assert [mistake.text for mistake in caught.value.mistakes] == [expected]


def test_a_message_repeats_no_control_characters() -> None:
    """What a file holds must not reach a terminal as commands."""
    (found,) = said(edited('"eu-1"', r'"\u001b[31mred"'))
    assert "\x1b" not in found
