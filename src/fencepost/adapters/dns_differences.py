"""What single transactions did, read from a primary: an incremental transfer taken version by version (RFC 1995).

:class:`Differences` walks the same stream as :class:`~fencepost.adapters.dns_transfer.Transfer`, but puts nothing
together: for the endpoints asked about it keeps what each version took away and added. :class:`DnsWitness` asks for it
over a connection of its own, for somebody who wants to know what happened between two looks. It is asked seldom, so
nothing is kept between two questions.
"""

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from fencepost.adapters.dns_mirror import Mirror
from fencepost.adapters.dns_rfc2136 import Rfc2136Settings
from fencepost.adapters.dns_session import NotOffered, Session
from fencepost.adapters.dns_signature import Signer
from fencepost.adapters.dns_transfer import State, Transfer
from fencepost.core.differences import Difference, Records
from fencepost.core.dns_numbers import AAAA, TXT, A, Malformed, split_strings
from fencepost.core.instant import SECOND


class Differences(Transfer):
    """An incremental transfer since a serial, of which the named endpoints' part of each version is kept.

    A whole domain in its place says that the server's journal doesn't reach back so far: ``NotOffered``.
    """

    def __init__(self, domain: str, since: int, names: frozenset[str]) -> None:
        start = Mirror(domain, "")
        start.serial = since
        super().__init__(start, whole=False)
        self.found: dict[str, list[Difference]] = {name: [] for name in names}
        self._before = since
        self._version: dict[str, tuple[list[tuple[int, int, bytes]], list[tuple[int, int, bytes]]]] = {}

    def _soa(self, serial: int) -> None:
        ends = self._state is State.ADDED
        super()._soa(serial)
        if ends:
            for name, (gone, come) in self._version.items():
                self.found[name].append(Difference(self._before, serial, _records(gone), _records(come)))
            self._version, self._before = {}, serial

    def _begin_whole(self) -> None:
        raise NotOffered

    def _change(self, owner: bytes, rtype: int, ttl: int, data: Sequence[bytes]) -> None:
        name = self._endpoint(owner) if rtype in (A, AAAA, TXT) else None
        if name in self.found:
            gone, come = self._version.setdefault(name, ([], []))
            (gone if self._state is State.REMOVED else come).extend((rtype, ttl, each) for each in data)


def _records(found: list[tuple[int, int, bytes]]) -> Records:
    """Records of one endpoint, put together. Raises :class:`Malformed`."""
    by_type: dict[int, list[tuple[int, bytes]]] = {A: [], AAAA: [], TXT: []}
    for rtype, ttl, data in found:
        by_type[rtype].append((ttl, data))
    try:
        return Records(
            frozenset(split_strings(data) for _, data in by_type[TXT]),
            frozenset(str(ipaddress.IPv4Address(data)) for _, data in by_type[A]),
            frozenset(str(ipaddress.IPv6Address(data)) for _, data in by_type[AAAA]),
            max((ttl for ttl, _ in by_type[A]), default=0),
            max((ttl for ttl, _ in by_type[AAAA]), default=0),
        )
    except ipaddress.AddressValueError:
        raise Malformed("an address has the wrong length") from None


class DnsWitness:
    """Tells what happened in one domain, as its primary has it."""

    def __init__(self, settings: Rfc2136Settings) -> None:
        """Opens nothing yet. Raises ``ValueError`` for a key that can't be one."""
        self._domain = settings.domain
        signer = Signer(settings.key_name, settings.key_algorithm, settings.key_secret)
        self._session = Session(settings.server, settings.domain, signer, settings.key_name, settings.timeout / SECOND)

    async def differences(self, since: int, names: frozenset[str]) -> Mapping[str, tuple[Difference, ...]] | None:
        """Each named endpoint's part of every version since a serial, oldest first; None if the server can't tell.

        Raises ``Unavailable`` or ``Misconfigured``.
        """
        try:
            taken = await self._session.take(Differences(self._domain, since, names), since)
        except NotOffered:
            return None
        finally:
            self._session.close()
        return None if taken.stale else {name: tuple(found) for name, found in taken.found.items()}


def witness_of(
    domains: Iterable[Rfc2136Settings],
) -> Callable[[str, int, frozenset[str]], Awaitable[Mapping[str, tuple[Difference, ...]] | None]]:
    """A witness of several domains: asked with a domain, a serial and names. Raises what :class:`DnsWitness` does."""
    witnesses = {settings.domain: DnsWitness(settings) for settings in domains}
    return lambda domain, since, names: witnesses[domain].differences(since, names)
