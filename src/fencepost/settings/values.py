"""Readers of single values: from what TOML gave to what we keep. Each refuses with a reason, and what to write."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from fencepost.core.names import normalise
from fencepost.settings import units
from fencepost.settings.mistakes import advice, shown
from fencepost.settings.schema import HostPort, Secret, Url
from fencepost.settings.units import Rate

Reader = Callable[[Any], Any]
"""Raises ValueError, an `UnfitError` or that of a function of the core; its text goes on from the key and the value."""

NONE_MEANT: Mapping[str, str] = {}
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""This machine, as a URL may name it."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_URL_PATH = re.compile(r"(?:/[!-~]{0,1023})?")
_WITH_PORT = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<four>[0-9.]+)):(?P<port>[0-9]{1,5})")
_HOSTPORT = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:/\s]*))(?::(?P<port>[0-9]{1,5}))?")


class UnfitError(ValueError):
    """Why a value can't be used, and what to write instead."""


def word(value: Any) -> str:
    """Read the name of a region, owner, zone or pool: 1 to 32 of a to z, 0 to 9, hyphen, underscore."""
    text = string(value)
    if not _NAME.fullmatch(text):
        raise UnfitError(
            "must be 1 to 32 of a to z, 0 to 9, hyphen and underscore, and begin and end with a letter or digit"
        )
    return text


def string(value: Any) -> str:
    """Read a string in quotes."""
    if not isinstance(value, str):
        raise UnfitError(f"must be text in quotes, not {_kind(value)}")
    return value


