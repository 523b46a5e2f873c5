"""The embedded DNS server: sockets around the handler, one process, one event loop.

UDP is a plain non-blocking socket with a reader on the loop, up to 64 messages a wake-up: half the cost of a datagram
transport. TCP takes many questions on a connection (RFC 7766). A message has to arrive within seconds of its first
byte, an answer to be read within ten, a connection may idle as long, and at the limit of connections the worst one
makes room (:mod:`.connections`): neither silence nor answers left unread lock out who has our key.
"""

import asyncio
import contextlib
import errno
import gc
import logging
import socket
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fencepost.core.dns_numbers import AAAA, NAME_BYTES_MAX, NS, SOA, A
from fencepost.ports import Misconfigured, PortError

from .answers import Draw
from .connections import Connections
from .contents import Change, Contents, Node, RecordSet, find, record_wire, soa_serial, with_serial
from .counters import Counters
from .file import DomainFile
from .handler import Handler, Later
from .notices import Notices
from .settings import DnsServerSettings, allowed_address, split_address
from .signatures import Keys
from .wire import name_to_wire, serial_after

log = logging.getLogger(__name__)

LOOK_EACH_S = 1.0
"""How often the file is looked for while no update comes."""
_WAKE_MESSAGES = 64
_LATER_MAX = 64
_PORT_TRIES = 32
_RECEIVE_BYTES = 4 << 20  # room for a burst while an update is planned
_SEND_BYTES = 128 << 10  # what a connection's client may leave unread in the system's buffer
_BACKLOG = 512


class DnsServer:
    """Authoritative server for the given domains. Make it, ``await start()``, ``await stop()``.

    Raises Misconfigured for settings, files and ports that can't work, from the constructor and from :meth:`start`.
    """

    def __init__(
        self, settings: DnsServerSettings, *, wall: Callable[[], float] = time.time, draw: Draw | None = None
    ) -> None:
        self.settings = settings
        self.counters = Counters()
        self.port = 0
        self._wall = wall
        self._draw = draw
        self._host, self._wanted_port = split_address(settings.listen, where="listen")
        self._apexes = tuple(_apex(text) for text in settings.domains)
        if not self._apexes:
            raise Misconfigured("no domain to answer for", where="domains", hint="name at least one")
        self._keys = Keys(settings.keys)
        self._allowed = frozenset(allowed_address(text) for text in settings.transfer)
        self.domains: dict[bytes, Contents] = {}
        self._notices = Notices(settings, self.counters, lambda apex: self.domains[apex].soa)
        self._work: set[asyncio.Task[None]] = set()
        self.connections = Connections(settings, self.counters)
        self._stack = contextlib.AsyncExitStack()
        self.handler: Handler

    async def start(self) -> None:
        """Open the file, load the domains, take the port and answer. Raises Misconfigured or Unavailable."""
        async with contextlib.AsyncExitStack() as stack:
            file = DomainFile(Path(self.settings.data))
            stack.callback(file.close)
            writer = ThreadPoolExecutor(1, thread_name_prefix="domain-file")
            stack.callback(writer.shutdown)
            self.handler = Handler(
                self.domains,
                file,
                self._keys,
                self._allowed,
                self.counters,
                writer,
                changed=self._notices.changed,
                wall=self._wall,
                draw=self._draw,
            )
            self.connections.handler = self.handler
            for apex in self._apexes:
                await self._load(file, apex)
            udp, tcp = _bind(self._host, self._wanted_port)
            stack.callback(udp.close)
            self.port = udp.getsockname()[1]
            loop = asyncio.get_running_loop()
            loop.add_reader(udp, self._read, udp)
            stack.callback(loop.remove_reader, udp)
            server = await asyncio.start_server(self.connections.take, sock=tcp, limit=1 << 17, backlog=_BACKLOG)
            stack.push_async_callback(self._end_work)
            stack.callback(server.close)
            stack.push_async_callback(self._notices.stop)
            watching = asyncio.ensure_future(self._watch_file())
            stack.callback(watching.cancel)
            self._stack = stack.pop_all()
        for apex in self._apexes:
            self._notices.changed(apex)

    async def stop(self) -> None:
        """Stop answering, end what is under way, close the file. An update on its way to the disk gets there first."""
        await self._stack.aclose()

    def set_notify(self, targets: Iterable[str]) -> None:
        """Replace the list of ``host:port`` told of changes; call it on the server's loop.

        Who is new is told the serials at once, so that no change falls between its last look and its place on the list.
        Raises Misconfigured, the old list kept.
        """
        added = self._notices.set_targets(targets)
        for apex in self._apexes if self.port else ():
            self._notices.changed(apex, added)

    async def _watch_file(self) -> None:
        """A file removed while nothing is written is written anew too, or the next start would know of nothing."""
        said = ""
        while True:
            await asyncio.sleep(LOOK_EACH_S)
            try:
                await self.handler.look()
                said = ""
            except PortError as error:
                if str(error) != said:
                    said = str(error)
                    log.error("%s (%s)", error, error.hint)  # noqa: TRY400  its text says it all

    async def _load(self, file: DomainFile, apex: bytes) -> None:
        contents = file.load(apex)
        if contents is None:
            first = first_records(apex, self._host, self.settings)
            file.create(apex, 1, first)
            contents = Contents(apex, first.items())
        self.domains[apex] = contents
        soa = contents.soa
        minimum = self.settings.negative_ttl_s.to_bytes(4, "big")
        if soa.rdatas[0][-4:] != minimum:
            new = RecordSet(SOA, soa.ttl, (with_serial(soa.rdatas[0][:-4] + minimum, serial_after(contents.serial)),))
            await self.handler.commit(contents, _replace_soa(contents, new))

    def _read(self, udp: socket.socket) -> None:
        """All that waits on the UDP socket, up to a limit, so that other work gets its turn too."""
        receive, send, now = udp.recvfrom, udp.sendto, self.handler.now
        for _ in range(_WAKE_MESSAGES):
            try:
                message, address = receive(65_535)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error about an answer sent earlier
            reply = now(message, address[0])
            if type(reply) is bytes:
                try:
                    send(reply, address)
                except OSError:
                    self.counters.dropped += 1
            elif isinstance(reply, Later):
                self._run_later(udp, reply, address)

    def _run_later(self, udp: socket.socket, later: Later, address: tuple[str, int]) -> None:
        if len(self._work) >= _LATER_MAX:
            self.counters.dropped += 1
            return
        task = asyncio.get_running_loop().create_task(self._answer_later(udp, later, address))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _answer_later(self, udp: socket.socket, later: Later, address: tuple[str, int]) -> None:
        async with contextlib.aclosing(self.handler.later(later)) as replies:
            async for reply in replies:
                try:
                    udp.sendto(reply, address)
                except OSError:
                    self.counters.dropped += 1

    async def _end_work(self) -> None:
        for task in self._work:
            task.cancel()
        tasks = [*self._work, *self.connections.end()]
        await asyncio.gather(*tasks, return_exceptions=True)


