"""What the server is told: one frozen value, checked when the server is made."""

import ipaddress

from msgspec import Struct

from fencepost.ports import Misconfigured


class DnsServerSettings(Struct, frozen=True):
    """Settings of the embedded DNS server.

    ``domains`` are those it answers for; ``listen`` an address and port (port 0 takes a free one) for UDP and TCP. On a
    host with several addresses name one: from 0.0.0.0 the system picks a UDP answer's source, which may be another.
    ``data`` the path of its file. ``keys`` maps a key's name to its algorithm and base64 secret: who has one may update
    and transfer. ``transfer`` are addresses that may transfer without a key; ``notify`` are told of each change.
    ``negative_ttl_s`` is how long "no such name" may be remembered: short, since a name taken out by mistake should be
    back as soon as it is back.
    """

    domains: tuple[str, ...]
    data: str
    listen: str = "127.0.0.1:5300"
    keys: dict[str, tuple[str, str]] = {}
    transfer: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    negative_ttl_s: int = 5
    apex_ttl_s: int = 300
    tcp_idle_s: float = 10.0
    tcp_message_s: float = 5.0
    tcp_connections_max: int = 128
    notify_retries: int = 5
    notify_wait_s: float = 1.0


def split_address(text: str, *, where: str, default_port: int | None = None) -> tuple[str, int]:
    """Address and port of ``192.0.2.1:53``, ``[2001:db8::1]:53``, or, with a default port, of the address alone.

    Raises Misconfigured, also for host names: looking one up could hang the server that answers for it.
    """
    host, port = text.strip("[]"), default_port
    if default_port is None or not _is_address(host):
        host, _, digits = text.rpartition(":")
        host, port = host.strip("[]"), int(digits) if digits.isascii() and digits.isdigit() else None
    if not _is_address(host) or port is None or port > 65_535:
        raise Misconfigured(
            f"{text!r} is not an address and port", where=where, hint='write it as "127.0.0.1:5300" or "[::1]:5300"'
        )
    return str(ipaddress.ip_address(host)), port


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def allowed_address(text: str) -> str:
    """One address of ``transfer`` in the form the socket reports. Raises Misconfigured."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise Misconfigured(f"{text!r} is not an address", where="transfer", hint="write single addresses") from None
