"""The DNS port for any primary that speaks RFC 2136: BIND, Knot, PowerDNS, and our own embedded server.

Reading keeps a mirror of the whole domain. Warm, one UDP question for the SOA tells whether its serial moved (under a
millisecond); if so, an incremental transfer brings what changed; if the server has none, or it doesn't fit, a whole
one. The mirror is replaced only by a complete, verified transfer.

Writing is one signed UPDATE a batch, never sent twice. NOERROR alone isn't taken for done: BIND answers it to an
address added beside a CNAME and adds nothing. So :meth:`Rfc2136Dns.commit` reads back what changed, by an incremental
transfer, before it says True; the mirror then holds what was written, and the next read costs one UDP question. Many
at once are read back together. If the reading back fails, the outcome counts as unknown, like any lost answer. From a
server without incremental transfers (PowerDNS on a database) that would cost a whole read a write; there the names
written are asked for one by one, if the serial rose by no more since the mirror was read than what we sent. What
others write still costs a whole read each: a reason to take another server for a large domain. So does a write of an
endpoint with SRV records: whether those that went are gone can't be asked where a wildcard would answer.

The awkward truth: a serial that stands still says that nothing changed. A server restored from a backup may show a
serial we know with other records. So a batch that was refused although the mirror, at the server's very serial, agrees
with everything it required, makes the next read a whole one.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from fencepost.adapters.dns_complaints import Standing
from fencepost.adapters.dns_mirror import Mirror, Parts
from fencepost.adapters.dns_notify import Ear, Listener
from fencepost.adapters.dns_session import CHANGED, NotOffered, Session
from fencepost.adapters.dns_signature import Signer
from fencepost.adapters.dns_update import pack_removal, pack_update
from fencepost.adapters.dns_wire import name_to_wire, rcode_name
from fencepost.core.dns_numbers import AAAA, NOERROR, REFUSED, TXT, A
from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND, Duration
from fencepost.core.names import marker_name
from fencepost.core.service import claimed
from fencepost.core.zone import Batch, Change, Live, after, exact
from fencepost.ports import Misconfigured, PortError, Refused, Unavailable
from fencepost.world.reference_dns import refuse_unlawful

POLL_S = 1.0
"""How often the serial is asked for while waiting, if no NOTIFY comes."""


LOOK_UP_WORTH = 32
"""Asking for one endpoint takes the time of reading so many in a whole transfer (0.5 ms against 15 µs)."""


class Rfc2136Settings(Struct, frozen=True, gc=False):
    """One domain at one primary. ``key_secret`` is base64, never shown; ``owner`` is whose markers are ours.

    ``timeout`` (nanoseconds) is the patience for one answer, or for one message of a transfer. ``notify`` is the
    address at which NOTIFY is listened for; port 0 takes a free one.
    """

    server: tuple[str, int]
    domain: str
    key_name: str
    key_secret: str
    owner: str
    key_algorithm: str = "hmac-sha256"
    timeout: Duration = 5 * SECOND
    notify: tuple[str, int] = ("127.0.0.1", 0)

    def __repr__(self) -> str:
        """Everything but the secret."""
        return f"Rfc2136Settings(server={self.server!r}, domain={self.domain!r}, key_name={self.key_name!r})"


class Rfc2136Dns:
    """A :class:`~fencepost.ports.DnsPort` over RFC 2136, 5936, 1995, 1996 and 8945."""

    def __init__(self, settings: Rfc2136Settings, ear: Ear | None = None) -> None:
        """Opens nothing yet; ``ear`` is one at ``notify`` that several domains share.

        Raises ``Misconfigured`` for a key that can't be one.
        """
        self._settings = settings
        try:
            signer = Signer(settings.key_name, settings.key_algorithm, settings.key_secret)
        except ValueError as error:
            raise Misconfigured(
                f'"{settings.key_name}" can\'t be used as a TSIG key: {error}',
                where="[dns] key",
                hint="make one with  tsig-keygen fencepost",
            ) from None
        timeout_s = settings.timeout / SECOND
        self._session = Session(settings.server, settings.domain, signer, settings.key_name, timeout_s)
        self._mirror = Mirror(settings.domain, settings.owner)
        self._changed: dict[str, None] = {}
        self._doubted = False
        self._is_back = False  # whether the last thing the mirror took was what a commit of ours left behind
        self._whole_only = False  # whether the last incremental transfer asked for was answered with everything
        self._busy = asyncio.Lock()
        self.last_refusal = ""
        self._listener = Listener(ear or Ear(settings.notify), name_to_wire(settings.domain), signer)

    @property
    def serial(self) -> int:
        """The serial of what the mirror holds; -1 before the first read."""
        return self._mirror.serial

    @property
    def notify_address(self) -> tuple[str, int] | None:
        """Where NOTIFY is listened for; None before :meth:`listen` or the first :meth:`wait`."""
        return self._listener.address

    async def listen(self) -> tuple[str, int]:
        """Open the socket for NOTIFY, if it isn't, and say where it is, so that the primary can be told.

        Raises ``Misconfigured`` if the address can't be had.
        """
        try:
            return await self._listener.open()
        except OSError as error:
            host, port = self._settings.notify
            raise Misconfigured(
                f"{host}:{port} can't be listened on: {error.strerror}",
                where="[dns] notify",
                hint="choose another address or port, or port 0 for a free one",
            ) from error

    async def read(self) -> Collection[str]:
        """Bring the mirror up to date; the names changed since the last read."""
        async with self._busy:
            if self._mirror.serial < 0:
                await self._transfer(whole=True)
            elif await self._session.serial() != self._mirror.serial:
                await self._catch_up()
            elif self._doubted:
                await self._transfer(whole=True)
            self._doubted = self._is_back = False
            changed, self._changed = self._changed, {}
            return tuple(changed)

    def read_back(self) -> Collection[str] | None:
        """See :class:`~fencepost.ports.ReadingBack`."""
        if self._doubted or not self._is_back:
            return None
        self._is_back = False
        changed, self._changed = self._changed, {}
        return tuple(changed)

    def live(self, name: str) -> Live:
        """What the mirror holds at an endpoint."""
        return self._mirror.lives.get(name) or Live(name)

    def names(self) -> Iterable[str]:
        """Every name in the mirror at which a marker stands."""
        return [name for name, live in self._mirror.lives.items() if live.marker is not None]

    async def commit(self, batch: Batch) -> bool:
        """One UPDATE, all or nothing, read back; False if something wasn't as a change had seen it."""
        if not batch:
            return True
        (outcome,) = await self.commit_each((batch,))
        if isinstance(outcome, PortError):
            raise outcome
        return outcome

    async def commit_each(
        self, batches: Sequence[Batch], go_on: Callable[[], bool] = lambda: True
    ) -> Sequence[bool | PortError]:
        """An UPDATE for each, some sent before the first is answered, and all read back before this returns.

        See :class:`~fencepost.ports.Pipelining`.
        """
        async with self._busy:
            self._is_back = False
            outcomes = await self._send(batches, go_on)
            self.last_refusal = next((rcode_name(each) for each in outcomes if isinstance(each, int) and each), "")
            applied = [at for at, outcome in enumerate(outcomes) if outcome == NOERROR]
            found: list[bool | PortError] = []
            unread: PortError | None = None
            if applied:
                try:
                    await self._read_back([change for at in applied for change in batches[at]], len(applied))
                    self._is_back = True
                except PortError as error:
                    unread = error
            for batch, outcome in zip(batches, outcomes, strict=False):
                found.append(unread if unread and outcome == NOERROR else await self._became(batch, outcome))
            return found

    async def _send(self, batches: Sequence[Batch], go_on: Callable[[], bool]) -> Sequence[int | PortError]:
        """The response code of each batch's UPDATE, or why there is none; of those that were sent."""
        domain, first = self._settings.domain, secrets.randbelow(65536 - len(batches))
        outcomes: dict[int, int | PortError] = {}
        packed: list[int] = []

        def messages() -> Iterator[tuple[bytes, str]]:
            for at, batch in enumerate(batches):
                if at and not go_on():
                    return
                try:
                    refuse_unlawful(domain, batch)
                    message = pack_update(first + at, domain, batch)
                except PortError as error:
                    outcomes[at] = error
                    continue
                packed.append(at)
                yield message, self._doing(batch)

        answers = await self._session.updates(messages())
        outcomes |= zip(packed, answers, strict=True)
        return [outcomes[at] for at in sorted(outcomes)]

    async def _became(self, batch: Batch, outcome: int | PortError) -> bool | PortError:
        """What became of a batch by its UPDATE's response code, now that the mirror has been read on."""
        if isinstance(outcome, PortError):
            return outcome
        doing = self._doing(batch)
        if outcome in CHANGED:
            self._doubted = self._doubted or all(exact(self.live(change.name), change) for change in batch)
            return False
        if outcome != NOERROR:
            return await self._refusal(outcome, batch, doing)
        try:
            for change in batch:
                _check_written(self.live(change.name), change, doing)
        except PortError as error:
            return error
        return True

    def _doing(self, batch: Batch) -> str:
        return f"UPDATE of {self._settings.domain}: {_told(batch)}"

    async def remove(self, seen: Live) -> bool:
        """Delete marker and addresses wholly, as exact as a commit: for scratch names."""
        async with self._busy:
            doing = f"UPDATE of {self._settings.domain}: {seen.name}, removed"
            message = pack_removal(secrets.randbelow(65536), self._settings.domain, seen)
            rcode = await self._session.update(message, doing)
            self.last_refusal = rcode_name(rcode) if rcode != NOERROR else ""
            if rcode in CHANGED:
                return False
            if rcode != NOERROR:
                raise await self._refusal(rcode, (), doing)
            await self._catch_up()
            return True

    async def wait(self, most: Duration) -> None:
        """Return when the server's serial isn't the mirror's, at the latest after ``most`` nanoseconds.

        Trouble in asking ends the wait only at its time: the next read meets it too, and says so to somebody.
        Where NOTIFY can't be listened for, the serial's being asked for has to do: an enactor that stood still for
        want of a port would be the worse trouble. Each wait tries again.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + most / SECOND
        with contextlib.suppress(Misconfigured):
            await self.listen()
        while (left := until - loop.time()) > 0:
            await self._listener.told(min(left, POLL_S))
            if loop.time() >= until:
                return  # the read that follows asks for the serial itself
            async with self._busy:
                try:
                    if await self._session.serial() != self._mirror.serial:
                        return
                except PortError:
                    continue

    async def close(self) -> None:
        """Let go of sockets."""
        self._listener.close()
        self._session.close()

    async def _refusal(self, rcode: int, batch: Batch, doing: str) -> PortError:
        """The exception for an update that the server wouldn't take.

        A server refuses a whole update for one name that our key has no right to, or that it takes for no host name (an
        underscore, BIND's check-names). So of several endpoints one may be to blame, and the batch is to be split; of
        one it is a matter of rights.
        """
        standing = await self._session.standing(rcode)
        if rcode == REFUSED and len(batch) > 1 and standing not in (Standing.KEY_REFUSED, Standing.NO_DOMAIN):
            return Refused(
                f"{self._session.server} answers REFUSED to {len(batch)} endpoints at once",
                where=doing,
                hint="one of them may be at fault: they are tried in smaller batches",
                unchanged=True,
            )
        return await self._session.complaint(rcode, doing, standing)

    async def _read_back(self, batch: Sequence[Change], updates: int) -> None:
        """Read what so many updates left behind, the cheaper way."""
        names = {change.name: None for change in batch}
        # Where nothing is left at a name, a wildcard may answer for it: absence can't be asked for.
        asked = not any(change.content.empty or change.content.srv or claimed(change.seen.marker) for change in batch)
        if not (self._whole_only and asked and len(self._mirror.lives) > LOOK_UP_WORTH * len(names)):
            await self._catch_up()
            return
        questions = [(owner, rtype) for name in names for owner, rtype in _questions(name)]
        answers = await self._session.look_up(questions)
        if answers is None:
            await self._catch_up()
            return
        serial = (self._mirror.serial + updates) & 0xFFFFFFFF
        if await self._session.serial() != serial:
            await self._catch_up()  # others wrote too, before us or between two of our questions
            return
        for at, name in enumerate(names):
            parts = Parts()
            if name[0] == "_":
                parts.srv = self._mirror.parts(name).srv  # not asked for, and none of ours
            for rtype, ttl, data in (record for answer in answers[3 * at : 3 * at + 3] for record in answer):
                parts.add(rtype, ttl, [data])
            if self._mirror.put(name, parts):
                self._changed[name] = None
        self._changed.update(dict.fromkeys(self._mirror.also_changed()))
        self._mirror.serial = serial

    async def _catch_up(self) -> None:
        """Read what changed, or everything if that can't be had."""
        if self._mirror.serial >= 0:
            try:
                if await self._transfer(whole=False):
                    return
            except NotOffered:
                self._whole_only = True
        await self._transfer(whole=True)

    async def _transfer(self, *, whole: bool) -> bool:
        """Move the mirror on; False if the server was set back, so that there is no way on from our serial."""
        transfer = await self._session.transfer(self._mirror, whole=whole)
        if transfer.stale:
            return False
        if not whole:
            self._whole_only = transfer.was_whole
        self._mirror, changed = transfer.finish()
        self._changed.update(dict.fromkeys(changed))
        return True


def _questions(name: str) -> tuple[tuple[bytes, int], ...]:
    """What is asked for to know an endpoint: its marker, its addresses."""
    at, own = name_to_wire(marker_name(name)), name_to_wire(name)
    return (at, TXT), (own, A), (own, AAAA)


def _told(batch: Batch) -> str:
    """A batch for people: the first endpoint's step, and how many more."""
    first = batch[0]
    stood = first.seen.marker
    before = str(stood.generation) if isinstance(stood, Marker) else "none"
    more = f" and {len(batch) - 1} more" if len(batch) > 1 else ""
    return f"{first.name}, gen {before} -> {first.marker.generation}{more}"


def _check_written(live: Live, change: Change, doing: str) -> None:
    """Find additions that the server answered NOERROR to and left out.

    Someone may have written after us: then their marker stands, and ours did apply.
    """
    wrote = after(live, change)
    if (live.marker, live.a, live.aaaa) == (wrote.marker, wrote.a, wrote.aaaa):
        astray = live.astray(change.content)
        if any(live.barred((label,)) is None for label in astray):  # what bars the others is for the enactor to tell
            raise Unavailable(
                f"{change.name}: the server answered NOERROR, but other records stand at {astray[0]} than were sent",
                where=doing,
                hint="another writer may have come right after; it is read again",
            )
        return
    if live.marker == change.seen.marker:
        raise Refused(
            f"{change.name}: the server answered NOERROR and wrote nothing",
            where=doing,
            hint=_beside(live),
        )
    if live.marker == change.marker:
        raise Unavailable(
            f"{change.name}: the server answered NOERROR, but other addresses stand there than were sent",
            where=doing,
            hint=_beside(live),
        )


def _beside(live: Live) -> str:
    if live.other:
        return f"a {live.other[0]} record stands at this name; remove it, or name another endpoint"
    return "another writer may have come right after; it is read again"
