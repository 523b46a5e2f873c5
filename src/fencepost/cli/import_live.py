"""Reading what a provider serves now, for ``fencepost import live``.

By AXFR (RFC 5936) wherever a primary can be named, since only the whole zone tells glue from services; for a provider
that is reached by its API, through that provider's own port. dnspython takes half a minute for 200,000 records: this is
done once, and its parser is the field's own.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.cli.regions import region_of
from fencepost.core.instant import SECOND, Duration
from fencepost.core.names import normalise
from fencepost.importing import Book, Served
from fencepost.importing.region_file import listed, text
from fencepost.ports import Misconfigured, Unavailable
from fencepost.settings import Region
from fencepost.settings.providers import by_api
from fencepost.settings.schema import HostPort, Secret
from fencepost.settings.secret import TsigKey, read_tsig_key
from fencepost.settings.values import place

if TYPE_CHECKING:
    import dns.zone

HINT = "fencepost import live example.com@192.0.2.53 --key FILE"


def read(book: Book, source: tuple[str, ...], *, key: str | None, config: str | None, timeout: Duration) -> Served:
    """Read what stands into ``book``; who serves it. Raises a ``PortError``."""
    if not source:
        return of_region(book, region_of(config, forgiving=True), timeout)
    signer = key_in(key) if key is not None else None
    servers = []
    for each in source:
        name, _, server = each.partition("@")
        try:
            domain = normalise(name)
        except ValueError as error:
            raise Misconfigured(f"{name!a} {error}", hint=HINT) from None
        at = server_at(server) if server else primary_of(domain)
        transfer(book, domain, at, signer, timeout)
        servers.append(at)
    if len(set(servers)) > 1:
        raise Misconfigured("a region has one server, and these are several", hint="import them one by one")
    signs = f"key = {{ file = {text(str(Path(key).absolute()))} }}" if key is not None else NO_KEY
    return Served(('provider = "rfc2136"', f"server = {text(str(servers[0]))}", signs), ", ".join(source))


NO_KEY = 'key = { file = "tsig.key" }    # updates are signed: tsig-keygen fencepost > tsig.key, and let it in there'


def key_in(file: str) -> TsigKey:
    """The key in a file. Raises ``Misconfigured``."""
    try:
        return read_tsig_key(Secret(file=str(Path(file).absolute())), os.environ)
    except ValueError as error:
        raise Misconfigured(str(error), where="--key") from None


def server_at(server: str) -> HostPort:
    """What stands after the @. Raises ``Misconfigured``."""
    try:
        found: HostPort = place(53, names=True)(server)
    except ValueError as error:
        raise Misconfigured(f"{server!a} {error}", hint=HINT) from None
    return found


def primary_of(domain: str) -> HostPort:
    """The primary that the domain's SOA names, by this machine's resolver. Raises ``Unavailable``."""
    import dns.exception
    import dns.resolver

    try:
        answer = dns.resolver.resolve(domain, "SOA", lifetime=5.0)
        return HostPort(answer[0].mname.to_text(omit_final_dot=True), 53)
    except (dns.exception.DNSException, OSError) as error:
        what = f"its primary isn't known ({str(error).rstrip('.') or type(error).__name__})"
        raise Unavailable(
            what, where=domain, hint=f"name its server:  fencepost import live {domain}@192.0.2.53"
        ) from None


def transfer(book: Book, domain: str, at: HostPort, key: TsigKey | None, timeout: Duration) -> None:
    """Read a whole domain by AXFR. Raises ``Misconfigured`` if it is refused, ``Unavailable`` if nobody answers."""
    import dns.exception
    import dns.query
    import dns.tsig
    import dns.xfr

    from fencepost.importing import zonefile

    where = f"AXFR of {domain} from {at}"
    try:
        zone = transferred(domain, at, key, timeout)
    except dns.xfr.TransferError as error:
        hint = "let this machine or a key transfer it (allow-transfer), and name the key: --key FILE"
        if error.rcode == dns.rcode.NOTAUTH:
            hint = "it holds no such domain, as far as one may see; or " + hint
        raise Misconfigured(f"the server answers {dns.rcode.to_text(error.rcode)}", where=where, hint=hint) from None
    except (dns.tsig.PeerError, dns.tsig.BadSignature, dns.tsig.BadTime) as error:
        said = str(error) or type(error).__name__
        raise Misconfigured(
            f"the key isn't accepted: {said}", where=where, hint="compare it with the server's"
        ) from None
    except dns.exception.Timeout:
        what = f"no answer within {timeout / SECOND:g} s"
        raise Unavailable(what, where=where, hint="a longer --timeout waits longer") from None
    except (dns.exception.DNSException, OSError, EOFError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unavailable(f"broke off: {said}", where=where, hint="is that its primary?") from None
    zonefile.of_zone(book, zone)


def transferred(domain: str, at: HostPort, key: TsigKey | None, timeout: Duration) -> "dns.zone.Zone":
    """The zone. Raises dnspython's errors, ``OSError``."""
    import socket

    import dns.message
    import dns.query
    import dns.tsig

    from fencepost.importing.zonefile import Bounded

    query = dns.message.make_query(f"{domain}.", "AXFR")
    if key is not None:
        query.use_tsig({f"{key.name}.": dns.tsig.Key(f"{key.name}.", key.secret, f"{key.algorithm}.")})
    zone = Bounded(f"{domain}.", relativize=False)
    host = socket.getaddrinfo(at.host, at.port, type=socket.SOCK_STREAM)[0][4][0]
    dns.query.inbound_xfr(str(host), zone, query, port=at.port, timeout=timeout / SECOND)
    return zone


