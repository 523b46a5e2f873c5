"""Moving a domain that BIND serves under fencepost: import, check, up, adopt. Nobody's answer changes on the way."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.rdatatype
import pytest
import servers
from called import FENCEPOST, call
from free_ports import free_port
from imported import asked, loaded
from patience import Patience, patient

from fencepost.core.fence import Marker

API, WWW, ONE = "api.example.test", "www.example.test", "one.example.test"
ZONE = (
    servers.ZONE
    + """mail IN A 127.0.0.3
api 60 IN A 127.0.1.1
api 60 IN A 127.0.2.1
api 60 IN A 127.0.3.1
www 60 IN A 127.0.1.9
www 60 IN A 127.0.2.9
www 60 IN A 127.0.9.9
one 60 IN A 127.0.1.1
sub IN NS ns.sub
ns.sub IN A 127.0.0.5
ns.sub IN A 127.0.0.6
"""
)


@pytest.fixture(scope="module")
def bind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Served]:
    """A BIND with records that it has long served."""
    with servers.bind(tmp_path_factory.mktemp("bind"), zone=ZONE) as served:
        yield served


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """The key, as tsig-keygen prints it."""
    path = tmp_path / "tsig.key"
    path.write_text(f'key "{servers.KEY_NAME}" {{ algorithm hmac-sha256; secret "{servers.KEY_SECRET}"; }};\n')
    path.chmod(0o600)
    return path


def addresses(bind: servers.Served, name: str) -> list[str]:
    """What callers get."""
    answer = dns.query.udp(dns.message.make_query(name, "A"), "127.0.0.1", timeout=2, port=bind.port)
    return sorted(str(rdata) for rrset in answer.answer for rdata in rrset)


def marker(bind: servers.Served, name: str) -> Marker | None:
    """The marker beside it."""
    query = dns.message.make_query(f"_fencepost.{name}", "TXT")
    answer = dns.query.udp(query, "127.0.0.1", timeout=2, port=bind.port)
    found = [Marker.parse(tuple(rdata.strings)) for rrset in answer.answer for rdata in rrset]
    return found[0] if found else None


def until(what: Callable[[], object], words: str, within_s: float = 20.0) -> None:
    """Wait until something holds."""
    patience = Patience(within_s)
    while True:
        with contextlib.suppress(dns.exception.Timeout):
            if what():
                return
        assert not patience.over(), f"not within {within_s} s: {words}"
        time.sleep(0.05)


def test_a_domain_is_imported_and_adopted_without_a_changed_answer(
    bind: servers.Served, key: Path, tmp_path: Path
) -> None:
    """AXFR with TSIG to a region.toml that loads; what has no marker is left alone until adopted as it stands."""
    source = f"example.test@127.0.0.1:{bind.port}"
    port = free_port()
    done = call("import", "live", source, "--key", str(key), "--probe", f"http://:{port}/healthz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {name: list(value.a) for name, value in asked(loaded(done.stdout)).items()} == {
        API: ["127.0.1.1", "127.0.2.1", "127.0.3.1"],
        WWW: ["127.0.1.9", "127.0.2.9", "127.0.9.9"],
    }
    for line in (
        "#   mail.example.test    an MX record points at it; --only takes it",
        "#   ns.sub.example.test    glue: sub.example.test is delegated to other name servers",
        "#   one.example.test    one address",
    ):
        assert line in done.stdout
    text = done.stdout
    for old, new in (
        ('a = ["127.0.1.1", "127.0.2.1", "127.0.3.1"]', 'a = ["127.0.1.1"]\nb = ["127.0.2.1"]\nc = ["127.0.3.1"]'),
        ('a = ["127.0.1.9", "127.0.2.9", "127.0.9.9"]', 'a = ["127.0.1.9"]\nb = ["127.0.2.9"]'),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "region.toml").write_text(f'{text}[api]\nlisten = "127.0.0.1:{free_port()}"\n')
    checked = call("check", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    planned = call("plan", cwd=tmp_path)
    assert "its marker is written" in planned.stdout, "of api, which is as the file asks"
    assert f"{WWW}   left alone: unmarked records" in planned.stdout
    assert f"fencepost adopt {WWW}" in planned.stdout
    assert marker(bind, API) is None
    log = (tmp_path / "up.log").open("wb")
    up = subprocess.Popen([str(FENCEPOST), "up", "--sample", "--yes"], cwd=tmp_path, stdout=log, stderr=log)
    try:
        adopted(bind, tmp_path)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{(tmp_path / 'up.log').read_text()}") from error
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(patient(20))
        log.close()


def adopted(bind: servers.Served, folder: Path) -> None:
    """What is as the file asks is marked, what isn't waits; adopting it changes nothing but its marker."""

    def waiting() -> list[tuple[str, str]] | None:
        done = call("status", "--json", cwd=folder)
        problems = json.loads(done.stdout)["problems"] if done.returncode in (0, 1) else None
        if problems is None:
            return None
        return [(each["on"], each["try"]) for each in problems if each["id"] == "needs-adopt"]

    until(lambda: marker(bind, API), "the one is ours")
    until(lambda: waiting() == [(WWW, f"fencepost adopt {WWW}")], "the other alone waits to be adopted")
    assert addresses(bind, API) == ["127.0.1.1", "127.0.2.1", "127.0.3.1"]
    assert (addresses(bind, WWW), marker(bind, WWW)) == (["127.0.1.9", "127.0.2.9", "127.0.9.9"], None)
    shown = call("adopt", WWW, cwd=folder)
    assert shown.returncode == 2, "nobody is there to say yes"
    assert "127.0.1.9, 127.0.2.9, 127.0.9.9, ttl 60 s: no marker" in shown.stderr
    assert "-  127.0.9.9" in shown.stderr
    assert marker(bind, WWW) is None
    done = call("adopt", "--all", "--yes", "--json", cwd=folder)
    assert json.loads(done.stdout) == {"done": "adopt", "on": [WWW]}, done.stderr
    until(lambda: addresses(bind, WWW) == ["127.0.1.9", "127.0.2.9"], "then the next plan follows region.toml")
    first = ", the first, in "
    until(lambda: first in call("history", WWW, "--only", "enacted", cwd=folder).stdout, "a line tells of the adoption")
    until(lambda: waiting() == [], "nothing waits any more")
    assert addresses(bind, ONE) == ["127.0.1.1"]


