"""The fleet's ports: the rows that outlive every process, the hosts' agents, and what an agent runs instances with.

Errors are those of :mod:`fencepost.ports`; the rows' reference semantics those of
:mod:`fencepost.core.capacity.fleet_store`.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from fencepost.core.capacity.fleet_store import Claim, Group, Versioned
from fencepost.core.capacity.messages import Instance, NetworkState
from fencepost.core.capacity.rows import Kind, ShardRow
from fencepost.core.instant import Duration


class Page(NamedTuple):
    """Rows of one snapshot, in order of their keys; ``life`` is the store's identity."""

    life: str
    snapshot: int
    rows: Sequence[Versioned]


class Proof(NamedTuple):
    """One consistent look at a shard: the store's life, the shard's row, and the rows asked for, in the order asked."""

    life: str
    shard: ShardRow | None
    rows: Sequence[Versioned | None]


class Written(NamedTuple):
    """What became of a commit: the snapshot it made (or the newest, if no group applied), and which groups applied."""

    snapshot: int
    applied: tuple[bool, ...]


class FleetStorePort(Protocol):
    """The fleet's rows in a store. Linearizable; may be used by several tasks of a process at once.

    Every call raises ``Unavailable`` (of a commit: the outcome is unknown, read again) or ``Misconfigured``.
    """

    async def rows(self, kind: Kind, shard: int | None = None, since: int = 0) -> Page:
        """All rows of a kind changed after snapshot ``since``, at a cost that grows with what changed.

        ``shard`` narrows hosts and instances to those of one shard, as :mod:`fencepost.core.capacity.shards` says. A
        caller whose ``life`` is another than the page's must begin again from 0. Rows deleted aren't told: only rows
        that nobody minds any more (ended instances, old launches) are ever deleted.
        """
        ...

    async def prove(self, shard: int, places: Sequence[tuple[Kind, str]]) -> Proof:
        """One consistent look at a shard's row and these rows."""
        ...

    async def commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        """Groups of changes, each all or nothing, under a claim: None if that doesn't stand (then nothing applied).

        Never resends. Raises ``Refused`` if two groups share a row.
        """
        ...

    async def wait(self, most: Duration) -> None:
        """Return when rows may have changed since this task's last call, at the latest after ``most``."""
        ...

    async def close(self) -> None:
        """Let go of files and connections."""
        ...


@runtime_checkable
class PagedFleetStorePort(FleetStorePort, Protocol):
    """A fleet's store that can be read a page at a time."""

    async def some_rows(self, kind: Kind, shard: int | None, after: str, most: int) -> Page:
        """The first ``most`` rows of a kind (of a shard) with a key after this one, as they are now.

        Fewer are the last. The next page is as of another moment, and may be of another life.
        """
        ...


class RestorableFleetStorePort(FleetStorePort, Protocol):
    """A fleet's store that may have been set back to an older day without noticing."""

    async def restamp(self) -> str:
        """Begin a new life, which makes every lease unknown until its host has reported again; the new life."""
        ...


class Driver(Protocol):
    """What an agent runs instances with. Keeps them running when the agent itself ends or dies."""

    async def running(self) -> Collection[str]:
        """The ids of attempts that run now, also those started by the agent before this one."""
        ...

    async def start(self, instance: Instance) -> None:
        """Start an attempt. Raises ``Refused`` if it can't be started, ``Unavailable`` if it may have been."""
        ...

    async def stop(self, id: str) -> None:  # noqa: A002  the field's word, as in every message
        """End an attempt and return when it is gone; nothing to do if it isn't there."""
        ...

    async def network(self, states: Sequence[NetworkState]) -> None:
        """Put network states in place of those before. Raises ``Unavailable`` if that can't be done now."""
        ...

    def on_end(self, told: Callable[[str], None]) -> None:
        """Have ``told`` called with the id of each attempt that ends by itself."""
        ...

    def cause(self, id: str) -> str:  # noqa: A002  the field's word
        """How an attempt that doesn't run ended, in a few words for people; "" if that isn't known."""
        ...
