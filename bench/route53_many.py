"""30,000 endpoints written for the first time to Route 53's stand-in by three enactors of one host: how many requests.

    python -m bench.route53_many [endpoints [requests a second [hosts]]]

A batch holds 1,000 records (Developer Guide, "Quotas"), and an endpoint of ten addresses is eleven with its marker. So
330 batches are the least that 30,000 can take, if one could be cut through an endpoint, and 334 as it is. Three
enactors, each a process, work until a pass finds nothing to do; the stand-in, a process too, counts what it was asked.
Everything is as it ships but the pace: AWS gives an account five requests a second, of which a region takes two, and
that would be three minutes; ``requests`` in [dns] raises it. And the stand-in's zone holds 100,000 record sets: AWS
raises its 10,000 on request. With ``hosts`` 3 the enactors share no file, as on hosts of their own, and each takes a
third of the requests.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))

from free_ports import free_port

from bench.figures import tell
from bench.many_names import Enacting, Planning, Pool, measured, peak_mb, prepare, region_of
from fencepost import assembly
from fencepost.adapters.dns_route53 import Route53Dns, open_domains
from fencepost.dev.route53 import Route53Server, limits
from fencepost.dev.route53 import Route53Settings as StandIn
from fencepost.roles.process import fork
from fencepost.settings import Region

DOMAIN = "example.test"
TEN: Pool = {zone: tuple(f"192.0.{at}.{n}" for n in range(1, most + 1)) for at, (zone, most) in
             enumerate({"a": 4, "b": 3, "c": 3}.items(), 1)}  # fmt: skip
RECORDS = 11
WRITE = "ChangeResourceRecordSets"
FEW_MORE = 1.1
"""The promise: at most so many times the least number of batches."""


def stand_in(folder: Path, port: int) -> int:
    """The stand-in's process, which writes what it was asked when it is told to end."""

    async def main() -> None:
        limits.ZONE_RECORD_SETS_MOST = 100_000
        server = Route53Server(StandIn(listen=f"127.0.0.1:{port}", zones=(DOMAIN,), requests_per_s=None))
        await server.start()
        try:
            await asyncio.Event().wait()
        finally:
            (folder / "asked.json").write_text(json.dumps(Counter(server.calls)))
            await server.stop()

    return fork("stand-in", main, folder)


def enactor(region: Region, folder: Path, zone: str, *, apart: bool) -> int:
    """One enactor's process, until it finds nothing left to do; ``apart`` from the others it shares no file."""

    async def main() -> None:
        enacting = Enacting(region, assembly.open_store(region), folder / f"{zone}.known", zone)
        if apart:
            enacting.dns = dict(open_domains(region, folder / zone))
            enacting.hands.dns = enacting.dns[DOMAIN]
        while True:
            await enacting.idle()
            if enacting.hands.head is not None and not len(enacting.hands.dirty):
                break
            await asyncio.sleep(0.05)
        port = enacting.dns[DOMAIN]
        assert isinstance(port, Route53Dns)
        whole = sum(len(port.live(name).a) == 10 and port.live(name).verified() for name in port.names())
        said = {"calls": port.calls, "whole": whole, "cpu_s": time.process_time(), "peak_mb": peak_mb()}
        (folder / f"{zone}.json").write_text(json.dumps(said))

    return fork(f"enactor-{zone}", main, folder)


def three(endpoints: int, requests: int, hosts: int) -> float:
    """Three enactors to their end; batches by the least number of them."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        provider = f'provider = "route53"\nendpoint = "http://127.0.0.1:{port}"\nrequests = "{requests // hosts}/s"\n'
        region = region_of(folder, endpoints, provider=provider, targets=TEN)
        server = stand_in(folder, port)
        try:
            asyncio.run(prepare(region, TEN))

            async def plan() -> dict[str, float]:
                await Planning(region, assembly.open_store(region)).idle()
                return {}

            measured("plan", folder, plan)
            began = time.monotonic()
            for pid in [enactor(region, folder, zone, apart=hosts > 1) for zone in "abc"]:
                _, status = os.waitpid(pid, 0)
                assert status == 0, [(folder / f"enactor-{zone}.log").read_text()[-2000:] for zone in "abc"]
            took = time.monotonic() - began
        finally:
            os.kill(server, signal.SIGTERM)
            os.waitpid(server, 0)
        asked = json.loads((folder / "asked.json").read_text())
        roles = [json.loads((folder / f"{zone}.json").read_text()) for zone in "abc"]
    assert all(role["whole"] == endpoints for role in roles), [role["whole"] for role in roles]
    least = endpoints * RECORDS / limits.BATCH_RECORDS_MOST
    where = "three hosts" if hosts > 1 else "a host"
    words = f"Route 53, {endpoints:,} endpoints of 10, three enactors of {where}: "
    tell(words + "batches", asked[WRITE], "", " + ".join(str(role["calls"][WRITE]) for role in roles))
    tell(words + "pages listed", sum(n for action, n in asked.items() if action.startswith("List")), "", str(asked))
    tell(words + "s", took, "", f"at {requests} requests a second")
    tell(words + "CPU s", sum(role["cpu_s"] for role in roles), "", f"peak {max(r['peak_mb'] for r in roles):.0f} MB")
    tell("Route 53: batches ÷ the least", asked[WRITE] / least, "×", f"least {least:g}")
    return float(asked[WRITE] / least)


def main() -> int:
    """1 if it took more than a tenth more than the least."""
    given = sys.argv[1:]
    endpoints, requests, hosts = (int(word) for word in (*given, *("30000", "4", "1")[len(given) :]))
    os.environ.update(AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY="not-a-secret")
    os.environ.update(AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE="/nowhere")
    return 0 if three(endpoints, requests, hosts) <= FEW_MORE else 1


if __name__ == "__main__":
    sys.exit(main())
