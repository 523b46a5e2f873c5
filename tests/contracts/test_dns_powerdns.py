"""The DNS contract on PowerDNS, by the RFC 2136 adapter."""

from collections.abc import Iterator

import pytest
from dns_contract import DnsContract
from dns_stages import ServerStage
from servers import Served, powerdns


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One PowerDNS for the module."""
    with powerdns(tmp_path_factory.mktemp("powerdns")) as running:
        yield running


@pytest.fixture
def stage(served: Served) -> ServerStage:
    """Ports on that server."""
    return ServerStage(served)


class TestPowerDns(DnsContract):
    """The suite, on PowerDNS."""
