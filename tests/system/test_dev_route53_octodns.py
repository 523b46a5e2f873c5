"""octoDNS with its own Route 53 provider, on the stand-in: another project's idea of how that API is spoken.

It runs in an environment of its own (requirements/peers.txt), as a person runs it: ``octodns-sync --doit``.
"""

import os
import subprocess
from pathlib import Path

import pytest
from route53_asked import DOMAIN, asked, record

PROGRAM = Path(__file__).parents[2] / ".venv" / "peers" / "bin" / "octodns-sync"
CONFIG = """
providers:
  config: {class: octodns.provider.yaml.YamlProvider, directory: ./zones, enforce_order: false}
  route53: {class: octodns_route53.Route53Provider}
zones:
  example.test.: {sources: [config], targets: [route53]}
  made.test.: {sources: [config], targets: [route53]}
"""
ZONE = """
'':
  - {type: A, ttl: 60, values: [192.0.2.1, 192.0.2.2]}
  - {type: MX, values: [{exchange: mail.example.test., preference: 10}]}
  - {type: TXT, values: ['v=spf1 -all', 'with \\; and  spaces']}
  - {type: CAA, values: [{flags: 0, tag: issue, value: ca.test}]}
'*.wild': {type: CNAME, value: www.example.test.}
long: {type: TXT, value: LONG}
_sip._tcp: {type: SRV, values: [{port: 5060, priority: 1, weight: 2, target: sip.example.test.}]}
sub: {type: NS, values: [ns1.sub.example.test., ns2.sub.example.test.]}
www: {type: AAAA, ttl: 30, value: '2001:db8::1'}
weighted:
  type: A
  ttl: 60
  value: 192.0.2.9
  dynamic:
    pools:
      one: {values: [{value: 192.0.2.1, weight: 2, status: up}, {value: 192.0.2.2, weight: 3, status: up}]}
    rules: [{pool: one}]
"""


def sync(folder: Path, url: str) -> str:
    """Plan and apply; what it says."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    clean |= {"AWS_ENDPOINT_URL_ROUTE_53": url, "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
    clean |= {"AWS_DEFAULT_REGION": "us-east-1"}
    words = [str(PROGRAM), "--config-file", "config.yaml", "--doit"]
    done = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_octodns_plans_applies_and_then_has_nothing_to_do(tmp_path: Path) -> None:
    """A zone that is there and one that it makes; the second time it finds all as it wants it, and again once
    a record that was changed behind its back is put right.
    """
    if not PROGRAM.exists():
        pytest.skip("octoDNS is not installed (make test does it)")
    (tmp_path / "zones").mkdir()
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "zones" / "example.test.yaml").write_text(ZONE.replace("LONG", "x" * 300))
    (tmp_path / "zones" / "made.test.yaml").write_text("www: {type: A, value: 192.0.2.1}\n")
    with asked(dns="127.0.0.1:0") as zone:
        assert "Creates=10" in sync(tmp_path, zone.server.url)
        found = {(each["Name"].removesuffix(f".{DOMAIN}."), each["Type"]) for each in zone.listed()}
        assert {("www", "AAAA"), (r"\052.wild", "CNAME"), ("sub", "NS"), ("long", "TXT"), ("weighted", "A")} <= found
        made = zone.client.list_hosted_zones_by_name(DNSName="made.test.")["HostedZones"][0]
        assert made["ResourceRecordSetCount"] == 3
        assert "No changes were planned" in sync(tmp_path, zone.server.url)
        zone.change(("UPSERT", record("www", "AAAA", "2001:db8::2", ttl=30)))
        assert "Updates=1" in sync(tmp_path, zone.server.url)
        assert record("www", "AAAA", "2001:db8::1", ttl=30) in zone.listed()
        assert "No changes were planned" in sync(tmp_path, zone.server.url)
