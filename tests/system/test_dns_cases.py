"""What broke other tools, by public report, where only a whole region can show it; docs/cases.md lists them all."""

import asyncio
import contextlib
import ipaddress
import secrets
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import dns.message
import dns.name
import dns.query
import dns.rdata
import dns.rrset
import dns.tsig
import dns.update
import msgspec
import pytest
from dns.rdtypes.ANY.SOA import SOA
from dns.rdtypes.ANY.TXT import TXT
from dns.rdtypes.IN.A import A
from dns.rdtypes.IN.AAAA import AAAA
from regions import RunningRegion

from fencepost import assembly
from fencepost.core.fence import Marker
from fencepost.core.record_set import content
from fencepost.core.traffic.membership import Member, Membership, Rule, State
from fencepost.core.zone import Live
from fencepost.ports import StorePort

NAME = "api.example.test"
V4 = ("127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2", "127.0.3.1", "127.0.3.2")


def has_ipv6() -> bool:
    """Whether ::1 can be listened on."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def loopback6(most: int) -> Iterator[list[str]]:
    """IPv6 addresses of this machine: ::1, and up to ``most`` - 1 more put on lo for as long as the block runs.

    Adding addresses takes NET_ADMIN, which a container mostly hasn't; then ::1 is all there is.
    """
    found, added = ["::1"], list[str]()
    prefix = f"fd{secrets.token_hex(1)}:{secrets.token_hex(2)}:{secrets.token_hex(2)}"
    try:
        for index in range(1, most):
            address = str(ipaddress.IPv6Address(f"{prefix}::{index:x}"))
            done = subprocess.run(
                ["ip", "-6", "addr", "add", f"{address}/128", "dev", "lo", "nodad"], capture_output=True, check=False
            )
            if done.returncode == 0:
                added.append(address)
        yield sorted([*found, *added], key=lambda text: socket.inet_pton(socket.AF_INET6, text))
    finally:
        for address in added:
            subprocess.run(["ip", "-6", "addr", "del", f"{address}/128", "dev", "lo"], capture_output=True, check=False)


class Targets:
    """Targets on several addresses in one thread; one that dies refuses connections, and may come back."""

    def __init__(self, addresses: list[str], port: int) -> None:
        self.port = port
        self.loop = asyncio.new_event_loop()
        self.servers: dict[str, asyncio.Server] = {}
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        for address in addresses:
            self.live(address)

    def live(self, address: str) -> None:
        """Listen there."""
        starting = asyncio.start_server(self._answer, address, self.port)
        self.servers[address] = asyncio.run_coroutine_threadsafe(starting, self.loop).result(10)

    def die(self, address: str) -> None:
        """Listen there no more."""
        server = self.servers.pop(address)
        self.loop.call_soon_threadsafe(server.close)

    def stop(self) -> None:
        """All of them."""
        for address in list(self.servers):
            self.die(address)
        self.loop.call_soon_threadsafe(self.loop.stop)

    @staticmethod
    async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
            await writer.drain()
        writer.close()


def with_ipv6(addresses: list[str]) -> Callable[[str], str]:
    """The test region with these targets too, over its zones; its limits would let all of them go."""

    def edit(text: str) -> str:
        for zone, own in zip("abc", (addresses[0::3], addresses[1::3], addresses[2::3]), strict=True):
            more = "".join(f', "{address}"' for address in own)
            text = text.replace(f'"127.0.{"abc".index(zone) + 1}.2"]', f'"127.0.{"abc".index(zone) + 1}.2"{more}]')
        limits = '[pool.web.safety]\nmax_out = "50%"\nburst = "50%"\n'
        return text.replace("[[endpoint]]", f"{limits}[[endpoint]]", 1)

    return edit


def versions(region: RunningRegion, since: int) -> list[Live]:
    """The endpoint as it stood in each version of the domain after ``since``, from the server's own journal (RFC 1995).

    Only what changed is in it, so ``since`` must be a version without the endpoint.
    """
    query = dns.message.make_query("example.test", "IXFR")
    query.authority = [dns.rrset.from_text("example.test.", 0, "IN", "SOA", f". . {since} 0 0 0 0")]
    records: list[tuple[dns.name.Name, dns.rdata.Rdata, int]] = []
    with socket.create_connection(("127.0.0.1", region.dns_port), timeout=5) as link:
        wire = query.to_wire()
        link.sendall(len(wire).to_bytes(2, "big") + wire)
        while len(records) < 2 or records[-1][1] != records[0][1]:
            size = int.from_bytes(link.recv(2, socket.MSG_WAITALL), "big")
            message = dns.message.from_wire(link.recv(size, socket.MSG_WAITALL), one_rr_per_rrset=True, xfr=True)
            assert message.rcode() == 0
            records += [(rrset.name, rrset[0], rrset.ttl) for rrset in message.answer]
    standing: set[tuple[dns.name.Name, dns.rdata.Rdata, int]] = set()
    found, adding = [], True
    for name, rdata, ttl in records[1:-1]:
        if isinstance(rdata, SOA):  # each version: the old SOA, what goes, the new SOA, what comes
            adding = not adding
            if adding is False:
                found.append(live_of(standing))
            continue
        (standing.add if adding else standing.remove)((name, rdata, ttl))
    return [*found[1:], live_of(standing)]


def live_of(records: set[tuple[dns.name.Name, dns.rdata.Rdata, int]]) -> Live:
    """One endpoint's records, put together."""
    own, beside = dns.name.from_text(NAME), dns.name.from_text(f"_fencepost.{NAME}")
    addresses, marker, ttl = list[str](), None, 0
    for name, rdata, seconds in records:
        if name == own and isinstance(rdata, A | AAAA):
            addresses.append(rdata.address)
            ttl = seconds
        elif name == beside and isinstance(rdata, TXT):
            marker = Marker.parse(tuple(rdata.strings))
    value = content(addresses, ttl)
    return Live(NAME, marker, value.a, value.aaaa, ttl)


