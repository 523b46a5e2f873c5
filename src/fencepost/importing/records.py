"""What a source holds that matters here: address sets by name, and why some names can't be endpoints.

A name's records come in any order, from several places of a file. :class:`Book` takes them one by one and gives back a
:class:`Source`, sorted, so that the same records make the same file whatever order they stood in.
"""

from collections.abc import Iterable

from msgspec import Struct

from fencepost.core.names import MARKER_LABEL, WILDCARD_LABEL, in_domain, normalise
from fencepost.core.orders import plain

ADDRESSES = ("A", "AAAA")
POINTERS = ("NS", "MX")
"""Types whose targets are somebody's name server or mail server: their addresses are glue, not a service."""
ALIASES = ("CNAME", "DNAME", "ALIAS", "ANAME")
"""Types beside which no address of ours can stand, or which stand in for one."""


class RecordSet(Struct, frozen=True, gc=False):
    """The addresses of one name as text, each family in the order found, and their TTLs in seconds (0: none such)."""

    name: str
    a: tuple[str, ...] = ()
    aaaa: tuple[str, ...] = ()
    ttl_a: int = 0
    ttl_aaaa: int = 0

    @property
    def addresses(self) -> tuple[str, ...]:
        """All of them, A first."""
        return self.a + self.aaaa


class LeftOut(Struct, frozen=True, gc=False, order=True):
    """A name that isn't made an endpoint, and why, in a few words."""

    name: str
    why: str


class Source(Struct, frozen=True):
    """What was read: its ``domains``, the address sets by name, names that can't be taken over, and glue.

    ``pointed`` says of a name which type of record points at it (NS, MX); ``marked`` are names beside which a fencepost
    marker stands.
    """

    domains: tuple[str, ...]
    sets: tuple[RecordSet, ...]
    left: tuple[LeftOut, ...]
    pointed: dict[str, str]
    marked: frozenset[str]


class Book:
    """Gathers the records of one source."""

    def __init__(self) -> None:
        self._domains: dict[str, None] = {}
        self._sets: dict[str, RecordSet] = {}
        self._left: dict[str, str] = {}
        self._pointed: dict[str, str] = {}
        self._cuts: set[str] = set()
        self._marked: set[str] = set()

    def domain(self, name: str) -> None:
        """A domain that the source speaks of. Raises ``ValueError`` for what is no name."""
        self._domains.setdefault(normalise(name))

    def add(self, owner: str, kind: str, ttl: int, values: Iterable[str]) -> None:
        """One record set: addresses as text, or the names that NS and MX point at. Other types say nothing here."""
        name = self._name(owner)
        if name is None:
            return
        if kind in POINTERS:
            if kind == "NS":
                self._cuts.add(name)
            for value in values:
                self._point(value, kind)
        elif kind in ALIASES:
            self.leave(owner, f"{'an' if kind[0] == 'A' else 'a'} {kind} record stands there")
        elif kind == "A" or kind == "AAAA":
            self._addresses(name, kind, ttl, tuple(values))

    def marker(self, owner: str) -> None:
        """A TXT record at the name of a marker."""
        name = self._name(owner)
        if name is not None and name.startswith(f"{MARKER_LABEL}."):
            rest = name.removeprefix(f"{MARKER_LABEL}.")
            self._marked.add(f"*.{rest.partition('.')[2]}" if rest.startswith(f"{WILDCARD_LABEL}.") else rest)

    def leave(self, owner: str, why: str) -> None:
        """A name that can't be an endpoint, whatever addresses it has. The first reason stands."""
        try:
            name = normalise(owner)
        except ValueError:
            name = plain(owner)
        self._left.setdefault(name, why)

    def source(self) -> Source:
        """What was gathered."""
        cuts = self._cuts - self._domains.keys()
        for name in self._sets:
            cut = next((cut for cut in cuts if in_domain(name, cut)), None)
            if cut is not None:
                self._left.setdefault(name, f"glue: {cut} is delegated to other name servers")
        sets = [found for name, found in sorted(self._sets.items()) if name not in self._left]
        left = [LeftOut(name, why) for name, why in sorted(self._left.items())]
        return Source(tuple(self._domains), tuple(sets), tuple(left), self._pointed, frozenset(self._marked))

    def _name(self, owner: str) -> str | None:
        try:
            return normalise(owner)
        except ValueError as error:
            self._left.setdefault(plain(owner), f"as a name it {error}")
            return None

    def _point(self, value: str, kind: str) -> None:
        try:
            self._pointed.setdefault(normalise(value), kind)
        except ValueError:  # ".", an MX that says "no mail here", or a name that can't be ours
            return

    def _addresses(self, name: str, kind: str, ttl: int, values: tuple[str, ...]) -> None:
        old = self._sets.get(name, RecordSet(name))
        if kind == "A":
            merged = tuple(dict.fromkeys(old.a + values))
            self._sets[name] = RecordSet(name, merged, old.aaaa, ttl, old.ttl_aaaa)
        else:
            merged = tuple(dict.fromkeys(old.aaaa + values))
            self._sets[name] = RecordSet(name, old.a, merged, old.ttl_a, ttl)
