"""The DNS contract on our own embedded server, by the RFC 2136 adapter."""

from collections.abc import Iterator

import pytest
from dns_contract import DnsContract
from dns_service_contract import DnsServiceContract
from dns_stages import ServerStage
from servers import Served, embedded


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the module."""
    with embedded(tmp_path_factory.mktemp("embedded")) as running:
        yield running


@pytest.fixture
def stage(served: Served) -> ServerStage:
    """Ports on that server."""
    return ServerStage(served)


class TestEmbedded(DnsContract):
    """The suite, on :mod:`fencepost.roles.dns_server`."""


class TestEmbeddedServices(DnsServiceContract):
    """SRV records beside endpoints, on the embedded server."""
