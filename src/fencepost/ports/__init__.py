"""The ports: what roles ask of the world outside, and the three ways in which that can fail.

An adapter turns every vendor's error into one of three exceptions, told apart by what the caller should do next. A
commit's two ordinary outcomes, applied and *changed*, are not exceptions: losing a race is normal.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from fencepost.core.fence import Generation
from fencepost.core.instant import Duration, Instant
from fencepost.core.record_set import Content
from fencepost.core.store import Head, Order, Plan, Row
from fencepost.core.zone import Batch, Live


class PortError(Exception):
    """The base of the three: ``what`` went wrong, ``where``, and a ``hint`` of what to do about it.

    ``means`` says what usually lies behind it, where the provider's own word doesn't. ``unchanged`` is set for a write
    that was surely refused, so that the live records stand as before; an unknown outcome never sets it.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "", means: str = "", unchanged: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint
        self.means = means
        self.unchanged = unchanged

    @property
    def advice(self) -> str:
        """What it means and what to do, in one line."""
        return "; ".join(part for part in (self.means, self.hint) if part)

    @property
    def in_full(self) -> str:
        """All of it in one line, for a log and for a role's last error."""
        stands = "live records are unchanged" if self.unchanged else ""
        return "; ".join(part for part in (str(self), stands, self.advice) if part)

    @property
    def doing(self) -> str:
        """``where``, and for a write that was surely refused that nothing changed."""
        return f"{self.where}. Live records are unchanged." if self.unchanged else self.where

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}"


class Refused(PortError):  # noqa: N818  the three are outcomes a caller tells apart, not kinds of error
    """What was asked can't be right (too big, empties a family): never retry it as it is."""


class Unavailable(PortError):  # noqa: N818  as above
    """No answer, or not now. A write's outcome is unknown: read again, never resend from memory."""


class Misconfigured(PortError):  # noqa: N818  as above
    """Credentials, rights, names or files are wrong: tell a person, look again each 60 s."""


class DnsPort(Protocol):
    """A DNS provider and the mirror of one domain kept from it. Used by one decider, one call at a time."""

    async def read(self) -> Collection[str]:
        """Bring the mirror up to date; the names of endpoints whose records or marker changed since the last read.

        The first read names all. A read that fails leaves the mirror as it was (a transfer refused midway is no empty
        domain). Raises ``Unavailable`` or ``Misconfigured``.
        """
        ...

    def live(self, name: str) -> Live:
        """What the mirror holds at an endpoint; ``Live(name)`` where there is nothing."""
        ...

    def names(self) -> Iterable[str]:
        """Every name in the mirror at which a marker stands (that of the endpoint, not ``_fencepost.…``)."""
        ...

    async def commit(self, batch: Batch) -> bool:
        """One transaction, all or nothing: True if it applied, False if something was not as a change had seen it.

        Raises ``Refused`` (never right: empties a family, too big, a record type the server won't take),
        ``Unavailable`` (the outcome is unknown) or ``Misconfigured``. Never resends.
        """
        ...

    async def wait(self, most: Duration) -> None:
        """Return when the domain may have changed (NOTIFY, or its serial moved), at the latest after ``most``."""
        ...

    async def close(self) -> None:
        """Let go of sockets."""
        ...


@runtime_checkable
class Notified(Protocol):
    """A DNS port that can be told of changes by its primary (NOTIFY, RFC 1996)."""

    async def listen(self) -> tuple[str, int]:
        """Open the socket for NOTIFY, if it isn't, and say where it is. Raises ``Misconfigured``."""
        ...


@runtime_checkable
class ReadingBack(Protocol):
    """A DNS port whose commit reads the whole mirror on, so that the read which follows it has nothing to ask."""

    def read_back(self) -> Collection[str] | None:
        """The names that changed since the last read, as of the reading back of the last commit that applied.

        None if there was none since the last read, or if it can't stand for a read: then :meth:`DnsPort.read` is due.
        """
        ...


@runtime_checkable
class Pipelining(Protocol):
    """A DNS port that can have several transactions under way at once, so that the provider never waits for us."""

    async def commit_each(
        self, batches: Sequence[Batch], go_on: Callable[[], bool] = lambda: True
    ) -> Sequence[bool | PortError]:
        """Several transactions about different endpoints; what became of each: as of ``DnsPort.commit``, told not
        raised. Each is all or nothing and fenced by itself, in no order; none depends on what becomes of another.

        From when ``go_on`` says no, or the connection is lost, none but the first is sent any more; the answer ends
        with the last that was.
        """
        ...


