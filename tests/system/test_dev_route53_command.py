"""``fencepost dev route53`` as a person runs it: a process, until Ctrl-C."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import pytest
from botocore.exceptions import EndpointConnectionError
from free_ports import free_port
from route53_asked import DOMAIN, changed, client, listed, record

from fencepost.cli import dev_route53
from fencepost.dev.route53 import Route53Settings, main_of, running
from fencepost.dev.sample import sample_text
from fencepost.ports import Misconfigured
from fencepost.settings import load

FENCEPOST = Path(sys.executable).with_name("fencepost")


@contextmanager
def command(*words: str) -> Iterator[dict[str, Any]]:
    """The running command's document; it is interrupted at the end, and must end well."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    process = subprocess.Popen(
        [FENCEPOST, "dev", "route53", "--listen", "127.0.0.1:0", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=20)
        assert (process.returncode, *said) == (0, "", "")
    finally:
        process.kill()
        process.wait()


def test_it_serves_both_protocols_and_keeps_its_zones(tmp_path: Path) -> None:
    """The document says where; after Ctrl-C and another start all is as it was. An open connection holds nothing up."""
    words = ("--dns", "127.0.0.1:0", "--zone", DOMAIN, "--zone", "other.test", "--data", str(tmp_path / "kept.json"))
    with command(*words) as told:
        assert sorted(told["zones"]) == [f"{DOMAIN}.", "other.test."]
        sdk = client(told["endpoint"])
        changed(sdk, told["zones"][f"{DOMAIN}."], ("CREATE", record("w", "A", "192.0.2.1")))
        host, _, port = told["dns"].rpartition(":")
        reply = dns.query.udp(dns.message.make_query(f"w.{DOMAIN}.", "A"), host, port=int(port), timeout=5)
        assert [each.to_text() for each in reply.answer] == [f"w.{DOMAIN}. 60 IN A 192.0.2.1"]
    with command(*words) as again:
        assert again["zones"] == told["zones"]
        assert listed(client(again["endpoint"]), told["zones"][f"{DOMAIN}."]) == [record("w", "A", "192.0.2.1")]


def test_five_requests_a_second_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As AWS allows an account (Developer Guide, "Quotas"); 0 for as many as come."""
    given: list[Route53Settings] = []

    async def serve(settings: Route53Settings, *, as_json: bool) -> None:
        given.append(settings)

    monkeypatch.setattr(dev_route53, "serve_until_told", serve)
    assert dev_route53.route53() == 0
    assert dev_route53.route53(requests_per_s=0) == 0
    assert [each.requests_per_s for each in given] == [5, None]
    with pytest.raises(Misconfigured, match="less than none"):
        dev_route53.route53(requests_per_s=-1)


def test_what_it_cannot_do_is_said(tmp_path: Path) -> None:
    """A place that isn't loopback (it lets anybody in), a port that is taken, a file of somebody else, no name."""
    with pytest.raises(Misconfigured, match="no address on loopback"):
        dev_route53.route53(listen="0.0.0.0:5380")
    with pytest.raises(Misconfigured, match="no address on loopback"):
        dev_route53.route53(dns="127.0.0.1")
    with running() as other, pytest.raises(Misconfigured, match="can't listen") as caught:
        dev_route53.route53(listen=other.url.removeprefix("http://"), zone=(DOMAIN,), data=tmp_path / "kept.json")
    assert not (tmp_path / "kept.json").exists()  # it may be the other's
    assert caught.value.hint == "is another one running there? take other ports"
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(Misconfigured, match="not a file of this stand-in"):
        dev_route53.route53(listen="127.0.0.1:0", data=tmp_path / "other.json")
    with pytest.raises(Misconfigured, match="No such file or directory"):
        dev_route53.route53(listen="127.0.0.1:0", data=tmp_path / "nowhere" / "kept.json")
    with pytest.raises(Misconfigured, match="Domain label is empty") as unnamed:
        dev_route53.route53(listen="127.0.0.1:0", zone=("a..test",))
    assert unnamed.value.hint == "a hosted zone has a domain's name, like example.test"


def test_beside_a_sample_region_it_serves_the_region_s_domains(tmp_path: Path) -> None:
    """``fencepost up --provider route53-dev``: where region.toml says, unthrottled, with a file in its folder."""
    api, names = free_port(), free_port()
    text = sample_text("route53-dev").replace("127.0.0.1:5303", f"127.0.0.1:{api}")
    (tmp_path / "region.toml").write_text(text.replace('"127.0.0.1:5300"', f'"127.0.0.1:{names}"'))
    region = load(tmp_path / "region.toml")

    async def asked() -> list[str]:
        task = asyncio.create_task(main_of(region, tmp_path)())
        sdk = client(f"http://127.0.0.1:{api}")
        try:
            while not task.done():
                try:
                    zones = await asyncio.to_thread(lambda: [sdk.list_hosted_zones() for _ in range(7)])
                except EndpointConnectionError:
                    await asyncio.sleep(0.01)
                    continue
                question = dns.message.make_query(f"{DOMAIN}.", "SOA")
                reply = await asyncio.to_thread(dns.query.udp, question, "127.0.0.1", timeout=5, port=names)
                assert reply.answer
                return [each["Name"] for each in zones[-1]["HostedZones"]]
            await task
            raise AssertionError("it ended")
        finally:
            task.cancel()

    assert asyncio.run(asked()) == [f"{DOMAIN}."]
    assert (tmp_path / "route53.json").exists()
