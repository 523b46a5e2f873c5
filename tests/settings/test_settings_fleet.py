"""``[fleet]`` and ``[pool.NAME.launch]``: what they come to, and everything of them that is refused."""

from pathlib import Path

import pytest

from fencepost.core.capacity.command import filled
from fencepost.core.capacity.messages import Instance
from fencepost.settings import decode, encode, judge
from fencepost.settings.changes import changes, too_much
from fencepost.settings.schema import Allowed, Launch, Region
from fencepost.settings.units import NS

BASE = """\
[region]
name = "eu-1"
zones = ["a", "b", "c"]
[dns]
provider = "embedded"
domain = "example.test"
[fleet]
command = ["/bin/web", "{address}:{port}"]
[pool.web]
probe = "http://:8080/healthz"
[pool.web.launch]
port = 5302
[[endpoint]]
name = "api.example.test"
pool = "web"
"""


def said(text: str) -> list[str]:
    return [str(mistake).removeprefix("region.toml:") for mistake in judge(text, "region.toml", {}).mistakes]


def edited(*pairs: str) -> str:
    text = BASE
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert text.count(old) >= 1
        text = text.replace(old, new, 1)
    return text


def loaded(text: str = BASE) -> Region:
    report = judge(text, "/etc/fencepost/region.toml", {})
    assert report.region is not None, report.mistakes
    return report.region


def test_the_heading_alone_has_every_default() -> None:
    """A lease is three renewals, and the margin 2 % of it: two clocks that run apart by 1 % each."""
    fleet = loaded(edited('command = ["/bin/web", "{address}:{port}"]', 'driver = "none"')).fleet
    assert fleet is not None
    assert (fleet.shards, fleet.renew_ns, fleet.lease_ns) == (1, 10 * NS["s"], 30 * NS["s"])
    assert (fleet.margin_ns, fleet.driver, fleet.allow) == (600 * NS["ms"], "none", ())
    assert fleet.key.file == "/etc/fencepost/fleet.key"


def test_a_region_without_a_fleet_has_none() -> None:
    """Whoever didn't ask for managers and leases gets none."""
    text = edited("[fleet]\n", "", 'command = ["/bin/web", "{address}:{port}"]\n', "").replace(
        "[pool.web.launch]\nport = 5302", '[pool.web.targets]\na = ["192.0.2.1"]'
    )
    region = loaded(text)
    assert region.fleet is None
    assert region.pools[0].launch is None


def test_a_pool_of_instances_needs_no_targets_and_publishes_ipv4() -> None:
    """What hosts give to instances isn't in the file: the families are IPv4's unless the endpoint says otherwise."""
    region = loaded()
    assert region.pools[0].targets == ()
    assert region.pools[0].launch == Launch(5302, ("/bin/web", "{address}:{port}"))
    assert region.endpoints[0].records == ("A",)
    six = loaded(edited('pool = "web"', 'pool = "web"\nrecords = ["AAAA"]'))
    assert six.endpoints[0].records == ("AAAA",)


def test_a_pool_has_its_own_command_and_the_probes_port() -> None:
    """What a pool says goes before what the fleet says; the port that is probed is the likeliest one."""
    region = loaded(edited("port = 5302", 'command = ["/bin/other"]'))
    assert region.pools[0].launch == Launch(8080, ("/bin/other",))


def test_check_says_what_it_comes_to() -> None:
    """In seconds: "renew" is of no use to whoever asks when a dead host's instances are elsewhere."""
    assert judge(BASE, "region.toml", {}).meaning == (
        "pool web   no targets of its own: its instances come by  fencepost fleet launch web",
        "fleet   1 host-manager owns all hosts; hosts are asked every 10 s (renew)",
        "        a dead host's instances start elsewhere 31 s after its last answer (3 renewals and 0.6 s for clocks)",
    )
    assert judge(BASE, "region.toml", {}).cautions == ()