def test_a_refused_transfer_and_a_wrong_key_are_said(bind: servers.Served, key: Path, tmp_path: Path) -> None:
    """What the server answered, and what to do; the secret is in no message."""
    source = f"example.test@127.0.0.1:{bind.port}"
    done = call("import", "live", source, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "REFUSED" in done.stderr
    assert "--key FILE" in done.stderr
    key.write_text(key.read_text().replace(servers.KEY_SECRET, "bm90IHRoZSBzZWNyZXQgYXQgYWxsLCBubw=="))
    done = call("import", "live", source, "--key", str(key), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the key isn't accepted" in done.stderr
    assert "bm90" not in done.stderr
    done = call("import", "live", f"example.test@127.0.0.1:{free_port()}", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    done = call("import", "live", f"other.test@127.0.0.1:{bind.port}", "--key", os.devnull, cwd=tmp_path)
    assert done.returncode == 2


def test_a_regions_own_domains_are_read_as_it_reads_them(bind: servers.Served, key: Path, tmp_path: Path) -> None:
    """--config: the same provider, server and key again, ready to be a second region's file."""
    source = f"example.test@127.0.0.1:{bind.port}"
    first = call("import", "live", source, "--key", str(key), "--only", ONE, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    (tmp_path / "region.toml").write_text(first.stdout)
    done = call("import", "live", "--only", ONE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    one, other = loaded(first.stdout), loaded(done.stdout)
    assert asked(one) == asked(other)
    assert (one.dns, one.endpoints[0].ttl_s) == (other.dns, 60)


REGION_53 = """
[region]
name = "r53"
[dns]
provider = "route53"
endpoint = "{endpoint}"
domain = "example.test"
ttl = "60s"
[pool.web]
probe = "tcp://:9"
[pool.web.targets]
a = ["127.0.1.1", "127.0.2.1"]
[[endpoint]]
name = "api.example.test"
pool = "web"
[[endpoint]]
name = "www.example.test"
pool = "web"
"""


def test_a_provider_without_transfers_is_read_through_its_own_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Route 53 (the stand-in): plain sets become endpoints, weighted ones are named; a plan counts API calls."""
    import boto3

    from fencepost.dev.route53 import Route53Settings, running

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    with running(Route53Settings(zones=("example.test",))) as stand_in:
        client = boto3.client("route53", endpoint_url=stand_in.url, region_name="us-east-1")
        zone = client.list_hosted_zones()["HostedZones"][0]["Id"]
        weighted: dict[str, object] = {"SetIdentifier": "one", "Weight": 1}
        records: tuple[tuple[str, list[str], dict[str, object]], ...] = (
            (API, ["127.0.1.1", "127.0.2.1"], {}),
            (WWW, ["127.0.1.1", "127.0.9.9"], {}),
            ("w.example.test", ["127.0.1.1", "127.0.2.1"], weighted),
        )
        changes = [
            {
                "Action": "CREATE",
                "ResourceRecordSet": {
                    "Name": name,
                    "Type": "A",
                    "TTL": 60,
                    "ResourceRecords": [{"Value": value} for value in values],
                    **more,
                },
            }
            for name, values, more in records
        ]
        client.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})
        (tmp_path / "region.toml").write_text(REGION_53.format(endpoint=stand_in.url))
        done = call("import", "live", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = loaded(done.stdout)
        assert {name: value.a for name, value in asked(found).items()} == {
            name: tuple(values) for name, values, more in records if not more
        }
        assert (found.dns.provider, found.dns.option("endpoint")) == ("route53", stand_in.url)
        assert "#   w.example.test    A weighted stands there" in done.stdout
        planned = call("plan", cwd=tmp_path)
        assert planned.returncode == 0, planned.stderr
        assert "on Route 53: 2 endpoints, 0 managed" in planned.stdout
        assert "\n1 write, 1 Route 53 call." in planned.stdout
        assert f"{WWW}   left alone: unmarked records" in planned.stdout
