"""The observer: asks the region's DNS server what any caller would ask, and checks the promises from the answers.

It shares no state with what it watches: no mirror, no store. Plain queries over UDP (TCP where an answer was cut short,
RFC 7766 section 5), a whole look at an endpoint being its marker, its A and AAAA records, the SRV records that its
marker names, and its marker again.
Judging is :mod:`fencepost.roles.status.promise_watch`'s; here are only questions and their pace.

Each endpoint is looked at once a second, and when its domain's serial has moved (asked for each 200 ms), up to a bound
of queries; of more endpoints it takes the next ones in turn. One that was found empty, altered or in motion is looked
at again each 20 ms. A question without an answer (timeout, SERVFAIL, REFUSED) says nothing about the endpoint: it is
counted, and the look is dropped.

Where a promise looks broken, and only then, the same server is asked as a witness what happened, transaction by
transaction, since the serial that the domain had before the last good look (:data:`Witness`).
"""

import asyncio
import contextlib
import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import dns.rdatatype
import dns.rrset
from msgspec import Struct

from fencepost.core.differences import Difference
from fencepost.core.fence import Foreign, Marker
from fencepost.core.instant import Instant
from fencepost.core.names import longest_domain, marker_name
from fencepost.core.service import Pointer, Service, claimed
from fencepost.core.zone import Live
from fencepost.ports import DnsPort, PortError
from fencepost.roles.observer_questions import Asker, Unanswered
from fencepost.roles.status.promise_replay import Suspicion
from fencepost.roles.status.promise_watch import Broken, PromiseWatch, Seen, Watched, whole

log = logging.getLogger(__name__)

QUERIES_A_LOOK = 4
AT_ONCE = 8
"""Looks under way at the same time; also so many unanswered ones in a row end a pass."""
AGAIN_S = 0.02
SERIAL_S = 0.2
AGAIN_MOST = 16
"""So many endpoints are looked at again at the short interval."""
WITNESS_TRIES = 3
"""So often a witness that doesn't answer is asked, a second apart, before it counts as one that can't tell."""

Witness: TypeAlias = Callable[[str, int, frozenset[str]], Awaitable[Mapping[str, Sequence[Difference]] | None]]
"""What happened in a domain since a serial to the named endpoints, oldest first; None if the server can't tell.
Raises a ``PortError``.
"""


class ObserverSettings(Struct, frozen=True):
    """Whom to ask (address and port), whose markers are ours, and how often: ``queries_a_s`` bounds the questions.

    ``domains`` are those whose serials are watched, so that changes are looked at when they happen.
    """

    host: str
    port: int
    owner: str
    domains: tuple[str, ...] = ()
    every_s: float = 1.0
    timeout_s: float = 0.5
    queries_a_s: int = 200


