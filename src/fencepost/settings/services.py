"""Judges the SRV records that endpoints ask for: whether their provider keeps any, and whether their names can be.

An endpoint's service stands at ``_http._tcp.`` and its name, and each of its addresses at a host of its own below it
(:mod:`fencepost.core.service`). Those names must fit, lie in the very domain of the endpoint (all of it is one
transaction), and be nobody else's.
"""

import re
from typing import Any

from fencepost.core.fence import SERVICE
from fencepost.core.names import MARKER_LABEL, NAME_MAX, WILDCARD_LABEL, longest_domain
from fencepost.core.service import HOST_LABEL_MAX, endpoint_beside
from fencepost.settings.providers import PROVIDERS
from fencepost.settings.schema import Endpoint, Region
from fencepost.settings.values import UnfitError, string

_FOUR_MAX = len("a-255-255-255-255")


def service(value: Any) -> str:
    """Read the service and protocol that SRV records are asked for: ``_http._tcp``."""
    text = string(value).lower()
    if not re.fullmatch(SERVICE, text):
        hint = 'write its service and protocol, like "_http._tcp"; the protocol is _tcp, _udp, _sctp or _dccp'
        raise UnfitError(f"is no service as SRV names one; {hint}")
    if text.partition(".")[0] in (MARKER_LABEL, WILDCARD_LABEL):
        raise UnfitError(f'begins with "{text.partition(".")[0]}", which is kept for markers')
    return text


def service_faults(region: Region) -> list[tuple[Endpoint, str]]:
    """Say what can't be right about the SRV records of a region's endpoints, each with the endpoint it is about."""
    asking = {endpoint.name: endpoint for endpoint in region.endpoints if endpoint.srv}
    if not asking:
        return []
    provider = PROVIDERS[region.dns.provider]
    found = []
    for endpoint in asking.values():
        if not provider.srv:
            fault = f"asks for SRV records, which are not kept on {provider.label} yet; leave srv out"
        else:
            fault = _fault(endpoint, region.dns.domains)
        if fault:
            found.append((endpoint, f"endpoint {endpoint.name} {fault}"))
    for endpoint in region.endpoints:
        beside = asking.get(endpoint_beside(endpoint.name) or "")
        if beside is not None and endpoint.name.removesuffix(f".{beside.name}") == beside.srv:
            text = f"is where the SRV records of endpoint {beside.name} stand; name it otherwise"
            found.append((endpoint, f"endpoint {endpoint.name} {text}"))
        elif beside is not None and not endpoint.name.startswith("_"):
            text = f"has the form of a host that SRV records of endpoint {beside.name} name; name it otherwise"
            found.append((endpoint, f"endpoint {endpoint.name} {text}"))
    return found


def _fault(endpoint: Endpoint, domains: tuple[str, ...]) -> str:
    """What can't be right about one endpoint; "" if nothing."""
    if endpoint.name.startswith("*"):
        return "is a wildcard, and no SRV record can stand beside one; leave srv out"
    service = f"{endpoint.srv}.{endpoint.name}"
    longest = max(len(endpoint.srv), HOST_LABEL_MAX if "AAAA" in endpoint.records else _FOUR_MAX)
    if longest + 1 + len(endpoint.name) > NAME_MAX:
        most = NAME_MAX - longest - 1
        return f"is {len(endpoint.name)} characters long, and with srv it may have {most} at most"
    domain = longest_domain(service, domains)
    if domain != endpoint.domain and endpoint.domain:
        return f"has its SRV records at {service}, which lies in {domain}, another domain; they couldn't change as one"
    return ""
