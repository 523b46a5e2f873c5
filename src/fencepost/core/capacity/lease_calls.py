"""What a shard's lease manager asks for and is told. Hosts are numbers here: places in the port's list of hosts.

Everything about many hosts comes and goes in arrays, since a recovery is about a hundred thousand of them at once.
The port keeps the rows themselves, sets and all; the decider is told of them what it decides by (:class:`Facts`).
"""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fencepost.core.capacity.rows import ShardRow
from fencepost.core.instant import SECOND, Duration

Ids: TypeAlias = NDArray[np.int64]
Some: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]


class Lease(IntEnum):
    """What the rows say of a host's lease in this life of the store."""

    UNKNOWN = 0
    HELD = 1
    LAPSED = 2


class Op(IntEnum):
    """Which write or read about a host is under way. Each host has at most one."""

    NONE = 0
    GRANT = 1
    LAPSE = 2
    MARK = 3
    CLEAR = 4
    ADOPT = 5
    BOOT = 6
    PROVE = 7
    REREAD = 8


class Facts(NamedTuple):
    """Of some hosts' rows, one entry a host: the grant's number and nonce, the lease in this life of the store,
    the incarnation it was granted to, the agent's boot as written, the mark of a suspect (nanoseconds left, 0: none),
    whether it reported in this life, the version of the set it is to run, and whether a person says it is gone.
    """

    ids: Ids
    number: NDArray[np.int64]
    nonce: Words
    lease: NDArray[np.int8]
    incarnation: Words
    boot: Words
    left: NDArray[np.int64]
    reported: Some
    version: NDArray[np.int64]
    gone: Some


# Effects.


class ReadShard(Struct, frozen=True, gc=False):
    """Read the shard's row. Answered by ``ShardRead`` or ``Away``."""


class WriteShard(Struct, frozen=True, gc=False):
    """Write the shard's row over the one last read. Answered by ``ShardWritten``, ``ShardChanged`` or ``Away``."""

    row: ShardRow


class ReadHosts(Struct, frozen=True, gc=False):
    """Read the shard's hosts that changed since the last such read; all with ``anew``. Answered: ``HostsRead``.

    ``Away`` if the store is. ``again`` are hosts whose last write may or may not have been done: they are told of in
    any case. ``waited`` is told again in the answer: since then nobody is waited for whom no row tells of.
    """

    anew: bool = False
    again: tuple[int, ...] = ()
    waited: bool = False


class Send(NamedTuple):
    """Send these hosts a check with their present token; ``whole`` asks for their sets. Not answered by itself."""

    ids: Ids
    whole: bool


class Write(NamedTuple):
    """Write the rows of these hosts under the shard's claim, as :mod:`~fencepost.core.capacity.lease_rows` has it.

    ``left`` is the marks to write (of ``Op.MARK``), ``incarnation`` and ``boot`` are what each host said of itself.
    Answered by ``Wrote`` or ``Away``.
    """

    op: Op
    ids: Ids
    left: NDArray[np.int64]
    incarnation: Words
    boot: Words


class Prove(NamedTuple):
    """Read shard and rows of these hosts in one look. Answered by ``Proven`` or ``Away``."""

    ids: Ids


class SendOrders(NamedTuple):
    """Send these hosts the sets of the rows that were just proven, each with its stamp. Not answered by itself."""

    ids: Ids
    boot: Words
    stamp: NDArray[np.int64]


class Recheck(NamedTuple):
    """These hosts are to be checked again as soon as there is room: not a renewal. Not answered by itself."""

    ids: Ids


class Renew(NamedTuple):
    """These hosts answered: check each again in its turn, before its lease ends at ``deadline``.

    ``first``: they were just granted; ``number`` is that of each one's grant, for jitter. Not answered by itself.
    """

    ids: Ids
    deadline: NDArray[np.int64]
    first: bool
    number: NDArray[np.int64]


class Forget(Struct, frozen=True, gc=False):
    """Whatever was under way about hosts is worth nothing any more: the shard isn't ours. Not answered."""


Effect: TypeAlias = ReadShard | WriteShard | ReadHosts | Send | Write | Prove | SendOrders | Recheck | Renew | Forget

# Events.


class Tick(Struct, frozen=True, gc=False):
    """Time has passed. Told at least twice each R, after everything that had arrived before it was told."""


class ShardRead(Struct, frozen=True, gc=False):
    """The shard's row (None: there is none) in the store with this life."""

    life: str
    row: ShardRow | None


