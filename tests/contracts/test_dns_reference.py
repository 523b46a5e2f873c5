"""The DNS contract on the reference itself."""

import pytest
from dns_contract import DnsContract
from dns_scene import Stage
from dns_service_contract import DnsServiceContract
from dns_stages import ReferenceStage


@pytest.fixture
def stage() -> Stage:
    """A fresh domain in memory."""
    return ReferenceStage()


class TestReference(DnsContract):
    """The suite, on :mod:`fencepost.world.reference_dns`."""


class TestReferenceServices(DnsServiceContract):
    """SRV records beside endpoints, on :mod:`fencepost.world.reference_dns`."""
