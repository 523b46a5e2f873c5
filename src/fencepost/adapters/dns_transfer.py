"""Zone transfers, walked over as bytes: the whole domain (AXFR, RFC 5936) or what changed (IXFR, RFC 1995).

A transfer is a stream of records between two copies of the newest SOA. A whole one lists every record in between. An
incremental one lists, for each version, the old SOA, what went, the new SOA, what came. Which of the two an IXFR
request is answered with shows in the second record: a SOA with the serial asked from, or anything else. A lone SOA
says that there is nothing newer.

:class:`Transfer` is told each message's records and says when the stream is complete. It never touches the mirror it
started from: a whole transfer fills a new one, an incremental one a table of taken-apart endpoints, and only
:meth:`Transfer.finish` puts them in place. So a transfer that breaks off, or is refused midway, changes nothing; taking
its beginning for the domain would delete the rest (external-dns #2071).
"""

from collections.abc import Collection, Sequence
from enum import Enum, auto

from fencepost.adapters.dns_mirror import Mirror, Parts
from fencepost.adapters.dns_wire import Record, read_name, run_data, soa_serial
from fencepost.core.dns_numbers import AAAA, CNAME, NS, SOA, SRV, TXT, A, Malformed, split_strings

RECORDS_MAX = 5_000_000
"""Records in one transfer: many times the largest domain that is promised (300,000), and they fit in memory."""

_ADDRESSES = frozenset((A, AAAA))
_NAMED = {CNAME: 0, NS: 0, SRV: 6}
"""Types whose data end in a name, and the bytes before it. Old servers compress SRV's (RFC 2782 forbids it)."""


class State(Enum):
    """Where in the stream of records a transfer stands."""

    START = auto()
    FIRST = auto()  # one SOA seen
    WHOLE = auto()
    REMOVED = auto()
    ADDED = auto()
    DONE = auto()


_WITHIN = (State.REMOVED, State.ADDED)


