"""The DNS contract on the strict Route 53 stand-in, by the Route 53 adapter."""

from collections.abc import Iterator

import pytest
from dns_contract import DnsContract
from route53_stage import ENVIRONMENT, Route53Stage

from fencepost.dev.route53 import Route53Server, running
from fencepost.dev.route53 import Route53Settings as StandInSettings


@pytest.fixture(scope="module")
def server() -> Iterator[Route53Server]:
    """One stand-in for the module, not throttled."""
    with running(StandInSettings(requests_per_s=None, zones=("example.test",))) as found:
        yield found


@pytest.fixture
def stage(server: Route53Server, monkeypatch: pytest.MonkeyPatch) -> Route53Stage:
    """Ports on that server, with nothing left of the test before."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE")
    server.faults.clear()
    made = Route53Stage(server)
    made.by_hand.clear()
    return made


class TestRoute53(DnsContract):
    """The suite, on the stand-in."""