async def run(settings: DnsServerSettings) -> None:
    """Serve until cancelled. Raises Misconfigured or Unavailable if it can't start."""
    server = DnsServer(settings)
    await server.start()
    gc.collect()
    gc.freeze()  # the names live long: no collection needs to walk them
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop()


def first_records(apex: bytes, host: str, settings: DnsServerSettings) -> dict[bytes, Node]:
    """SOA and NS of a new domain, and the name server's address unless the server listens everywhere."""
    server = b"\x02ns" + apex
    times = (3_600, 60, 604_800, settings.negative_ttl_s)  # refresh is long: secondaries are notified
    numbers = b"".join(number.to_bytes(4, "big") for number in (1, *times))
    ttl = settings.apex_ttl_s
    soa = RecordSet(SOA, ttl, (server + b"\x0ahostmaster" + apex + numbers,))
    nodes: dict[bytes, Node] = {apex: (RecordSet(NS, ttl, (server,)), soa)}
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host)
    if any(packed):
        nodes[server] = (RecordSet(A if family == socket.AF_INET else AAAA, ttl, (packed,)),)
    return nodes


def _replace_soa(contents: Contents, new: RecordSet) -> Change:
    old, apex = contents.soa, contents.apex
    node = tuple(new if found is old else found for found in contents.node(apex))
    assert find(node, SOA) is new  # noqa: S101  the old SOA stood in the apex
    return Change(
        contents.serial,
        soa_serial(new.rdatas[0]),
        {apex: node},
        (record_wire(apex, apex, old, old.rdatas[0]),),
        (record_wire(apex, apex, new, new.rdatas[0]),),
    )


def _apex(text: str) -> bytes:
    hint = "write each domain in ASCII, such as example.test"
    try:
        apex = name_to_wire(text)
    except ValueError as error:
        raise Misconfigured(f"{error}", where="domains", hint=hint) from error
    if len(apex) > NAME_BYTES_MAX - len("hostmaster."):
        raise Misconfigured(f"{text!r} is too long for names below it", where="domains", hint=hint)
    return apex


def _bind(host: str, port: int) -> tuple[socket.socket, socket.socket]:
    """A UDP and a TCP socket on one port. Raises Misconfigured."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for attempt in range(_PORT_TRIES):
        udp, tcp = socket.socket(family, socket.SOCK_DGRAM), socket.socket(family, socket.SOCK_STREAM)
        try:
            udp.setblocking(False)
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)  # its connections inherit it
            if family == socket.AF_INET6:
                for sock in (udp, tcp):  # or IPv4 clients would come as ::ffff:192.0.2.1, which is in no list
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            udp.bind((host, port))
            tcp.bind((host, udp.getsockname()[1]))
            return udp, tcp
        except OSError as error:
            udp.close()
            tcp.close()
            if port == 0 and error.errno == errno.EADDRINUSE and attempt < _PORT_TRIES - 1:
                continue
            raise Misconfigured(
                f"can't listen on port {port}: {error.strerror}",
                where=f"listen {host}",
                hint="another server may hold the port (see `ss -lnup`); ports below 1024 need rights",
            ) from error
    raise AssertionError("the last attempt returns or raises")
