"""A proxy before a DNS server that can hold an UPDATE and deliver it late, and twice."""

import socket
import struct
import threading

import dns.message
import dns.opcode
from free_ports import free_port


class HoldingProxy:
    """UDP and TCP on one free port, everything forwarded, except UPDATE messages while ``holding`` is set."""

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.holding = threading.Event()
        self.held: list[bytes] = []
        self.caught = threading.Event()
        self.tcp = socket.create_server(("127.0.0.1", free_port()))
        self.port = int(self.tcp.getsockname()[1])
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.open = True
        for work in (self._accept, self._datagrams):
            threading.Thread(target=work, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self.open = False
        self.tcp.close()
        self.udp.close()

    def deliver(self) -> list[int]:
        """Send every held UPDATE to the server now; the response codes."""
        return [self._send(message) for message in self.held]

    def _send(self, message: bytes) -> int:
        with socket.create_connection(("127.0.0.1", self.server_port), timeout=5) as link:
            link.sendall(struct.pack("!H", len(message)) + message)
            answer = read_message(link)
        assert answer is not None
        return answer[3] & 15

    def _accept(self) -> None:
        while self.open:
            try:
                client, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._connection, args=(client,), daemon=True).start()

    def _connection(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.server_port)) as server:
            threading.Thread(target=copy, args=(server, client), daemon=True).start()
            while (message := read_message(client)) is not None:
                if message[2] >> 3 & 15 == dns.opcode.UPDATE and self.holding.is_set():
                    self.held.append(message)
                    self.caught.set()
                    continue
                server.sendall(struct.pack("!H", len(message)) + message)

    def _datagrams(self) -> None:
        while self.open:
            try:
                message, sender = self.udp.recvfrom(65535)
                with socket.socket(type=socket.SOCK_DGRAM) as link:
                    link.settimeout(2)
                    link.sendto(message, ("127.0.0.1", self.server_port))
                    self.udp.sendto(link.recv(65535), sender)
            except TimeoutError:
                continue
            except OSError:
                return


def read_message(link: socket.socket) -> bytes | None:
    """One DNS message of a TCP connection (RFC 1035 section 4.2.2); None when it ends."""
    try:
        head = read_exactly(link, 2)
        return read_exactly(link, struct.unpack("!H", head)[0]) if head else None
    except OSError:
        return None


def read_exactly(link: socket.socket, size: int) -> bytes | None:
    """So many bytes, or None if the connection ends before."""
    data = b""
    while len(data) < size:
        more = link.recv(size - len(data))
        if not more:
            return None
        data += more
    return data


def copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy bytes until either side ends."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
