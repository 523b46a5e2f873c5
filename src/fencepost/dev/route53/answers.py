"""DNS answers from an account's zones, as Route 53's name servers give them, kept small.

Of weighted sets one is answered, drawn by weight (Developer Guide, "Weighted routing": weight ÷ sum; zero is left out
unless all are zero). Of latency, geolocation and failover sets the first is answered (the primary, for failover): there
is no map and no health check here. Of multivalue sets up to eight values. An alias is followed where its target is in
the account. Names below a delegation get a referral (RFC 1034 section 4.3.2), wildcards are those of RFC 4592.

A zone transfer is refused, as by Route 53. Changes are answered at once; Route 53 takes up to a minute.
"""

import random
import re
from collections.abc import Iterable, Sequence

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from fencepost.dev.route53.account import Account, HostedZone
from fencepost.dev.route53.names import canonical, within
from fencepost.dev.route53.record_set import RecordSet

CHAIN_MOST = 8
MULTIVALUE_MOST = 8
"""Developer Guide, "Multivalue answer routing"."""
ALIAS_TTL_S = 60
"""An alias has its target's TTL (Developer Guide, "Choosing between alias and non-alias records"); else this."""
UDP_BYTES_MOST = 1232
UDP_BYTES_PLAIN = 512
_OCTAL = re.compile(r"\\([0-3][0-7]{2})")


def answer(account: Account, wire: bytes, chance: random.Random, *, udp: bool) -> bytes | None:
    """The answer to a message, or None for what isn't a question."""
    try:
        asked = dns.message.from_wire(wire)
    except dns.exception.DNSException:
        return None
    if asked.flags & dns.flags.QR:
        return None
    reply = dns.message.make_response(asked)
    if asked.opcode() != dns.opcode.QUERY or len(asked.question) != 1:
        reply.set_rcode(dns.rcode.NOTIMP)
    else:
        try:
            _Lookup(account, reply, chance).fill(asked.question[0])
        except (dns.exception.DNSException, ValueError):  # a value of a type that isn't checked, or a name like that
            reply = dns.message.make_response(asked)
            reply.set_rcode(dns.rcode.SERVFAIL)
    most = 65535
    if udp:
        most = min(max(asked.payload, UDP_BYTES_PLAIN), UDP_BYTES_MOST) if asked.edns >= 0 else UDP_BYTES_PLAIN
    try:
        return reply.to_wire(max_size=most)
    except dns.exception.TooBig:
        cut = dns.message.make_response(asked)
        cut.flags |= dns.flags.TC | dns.flags.AA
        return cut.to_wire()


def zone_of(account: Account, name: str) -> HostedZone | None:
    """The zone that answers for a canonical name: the longest, a public one before a private one."""
    found = [zone for zone in account.zones.values() if within(name, zone.name)]
    return max(found, key=lambda zone: (len(zone.name), not zone.private), default=None)