def of_region(book: Book, region: Region, timeout: Duration) -> Served:
    """Read what the domains of a region hold now, as the region itself reads them."""
    from fencepost import assembly

    at = region.dns.place
    if at is not None and not by_api(region.dns):
        key = assembly.tsig_key(region)
        for domain in region.dns.domains:
            transfer(book, domain, at, key, timeout)
    else:
        by_port(book, region, timeout)
    return Served(tuple(provider_lines(region)), f"the domains of {region.path}")


def by_port(book: Book, region: Region, timeout: Duration) -> None:
    """Through the provider's port: addresses, markers, and what stands in their way; no name servers' glue."""
    from fencepost.cli.talk import Talk, talk_about

    async def work(talk: Talk) -> int:
        for domain in region.dns.domains:
            book.domain(domain)
        for name in sorted(await talk.within(talk.dns.read(), f"DNS ({region.dns.provider})")):
            live = talk.dns.live(name)
            for kind, addresses in (("A", live.a), ("AAAA", live.aaaa)):
                if addresses:
                    book.add(name, kind, live.ttl, addresses)
            if live.other:
                book.leave(name, f"{live.other[0]} stands there")
            if live.marker is not None:
                book.marker(f"_fencepost.{name}")
        return 0

    talk_about(region, timeout, work)


def provider_lines(region: Region) -> list[str]:
    """The lines of [dns] that say who serves, as the region has them."""
    dns = region.dns
    lines = [f"provider = {text(dns.provider)}"]
    lines += [f"listen = {text(str(dns.listen))}"] if dns.provider == "embedded" and dns.listen else []
    lines += [f"server = {text(str(dns.server))}"] if dns.server else []
    lines += [f"transfer = {listed(dns.transfer)}"] if dns.transfer else []
    secrets = ([("key", dns.key)] if dns.key else []) + list(dns.secrets)
    for name, secret in secrets:
        kind, value = ("file", secret.file) if secret.file else ("env", secret.env)
        lines.append(f"{name} = {{ {kind} = {text(value)} }}")
    return lines + [f"{name} = {text(value)}" for name, value in dns.options]
