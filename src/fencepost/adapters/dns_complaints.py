"""What a name server's refusals mean, and what to do about each: response codes and TSIG errors in words.

One rule sorts them: would the same request be taken in a minute, unchanged? Never: ``Refused``. Not until a person has
changed a key, a right or a name: ``Misconfigured``. Perhaps: ``Unavailable``.
"""

from fencepost.adapters.dns_wire import rcode_name
from fencepost.core.dns_numbers import FORMERR, NOTAUTH, NOTIMP, NOTZONE, NXDOMAIN, REFUSED, SERVFAIL
from fencepost.ports import Misconfigured, PortError, Refused, Unavailable

_SIGNATURE = {
    "BADSIG": "it has that key with another secret or algorithm; compare the key's file with the server's key",
    "BADKEY": "it has no key of that name; add it there, or name the right one under [dns] key",
    "BADTIME": "its clock and ours differ by more than five minutes; set both by NTP",
    "BADTRUNC": "it demands a longer signature than was sent; set the key's algorithm alike on both sides",
}

_MISCONFIGURED = {
    REFUSED: "it knows the request but not our right to it; allow our key there ({grant})",
    NOTAUTH: "it is not the primary of {domain}, or doesn't know our key; name the primary under [dns] server",
    NOTZONE: "it holds {domain} cut differently; name under [dns] domains the domain exactly as its primary does",
    NXDOMAIN: "it doesn't know {domain}; name the primary under [dns] server",
    NOTIMP: "it doesn't do this at all; name the primary under [dns] server, or choose another provider",
}

_GRANTS = {
    "UPDATE": "BIND: update-policy or allow-update, and check-names if a name has an underscore; "
    "Knot: acl action update",
    "AXFR": "BIND: allow-transfer; Knot: acl action transfer",
    "IXFR": "BIND: allow-transfer; Knot: acl action transfer",
    "SOA query": "BIND: allow-query",
}


def bad_signature(server: str, key: str, error: str, doing: str) -> Misconfigured:
    """The server's verdict on our signature, by its name in RFC 8945 section 3."""
    means = _SIGNATURE.get(error, "the server and we disagree about the key; compare both sides")
    return Misconfigured(
        f'{server} doesn\'t accept our key "{key}.": TSIG {error}', where=doing, hint=f"{means}, then  fencepost plan"
    )


def bad_rcode(server: str, domain: str, rcode: int, doing: str) -> PortError:
    """A response code that isn't success, as the exception to raise. ``doing`` starts with the request's kind."""
    name = rcode_name(rcode)
    kind = doing.partition(" of ")[0]
    if rcode in _MISCONFIGURED:
        hint = _MISCONFIGURED[rcode].format(domain=domain, grant=_GRANTS.get(kind, "its access list"))
        return Misconfigured(f"{server} answers {name}", where=doing, hint=f"{hint}, then  fencepost plan")
    if rcode == SERVFAIL:
        return Unavailable(
            f"{server} answers SERVFAIL", where=doing, hint="its own log says why (a full disk, an unloaded domain)"
        )
    if kind == "UPDATE":
        means = "it took the message for malformed" if rcode == FORMERR else "it won't take this change"
        return Refused(f"{server} answers {name}", where=doing, hint=f"{means}; its own log says why")
    return Unavailable(f"{server} answers {name}", where=doing, hint="its own log says why")


def no_answer(server: str, why: str, doing: str) -> Unavailable:
    """Nothing came back, or not all of it."""
    return Unavailable(f"{server}: {why}", where=doing, hint="if it lasts: does it run, and is its port open?")