class Observer:
    """Looks at endpoints, judges them, and keeps what was seen. ``clock`` gives nanoseconds since 1970.

    Without a ``witness`` most of what looks like a broken promise can't be told from another writer's hand. With
    ``ports``, one a domain, nobody is asked over DNS: what the provider's API lists is looked at, as often as it may be
    read.
    """

    def __init__(
        self,
        settings: ObserverSettings,
        clock: Callable[[], Instant] = time.time_ns,
        witness: Witness | None = None,
        ports: Mapping[str, DnsPort] | None = None,
    ) -> None:
        self.settings = settings
        self.witness = witness
        self.ports = ports or {}
        self.watch = PromiseWatch(settings.owner)
        self.endpoints: dict[str, Watched] = {}
        self.asked = 0
        self.unanswered = 0
        self.last_error = ""
        self.answered_at: Instant = 0
        self.began: Instant = clock()
        self._clock = clock
        self._asker = Asker(settings.host, settings.port, settings.timeout_s)
        self._place = ""
        self._changed = asyncio.Event()
        self._doubted = asyncio.Event()
        self._known = asyncio.Event()
        self._asking = 0
        self._serials: dict[str, int] = {}
        self._budget = float(settings.queries_a_s)
        self._budget_at = time.monotonic()

    def watches(self, endpoints: Iterable[Watched]) -> None:
        """Look at exactly these from now on."""
        self.endpoints = {endpoint.name: endpoint for endpoint in endpoints}
        self.watch.forget_but(frozenset(self.endpoints))

    @property
    def violations(self) -> tuple[Broken, ...]:
        """What was seen broken, oldest first."""
        return tuple(self.watch.violations)

    def lives(self) -> Mapping[str, Live]:
        """Each endpoint as last seen. A weighted set whose answer fits its marker is given whole, as in the marker."""
        found = {}
        for name, past in self.watch.past.items():
            if past.last is not None:
                found[name] = whole(name, past.last, drawn=past.whole)
        return found

    async def look(self, endpoint: Watched) -> bool:
        """Look at one endpoint; whether it is worth another look soon. Raises :class:`Unanswered`."""
        domain = self._domain_of(endpoint.name)
        marker, serial = marker_name(endpoint.name), self._serials.get(domain, -1)
        if self.ports:
            live = self.ports[domain].live(endpoint.name)
            return self._judge(endpoint, Seen(live.marker, live.a, live.aaaa, live.ttl, live.marker), -1)
        before = await self._marker(marker)
        a, ttl_a = await self._addresses(endpoint.name, dns.rdatatype.A)
        aaaa, ttl_aaaa = await self._addresses(endpoint.name, dns.rdatatype.AAAA)
        service = await self._service(endpoint.name, before)
        after = await self._marker(marker)
        return self._judge(endpoint, Seen(before, a, aaaa, ttl_a if a else ttl_aaaa, after, service), serial)

    def _judge(self, endpoint: Watched, seen: Seen, serial: int) -> bool:
        now = self._clock()
        if not self.ports:
            self.answered_at, self.last_error = now, ""
        again = self.watch.observe(endpoint, seen, now, serial)
        if self.watch.suspected:
            self._doubted.set()
        return again

    def _domain_of(self, name: str) -> str:
        """The watched domain that an endpoint belongs to; "" for none."""
        return longest_domain(name, self.settings.domains) or ""

    @property
    def doubts(self) -> int:
        """How many promises look broken and aren't judged yet."""
        return len(self.watch.suspected) + self._asking

    async def settle(self) -> None:
        """Ask the witness about each promise that looks broken, and judge it by the answer."""
        suspected, self.watch.suspected = self.watch.suspected, []
        self._asking = len(suspected)
        groups: dict[tuple[str, int], list[Suspicion]] = {}
        for each in suspected:
            since = each.base.serial if each.base is not None else -1
            groups.setdefault((self._domain_of(each.name), since), []).append(each)
        for (domain, since), group in groups.items():
            found = await self._differences(domain, since, frozenset(each.name for each in group))
            for each in group:
                self.watch.settle(each, found.get(each.name, ()) if found is not None else None)
                self._asking -= 1

    async def _differences(
        self, domain: str, since: int, names: frozenset[str]
    ) -> Mapping[str, Sequence[Difference]] | None:
        if self.witness is None or since < 0:
            return None
        for left in reversed(range(WITNESS_TRIES)):
            try:
                return await self.witness(domain, since, names)
            except PortError as error:
                log.warning("observer: what happened in %s can't be told: %s", domain, error)
                if left:
                    await asyncio.sleep(1)
        return None

    async def _marker(self, name: str) -> Marker | Foreign | None:
        found = await self._ask(name, dns.rdatatype.TXT)
        if found is None:
            return None
        raw = tuple(sorted(tuple(bytes(string) for string in rdata.strings) for rdata in found))
        marker = Marker.parse(raw[0]) if len(raw) == 1 else None
        return marker if marker is not None else Foreign("", raw)

    async def _addresses(self, name: str, rtype: dns.rdatatype.RdataType) -> tuple[tuple[str, ...], int]:
        found = await self._ask(name, rtype)
        if found is None:
            return (), 0
        # By number, not by text: the order that digests are made in.
        addresses = sorted({int(ipaddress.ip_address(rdata.address)) for rdata in found})
        kind = ipaddress.IPv4Address if rtype == dns.rdatatype.A else ipaddress.IPv6Address
        return tuple(str(kind(address)) for address in addresses), found.ttl

    async def _service(self, name: str, marker: Marker | Foreign | None) -> Service | None:
        """The SRV records at the service that a marker of ours names, in order; None if it names none."""
        value = claimed(marker)
        if value is None or value.srv is None or marker is None or marker.owner != self.settings.owner:
            return None
        label = value.srv.service
        found = await self._ask(f"{label}.{name}", dns.rdatatype.SRV)
        if found is None:
            return Service(label)
        records = [
            Pointer(each.priority, each.weight, each.port, each.target.to_text(omit_final_dot=True).lower())
            for each in found
        ]
        return Service(label, found.ttl, tuple(sorted(records)))

    async def _ask(self, name: str, rtype: dns.rdatatype.RdataType) -> dns.rrset.RRset | None:
        self.asked += 1
        self._budget -= 1
        return await self._asker.ask(name, rtype)

    async def run(self) -> None:
        """Look each second and at every change, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._look_on())
                group.create_task(self._read_on() if self.ports else self._watch_serials())
                group.create_task(self._settle_on())
        finally:
            self._asker.close()

    async def _look_on(self) -> None:
        loop = asyncio.get_running_loop()
        if self.ports:
            await self._known.wait()
        while True:
            end = loop.time() + self.settings.every_s
            self._changed.clear()
            again = await self.look_at(self._due())
            while not self._changed.is_set() and loop.time() < end:
                if again:
                    await asyncio.sleep(AGAIN_S)
                    again = await self.look_at(again[:AGAIN_MOST])
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(end):  # 3.11's wait_for can lose a cancellation
                        await self._changed.wait()
            # However often a domain changes, and however little is left of the bound: never without a pause.
            await asyncio.sleep(AGAIN_S)

    async def _settle_on(self) -> None:
        while True:
            await self._doubted.wait()
            self._doubted.clear()
            await self.settle()

    async def _read_on(self) -> None:
        known: set[str] = set()
        while True:
            for domain, port in self.ports.items():
                if await self._read(port):
                    known.add(domain)
            if len(known) == len(self.ports):
                self._known.set()  # before that, what stands would look absent
            await asyncio.sleep(self.settings.every_s)

    async def _read(self, port: DnsPort) -> bool:
        """Read a domain by its provider's API; whether that went well."""
        try:
            if await port.read():
                self._changed.set()
        except PortError as error:
            self._missed(error)
            return False
        self.answered_at, self.last_error = self._clock(), ""
        return True

    async def _watch_serials(self) -> None:
        while True:
            for domain in self.settings.domains:
                with contextlib.suppress(Unanswered):
                    found = await self._ask(domain, dns.rdatatype.SOA)
                    serial = int(found[0].serial) if found else -1
                    if self._serials.get(domain, serial) != serial:
                        self._changed.set()
                    self._serials[domain] = serial
            await asyncio.sleep(SERIAL_S * max(1.0, len(self.settings.domains) / 5))

    def _due(self) -> list[Watched]:
        """The next endpoints in turn, as many as the bound of queries has left; one at least."""
        now = time.monotonic()
        gained = (now - self._budget_at) * self.settings.queries_a_s
        self._budget, self._budget_at = min(self._budget + gained, self.settings.queries_a_s), now
        most = max(1, int(self._budget) // QUERIES_A_LOOK)
        names = sorted(self.endpoints)
        if len(names) > most:
            start = next((at for at, name in enumerate(names) if name > self._place), 0)
            names = (names[start:] + names[:start])[:most]
            self._place = names[-1]
        return [self.endpoints[name] for name in names]

    async def look_at(self, endpoints: list[Watched]) -> list[Watched]:
        """Look at several, a few at a time; those worth another look soon."""
        again: list[Watched] = []
        left = iter(endpoints)
        failed = 0

        async def work() -> None:
            nonlocal failed
            for endpoint in left:
                try:
                    if await self.look(endpoint):
                        again.append(endpoint)
                    failed = 0
                except Unanswered as error:
                    failed += 1
                    self._missed(error)
                if failed >= AT_ONCE:
                    return

        await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(endpoints)))))
        return sorted(again, key=lambda endpoint: endpoint.name)

    def _missed(self, error: Unanswered | PortError) -> None:
        self.unanswered += 1
        if str(error) != self.last_error:
            self.last_error = str(error)
            place = f"{self.settings.host}:{self.settings.port}" if not self.ports else "the provider's API"
            log.warning("observer: %s: %s", place, error)


async def run_observer(observer: Observer, tell: Callable[[Broken], None] | None = None) -> None:
    """Observe until cancelled; ``tell`` is given each violation once."""
    told = 0

    async def telling() -> None:
        nonlocal told
        while True:
            for broken in observer.watch.violations[told:]:
                log.error("%s is broken at %s: %s", broken.promise, broken.on, broken.what)
                told += 1
                if tell is not None:
                    tell(broken)
            await asyncio.sleep(observer.settings.every_s)

    told_by = asyncio.create_task(telling())
    try:
        await observer.run()
    finally:
        told_by.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await told_by
