"""The DNS contract on Knot DNS, by the RFC 2136 adapter."""

from collections.abc import Iterator

import pytest
from dns_contract import DnsContract
from dns_service_contract import DnsServiceContract
from dns_stages import ServerStage
from servers import Served, knot


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One Knot for the module."""
    with knot(tmp_path_factory.mktemp("knot")) as running:
        yield running


@pytest.fixture
def stage(served: Served) -> ServerStage:
    """Ports on that server."""
    return ServerStage(served)


class TestKnot(DnsContract):
    """The suite, on Knot."""


class TestKnotServices(DnsServiceContract):
    """SRV records beside endpoints, on Knot."""
