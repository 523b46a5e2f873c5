"""The DNS contract on BIND, by the RFC 2136 adapter."""

from collections.abc import Iterator

import pytest
from dns_contract import DnsContract
from dns_service_contract import DnsServiceContract
from dns_stages import ServerStage
from servers import Served, bind


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One BIND for the module."""
    with bind(tmp_path_factory.mktemp("bind")) as running:
        yield running


@pytest.fixture
def stage(served: Served) -> ServerStage:
    """Ports on that server."""
    return ServerStage(served)


class TestBind(DnsContract):
    """The suite, on BIND."""


class TestBindServices(DnsServiceContract):
    """SRV records beside endpoints, on BIND."""
