"""SRV records as the mirror has them: read from bytes, taken apart and put together, order of records aside."""

import dns.rdata
import pytest
from dns_scene import DOMAIN, OWNER
from dns_service_contract import BOTH, HTTP, stands
from hypothesis import given, settings
from hypothesis import strategies as st
from test_dns_transfer import Record, feed, messages, records_of, soa

from fencepost.adapters.dns_mirror import Mirror, _pointer, srv_data
from fencepost.adapters.dns_transfer import Transfer
from fencepost.core.dns_numbers import Malformed
from fencepost.core.service import Pointer, Service
from fencepost.core.zone import Live

NAME = f"api.{DOMAIN}"
LABELS = st.binary(min_size=1, max_size=63).map(bytes.lower)


def beside(live: Live) -> list[Record]:
    """The records beside an endpoint."""
    found: list[Record] = []
    for service in live.services:
        owner = f"{service.label}.{live.name}"
        found += [(owner, service.ttl, "SRV", srv_data(record)) for record in service.records]
    for host in live.hosts:
        found += records_of(Live(f"{host.label}.{live.name}", None, host.a, host.aaaa, host.ttl))
    return found


@given(st.lists(LABELS, max_size=3), st.tuples(*[st.integers(0, 65_535)] * 3))
def test_a_target_of_any_bytes_comes_back(labels: list[bytes], numbers: tuple[int, int, int]) -> None:
    """Another's target may have any bytes in it, or be the root (RFC 2782: "no such service"): none is lost."""
    wire = b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
    data = b"".join(number.to_bytes(2, "big") for number in numbers) + wire
    assert srv_data(_pointer(data)) == data


@given(st.randoms(use_true_random=False), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_the_order_of_records_does_not_matter(random: st.DataObject, size: int) -> None:
    """A transfer lists names in any order: the endpoint before, after or between what stands beside it."""
    live = stands(NAME, 1, BOTH)
    groups = [[record] for record in (*records_of(live), *beside(live))]
    random.shuffle(groups)  # type: ignore[attr-defined]
    inner = [record for group in groups for record in group]
    transfer = Transfer(Mirror(DOMAIN, OWNER), whole=True)
    assert feed(transfer, messages([soa(5), *inner, soa(5)], size))
    mirror, changed = transfer.finish()
    assert mirror.lives[NAME] == live
    assert NAME in changed

    gone = [record for record in inner if record[2] in ("SRV", "A")]
    step = Transfer(mirror, whole=False)
    assert feed(step, messages([soa(6), soa(5), *gone, soa(6), *gone[::-1], soa(6)], size))
    moved, changed = step.finish()
    assert moved.lives[NAME] == live
    assert list(changed).count(NAME) <= 1


def test_what_stands_beside_moves_the_endpoint_alone() -> None:
    """A change at a service's or host's name names the endpoint as changed, if it has to do with it, and no other."""
    live = stands(NAME, 1, BOTH)
    transfer = Transfer(Mirror(DOMAIN, OWNER), whole=True)
    assert feed(transfer, messages([soa(5), *records_of(live), *beside(live), soa(5)], 9))
    mirror, _ = transfer.finish()
    srv = [record for record in beside(live) if record[2] == "SRV"]
    step = Transfer(mirror, whole=False)
    assert feed(step, messages([soa(6), soa(5), *srv, soa(6), soa(6)], 9))
    mirror, changed = step.finish()
    assert list(changed) == [NAME]
    assert mirror.lives[NAME].services == ()
    assert mirror.lives[NAME].astray(BOTH) == (HTTP,)


def test_compressed_targets_are_read() -> None:
    """RFC 2782 forbids it and old servers do it: a target that points back into its message."""
    plain = messages([soa(5), (f"{HTTP}.{NAME}", 30, "SRV", b"\0\0\0\1\x1f\x90\1x\0")], 9)[0]
    target = b"\x03dc1\xc0\x0c"  # the first record's owner, the domain itself, stands at offset 12
    at = plain.rindex(b"\0\0\0\1\x1f\x90\1x\0")
    short = plain[: at - 2] + (6 + len(target)).to_bytes(2, "big") + b"\0\0\0\1\x1f\x90" + target
    transfer = Transfer(Mirror(DOMAIN, OWNER), whole=True)
    assert feed(transfer, [short, *messages([soa(5)], 1)])
    mirror, _ = transfer.finish()
    assert mirror.lives[NAME] == Live(NAME, services=(Service(HTTP, 30, (Pointer(0, 1, 8080, f"dc1.{DOMAIN}"),)),))


def test_srv_data_that_are_none_are_refused() -> None:
    """A length that goes on after the name, or ends before it, makes the whole transfer no transfer."""
    plain = messages([soa(5), (f"{HTTP}.{NAME}", 30, "SRV", b"\0\0\0\1\x1f\x90\1x\0")], 9)[0]
    at = plain.rindex(b"\0\0\0\1\x1f\x90\1x\0")
    for size, data in ((10, b"\0\0\0\1\x1f\x90\1x\0\0"), (4, b"\0\0\0\1")):
        with pytest.raises(Malformed):
            feed(Transfer(Mirror(DOMAIN, OWNER), whole=True), [plain[: at - 2] + size.to_bytes(2, "big") + data])


def test_an_active_directory_below_the_apex_is_no_matter_of_ours() -> None:
    """SRV sets of others, below a domain or an endpoint that asks for none, are shown and change nothing else."""
    data = dns.rdata.from_text("IN", "SRV", f"0 100 389 dc1.{DOMAIN}.").to_wire() or b""
    live = stands(NAME, 1, BOTH)
    plain = Live(NAME, live.marker, live.a, live.aaaa, live.ttl)
    theirs = [(f"_ldap._tcp.{name}", 600, "SRV", data) for name in (DOMAIN, f"dc._msdcs.{DOMAIN}", f"www.{DOMAIN}")]
    transfer = Transfer(Mirror(DOMAIN, OWNER), whole=True)
    assert feed(transfer, messages([soa(5), *records_of(plain), *theirs, soa(5)], 9))
    mirror, _ = transfer.finish()
    assert mirror.lives[NAME] == plain
    assert mirror.lives[DOMAIN].services[0].records == (Pointer(0, 100, 389, f"dc1.{DOMAIN}"),)
    assert set(mirror.lives) == {NAME, DOMAIN, f"dc._msdcs.{DOMAIN}", f"www.{DOMAIN}"}
