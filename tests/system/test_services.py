"""SRV records beside an endpoint, in a real region: they come, heal, follow a hold and the file, and go (RFC 2782)."""

from collections.abc import Iterator

import dns.name
import dns.query
import dns.tsig
import dns.update
import pytest
from regions import RunningRegion

from fencepost import assembly
from fencepost.core.service import host_label

NAME, HTTP, WEB = "api.example.test", "_http._tcp", "_web._tcp"
WITHIN_S = 10


@pytest.fixture(scope="module", params=["embedded+sqlite", "bind+postgresql"])
def region(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[RunningRegion]:
    """A region whose first endpoint asks for SRV records."""

    def asks(text: str) -> str:
        return text.replace(f'name = "{NAME}"', f'name = "{NAME}"\nsrv = "{HTTP}"')

    with RunningRegion(tmp_path_factory.mktemp("region"), edit=asks, on=request.param) as running:
        yield running


def offered(region: RunningRegion, service: str = HTTP) -> set[str]:
    """The addresses that SRV records lead to, by way of their hosts."""
    hosts = [each.split()[3] for each in region.addresses(f"{service}.{NAME}", "SRV")]
    return {address for host in hosts for address in region.addresses(host)}


def delete(region: RunningRegion, name: str, kind: str) -> None:
    """A plain UPDATE without prerequisites, with the region's own key."""
    key = assembly.tsig_key(region.region)
    ring = {dns.name.from_text(key.name): dns.tsig.Key(key.name, key.secret, key.algorithm)}
    update = dns.update.UpdateMessage("example.test", keyring=ring)
    update.delete(f"{name}.", kind)
    assert dns.query.tcp(update, "127.0.0.1", port=region.dns_port, timeout=5).rcode() == 0


def edited(region: RunningRegion, old: str, new: str) -> None:
    """The file with something else in it, loaded."""
    text = region.config.read_text()
    assert old in text
    region.config.write_text(text.replace(old, new))
    region.fencepost("reload", "--yes")


def test_services_follow_the_endpoint(region: RunningRegion) -> None:
    """Each step as a person takes it, and what callers who ask for SRV records get after it."""
    six = set(region.addresses(NAME))
    assert len(six) == 6
    region.until(lambda: offered(region) == six, WITHIN_S, "SRV records lead to the same six")

    delete(region, f"{HTTP}.{NAME}", "SRV")
    region.until(lambda: offered(region) == six, WITHIN_S, "the set is healed")
    gone = sorted(six)[0]
    delete(region, f"{host_label(gone)}.{NAME}", "A")
    region.until(lambda: offered(region) == six, WITHIN_S, "the host is healed")

    region.fencepost("repair", NAME, "--address", gone, "--reason", "one only", "--yes")
    assert (region.addresses(NAME), offered(region)) == ([gone], {gone})
    region.fencepost("resume", NAME, "--reason", "over", "--yes")
    region.until(lambda: offered(region) == six, WITHIN_S, "the repair's end is followed")

    edited(region, f'srv = "{HTTP}"', f'srv = "{WEB}"')
    region.until(lambda: offered(region, WEB) == six and not offered(region), WITHIN_S, "renamed")
    region.fencepost("withdraw", NAME, "--confirm", NAME, "--reason", "away")
    region.until(lambda: not region.addresses(f"{WEB}.{NAME}", "SRV"), WITHIN_S, "withdrawn with its endpoint")
    assert not region.addresses(f"{host_label(gone)}.{NAME}")
    region.fencepost("resume", NAME, "--reason", "back", "--yes")
    region.until(lambda: offered(region, WEB) == six, WITHIN_S, "back with its endpoint")

    edited(region, f'srv = "{WEB}"\n', "")
    region.until(lambda: not region.addresses(f"{WEB}.{NAME}", "SRV"), WITHIN_S, "given up")
    assert not region.addresses(f"{host_label(gone)}.{NAME}")
    assert set(region.addresses(NAME)) == six
    region.until(region.converged, WITHIN_S, "as planned")