def by_hand(region: RunningRegion, fill: Callable[[dns.update.UpdateMessage], object]) -> None:
    """Another writer's UPDATE, with the region's own key and without any fence."""
    key = assembly.tsig_key(region.region)
    ring = {dns.name.from_text(key.name): dns.tsig.Key(key.name, key.secret, key.algorithm)}
    update = dns.update.UpdateMessage("example.test", keyring=ring)
    fill(update)
    assert dns.query.tcp(update, "127.0.0.1", port=region.dns_port, timeout=5).rcode() == 0


def membership(region: RunningRegion) -> dict[str, Member]:
    """The pool's members by address."""

    async def read(store: StorePort) -> bytes:
        return (await store.membership("web"))[1]

    row = msgspec.json.decode(region.with_store(read), type=Membership)
    return {member.key: member for member in row.members}


@pytest.mark.skipif(not has_ipv6(), reason="IPv6 IS OFF ON THIS MACHINE: that A and AAAA go together is not tested")
def test_external_dns_1161_both_families_are_judged_apart_and_written_in_one_transaction(tmp_path: Path) -> None:
    """external-dns #1161: AAAA was neither made where A stood, nor made again after somebody took it away.

    Every IPv6 target dies and one of six IPv4 targets: that one leaves, and of IPv6 the last known stays (never_empty).
    In each version of the domain, as the server's own journal tells it, marker, A and AAAA are one plan's.
    """
    with contextlib.ExitStack() as stack:
        six = stack.enter_context(loopback6(3))
        region = RunningRegion(tmp_path, edit=with_ipv6(six), targets=False)
        targets = Targets([*V4, *six], region.target_port)
        stack.callback(targets.stop)
        stack.enter_context(region)
        region.until(lambda: region.addresses(NAME, "AAAA") == sorted(six), 10, "all IPv6 addresses are answered")
        assert region.addresses(NAME) == list(V4)
        region.until(lambda: all(each.healthy for each in membership(region).values()), 15, "all judged healthy")
        by_hand(region, lambda update: update.delete(f"{NAME}.", "AAAA"))
        region.until(lambda: region.addresses(NAME, "AAAA") == sorted(six), 10, "AAAA alone is made again")
        for address in ("127.0.2.1", *six):
            targets.die(address)
        region.until(lambda: region.addresses(NAME) == [key for key in V4 if key != "127.0.2.1"], 20, "it left")

        def last_stays() -> bool:
            members = [membership(region)[key] for key in six]
            kept = [
                member.key for member in members if (member.state, member.rule) == (State.KEPT, Rule.LAST_OF_FAMILY)
            ]
            return all(member.healthy is False for member in members) and region.addresses(NAME, "AAAA") == kept

        region.until(last_stays, 20, "of IPv6 the last stays, and only that")
        region.until(region.converged, 10, "settled")
        stood = versions(region, since=1)
        assert len(stood) >= 3
        torn = [live for live in stood if not (live.verified() and live.a and live.aaaa)]
        assert [(live.a, live.aaaa) for live in torn] == [(V4, ())], "only what another writer did"


def test_external_dns_605_withdrawing_twice_is_no_error(tmp_path: Path) -> None:
    """external-dns #605: the same deletion asked for twice; the second finds it done."""
    with RunningRegion(tmp_path) as region:
        region.until(region.converged, 10, "published")
        words = ("withdraw", NAME, "--confirm", NAME, "--reason", "moved away")
        region.fencepost(*words)
        region.until(lambda: not region.addresses(NAME) and region.converged(), 10, "withdrawn")
        marker = region.marker(NAME)
        assert "is withdrawn already; nothing was changed" in region.fencepost(*words)
        region.newer_plan_of("www.example.test", 41)
        assert region.marker(NAME) == marker, "no second hold, which another word would have to end"
        assert not region.addresses(NAME)
        assert marker is not None
        assert marker.hold is not None
        assert marker.hold.kind == "withdraw"
        assert len(region.addresses("www.example.test")) == 6