def test_network_inputs_are_values() -> None:
    """In one spelling, each once."""
    text = edited(
        "[pool.web]",
        '[fleet.network]\nallow = ["tcp/5302 from 127.0.0.0/8", "udp/53  from 2001:db8:0::/32",'
        ' "tcp/5302 from 127.0.0.0/8"]\n[pool.web]',
    )
    fleet = loaded(text).fleet
    assert fleet is not None
    assert fleet.allow == (Allowed("tcp", 5302, "127.0.0.0/8"), Allowed("udp", 53, "2001:db8::/32"))
    assert list(map(str, fleet.allow)) == ["tcp/5302 from 127.0.0.0/8", "udp/53 from 2001:db8::/32"]
    change = next(each for each in changes(loaded(), loaded(text)).settings if each.path == "fleet.allow")
    assert not change.needs_restart, "the network manager reads it at each pass, and every host has it in seconds"


def test_hosts_are_all_that_there_are() -> None:
    """Sorted, and `check` says what it comes to: who waits for a host that isn't named waits for nobody."""
    report = judge(edited("[fleet]", '[fleet]\nhosts = ["h2", "h1.example"]'), "region.toml", {})
    assert report.region is not None
    assert report.region.fleet is not None
    assert report.region.fleet.hosts == ("h1.example", "h2")
    assert report.meaning[-1].strip().startswith("2 hosts and no others:")
    change = next(each for each in changes(loaded(), report.region).settings if each.path == "fleet.hosts")
    assert not change.needs_restart


REFUSED = [
    (("[fleet]", "[fleet]\nhosts = []"), None),
    (("[fleet]", '[fleet]\nhosts = ["h1", "h1"]'), '8: hosts: "h1" is there twice'),
    (
        ("[fleet]", '[fleet]\nhosts = ["h 1"]'),
        '8: hosts: "h 1" must be 1 to 63 small letters, digits, hyphens and dots',
    ),
    (
        ("[fleet]", '[fleet]\nrenew = "0s"'),
        '8: renew "0s" must be 100ms to 10m: a lease of 0 seconds or less is over before it begins',
    ),
    (
        ("[fleet]", '[fleet]\nrenew = "-5s"'),
        '8: renew "-5s" must be 100ms to 10m: a lease of 0 seconds or less is over before it begins',
    ),
    (("[fleet]", "[fleet]\nrenew = 0"), '8: renew 0 has no unit; write "0s" for seconds'),
    (("[fleet]", '[fleet]\nrenew = "1h"'), '8: renew "1h" must be 100ms to 10m'),
    (("[fleet]", "[fleet]\nshards = 0"), "8: shards 0 must be 1 to 1024"),
    (("[fleet]", '[fleet]\ndriver = "proces"'), '8: driver "proces" is not known; did you mean "process"?'),
    (("[fleet]", '[fleet]\nrenews = "5s"'), '8: unknown key "renews" in [fleet]; did you mean "renew"?'),
    (("[fleet]", '[fleet]\nkey = "abc"'), None),
    (("[fleet]", "[flet]"), None),
    (
        ("[pool.web]", "[fleet.netwrok]\n[pool.web]"),
        '9: unknown key "netwrok" in [fleet]; did you mean "network"?',
    ),
    (("{port}", "{prot}"), '8: command: {prot} stands for nothing; did you mean "port"?'),
    (
        ('["/bin/web", "{address}:{port}"]', '"/bin/web"'),
        '8: command "/bin/web" must be a list of words, since no shell splits them: '
        'command = ["/usr/bin/web", "--listen", "{address}:{port}"]',
    ),
    (("port = 5302", "port = 0"), "12: port 0 must be 1 to 65535"),
    (("port = 5302", "prot = 5302"), '12: unknown key "prot" in [pool.web.launch]; did you mean "port"?'),
    (
        ("[fleet]\n", "", 'command = ["/bin/web", "{address}:{port}"]\n', ""),
        "9: pool web has [pool.web.launch], and there is no [fleet] to launch on; "
        "write [fleet] on a line of its own, with nothing below it for the defaults",
    ),
    (
        ('command = ["/bin/web", "{address}:{port}"]\n', ""),
        '10: pool web has no command to launch, and driver is "process"; '
        'write  command = ["…"]  in [pool.web.launch], or in [fleet] for all pools',
    ),
    (
        ('zones = ["a", "b", "c"]\n', ""),
        "1: [region] has no zones: no target names a zone, and hosts of a zone unknown here are taken by none; "
        'write zones = ["a", "b"]',
    ),
    (
        ("[pool.web]", '[fleet.network]\nallow = ["tcp/5302"]\n[pool.web]'),
        '10: allow: "tcp/5302" must be a protocol, a port and a source, like "tcp/5302 from 127.0.0.0/8"',
    ),
    (
        ("[pool.web]", '[fleet.network]\nallow = ["tpc/5302 from ::/0"]\n[pool.web]'),
        '10: allow: "tpc/5302 from ::/0" has the protocol "tpc"; did you mean "tcp"?',
    ),
    (
        ("[pool.web]", '[fleet.network]\nallow = ["tcp/5302 from 127.0.0.1/8"]\n[pool.web]'),
        '10: allow: "tcp/5302 from 127.0.0.1/8" has a source that is no network; write the network\'s first address, '
        "like 127.0.0.0/8 or 2001:db8::/32",
    ),
    (("[pool.web.launch]", "[pool.web.targets]\n[pool.web.launch]"), None),
    (("http://:8080/healthz", "tcp://", "port = 5302\n", ""), None),
]