@runtime_checkable
class Telling(Protocol):
    """A DNS port that keeps what the provider itself said when it last refused a commit (a commit that gave False).

    ``last_refusal`` is in the provider's own words: ``NXRRSET``, or the text of a vendor's error; "" after a commit
    that applied. It is for people who want to see the refusal, never for deciding.
    """

    last_refusal: str


@runtime_checkable
class Removing(Protocol):
    """A DNS port that can take a name away wholly, marker included: for scratch names, since a tombstone would stay."""

    async def remove(self, seen: Live) -> bool:
        """Delete marker and addresses in one transaction, all or nothing, if they stand exactly as ``seen``.

        True if it applied. Raises as ``DnsPort.commit`` does. Nothing guards against emptying here: the caller must
        know that the name is its own.
        """
        ...


@runtime_checkable
class LookingUp(Protocol):
    """A DNS port whose reads come round in time, and that can be asked for some names at once."""

    async def look_up(self, names: Collection[str]) -> None:
        """Bring the mirror up to date at these endpoints; they count as changed at the next read if they were.

        Raises as ``DnsPort.read`` does.
        """
        ...


class Inputs(Struct, frozen=True, gc=False):
    """One snapshot of what plans are made from.

    ``config`` is the loaded configuration's JSON (b"" before the first load), ``membership`` each pool's
    (version, JSON), ``overrides`` each override's JSON by id, ``orders`` the orders not carried out yet.
    """

    snapshot: int
    config: bytes
    membership: Mapping[str, tuple[int, bytes]]
    overrides: Mapping[str, bytes]
    orders: tuple[Order, ...]


class Overrides(Struct, frozen=True, gc=False):
    """The overrides alone: each one's JSON by id, as of a snapshot of the store with this identity."""

    store: str
    snapshot: int
    words: Mapping[str, bytes]


class PutBack(Struct, frozen=True, gc=False):
    """Overrides that a lost store held, for the one that stands in its place.

    ``into`` and ``seen`` are the new store's identity and snapshot, as read before; ``lost`` and ``snapshot`` those of
    the lost one, as of which it held exactly ``words`` (JSON by id), expired ones left out.
    """

    into: str
    seen: int
    lost: str
    snapshot: int
    words: Mapping[str, bytes]


class Enacted(Struct, frozen=True, gc=False):
    """Who enacted an endpoint's live generation: ``by`` a role such as "enactor/b", ``at`` nanoseconds since 1970."""

    name: str
    generation: Generation
    by: str
    at: Instant
    writes: int


class HistoryRow(Struct, frozen=True, gc=False):
    """A line of the history: what happened to what (an endpoint, pool or role), by whom; ``at`` nanoseconds since 1970.

    ``kind`` is one of plan, enacted, healed, fenced, removed, kept, back, refused, operator, role, finding.
    """

    kind: str
    on: str
    by: str
    text: str
    at: Instant
    id: int = 0


class Beat(Struct, frozen=True, gc=False):
    """A role's sign of life: ``state`` is "up", "misconfigured" or "unavailable"; ``error`` what last went wrong.

    ``notify`` is where it waits for NOTIFY (RFC 1996), "host:port", so that the embedded server can tell it of changes.
    ``generation`` is the number of the newest one that an enactor has read in DNS since it started; 0 for none yet.
    ``machine`` is where ``pid`` counts (:mod:`fencepost.roles.machine`), ``host`` its name; "" by versions before.
    """

    role: str
    pid: int
    version: str
    state: str
    error: str
    at: Instant
    notify: str = ""
    generation: int = 0
    machine: str = ""
    host: str = ""


class Waiter(Protocol):
    """One task's waiting for a store to change."""

    async def wait(self, most: Duration) -> None:
        """Return when it may have changed since this waiter's last call, at the latest after ``most``."""
        ...


