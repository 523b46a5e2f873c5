"""What the flags of ``fencepost run agent`` and ``dev agents`` come to, and what is refused before anything starts."""

import os
from pathlib import Path

import pytest

from fencepost.cli.agent import AgentFlags, options_of
from fencepost.cli.dev_agents import ManyFlags, run_agents
from fencepost.cli.run import run
from fencepost.ports import Misconfigured

REGION = """
[region]
name = "x"
zones = ["a", "b"]
[dns]
provider = "embedded"
listen = "127.0.0.1:5353"
domain = "example.test"
[api]
listen = "127.0.0.1:8080"
[pool.web]
probe = "http://:80/"
[pool.web.targets]
a = ["127.0.2.10"]
[[endpoint]]
name = "api.example.test"
pool = "web"
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("STATE_DIRECTORY", "FENCEPOST_CONFIG", "FENCEPOST_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def secret(path: Path) -> None:
    """A key or token."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write("a-secret-of-some-length")


def region(tmp_path: Path, fleet: str) -> str:
    """A region's file, with its API's token."""
    path = tmp_path / "region.toml"
    path.write_text(REGION + fleet)
    secret(tmp_path / "api.token")
    return str(path)


def test_with_a_regions_file_all_but_the_zone_has_a_default(tmp_path: Path) -> None:
    """Key, token, API, renewals and driver are the region's; the key is made if nobody made it."""
    config = region(tmp_path, '[fleet]\nrenew = "2s"\ndriver = "none"\n')
    found = options_of(AgentFlags(host="h1", zone="b", config=config))
    assert found.join == "http://127.0.0.1:8080"
    assert (found.token, found.renew, found.driver) == ("a-secret-of-some-length", 2_000_000_000, "none")
    assert str(found.listen) == "127.0.0.1:7700"
    assert found.folder == tmp_path / ".fencepost" / "x" / "hosts" / "h1"
    assert (tmp_path / "fleet.key").stat().st_mode & 0o777 == 0o600
    assert len(found.key) == 64
    assert "secret" not in repr(found)
    again = options_of(AgentFlags(host="h2", zone="a", config=config, address=("192.0.2.1,192.0.2.2", "2001:DB8::1")))
    assert again.key == found.key
    assert again.addresses == ("192.0.2.1", "192.0.2.2", "2001:db8::1")


def test_without_one_key_and_token_lie_in_its_folder(tmp_path: Path) -> None:
    """A host on another machine has two small files, and the API's address."""
    for name in ("fleet.key", "api.token"):
        secret(tmp_path / name)
    found = options_of(AgentFlags(host="h1", zone="b", state=tmp_path, join="https://api.example.com"))
    assert (found.folder, found.renew, found.token) == (tmp_path, None, "a-secret-of-some-length")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"host": "H 1"}, "no name for a host"),
        ({"room": 0}, "takes no instance"),
        ({"zone": None}, "lies in a failure zone"),
        ({"join": ""}, "must be https"),
        ({"join": "http://api.example.com"}, "must be https"),
        ({"join": None}, "how often hosts are asked"),
        ({"listen": "7700"}, "no address with a port"),
        ({"listen": "localhost:7700"}, "no address with a port"),
        ({"listen": "127.0.0.1:99999"}, "no address with a port"),
        ({"address": ("here",)}, "is not an address"),
        ({"address": ("0.0.0.0",)}, "'0.0.0.0' is no one's address"),
        ({"address": ("192.0.2.1,224.0.0.1",)}, "'224.0.0.1' is multicast"),
        ({"address": ("255.255.255.255",)}, "is multicast, broadcast or reserved"),
        ({"address": ("::ffff:10.0.0.1",)}, "is IPv4 written as IPv6; write 10.0.0.1"),
        ({"address": ("fe80::1%eth0",)}, "names an interface"),
        ({"address": ("192.0.2.1", "192.0.2.1")}, "--address 192.0.2.1 is given twice"),
        ({"address": ("2001:db8::1,2001:DB8:0::1",)}, "--address 2001:db8::1 is given twice"),
    ],
)
def test_nonsense_is_refused_with_what_to_do(tmp_path: Path, change: dict[str, object], what: str) -> None:
    """Before anything is made or opened."""
    for name in ("fleet.key", "api.token"):
        secret(tmp_path / name)
    usual = {"host": "h1", "zone": "a", "join": "https://api.example.com", "state": tmp_path}
    with pytest.raises(Misconfigured, match=what) as caught:
        options_of(AgentFlags(**(usual | change)))  # type: ignore[arg-type]
    assert caught.value.hint


def test_a_zone_or_fleet_that_the_region_hasnt_is_refused(tmp_path: Path) -> None:
    """The API would refuse the host later, on another machine."""
    with pytest.raises(Misconfigured, match="no zone 'z'"):
        options_of(AgentFlags(host="h1", zone="z", config=region(tmp_path, "[fleet]\n")))
    with pytest.raises(Misconfigured, match="has no fleet"):
        options_of(AgentFlags(host="h1", zone="a", config=region(tmp_path, "")))


def test_a_key_that_is_missing_or_short_is_said(tmp_path: Path) -> None:
    """It isn't drawn on a host without the region's file: it would be another fleet's."""
    flags = AgentFlags(host="h1", zone="a", state=tmp_path, join="https://api.example.com")
    secret(tmp_path / "api.token")
    with pytest.raises(Misconfigured, match=r"fleet\.key is missing"):
        options_of(flags)
    (tmp_path / "fleet.key").touch(mode=0o600)
    (tmp_path / "fleet.key").write_text("short")
    with pytest.raises(Misconfigured, match="fewer than 16"):
        options_of(flags)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"hosts": 0}, "--hosts 0"),
        ({"room": 0}, "--room 0"),
        ({"servers": 0}, "--servers 0"),
        ({"slow": "soon"}, "--slow 'soon'"),
        ({"listen": "192.0.2.1:7700"}, "isn't on loopback"),
        ({"zones": ","}, "names none"),
    ],
)
def test_many_hosts_are_refused_where_one_would_be_harmed(change: dict[str, object], what: str) -> None:
    """A stand-in stays on loopback, and numbers mean something."""
    usual: dict[str, object] = {"hosts": 10, "listen": "127.0.0.1:0", "zones": None, "room": 4, "join": None}
    usual |= {"state": None, "deaf": (), "slow": "", "servers": 64, "control": None, "config": None, "json": False}
    with pytest.raises(Misconfigured, match=what):
        run_agents(ManyFlags(**(usual | change)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("role", "flags", "what"),
    [
        ("agent", {"shard": "1/4", "host": "h1", "zone": "a"}, "agent has no shard"),
        ("planner", {"shard": "1/4"}, "planner has no shard"),
        ("host-manager", {"zone": "a"}, "host-manager has no zone"),
    ],
)
def test_a_flag_that_a_role_has_no_use_for_is_refused(
    role: str, flags: dict[str, str], what: str, tmp_path: Path
) -> None:
    """Who gives it means something by it, and would believe that it was heard."""
    config = region(tmp_path, '[fleet]\ndriver = "none"\n')
    with pytest.raises(Misconfigured, match=what):
        run(role, config=config, **flags)  # type: ignore[arg-type]


def test_a_role_that_there_is_not_is_told_all_that_there_are(tmp_path: Path) -> None:
    """Those of the fleet too."""
    with pytest.raises(Misconfigured) as refused:
        run("fleet-manager", config=region(tmp_path, ""))
    assert all(role in refused.value.hint for role in ("planner", "network-manager", "host-manager", "agent"))