class ShardWritten(Struct, frozen=True, gc=False):
    """The row just written stands."""

    row: ShardRow


class ShardChanged(Struct, frozen=True, gc=False):
    """Another row stood there than the one last read; nothing was written."""


class HostsRead(NamedTuple):
    """What the rows of some hosts say, in the store with this life; ``size`` is how many hosts the port knows.

    ``waited`` is as it was in the :class:`ReadHosts` that this answers: a read begun before, and answered late, may say
    what was so before.
    """

    life: str
    size: int
    facts: Facts
    waited: bool = False


class Due(NamedTuple):
    """It is these hosts' turn to be checked."""

    ids: Ids


class Answered(NamedTuple):
    """Hosts' answers, in the order in which they came: the token each was asked with, and what it said.

    ``whole`` says that the port has each one's set at this version.
    """

    ids: Ids
    epoch: NDArray[np.int64]
    number: NDArray[np.int64]
    nonce: Words
    boot: Words
    stamp: NDArray[np.int64]
    incarnation: Words
    version: NDArray[np.int64]
    whole: Some

    def only(self, some: Some) -> "Answered":
        """Those of them."""
        told = (self.number[some], self.nonce[some], self.boot[some], self.stamp[some])
        return Answered(
            self.ids[some], self.epoch[some], *told, self.incarnation[some], self.version[some], self.whole[some]
        )


class Outdated(Struct, frozen=True, gc=False):
    """A host refused: it has met this token (epoch, number, nonce), which outdates what it was sent."""

    id: int
    epoch: int
    number: int
    nonce: int


class Silent(NamedTuple):
    """These hosts were checked and haven't answered in the time that an answer takes."""

    ids: Ids


class Wrote(NamedTuple):
    """What became of a write: the rows as they are now. None of it applied if ``stands`` is False: the claim fell."""

    op: Op
    stands: bool
    facts: Facts


class Proven(NamedTuple):
    """One look at the shard's row and these hosts' rows."""

    life: str
    row: ShardRow | None
    facts: Facts


class Away(NamedTuple):
    """A call to the store failed: its outcome is unknown. ``op`` and ``ids`` say which hosts it was about, if any."""

    op: Op
    ids: Ids


Event: TypeAlias = (
    Tick
    | ShardRead
    | ShardWritten
    | ShardChanged
    | HostsRead
    | Due
    | Answered
    | Outdated
    | Silent
    | Wrote
    | Proven
    | Away
)

NO_IDS: Ids = np.empty(0, np.int64)


class LeaseSettings(Struct, frozen=True, gc=False):
    """Which shard, as whom, and its times in nanoseconds.

    ``renew`` is R: a host is checked once in R, and its lease is 3R from its last answer. ``margin`` covers clocks that
    run apart (1 % each: 2 % of 3R). Whoever sees the owner's beat stand still for ``take_after`` takes the shard over.
    ``expect`` is how many hosts the shard has, where the configuration names them all; 0 where it doesn't.
    Of the held leases at most ``mass_share`` (or ``mass_least`` hosts) lapse in one R: more is taken for our own fault.

    Raises ``ValueError`` for a lease of no or negative length (redis-py #4279).
    """

    owner: str
    shard: int
    of: int
    renew: Duration
    margin: Duration
    beat: Duration
    take_after: Duration
    mass_share: float = 0.1
    mass_least: int = 2
    expect: int = 0

    def __post_init__(self) -> None:
        if self.renew <= 0 or self.beat <= 0:
            raise ValueError("a lease and a beat last longer than nothing")
        if self.margin * 50 < 3 * self.renew:
            raise ValueError("the margin is at least 2 % of a lease (3R), since each clock may be 1 % off")
        if not 1 <= self.shard <= self.of:
            raise ValueError(f"there is no shard {self.shard} of {self.of}")

    @property
    def lease(self) -> Duration:
        """How long after an answer arrived every order ever sent on its stamp is dead: 3R and the margin."""
        return 3 * self.renew + self.margin


def lease_settings(owner: str, shard: int, of: int, renew: Duration, expect: int = 0) -> LeaseSettings:
    """The settings that follow from R alone. Raises ``ValueError`` as :class:`LeaseSettings` does."""
    beat = max(1, min(renew // 5, SECOND))
    return LeaseSettings(owner, shard, of, renew, (3 * renew + 49) // 50, beat, 5 * beat, expect=expect)
