"""What a name server's refusals mean, and what to do about each: response codes and TSIG errors in words.

One rule sorts them: would the same request be taken in a minute, unchanged? Never: ``Refused``. Not until a person has
changed a key, a right, a clock or a name: ``Misconfigured``. Perhaps: ``Unavailable``.

A response code alone says little: PowerDNS answers NOTAUTH or REFUSED to a key it doesn't know, to a wrong secret, to a
wrong clock and to a missing right alike, and BIND NOTAUTH to a transfer of a domain it doesn't have. So after one of
these the session asks a signed question that needs no right, and :class:`Standing` is what it learnt.
"""

import os
from enum import Enum, auto

from fencepost.adapters.dns_wire import rcode_name
from fencepost.core.dns_numbers import FORMERR, NOTAUTH, NOTIMP, NOTZONE, NXDOMAIN, REFUSED, SERVFAIL
from fencepost.ports import Misconfigured, PortError, Refused, Unavailable

AGAIN = "then  fencepost plan"
UNCLEAR = frozenset((REFUSED, NOTAUTH, NXDOMAIN))
"""Response codes that a key, a right or a missing domain may lie behind."""


class Standing(Enum):
    """What a server thinks of us, as far as a signed SOA question tells."""

    UNKNOWN = auto()
    KEY_REFUSED = auto()  # it doesn't take our signature, and doesn't say why
    NO_DOMAIN = auto()  # the signature is good, and it doesn't hold the domain
    WELCOME = auto()  # signature and domain are good: what was refused is a matter of rights


_SIGNATURE = {
    "BADSIG": (
        "it has that key with another secret (BADKEY would be: no such key; BADTIME: the clock)",
        "compare the file under [dns] key with the server's key",
    ),
    "BADKEY": (
        "it has no key of that name with that algorithm, or gives it no right here (BADSIG would be: another secret)",
        "add it there, or name the right one under [dns] key",
    ),
    "BADTIME": ("its clock and ours differ by more than five minutes", "set both by NTP"),
    "BADTRUNC": ("it demands a longer signature than was sent", "set the key's algorithm alike on both sides"),
}

_MISCONFIGURED = {
    REFUSED: ("it knows the request but not our right to it", "allow our key there: {grant}"),
    NOTAUTH: ("it is not the primary of {domain}, or doesn't know our key", "name the primary under [dns] server"),
    NOTZONE: (
        "it holds {domain} cut differently: a name of the update lies outside",
        "name under [dns] domain the domain exactly as its primary does",
    ),
    NXDOMAIN: ("it doesn't know {domain}", "name the primary under [dns] server"),
    NOTIMP: (
        "it doesn't do this at all",
        "turn updates on there, or name another server under [dns] server",
    ),
}

_GRANTS = {
    "UPDATE": "BIND: update-policy or allow-update, and check-names if a name has an underscore; if the domain is "
    "frozen (rndc freeze), which is refused the same way: rndc thaw DOMAIN; "
    "Knot: acl action update; PowerDNS: dnsupdate=yes, TSIG-ALLOW-DNSUPDATE and ALLOW-DNSUPDATE-FROM",
    "AXFR": "BIND: allow-transfer; Knot: acl action transfer; PowerDNS: TSIG-ALLOW-AXFR",
    "IXFR": "BIND: allow-transfer; Knot: acl action transfer; PowerDNS: TSIG-ALLOW-AXFR",
    "SOA query": "BIND: allow-query",
}


def _misconfigured(what: str, means: str, try_: str, doing: str) -> Misconfigured:
    """For a person; a write that was answered so has surely changed nothing."""
    return Misconfigured(what, where=doing, means=means, hint=f"{try_}, {AGAIN}", unchanged=doing.startswith("UPDATE"))


def bad_signature(server: str, key: str, error: str, ahead_s: int | None, doing: str) -> Misconfigured:
    """The server's verdict on our signature, by its name in RFC 8945 section 3."""
    means, try_ = _SIGNATURE.get(error, ("the server and we disagree about the key", "compare both sides"))
    if ahead_s:
        means = f"our clock is {abs(ahead_s):,} s {'ahead of' if ahead_s > 0 else 'behind'} its own; 300 s are allowed"
        try_ = "set the one that is wrong (NTP)"
    return _misconfigured(f'{server} doesn\'t accept our key "{key}.": TSIG {error}', means, try_, doing)


def bad_rcode(
    server: str, domain: str, rcode: int, doing: str, key: str = "", standing: Standing = Standing.UNKNOWN
) -> PortError:
    """A response code that isn't success, as the exception to raise. ``doing`` starts with the request's kind."""
    name = rcode_name(rcode)
    kind = doing.partition(" of ")[0]
    if rcode in UNCLEAR and standing is Standing.KEY_REFUSED:
        return _misconfigured(
            f'{server} doesn\'t accept our key "{key}.": {name}, without a reason',
            "it has no such key, or has it with another secret or algorithm, or its clock and ours differ by more than "
            "five minutes (PowerDNS doesn't say which)",
            "compare the file under [dns] key with the server's key (PowerDNS: pdnsutil list-tsig-keys) and the clocks",
            doing,
        )
    if rcode in UNCLEAR and standing is Standing.NO_DOMAIN:
        return _misconfigured(
            f"{server} holds no domain {domain}: {name}",
            "it accepts our key, but isn't the primary of a domain of that name",
            "name the primary under [dns] server, and the domain under [dns] domain exactly as it does",
            doing,
        )
    if rcode in _MISCONFIGURED:
        if rcode in UNCLEAR and standing is Standing.WELCOME:
            rcode = REFUSED
        means, try_ = _MISCONFIGURED[rcode]
        grant = _GRANTS.get(kind, "its access list")
        return _misconfigured(f"{server} answers {name}", means.format(domain=domain), try_.format(grant=grant), doing)
    if rcode == SERVFAIL:
        return Unavailable(
            f"{server} answers SERVFAIL", where=doing, hint="its own log says why (a full disk, an unloaded domain)"
        )
    if kind == "UPDATE":
        means = "it took the message for malformed" if rcode == FORMERR else "it won't take this change"
        return Refused(
            f"{server} answers {name}", where=doing, means=means, hint="its own log says why", unchanged=True
        )
    return Unavailable(f"{server} answers {name}", where=doing, hint="its own log says why")


def network_words(error: OSError) -> str:
    """A network error in words. asyncio's own name the address again, as Python writes it: "('127.0.0.1', 53)"."""
    return os.strerror(error.errno).lower() if error.errno else "unreachable"


def no_answer(server: str, why: str, doing: str) -> Unavailable:
    """Nothing came back, or not all of it."""
    return Unavailable(f"{server}: {why}", where=doing, hint="if it lasts: does it run, and is its port open?")