def boolean(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise UnfitError("must be true or false, without quotes")
    return value


def whole(low: int, high: int) -> Reader:
    """Read a whole number within bounds, both included."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise UnfitError(f"must be a whole number without quotes or unit, {low} to {high}")
        if not low <= value <= high:
            raise UnfitError(f"must be {low} to {high}")
        return value

    return read


def weight(value: Any) -> int:
    """Read a weight, 1 to 255: it is one byte of the marker."""
    if value == 0 and not isinstance(value, bool):
        raise UnfitError("would never be answered; to take a target out use  fencepost drain")
    read: int = whole(1, 255)(value)
    return read


def choice(*known: str, meant: Mapping[str, str] = NONE_MEANT) -> Reader:
    """Read one of the known words. `meant` gives the known word for others that people try."""

    def read(value: Any) -> str:
        text = string(value)
        if text not in known and text.lower() in meant:
            raise UnfitError(f'is a server that takes signed updates; write "{meant[text.lower()]}"')
        if text not in known:
            raise UnfitError(f"is not known; {advice(text, known)}")
        return text

    return read


def duration(low: str, high: str) -> Reader:
    """Read a duration within bounds, both included, into nanoseconds."""
    low_ns, high_ns = units.duration_ns(low), units.duration_ns(high)

    def read(value: Any) -> int:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise UnfitError(f'has no unit; write "{shown(value)}s" for seconds')
        ns = units.duration_ns(string(value))
        if not low_ns <= ns <= high_ns:
            raise UnfitError(f"must be {low} to {high}")
        return ns

    return read


def ttl(value: Any) -> int:
    """Read a TTL into whole seconds, 1 to 86,400: DNS counts in seconds, and 0 makes every caller ask every time."""
    ns: int = duration("1s", "1d")(value)
    if ns % units.NS["s"]:
        raise UnfitError("must be whole seconds; DNS knows no smaller ones")
    return ns // units.NS["s"]


def share(low: str = "0%", high: str = "100%") -> Reader:
    """Read a share within bounds, both included, into millionths."""
    low_ppm, high_ppm = units.share_ppm(low), units.share_ppm(high)

    def read(value: Any) -> int:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise UnfitError('has no unit; write a share like "20%"')
        ppm = units.share_ppm(string(value))
        if not low_ppm <= ppm <= high_ppm:
            raise UnfitError(f"must be {low} to {high}")
        return ppm

    return read


def rate(value: Any) -> Rate:
    """Read a share a time, more than none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise UnfitError('has no unit; write a rate like "5%/min"')
    read = units.rate(string(value))
    if read.share_ppm == 0:
        raise UnfitError("must be more than 0: the removal budget would never refill")
    return read


_ZONE_ID = re.compile(r"(?:/hostedzone/)?([A-Z0-9]{1,32})")
_FREQUENCY = re.compile(r"([0-9]{1,4})/s")


def hosted_zone(value: Any) -> str:
    """Read the id of a hosted zone, as AWS shows it: ``Z0123456789ABC``, with or without ``/hostedzone/``."""
    found = _ZONE_ID.fullmatch(string(value))
    if found is None:
        raise UnfitError('is no id of a hosted zone; write it as AWS shows it, like "Z0123456789ABC"')
    return found[1]


def frequency(value: Any) -> str:
    """Read how many requests a second may be made: ``2/s``."""
    found = _FREQUENCY.fullmatch(string(value))
    if found is None or not 1 <= int(found[1]) <= 1000:
        raise UnfitError('must be whole requests a second, 1 to 1000, like "2/s"')
    return f"{int(found[1])}/s"


def api_url(value: Any) -> str:
    """Read where an API is reached: https, or http on this machine alone."""
    text = string(value)
    kind, sep, _ = text.partition("://")
    if not sep or kind not in ("http", "https"):
        raise UnfitError('must be a URL, like "https://api.example.com"')
    host, _, _ = _split_url(text)
    if kind == "http" and host not in LOOPBACK:
        raise UnfitError("is plain http to another machine, which anyone on the way can change; write https")
    return text.rstrip("/")


def aws_region(value: Any) -> str:
    """Read the name of an AWS region: ``eu-west-1``."""
    text = string(value)
    if not re.fullmatch(r"[a-z]{2}(?:-[a-z]+){1,3}-[0-9]{1,2}", text):
        raise UnfitError('is no AWS region; write one like "eu-west-1"')
    return text


def dynamodb_table(value: Any) -> str:
    """Read the name of a DynamoDB table: 3 to 255 of letters, digits, hyphen, underscore, dot."""
    text = string(value)
    if not re.fullmatch(r"[A-Za-z0-9_.-]{3,255}", text):
        raise UnfitError("must be 3 to 255 of letters, digits, hyphen, underscore and dot")
    return text


def domains(value: Any) -> tuple[str, ...]:
    """Read one domain or a list of them, normalised."""
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise UnfitError("is empty; name at least one domain")
    found: list[str] = []
    for one in listed:
        try:
            name = normalise(string(one))
        except ValueError as error:
            # What a single value is shown before its fault; of a list, which of them it is.
            raise UnfitError(f"{shown(one)} {error}" if isinstance(value, list) else str(error)) from error
        if name.startswith("*"):
            raise UnfitError(f"{shown(one)} is a wildcard; a domain is a DNS zone")
        if name in found:
            raise UnfitError(f"{name} is there twice")
        found.append(name)
    return tuple(found)


def words(value: Any) -> tuple[str, ...]:
    """Read a list of names, each once."""
    names = _each(word, value)
    if not names:
        raise UnfitError("is empty; leave it out, or name at least one")
    for index, name in enumerate(names):
        if name in names[:index]:
            raise UnfitError(f'"{name}" is there twice')
    return tuple(names)


def address(value: Any) -> str:
    """Read an address that can be published: unicast, and in its one canonical spelling afterwards."""
    text = string(value)
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        what = "is a network, not an address" if "/" in text else "is not an address"
        if with_port(text) is not None:
            what = "has a port, which is no part of an address"
        raise UnfitError(f"{what}; write one like 192.0.2.10 or 2001:db8::10") from None
    if ip.version == 6 and ip.ipv4_mapped is not None:
        raise UnfitError(f"is IPv4 written as IPv6; write {ip.ipv4_mapped}")
    if ip.version == 6 and ip.scope_id is not None:
        raise UnfitError("names an interface, which DNS can't say")
    if ip.is_unspecified or (ip.version == 4 and text.startswith("0.")):
        raise UnfitError("is no one's address; callers would reach their own machine")
    if ip.is_multicast or (ip.version == 4 and ip.is_reserved):
        raise UnfitError("is multicast, broadcast or reserved, so no one target answers there")
    if ip.version == 6 and ip.is_link_local:
        raise UnfitError("is link-local, so callers elsewhere can't reach it")
    return str(ip)


def with_port(value: Any) -> tuple[str, str] | None:
    """Give address and port of what was written as both, or None."""
    found = _WITH_PORT.fullmatch(value) if isinstance(value, str) else None
    return (found["six"] or found["four"], found["port"]) if found else None


def addresses(value: Any) -> tuple[str, ...]:
    """Read a list of addresses."""
    return tuple(_each(address, value))


def place(default_port: int = 0, *, names: bool = False) -> Reader:
    """Read ``address:port`` (v6 in brackets); where `names`, a host name too."""

    def read(value: Any) -> HostPort:
        text = string(value)
        match = _HOSTPORT.fullmatch(text)
        if match is None and text.count(":") > 1:
            raise UnfitError('has an IPv6 address without brackets; write it like "[::1]:5300"')
        port = int(match["port"] or default_port) if match else 0
        if match is None or not 1 <= port <= 65535:
            raise UnfitError('must be an address and a port from 1 to 65535, like "127.0.0.1:5300"')
        return HostPort(_host(match["six"] or match["host"], names=names), port)

    return read


def _host(text: str, *, names: bool) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        if not names or not text:
            raise UnfitError(
                "must start with an address: finding one by name needs the DNS that is to be repaired"
            ) from None
    return normalise(text)


def target_url(value: Any) -> Url:
    """Read what to ask of each target: ``http://:8080/healthz`` or ``tcp://:5432``."""
    text = string(value)
    kind, sep, _ = text.partition("://")
    if not sep:
        raise UnfitError('must begin with its kind, like "http://:8080/healthz" or "tcp://:5432"')
    if kind not in ("http", "tcp"):
        later = kind in ("https", "tls", "grpc")
        says = (
            "which is not built yet; use http or tcp"
            if later
            else f"which is not known; {advice(kind, ('http', 'tcp'))}"
        )
        raise UnfitError(f"has the kind {shown(kind)}, {says}")
    host, port, path = _split_url(text)
    if kind == "tcp" and (host or path):
        raise UnfitError('is a tcp probe, which only connects; write no more than its port, like "tcp://:5432"')
    return Url(kind, host, port or (80 if kind == "http" else 0), path or ("/" if kind == "http" else ""))


def http_url(value: Any) -> Url:
    """Read a URL to fetch from each target: ``http://:8080/capacity``."""
    url = target_url(value)
    if url.kind != "http":
        raise UnfitError('must be http, like "http://:8080/capacity"')
    return url


def canaries(value: Any) -> tuple[Url, ...]:
    """Read the addresses a checker must reach for its votes to count: ``tcp://192.0.2.1:53`` or ``http://192.0.2.1/``."""
    return tuple(_each(_canary, value))


def _canary(value: Any) -> Url:
    text = string(value)
    kind = text.partition("://")[0]
    if kind not in ("tcp", "http"):
        raise UnfitError('must be like "tcp://192.0.2.1:53" or "http://192.0.2.1:80/"')
    host, port, path = _split_url(text)
    if kind == "tcp" and not port:
        raise UnfitError('needs a port, like "tcp://192.0.2.1:53"')
    return Url(kind, _host(host, names=False), port or 80, path or ("/" if kind == "http" else ""))


def _split_url(text: str) -> tuple[str, int, str]:
    if any(char <= " " or char == "\x7f" for char in text):
        # urlsplit drops tabs and line ends, and another URL would be asked than the file says.
        raise UnfitError("has a space or control character, which no URL has; escape it with %")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        raise UnfitError('is not a URL; write it like "http://:8080/healthz"') from None
    if "@" in parts.netloc or parts.fragment:
        raise UnfitError("has a user, password or fragment, which no probe sends; leave it out")
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if not _URL_PATH.fullmatch(path) or text != text.strip():
        raise UnfitError(
            "has a path that isn't plain ASCII of at most 1,024 characters without spaces; escape the rest with %"
        )
    return (_host(host, names=True) if host else ""), port, path


def statuses(value: Any) -> tuple[int, ...]:
    """Read the list of HTTP statuses that are good."""
    found = tuple(sorted(set(_each(whole(100, 599), value))))
    if not found:
        raise UnfitError("is empty; leave it out to accept 200 to 299")
    return found


def records(value: Any) -> tuple[str, ...]:
    """Read the record types an endpoint publishes: ``["A", "AAAA"]``."""
    found = tuple(sorted(set(_each(choice("A", "AAAA"), value))))
    if not found:
        raise UnfitError('is empty; write ["A"], ["AAAA"] or both, or leave it out')
    return found


def secret(value: Any) -> Secret:
    """Read where a secret is. Never repeats what it was given: it may be the secret itself."""
    if not isinstance(value, dict):
        raise UnfitError(
            'is written in place; put it in a file only its user can read and write { file = "…" }, or { env = "…" }'
        )
    keys = sorted(value)
    if keys == ["file"] and isinstance(value["file"], str) and value["file"] and "\0" not in value["file"]:
        return Secret(file=value["file"])
    if keys == ["env"] and isinstance(value["env"], str) and _ENV.fullmatch(value["env"]):
        return Secret(env=value["env"])
    raise UnfitError('must be { file = "…" } or { env = "NAME_OF_A_VARIABLE" }, one of them')


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UnfitError(f"must be a list in square brackets, not {_kind(value)}")
    return value


def _each(read: Reader, value: Any) -> list[Any]:
    """Read each element, saying which one is wrong."""
    found = []
    for one in _list(value):
        try:
            found.append(read(one))
        except ValueError as error:
            raise UnfitError(f"{shown(one)} {error}") from error
    return found


def _kind(value: Any) -> str:
    return {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "a table",
    }.get(type(value), "a date or time")