class _Lookup:
    """One question's way through a zone."""

    def __init__(self, account: Account, reply: dns.message.Message, chance: random.Random) -> None:
        self._account = account
        self._reply = reply
        self._chance = chance

    def fill(self, question: dns.rrset.RRset) -> None:
        """Put answer, authority and code into the reply."""
        name, kind = from_wire_name(question.name), dns.rdatatype.to_text(question.rdtype)
        zone = zone_of(self._account, name)
        transfer = question.rdtype in (dns.rdatatype.AXFR, dns.rdatatype.IXFR)
        if zone is None or transfer or question.rdclass != dns.rdataclass.IN:
            self._reply.set_rcode(dns.rcode.REFUSED)
            return
        self._reply.flags |= dns.flags.AA
        for _ in range(CHAIN_MOST):
            cut = delegation(zone, name)
            if cut is not None:
                self._refer(zone, cut)
                return
            at = place(zone, name)
            here = zone.sets[at] if at is not None else {}
            sets = [each for each in here.values() if kind in (each.type, "ANY")]
            if sets:
                self._add(name, sets)
                if self._reply.answer:
                    return
                break  # an alias whose target isn't in the account
            alias = next((each for each in here.values() if each.type == "CNAME"), None)
            if alias is None:
                break
            target = self._add(name, [each for each in here.values() if each.type == "CNAME"])
            if target is None or not within(target, zone.name):
                return
            name = target
        else:
            return
        soa = next(each for each in zone.sets[zone.name].values() if each.type == "SOA")
        self._reply.authority.append(rrset(zone.name, soa.ttl or 0, "SOA", soa.values))
        if at is None and not any(within(each, name) for each in zone.sets):
            self._reply.set_rcode(dns.rcode.NXDOMAIN)

    def _add(self, name: str, sets: Sequence[RecordSet]) -> str | None:
        """Put one answer a type into the reply; the name that a CNAME leads to."""
        target = None
        for kind in dict.fromkeys(each.type for each in sets):
            ttl, values = self._chosen([each for each in sets if each.type == kind], CHAIN_MOST)
            if values:
                self._reply.answer.append(rrset(name, ttl, kind, values))
                target = canonical(values[0]) if kind == "CNAME" else None
        return target

    def _chosen(self, sets: Sequence[RecordSet], hops: int) -> tuple[int, Sequence[str]]:
        """TTL and values: of one set, or of several multivalue ones."""
        first = sets[0]
        if first.weight is not None:
            weights = [each.weight or 0 for each in sets]
            first = self._chance.choices(sets, weights if any(weights) else None)[0]
        elif first.failover is not None:
            first = next((each for each in sets if each.failover == "PRIMARY"), first)
        elif first.multi_value:
            many = self._chance.sample(list(sets), min(len(sets), MULTIVALUE_MOST))
            return first.ttl or 0, tuple(dict.fromkeys(value for each in many for value in each.values))
        if first.alias is None:
            return first.ttl or 0, first.values
        target = canonical(first.alias.name)
        zone = self._account.zones.get(first.alias.zone) or zone_of(self._account, target)
        there = [] if zone is None else [each for each in zone.sets.get(target, {}).values() if each.type == first.type]
        if not there or not hops:
            return ALIAS_TTL_S, ()
        return self._chosen(there, hops - 1)

    def _refer(self, zone: HostedZone, cut: str) -> None:
        """Name the servers of a delegated name, with addresses this zone has for them."""
        self._reply.flags &= ~dns.flags.AA
        servers = zone.sets[cut]["NS", ""]
        self._reply.authority.append(rrset(cut, servers.ttl or 0, "NS", servers.values))
        for server in servers.values:
            for each in zone.sets.get(canonical(server), {}).values():
                if each.type in ("A", "AAAA") and each.values:
                    self._reply.additional.append(rrset(each.name, each.ttl or 0, each.type, each.values))


def delegation(zone: HostedZone, name: str) -> str | None:
    """The delegated name at or above `name`, below the zone's own."""
    found = None
    for above in ancestors(name):
        if above == zone.name:
            break
        if ("NS", "") in zone.sets.get(above, {}):
            found = above
    return found


def place(zone: HostedZone, name: str) -> str | None:
    """The name whose sets answer for `name`: itself, or the wildcard at its closest encloser (RFC 4592)."""
    if name in zone.sets:
        return name
    for above in ancestors(name):
        if above != name and (above == zone.name or any(within(each, above) for each in zone.sets)):
            wildcard = f"\\052.{above}"
            inside = any(within(each, name) for each in zone.sets)
            return wildcard if wildcard in zone.sets and not inside else None
    return None


def ancestors(name: str) -> Iterable[str]:
    """A canonical name and those above it."""
    while name:
        yield name
        name = name.partition(".")[2]


def from_wire_name(name: dns.name.Name) -> str:
    """A name of a message as canonical text."""
    return canonical(decimal_to_octal(name.to_text()))


def decimal_to_octal(text: str) -> str:
    """Master file escapes are decimal (RFC 1035 section 5.1), Route 53's are octal."""
    return re.sub(r"\\(\d{3})|\\(\D)", lambda m: f"\\{int(m[1]) if m[1] else ord(m[2]):03o}", text)


def octal_to_decimal(text: str) -> str:
    """The other way."""
    return _OCTAL.sub(lambda match: f"\\{int(match[1], 8):03d}", text)


def rrset(name: str, ttl: int, kind: str, values: Sequence[str]) -> dns.rrset.RRset:
    """Records for a message."""
    found = dns.rrset.RRset(
        dns.name.from_text(octal_to_decimal(name)), dns.rdataclass.IN, dns.rdatatype.from_text(kind)
    )
    found.update_ttl(ttl)
    for value in values:
        found.add(dns.rdata.from_text("IN", kind, octal_to_decimal(value), dns.name.root, False), ttl)
    return found
