"""What a domain says to a question: the records and response code, before anything is put on the wire.

The algorithm is RFC 1034 section 4.3.2 as RFC 2308, 4592 and 8020 made it precise: a name with records answers, one
with names below it exists without data, a wildcard stands for names whose closest encloser holds it, and a CNAME is
followed as long as it stays within the same domain. ANY gets one record set (RFC 8482 section 4.1).
"""

from msgspec import Struct

from fencepost.core.dns_numbers import AAAA, ANY, CNAME, DS, NOERROR, NS, NXDOMAIN, SOA, A

from .contents import Contents, Node, RecordSet, find

_CHAIN_MAX = 8


class Found(Struct, frozen=True, gc=False):
    """The sections of an answer as (owner, records), and what it was made from.

    ``source`` is the name in the domain that the last answer's records stand at: a wildcard's own, if one stood in.
    """

    rcode: int
    answer: tuple[tuple[bytes, RecordSet], ...] = ()
    authority: tuple[tuple[bytes, RecordSet], ...] = ()
    additional: tuple[tuple[bytes, RecordSet], ...] = ()
    source: bytes = b""
    authoritative: bool = True
    wildcard: bool = False


def look_up(contents: Contents, name: bytes, rtype: int) -> Found:
    """Answer a question for a lower-case name in the domain, class IN."""
    chain: list[tuple[bytes, RecordSet]] = []
    seen = {name}
    wildcard = False
    while True:
        cut = contents.cut_above(name)
        if cut is not None and not (name == cut and rtype == DS):  # the parent's to answer (RFC 4035 section 3.1.4.1)
            return _referral(contents, chain, cut)
        source, node = _node(contents, name)
        wildcard = wildcard or source != name
        if node is None:
            return _negative(contents, chain, NXDOMAIN, wildcard=wildcard)
        found = node[0] if rtype == ANY and node else find(node, rtype)
        if found is not None:
            chain.append((name, found))
            return Found(NOERROR, tuple(chain), source=source, wildcard=wildcard)
        alias = find(node, CNAME)
        if alias is None:
            return _negative(contents, chain, NOERROR, wildcard=wildcard)
        chain.append((name, alias))
        name = alias.rdatas[0].lower()
        if name in seen or len(chain) >= _CHAIN_MAX or not _inside(contents, name):
            return Found(NOERROR, tuple(chain), source=source, wildcard=wildcard)
        seen.add(name)


def _inside(contents: Contents, name: bytes) -> bool:
    """Whether a name is the apex or below it, label by label."""
    at = 0
    while len(name) - at > len(contents.apex):
        at += name[at] + 1
    return name[at:] == contents.apex


def _node(contents: Contents, name: bytes) -> tuple[bytes, Node | None]:
    """Where a name's records stand, and they; () for a name that exists without records, None for one that doesn't."""
    node = contents.node(name)
    if node or contents.exists(name):
        return name, node
    star = b"\x01*" + contents.closest(name)
    node = contents.node(star)
    if node or contents.exists(star):
        return star, node
    return name, None


def _negative(contents: Contents, chain: list[tuple[bytes, RecordSet]], rcode: int, *, wildcard: bool) -> Found:
    """No such name or no such data; the SOA's TTL is the shorter of its own and its minimum (RFC 2308 section 3)."""
    soa = contents.soa
    minimum = int.from_bytes(soa.rdatas[0][-4:], "big")
    authority = ((contents.apex, RecordSet(SOA, min(soa.ttl, minimum), soa.rdatas)),)
    return Found(rcode, tuple(chain), authority, wildcard=wildcard)


def _referral(contents: Contents, chain: list[tuple[bytes, RecordSet]], cut: bytes) -> Found:
    """The name servers of a delegated name, with the addresses that stand below the cut."""
    servers = find(contents.node(cut), NS)
    assert servers is not None  # that is what makes it a cut  # noqa: S101
    glue = tuple(
        (host.lower(), found)
        for host in servers.rdatas
        for found in contents.node(host.lower())
        if found.rtype in (A, AAAA) and host.lower().endswith(cut)
    )
    return Found(NOERROR, tuple(chain), ((cut, servers),), glue, authoritative=bool(chain))
