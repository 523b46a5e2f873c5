"""NOTIFY to those who follow a domain (RFC 1996): sent at each change, and again until answered.

A target is told of the newest serial only. While one message waits for its answer further changes just mark the target
as behind; the answer, or the last try, sends the next. Nothing is kept for a target that never answers: it polls.
"""

import asyncio
import contextlib
import ipaddress
import secrets
from collections.abc import Callable, Iterable

from fencepost.core.dns_numbers import HEADER_BYTES, NOTIFY

from .contents import RecordSet
from .counters import Counters, count
from .settings import DnsServerSettings, split_address

Address = tuple[str, int]


class Notices(asyncio.DatagramProtocol):
    """Sends notices from a socket of its own, bound to the listening address: secondaries know their primary by it."""

    def __init__(self, settings: DnsServerSettings, counters: Counters, soa_of: Callable[[bytes], RecordSet]) -> None:
        self._settings = settings
        self._counters = counters
        self._soa_of = soa_of
        self._targets: tuple[Address, ...] = ()
        self._tasks: dict[tuple[Address, bytes], asyncio.Task[None]] = {}
        self._behind: set[tuple[Address, bytes]] = set()
        self._waiting: dict[tuple[Address, int], asyncio.Future[None]] = {}
        self._transports: dict[int, asyncio.DatagramTransport] = {}
        self._host = split_address(settings.listen, where="listen")[0]
        self.set_targets(settings.notify)

    def set_targets(self, targets: Iterable[str]) -> tuple[Address, ...]:
        """Replace the list of those told, and give the new ones on it. Raises Misconfigured, the old list kept."""
        found = tuple(dict.fromkeys(split_address(text, where="notify", default_port=53) for text in targets))
        added = tuple(target for target in found if target not in self._targets)
        self._targets = found
        for key in [key for key in self._tasks if key[0] not in found]:
            self._tasks.pop(key).cancel()
            self._behind.discard(key)
        return added

    def changed(self, apex: bytes, targets: Iterable[Address] | None = None) -> None:
        """Tell every target (or only these), now, which serial a domain has."""
        for target in self._targets if targets is None else targets:
            key = (target, apex)
            if key in self._tasks:
                self._behind.add(key)
            else:
                self._tasks[key] = asyncio.get_running_loop().create_task(self._tell(target, apex))

    async def stop(self) -> None:
        """Stop sending and close the sockets."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for transport in self._transports.values():
            transport.close()
        self._transports.clear()

    async def _tell(self, target: Address, apex: bytes) -> None:
        key = (target, apex)
        try:
            while True:
                self._behind.discard(key)
                await self._once(target, apex)
                if key not in self._behind:
                    break
        finally:
            if self._tasks.get(key) is asyncio.current_task():
                del self._tasks[key]

    async def _once(self, target: Address, apex: bytes) -> None:
        """One notice, sent again with doubled patience until it is answered or given up."""
        try:
            transport = await self._transport(target[0])
        except OSError:
            count(self._counters.notifies, "given_up")
            return
        number = secrets.randbelow(65_536)
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[target, number] = answered
        try:
            for attempt in range(self._settings.notify_retries):
                transport.sendto(notice(number, apex, self._soa_of(apex)), target)
                count(self._counters.notifies, "sent")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.notify_wait_s * 2**attempt):
                        await asyncio.shield(answered)
                    count(self._counters.notifies, "answered")
                    return
            count(self._counters.notifies, "given_up")
        finally:
            self._waiting.pop((target, number), None)

    async def _transport(self, host: str) -> asyncio.DatagramTransport:
        version = ipaddress.ip_address(host).version
        transport = self._transports.get(version)
        if transport is None:
            any_address = "::" if version == 6 else "0.0.0.0"  # noqa: S104  NOTIFY goes out; only answers are taken
            own = self._host if ipaddress.ip_address(self._host).version == version else any_address
            loop = asyncio.get_running_loop()
            made, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=(own, 0))
            transport = self._transports.setdefault(version, made)
            if transport is not made:
                made.close()
        return transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """An answer, if it is one to a notice that waits; whatever its response code: the target has heard."""
        if len(data) < HEADER_BYTES or not data[2] & 0x80 or data[2] >> 3 & 0xF != NOTIFY:
            return
        waiting = self._waiting.get((addr[:2], data[0] << 8 | data[1]))
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def error_received(self, exc: Exception) -> None:
        """An unreachable target; the retries deal with it."""


def notice(number: int, apex: bytes, soa: RecordSet) -> bytes:
    """A NOTIFY message with the new SOA as a hint (RFC 1996 section 3.7)."""
    rdata = soa.rdatas[0]
    return b"%b\x24\0\0\x01\0\x01\0\0\0\0%b\0\x06\0\x01\xc0\x0c\0\x06\0\x01%b%b%b" % (
        number.to_bytes(2, "big"),
        apex,
        soa.ttl.to_bytes(4, "big"),
        len(rdata).to_bytes(2, "big"),
        rdata,
    )
