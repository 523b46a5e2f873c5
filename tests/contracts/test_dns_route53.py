"""The DNS contract on the strict Route 53 stand-in, by the Route 53 adapter."""

from dns_contract import DnsContract
from dns_scene import Stage
from dns_service_contract import DnsServicesRefused
from route53_agreement import check_exchange
from route53_stage import Route53Stage, server, stage

__all__ = ["server", "stage"]


class TestRoute53Services(DnsServicesRefused):
    """SRV records, on the Route 53 stand-in."""


class TestRoute53(DnsContract):
    """The suite, on the stand-in."""

    requires_absence = False

    def test_agrees_with_the_reference_transaction(self, stage: Stage) -> None:
        """Random domains, hands and batches: as the reference, save for what Route 53 can't require.

        A TTL is part of what it compares, and the absence of a set that isn't created can't be required.
        """
        assert isinstance(stage, Route53Stage)
        check_exchange(stage)