class StorePort(Protocol):
    """A store: linearizable compare-and-set on one head and on one row a pool, and rows to read."""

    async def head(self) -> Head:
        """The head, store identity included."""
        ...

    async def newest_rows(self, since: Head | None) -> tuple[Head, Sequence[Row]]:
        """The head, and the newest row of each endpoint that plans after ``since`` changed.

        All endpoints' rows if ``since`` is None or another store's.
        """
        ...

    async def inputs(self) -> Inputs:
        """One consistent snapshot of the inputs."""
        ...

    async def publish(self, plan: Plan) -> Head | None:
        """Rows, spent orders and head in one compare-and-set; None if the head had moved. Draws the nonce."""
        ...

    async def kept_contents(self, name: str) -> Sequence[Content]:
        """The contents of every kept row of an endpoint."""
        ...

    async def rows_of(self, name: str) -> Sequence[Row]:
        """Every kept row of an endpoint, newest first."""
        ...

    async def spent_rows(self, most: int, place: int = 1) -> Sequence[tuple[Row, int, Generation]]:
        """At most so many rows with ``place`` or more newer ones, oldest first: (row, place from newest, newest)."""
        ...

    async def delete_row(self, name: str, generation: Generation, nonce: str) -> bool:
        """Delete one row if it has this nonce and isn't its endpoint's newest; whether it did."""
        ...

    async def put_order(self, order: Order) -> None:
        """Queue an order; raises the input snapshot."""
        ...

    async def put_config(self, body: bytes, expected: bytes) -> bool:
        """Compare-and-set on the loaded configuration: whether ``expected`` stood there (b"": none), and now ``body``.

        Raises the input snapshot if the two differ.
        """
        ...

    async def membership(self, pool: str) -> tuple[int, bytes]:
        """A pool's (version, JSON); (0, b"") before the first."""
        ...

    async def put_membership(self, pool: str, expected: int, body: bytes) -> bool:
        """Compare-and-set on the pool's version; raises the input snapshot."""
        ...

    async def put_override(self, name: str, body: bytes) -> None:
        """Place or replace an override (drain, keep, pause); raises the input snapshot."""
        ...

    async def drop_override(self, name: str) -> bool:
        """End an override; raises the input snapshot; whether there was one."""
        ...

    async def overrides(self, known: Overrides | None = None) -> Overrides:
        """The overrides alone; ``known`` itself, at the cost of reading the head, if no input changed since."""
        ...

    async def put_back(self, back: PutBack) -> Sequence[str] | None:
        """Place what a lost store held: the ids that changed; None if head or inputs aren't those ``seen`` any more.

        An id that was ever placed here, whether it still stands or not, is left alone: a newer word and a resume win.
        Of those who remember the same lost store the one with the highest snapshot wins, whoever comes first: what an
        older memory put back, and still stands, is replaced or ended; an older or equal one changes nothing.
        """
        ...

    async def put_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        """A checker's report, replacing its last."""
        ...

    async def beat_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        """A checker's heartbeat (small), beside its report."""
        ...

    async def reports(self, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
        """Each checker's (zone, report JSON, heartbeat JSON) of a pool."""
        ...

    async def note_enacted(self, enacted: Sequence[Enacted]) -> None:
        """Remember who enacted what."""
        ...

    async def enacted(self, names: Collection[str] | None = None) -> Mapping[str, Enacted]:
        """The last enactment of each endpoint (of these)."""
        ...

    async def put_findings(self, by: str, found: Mapping[str, tuple[str, str]]) -> None:
        """Replace a role's findings: (verdict, why) by endpoint."""
        ...

    async def findings(self) -> Mapping[str, Mapping[str, tuple[str, str]]]:
        """Each role's findings."""
        ...

    async def note(self, rows: Sequence[HistoryRow]) -> None:
        """Append to the history."""
        ...

    async def history(self, *, after: int = 0, since: Instant = 0, most: int = 1000) -> Sequence[HistoryRow]:
        """The history after an id and a time, oldest first; the newest ``most`` rows of it."""
        ...

    async def beat(self, beat: Beat) -> None:
        """A role's sign of life, replacing its last."""
        ...

    async def beats(self) -> Sequence[Beat]:
        """Each role's last sign of life."""
        ...

    async def at_rest(self, work: Callable[[], None]) -> None:
        """Run something while no call of this store object is under way."""
        ...

    def waiter(self, *, reports: bool = False) -> "Waiter":
        """For one task: waits for changes of head and inputs, or with ``reports`` for any change."""
        ...

    async def close(self) -> None:
        """Let go of files and connections."""
        ...
