"""A DNS server on loopback for tests: in a thread with its own event loop, ended with the test."""

import asyncio
import base64
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsig
import dns.update
import uvloop

from fencepost.roles.dns_server import DnsServer, DnsServerSettings

T = TypeVar("T")

SECRET = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
KEY = dns.tsig.Key("writer.", SECRET, "hmac-sha256.")
HERE = "127.0.0.1"
DOMAIN = "example.test."


class Running:
    """A started server, and a client's few moves against it."""

    def __init__(self, server: DnsServer, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.loop = loop

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server.port

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def call(self, function: Callable[[], T]) -> T:
        """Call something on the server's loop."""

        async def inside() -> T:
            return function()

        return self.do(inside())

    def ask(self, name: str, rtype: str = "A", *, tcp: bool = False, **options: Any) -> dns.message.Message:
        """One query."""
        query = dns.message.make_query(name, rtype, **options)
        return self.send(query, tcp=tcp)

    def send(self, message: dns.message.Message, *, tcp: bool = False) -> dns.message.Message:
        """One message, any kind."""
        send = dns.query.tcp if tcp else dns.query.udp
        return send(message, HERE, timeout=5, port=self.port)

    def update(self, update: dns.update.UpdateMessage, *, tcp: bool = False) -> str:
        """Send an update, give the response code's name."""
        return dns.rcode.to_text(self.send(update, tcp=tcp).rcode())

    def values(self, name: str, rtype: str = "A") -> list[str]:
        """The records of one set, sorted."""
        answer = self.ask(name, rtype, use_edns=True, payload=1232)
        wanted = dns.rdatatype.from_text(rtype)
        return sorted(str(rdata) for found in answer.answer if found.rdtype == wanted for rdata in found)

    def serial(self, domain: str = DOMAIN) -> int:
        """The serial now served."""
        (found,) = self.ask(domain, "SOA").answer
        return int(found[0].serial)


def new_update(domain: str = DOMAIN, key: dns.tsig.Key | None = KEY) -> dns.update.UpdateMessage:
    """An empty update, signed when sent."""
    update = dns.update.UpdateMessage(domain)
    if key is not None:
        update.use_tsig(key)
    return update


def settings_in(path: Path, **changed: Any) -> DnsServerSettings:
    """Settings for a test: a free port, one domain, one key."""
    given: dict[str, Any] = {
        "domains": ("example.test",),
        "listen": f"{HERE}:0",
        "data": str(path / "domain.db"),
        "keys": {"writer": ("hmac-sha256", SECRET)},
    }
    return DnsServerSettings(**{**given, **changed})


@contextlib.contextmanager
def running(settings: DnsServerSettings, **more: Any) -> Iterator[Running]:
    """A server for the length of a block."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        server = DnsServer(settings, **more)
        found = Running(server, loop)
        found.do(server.start())
        try:
            yield found
        finally:
            found.do(server.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
