"""``fencepost dev wipe``: a careless writer, to see records heal. Only where ``drills = true``.

It is what another tool with the same key could do at any time: a plain RFC 2136 UPDATE without prerequisites.
"""

import base64

from fencepost.cli.flags import Config, Json, Timeout, duration
from fencepost.cli.regions import region_of
from fencepost.cli.talk import answer, endpoint_name
from fencepost.core.names import marker_name
from fencepost.ports import Misconfigured, Refused, Unavailable
from fencepost.settings import Region
from fencepost.settings.providers import by_api, where
from fencepost.settings.secret import TsigKey


def wipe(
    name: str,
    /,
    *,
    marker: bool = False,
    both: bool = False,
    timeout: Timeout = "5s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Delete an endpoint's addresses as a careless writer would, unfenced (regions with drills = true only).

    Parameters
    ----------
    marker
        Delete its marker instead.
    both
        Delete addresses and marker.
    """
    from fencepost import assembly

    region = region_of(config, forgiving=True)
    if not region.drills:
        raise Refused(
            "this region doesn't allow drills", where=region.path, hint="drills = true in [region], if you mean it"
        )
    if by_api(region.dns):
        hint = "delete the record set by the provider's own console or tool: it heals just the same"
        raise Refused(f"this careless writer speaks RFC 2136, and {where(region.dns)} doesn't", hint=hint)
    full = endpoint_name(region, name)
    kinds = [(full, "A"), (full, "AAAA")] if both or not marker else []
    if marker or both:
        kinds.append((marker_name(full), "TXT"))
    delete(region, full, kinds, assembly.tsig_key(region), duration(timeout, "--timeout") / 1e9)
    what = "addresses and marker are" if both else "marker is" if marker else "addresses are"
    answer(
        f"{full}: its {what} deleted, without asking anybody\n  see      fencepost history {full} --last 1m",
        {"done": "wipe", "on": [full], "deleted": [kind for _, kind in kinds]},
        as_json=json,
    )
    return 0


def delete(region: Region, name: str, kinds: list[tuple[str, str]], key: TsigKey, patience_s: float) -> None:
    """Send the UPDATE. Raises ``Refused`` or ``Unavailable``."""
    import dns.exception
    import dns.query
    import dns.rcode
    import dns.tsig
    import dns.update

    place = region.dns.place
    domain = next((each.domain for each in region.endpoints if each.name == name), region.dns.domains[0])
    if place is None:
        raise Misconfigured("no DNS server is named", where=region.path)
    signer = dns.tsig.Key(key.name, base64.b64encode(key.secret).decode(), key.algorithm)
    update = dns.update.UpdateMessage(f"{domain}.", keyring=signer)
    for at, kind in kinds:
        update.delete(dns.name.from_text(f"{at}."), kind)
    try:
        reply = dns.query.tcp(update, place.host, timeout=patience_s, port=place.port)
    except (OSError, dns.exception.DNSException) as error:
        raise Unavailable(f"no answer ({error})", where=f"DNS at {place}") from None
    if reply.rcode() != dns.rcode.NOERROR:
        raise Refused(f"the server answered {dns.rcode.to_text(reply.rcode())}", where=f"DNS at {place}")