class Transfer:
    """One transfer into a mirror; incremental if ``mirror`` has been read before and ``whole`` isn't asked for."""

    def __init__(self, mirror: Mirror, *, whole: bool) -> None:
        self._from = mirror
        self._whole = whole
        self._fresh = Mirror(mirror.domain, mirror.owner)
        self._apex = b"".join(bytes((len(label),)) + label.encode() for label in mirror.domain.split(".")) + b"\0"
        self._touched: dict[str, Parts] = {}
        self._state = State.START
        self._serial = -1  # of the version the current section belongs to
        self._newest = -1
        self._records = 0
        self._owner = b""
        self._group: list[tuple[int, int, Sequence[bytes]]] = []
        self._names: dict[bytes, str | None] = {}  # by owner, its endpoint
        self.stale = False
        """Whether the server says that it holds nothing newer, though its serial isn't ours (it was set back)."""

    def feed(self, message: bytes, records: list[Record], known: dict[int, bytes]) -> bool:
        """Take the answer section of the next message, runs of addresses taken as one or not; whether it is complete.

        Raises :class:`Malformed`, or :class:`~fencepost.adapters.dns_mirror.OutOfStep` if a change doesn't fit.
        """
        self._records += int.from_bytes(message[6:8], "big")
        if self._records > RECORDS_MAX:
            raise Malformed(f"more than {RECORDS_MAX:,} records")
        at = 0
        while at < len(records):
            if self._state is State.WHOLE:
                at = self._feed_whole(message, records, at, known)
            elif records[at][1] != SOA and self._state in _WITHIN:
                at = self._feed_version(message, records, at, known)
            else:
                self._step(message, records[at], known)
                at += 1
        if self._state is State.FIRST and not self._whole:
            ours, theirs = self._from.serial, self._newest
            if ours == theirs or not _newer(theirs, ours):
                self.stale = ours != theirs
                self._state = State.DONE
        return self._state is State.DONE

    @property
    def was_whole(self) -> bool:
        """Whether everything came, asked for or not (RFC 1995 section 4 lets a server answer so)."""
        return self._fresh.serial >= 0

    def finish(self) -> tuple[Mirror, Collection[str]]:
        """The mirror as of now, and the names that changed. Only after :meth:`feed` said complete."""
        if self.was_whole:
            old, new = self._from.lives, self._fresh.lives
            changed = [name for name, live in new.items() if old.get(name) != live]
            changed += [name for name in old if name not in new]
            self._fresh.also_changed()  # they differ like all others
            return self._fresh, changed
        mirror = self._from
        changed = [name for name, parts in self._touched.items() if mirror.put(name, parts)]
        changed += mirror.also_changed()
        if not self.stale:
            mirror.serial = self._newest
        return mirror, changed

    def _step(self, message: bytes, record: Record, known: dict[int, bytes]) -> None:
        """One record outside the middle of a whole transfer."""
        state = self._state
        if state is State.DONE:
            raise Malformed("records follow the final SOA")
        if record[1] == SOA:
            if record[0] != self._apex:
                raise Malformed("a SOA of another domain")
            self._soa(soa_serial(message, record, known))
        elif state is State.START:
            raise Malformed("a transfer doesn't start with a SOA")
        else:  # FIRST; those within a version or a whole domain come another way
            self._begin_whole()
            self._feed_whole(message, [record], 0, known)

    def _soa(self, serial: int) -> None:
        if self._state is State.START:
            self._newest = serial
            self._state = State.FIRST
        elif self._state is State.FIRST:
            if not self._whole and serial == self._from.serial and serial != self._newest:
                self._serial, self._state = serial, State.REMOVED
            elif serial == self._newest:
                self._begin_whole()
                self._end_whole()
            else:
                raise Malformed("the second SOA has a serial that was not asked for")
        elif self._state is State.REMOVED:
            self._serial, self._state = serial, State.ADDED
        elif serial != self._serial:
            raise Malformed("versions don't join")
        else:
            self._state = State.DONE if serial == self._newest else State.REMOVED

    def _begin_whole(self) -> None:
        self._state = State.WHOLE

    def _end_whole(self) -> None:
        self._flush()
        self._fresh.serial = self._newest
        self._state = State.DONE

    def _feed_whole(self, message: bytes, records: list[Record], at: int, known: dict[int, bytes]) -> int:
        """The middle of a whole transfer: the path that 300,000 records take. Returns how far it came."""
        group, current, wanted = self._group, self._owner, self._fresh.wanted
        for index in range(at, len(records)):
            owner, rtype, ttl, start, end = records[index]
            if rtype == SOA:
                if owner != self._apex or soa_serial(message, records[index], known) != self._newest:
                    raise Malformed("a transfer ends in another SOA than it began with")
                self._end_whole()
                return index + 1
            if not wanted(owner, rtype):
                continue
            if owner != current:
                self._flush()
                group, current = self._group, owner
                self._owner = owner
            if rtype in _NAMED:
                group.append((rtype, ttl, (_named_data(message, records[index], known),)))
            elif rtype in _ADDRESSES:
                group.append((rtype, ttl, run_data(message, records[index])))
            else:
                group.append((rtype, ttl, (message[start:end],)))
        return len(records)

    def _flush(self) -> None:
        if self._group:
            self._fresh.take(self._owner, self._group)
            self._group = []

    def _feed_version(self, message: bytes, records: list[Record], at: int, known: dict[int, bytes]) -> int:
        """What one version took away or added, up to the next SOA: the path that all writing takes. How far it came."""
        wanted, read_before, change = self._from.wanted, self._from.read_before, self._change
        for index in range(at, len(records)):
            owner, rtype, ttl, start, end = record = records[index]
            if rtype == SOA:
                return index
            if not wanted(owner, rtype):
                continue
            if rtype in _ADDRESSES:
                change(owner, rtype, ttl, run_data(message, record))
            elif rtype in _NAMED:
                change(owner, rtype, ttl, (_named_data(message, record, known),))
            else:
                data = message[start:end]
                if rtype == TXT and not read_before(data):
                    split_strings(data)
                change(owner, rtype, ttl, (data,))
        return len(records)

    def _change(self, owner: bytes, rtype: int, ttl: int, data: Sequence[bytes]) -> None:
        """Records of one owner and type, gone or come."""
        name = self._names[owner] if owner in self._names else self._endpoint(owner)
        if name is None:
            return
        parts = self._touched.get(name)
        if parts is None:
            parts = self._touched[name] = self._from.parts(name)
        if self._state is State.REMOVED:
            parts.remove(rtype, data)
        else:
            parts.add(rtype, ttl, data)

    def _endpoint(self, owner: bytes) -> str | None:
        """The endpoint that an owner stands for; its other owner stands for it too, and mostly follows."""
        self._names[owner] = name = self._from.endpoint(owner)
        if other := self._from.other_owner(owner):
            self._names[other] = name
        return name


def _named_data(message: bytes, record: Record, known: dict[int, bytes]) -> bytes:
    """Data that end in a name, with that name in full and in lower case. Raises :class:`Malformed`."""
    _, rtype, _, start, end = record
    at = start + _NAMED[rtype]
    name, after = read_name(message, at, known)
    if after != end:
        raise Malformed("data and its length differ")
    return message[start:at] + name


def _newer(one: int, other: int) -> bool:
    """Whether a serial comes after another on the circle of 2**32 (RFC 1982 section 3.2)."""
    return one != other and (one - other) & 0xFFFFFFFF < 0x80000000