@pytest.mark.parametrize(("pairs", "expected"), REFUSED)
def test_one_mistake_is_said_once_with_its_line(pairs: tuple[str, ...], expected: str | None) -> None:
    """A lease of 0 or negative seconds was taken by a client and never held (redis-py #4279): refused at load."""
    found = said(edited(*pairs))
    if expected is None:
        assert len(found) == 1
    else:
        assert found == [expected]


def test_a_secret_key_others_can_read_is_refused(tmp_path: Path) -> None:
    """Whoever has it can give orders to every host."""
    key = tmp_path / "fleet.key"
    key.write_text("0123456789abcdef")
    key.chmod(0o644)
    report = judge(BASE, str(tmp_path / "region.toml"), {})
    assert len(report.mistakes) == 1
    assert "can be read or changed by others" in report.mistakes[0].text
    assert "0123456789abcdef" not in report.mistakes[0].text


def test_it_goes_to_json_and_back_and_old_rows_are_read() -> None:
    """The row in the store of a version that knew no fleet is still a region."""
    region = loaded()
    assert decode(encode(region)) == region
    old = encode(region).replace(b'"launch"', b'"unknown_then"').replace(b'"fleet":{', b'"unknown_fleet":{')
    assert decode(old).fleet is None


def test_a_reload_says_what_changes_and_refuses_what_cant() -> None:
    """Shards say who owns a host: half a region with another number would own some hosts twice."""
    before, after = loaded(), loaded(edited("[fleet]", '[fleet]\nshards = 2\nrenew = "5s"'))
    found = {change.path: change for change in changes(before, after).settings}
    assert found["fleet.shards"].fixed
    assert found["fleet.renew_ns"].said == "fleet.renew: 10s -> 5s"
    assert found["fleet.renew_ns"].needs_restart
    assert not found["fleet.renew_ns"].fixed
    moved = changes(before, loaded(edited("5302", "5303")))
    assert [(change.path, change.after) for change in moved.settings] == [("pool.web.launch.port", 5303)]
    assert too_much(before, loaded(edited("5302", "5303"))) == ()


def test_a_reload_of_the_command_needs_no_restart() -> None:
    """It said that it needed one, and the next launch ran the new command: the API takes it from what was loaded."""
    found = changes(loaded(), loaded(edited("/bin/web", "/bin/new"))).settings
    paths = [(each.path, each.needs_restart) for each in found]
    assert paths == [("fleet.command", False), ("pool.web.launch.command", False)]


def test_the_words_of_a_command_are_filled_and_other_braces_are_braces() -> None:
    """No shell sees them, so an address can't become another command."""
    command = ("run", "{id}", "{name}/{pool}", "{address}:{port}", "{}", "${HOME}", '{"a": 1}')
    instance = Instance("web-7.2", "web", "127.0.1.9", 5302, command)
    assert filled(instance) == ("run", "web-7.2", "web-7/web", "127.0.1.9:5302", "{}", "${HOME}", '{"a": 1}')
