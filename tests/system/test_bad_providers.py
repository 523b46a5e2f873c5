"""A region whose provider throttles, loses answers, dawdles, breaks off or refuses: nothing lost, nothing doubled.

And `status` says what is wrong and what to do, for as long as it is wrong.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from callers import Callers
from regions import RunningRegion

from fencepost.dev.route53 import Fault, Route53Server, Route53Settings, running

NAMES = ["api.example.test", "www.example.test"]
REFUSES = "provider-refuses"
CHANGE, LIST = "ChangeResourceRecordSets", "ListResourceRecordSets"


@contextmanager
def region_at(folder: Path, server: Route53Server) -> Iterator[RunningRegion]:
    """A region whose provider is this stand-in of the test's own, so that faults can be put into it."""

    def edit(text: str) -> str:
        text = re.sub(r'endpoint = "[^"]*"', f'endpoint = "{server.url}"', text)
        return re.sub(r'server = "[^"]*"', f'server = "127.0.0.1:{server.dns_port}"', text)

    region = RunningRegion(folder, on="route53-dev+sqlite", edit=edit)
    region.dns_port = server.dns_port
    (region.state / "stand-ins").write_text("")
    with region:
        region.until(region.converged, 20, "converged")
        yield region


def status(region: RunningRegion) -> dict[str, Any]:
    """The status document."""
    found: dict[str, Any] = json.loads(region.fencepost("status", "--json", ok=(0, 1)))
    return found


def problems(region: RunningRegion) -> dict[str, str]:
    """What is wrong, by the problem's id: what it is and what to try."""
    return {each["id"]: f"{each['what']} | {each['try']}" for each in status(region)["problems"]}


def live(region: RunningRegion, ttl: int) -> bool:
    """Whether a plan that changed the TTL to this is live."""
    return all(region.ttl(name) == ttl for name in NAMES)


def silent(said: str) -> bool:
    """Whether a problem says that the provider doesn't answer: told by who reads it, or by the roles that do."""
    return "Route 53" in said and "no answer within" in said


def resident_mb(region: RunningRegion) -> float:
    """The largest role's memory, MB."""
    pids = [process["pid"] for name, process in region.processes().items() if not name.startswith("target/")]
    sizes = [re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()) for pid in pids if pid]
    return max(int(size[1]) for size in sizes if size) / 1024


@pytest.fixture
def server() -> Iterator[Route53Server]:
    """A stand-in that isn't throttled."""
    with running(Route53Settings(requests_per_s=None, zones=("example.test",), dns="127.0.0.1:0")) as found:
        yield found


@pytest.mark.parametrize(
    "faults",
    [
        [Fault("error", every=6, code="Throttling", status=400, message="Rate exceeded")],
        [Fault("error", action=CHANGE, every=3, code="PriorRequestNotComplete", status=400, message="Wait.")],
        [Fault("lost", action=CHANGE, every=2)],
        [Fault("cut", action=LIST, every=3), Fault("drop", action=CHANGE, every=3)],
        [Fault("late", action=CHANGE, every=3, delay_s=1.0)],
    ],
    ids=["rate exceeded", "prior request", "answer lost after commit", "cut and dropped", "slow"],
)
def test_a_provider_in_trouble_loses_and_doubles_nothing(
    tmp_path: Path, server: Route53Server, faults: list[Fault]
) -> None:
    """external-dns #1293, octodns #96: all is done, slower; generations rise one by one and none is written twice."""
    with region_at(tmp_path, server) as region, Callers(server.dns_port, NAMES) as callers:
        first = region.marker(NAMES[0])
        for fault in faults:
            server.faults.add(fault)
        for ttl in range(40, 45):
            region.change_ttl(ttl)
            region.until(partial(live, region, ttl), 40, f"ttl {ttl} is live")
        region.until(region.converged, 20, "converged")
        last = region.marker(NAMES[0])
        assert first is not None
        assert last is not None
        assert last.generation.number == first.generation.number + 5
        assert last.writes == 1, "the newest generation was written once"
        assert resident_mb(region) < 200
    callers.fine()


def test_rights_that_are_missing_lead_the_status_with_what_to_do(tmp_path: Path, server: Route53Server) -> None:
    """The enactors stay up, look again, and go on by themselves once the rights are there."""
    with region_at(tmp_path, server) as region:
        denied = Fault("error", action=CHANGE, code="AccessDenied", status=403, message="User is not authorized")
        server.faults.add(denied)
        region.change_ttl(40)
        words = ("AccessDenied, route53:ChangeResourceRecordSets on hosted zone", "fencepost doctor --iam-policy")

        def led() -> bool:
            document = status(region)
            said = [f"{each['what']} | {each['try']}" for each in document["problems"] if each["id"] == REFUSES]
            return document["verdict"] == "attention" and any(all(word in each for word in words) for each in said)

        region.until(led, 30, "status says it")
        assert all(len(region.addresses(name)) == 6 for name in NAMES), "what stands is served on"
        assert all(process["restarts"] == 0 for process in region.processes().values())
        server.faults.clear()
        region.until(lambda: all(region.ttl(name) == 40 for name in NAMES), 90, "it goes on by itself")


def test_a_provider_that_does_not_answer_is_waited_for_and_said(tmp_path: Path, server: Route53Server) -> None:
    """A delay of 30 s is over every patience: the outcome is unknown, and is read before anything else is sent."""
    with region_at(tmp_path, server) as region:
        server.faults.add(Fault("delay", delay_s=30.0))
        region.change_ttl(40)
        region.until(lambda: [each for each in problems(region).values() if silent(each)], 60, "status says it")
        server.faults.clear()
        region.until(lambda: all(region.ttl(name) == 40 for name in NAMES), 90, "it goes on by itself")
        region.until(lambda: status(region)["verdict"] == "ok", 60, "all is well again")
        marker = region.marker(NAMES[0])
        assert marker is not None
        assert marker.writes == 1
