"""What one domain holds, in memory, and how one change replaces part of it.

Everything a name has is one immutable tuple of record sets under its wire name, and the names are spread over a
thousand buckets. A zone transfer keeps one consistent version while changes go on by taking the list of buckets; from
then on a bucket is copied before it is changed. So neither a transfer's start nor a change costs more in a large domain
than in a small one (copying one mapping of 200,000 names stood still for 14 ms). The file (:mod:`.file`) is written
first; only then is a change applied here.

Two small things are kept beside: how many names lie directly or indirectly below each name, since an empty name between
others exists (RFC 8020, RFC 4592 section 2.2.2) and must not be answered NXDOMAIN; and the delegation points.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from msgspec import Struct

from fencepost.core.dns_numbers import NS, SOA

from .wire import NAMED, same_as

T = TypeVar("T")


class RecordSet(Struct, frozen=True, gc=False):
    """The records of one name and type; ``ttl`` in seconds (RFC 2181 section 5.2: one for all), data uncompressed."""

    rtype: int
    ttl: int
    rdatas: tuple[bytes, ...]


Node = tuple[RecordSet, ...]
"""All record sets of one name."""

NO_NODE: Node = ()

_BUCKETS = 1_024


class Change(Struct, frozen=True, gc=False):
    """One atomic change: the new state of each touched name, and the same as records taken away and added.

    ``removed`` and ``added`` are whole records on the wire as :func:`record_wire` writes them; each starts with the old
    and new SOA, which is just what an incremental transfer sends (RFC 1995 section 4).
    """

    serial_from: int
    serial_to: int
    nodes: dict[bytes, Node]
    removed: tuple[bytes, ...]
    added: tuple[bytes, ...]


def find(node: Node, rtype: int) -> RecordSet | None:
    """The record set of a type at a name, if it has one."""
    for found in node:
        if found.rtype == rtype:
            return found
    return None


def record_head(owner: bytes, apex: bytes, found: RecordSet) -> bytes:
    """Owner, type, class and TTL on the wire; the owner ends in a pointer to offset 12, where the apex is asked for."""
    return b"%b\xc0\x0c%b\x00\x01%b" % (
        owner[: -len(apex)],
        found.rtype.to_bytes(2, "big"),
        found.ttl.to_bytes(4, "big"),
    )


def record_wire(owner: bytes, apex: bytes, found: RecordSet, rdata: bytes) -> bytes:
    """One whole record for a message whose question is the apex."""
    return b"%b%b%b" % (record_head(owner, apex, found), len(rdata).to_bytes(2, "big"), rdata)


def soa_serial(rdata: bytes) -> int:
    """The serial in SOA data."""
    return int.from_bytes(rdata[-20:-16], "big")


def with_serial(rdata: bytes, serial: int) -> bytes:
    """SOA data with another serial."""
    return rdata[:-20] + serial.to_bytes(4, "big") + rdata[-16:]


def differences(apex: bytes, owner: bytes, old: Node, new: Node) -> tuple[list[bytes], list[bytes]]:
    """The records taken away and added at one name; the SOA is left to the caller. A new TTL replaces all records."""
    removed: list[bytes] = []
    added: list[bytes] = []
    for rtype in sorted({found.rtype for found in (*old, *new)} - {SOA}):
        before, now = find(old, rtype), find(new, rtype)
        same_ttl = before is not None and now is not None and before.ttl == now.ttl
        kept = set(before.rdatas) & set(now.rdatas) if before is not None and now is not None and same_ttl else set()
        for found, out in ((before, removed), (now, added)):
            if found is not None:
                out.extend(record_wire(owner, apex, found, rdata) for rdata in found.rdatas if rdata not in kept)
    return removed, added


class Contents:
    """The names of one domain, all of them lower-case wire names."""

    def __init__(self, apex: bytes, nodes: Iterable[tuple[bytes, Node]] = ()) -> None:
        self.apex = apex
        self.records = 0
        self.cuts: set[bytes] = set()
        self._buckets: list[dict[bytes, Node]] = [{} for _ in range(_BUCKETS)]
        self._shared: set[int] = set()
        self._below: dict[bytes, int] = {}
        for owner, node in nodes:
            self._put(owner, node)

    @property
    def soa(self) -> RecordSet:
        """The SOA record set; a loaded domain always has one."""
        found = find(self.node(self.apex), SOA)
        assert found is not None  # kept by updates: the SOA can be replaced, never deleted  # noqa: S101
        return found

    @property
    def serial(self) -> int:
        """The serial now served."""
        return soa_serial(self.soa.rdatas[0])

    def node(self, name: bytes) -> Node:
        """All record sets of a name, () if it has none."""
        return self._buckets[hash(name) % _BUCKETS].get(name, NO_NODE)

    def snapshot(self) -> Iterator[tuple[bytes, Node]]:
        """Every name and its record sets, as they are at this call, whatever changes while they are read."""
        buckets = self._buckets.copy()
        self._shared.update(range(_BUCKETS))
        return chain.from_iterable(bucket.items() for bucket in buckets)

    def exists(self, name: bytes) -> bool:
        """Whether a name exists: it has records, or names below it have."""
        return bool(self.node(name)) or name in self._below

    def cut_above(self, name: bytes) -> bytes | None:
        """The topmost delegation at or above a name, if one is in the way."""
        found = None
        if self.cuts:
            for tail in suffixes(name):
                if len(tail) <= len(self.apex):
                    break
                if tail in self.cuts:
                    found = tail
        return found

    def closest(self, name: bytes) -> bytes:
        """The closest encloser of a name that doesn't exist (RFC 4592 section 3.3.1)."""
        for tail in suffixes(name):
            if tail == self.apex or self.exists(tail):
                return tail
        return self.apex

    def apply(self, nodes: Mapping[bytes, Node]) -> None:
        """Put the new state of some names in place; an empty node is a name that went."""
        for owner, node in nodes.items():
            self._put(owner, node)

    def _put(self, owner: bytes, node: Node) -> None:
        index = hash(owner) % _BUCKETS
        if index in self._shared:
            self._shared.discard(index)
            self._buckets[index] = self._buckets[index].copy()
        bucket = self._buckets[index]
        old = bucket.get(owner, NO_NODE)
        if node:
            bucket[owner] = node
        elif old:
            del bucket[owner]
        self.records += sum(len(found.rdatas) for found in node) - sum(len(found.rdatas) for found in old)
        if bool(node) != bool(old):
            self._count(owner, 1 if node else -1)
        if owner != self.apex:
            if find(node, NS) is not None:
                self.cuts.add(owner)
            else:
                self.cuts.discard(owner)

    def _count(self, owner: bytes, step: int) -> None:
        if owner == self.apex:
            return
        for tail in suffixes(owner):
            if len(tail) <= len(self.apex):
                break
            if tail is not owner:
                count = self._below.get(tail, 0) + step
                if count:
                    self._below[tail] = count
                else:
                    del self._below[tail]


def suffixes(name: bytes) -> Iterator[bytes]:
    """The name itself, then without its first label, and so on down to the root."""
    yield name
    at = 0
    while length := name[at]:
        at += length + 1
        yield name[at:]


def domain_of(name: bytes, domains: Mapping[bytes, T]) -> T | None:
    """The longest of the domains (by lower-case apex) that a lower-case name lies in, or None."""
    for tail in suffixes(name):
        found = domains.get(tail)
        if found is not None:
            return found
    return None


def same_set(rtype: int, one: Iterable[bytes], other: Iterable[bytes]) -> bool:
    """Whether two record sets hold the same data, order aside, names inside compared without case."""
    if rtype not in NAMED:
        return set(one) == set(other)
    return {same_as(rtype, data) for data in one} == {same_as(rtype, data) for data in other}
