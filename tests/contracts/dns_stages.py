"""Stages for the DNS contract: the reference in memory, and the RFC 2136 adapter on a server that is running."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import dns.asyncquery
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tsigkeyring
import dns.update
import msgspec
import uvloop
from dns_scene import DOMAIN, OWNER
from servers import KEY_NAME, KEY_SECRET, Served

from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND
from fencepost.core.names import marker_name
from fencepost.core.service import Host, Service, concerned, label_of
from fencepost.core.zone import Live
from fencepost.ports import DnsPort
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain

T = TypeVar("T")


def _standing(live: Live) -> Live:
    """Without the parts that say that nothing stands there, and hosts that the endpoint has nothing to do with."""
    services = tuple(sorted((each for each in live.services if each != Service(each.label)), key=label_of))
    known = concerned(live.name, live.marker, services)
    hosts = sorted((each for each in live.hosts if each != Host(each.label) and each.label in known), key=label_of)
    return msgspec.structs.replace(live, services=services, hosts=tuple(hosts))


def _beside(update: dns.update.UpdateMessage, live: Live) -> None:
    """What stands beside an endpoint, as it says; names that it doesn't speak of stay as they are."""
    parts: tuple[Service | Host, ...] = (*live.services, *live.hosts)
    for part in parts:
        name = f"{part.label}.{live.name}."
        for rtype in ("SRV", "A", "AAAA", "CNAME"):
            update.delete(name, rtype)
        if part.other:
            update.add(name, 60, "CNAME", "elsewhere.example.")
        elif isinstance(part, Service):
            for each in part.records:
                update.add(name, part.ttl, "SRV", f"{each.priority} {each.weight} {each.port} {each.target}.")
        else:
            for rtype, addresses in (("A", part.a), ("AAAA", part.aaaa)):
                for address in addresses:
                    update.add(name, part.ttl, rtype, address)


class ReferenceStage:
    """The reference port."""

    def __init__(self) -> None:
        self.domain = ReferenceDomain(DOMAIN)

    def port(self) -> DnsPort:
        """As the contract says."""
        return ReferenceDns(self.domain, lambda duration: asyncio.sleep(duration / SECOND))

    async def hand(self, *lives: Live) -> None:
        """As the contract says."""
        self.domain.set(*map(_standing, lives))

    def run(self, act: Callable[[], Awaitable[T]]) -> T:
        """As the contract says."""

        async def whole() -> T:
            return await act()

        return asyncio.run(whole())


class ServerStage:
    """The RFC 2136 adapter on a running server."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._ports: list[Rfc2136Dns] = []

    def settings(self) -> Rfc2136Settings:
        """What a port on this server is told."""
        return Rfc2136Settings(("127.0.0.1", self.served.port), DOMAIN, KEY_NAME, KEY_SECRET, OWNER)

    def port(self) -> Rfc2136Dns:
        """As the contract says."""
        made = Rfc2136Dns(self.settings())
        self._ports.append(made)
        return made

    async def hand(self, *lives: Live) -> None:
        """As the contract says, by an update without prerequisites, made and sent by dnspython."""
        keyring = dns.tsigkeyring.from_text({KEY_NAME: KEY_SECRET})
        update = dns.update.UpdateMessage(DOMAIN, keyring=keyring)
        for live in lives:
            name, at = f"{live.name}.", f"{marker_name(live.name)}."
            for rtype in ("A", "AAAA", "CNAME"):
                update.delete(name, rtype)
            update.delete(at, "TXT")
            if live.marker is not None:
                raw = (live.marker.encode(),) if isinstance(live.marker, Marker) else live.marker.raw
                for strings in raw:
                    wire = b"".join(bytes((len(string),)) + string for string in strings)
                    rdata = dns.rdata.from_wire(dns.rdataclass.IN, dns.rdatatype.TXT, wire, 0, len(wire))
                    update.add(at, 60, rdata)
            for address in live.a:
                update.add(name, live.ttl, "A", address)
            for address in live.aaaa:
                update.add(name, live.ttl, "AAAA", address)
            if live.other:
                update.add(name, 60, "CNAME", "elsewhere.example.")
            _beside(update, live)
        reply = await dns.asyncquery.tcp(update, "127.0.0.1", 10, self.served.port)
        assert reply.rcode() == dns.rcode.NOERROR, reply.rcode()

    def run(self, act: Callable[[], Awaitable[T]]) -> T:
        """As the contract says."""

        async def whole() -> T:
            try:
                return await act()
            finally:
                for port in self._ports:
                    await port.close()
                self._ports.clear()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # what the roles run on
            return runner.run(whole())
