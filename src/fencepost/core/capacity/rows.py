"""What of the fleet must outlive every process: one row a shard, host, instance and network state.

Renewals aren't here: that a host answered again lives in its manager's memory, so a store that is away for hours makes
nothing lapse. Rows are written by compare-and-set on each row's revision; those about leases also on the shard's row,
so that a manager that lost its shard can write nothing any more.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from fencepost.core.capacity.messages import Instance, InstanceSet
from fencepost.core.instant import Duration, Instant

Lease: TypeAlias = Literal["none", "held", "lapsed"]
Word: TypeAlias = Literal["", "cordon", "drain", "gone"]
InstanceState: TypeAlias = Literal["waiting", "placed", "ending", "ended"]


class ShardRow(Struct, frozen=True, gc=False, tag="shard", omit_defaults=True):
    """Who owns a shard. ``owner`` is drawn by each manager at its start, "" for nobody; ``epoch`` only rises.

    ``beat`` rises while the owner lives: whoever sees it stand still may take over. ``open`` is the life of the store
    in which instances may be placed, since every host has reported or lapsed in it. ``room`` is what is free on held
    hosts. ``lasts`` is how long the owner's leases last, or those of whoever had it before while they may: whoever
    takes over waits that long, if his own are shorter.
    """

    shard: int
    of: int
    owner: str = ""
    epoch: int = 0
    beat: int = 0
    open: str = ""
    room: int = 0
    lasts: Duration = 0

    @property
    def key(self) -> str:
        """Its key among rows of its kind."""
        return str(self.shard)


class HostRow(Struct, frozen=True, gc=False, tag="host", omit_defaults=True):
    """A host: where its agent answers, its lease, and the set it is to run.

    ``at`` is "address:port"; ``room`` how many instances it takes, ``addresses`` those it can give them. ``number`` and
    ``nonce`` are the newest grant's; ``life`` is the store's identity at that grant: a lease of another life is
    unknown, neither held nor lapsed. ``incarnation`` is that of the host's memory at the grant, ``boot`` the agent's
    start as last seen. ``left`` > 0 marks a suspect: no order was sent since its last answer but those that die within
    so many nanoseconds from when the mark was written. ``reported`` says that the host told its set in this life under
    a grant of this life. ``word`` is a person's: no new instances (cordon), and move those away (drain), and known to
    be gone (gone). ``forgotten``: and nobody wants to hear of it any more. ``since`` is when an agent first made itself
    known at ``at``, for people, nanoseconds since 1970. ``steady``, (boot, version): since the set had that version the
    row's boot has always been this one, so what was added above it was never ordered under another; (0, 0) for nobody
    knows. ``unable`` is why it says that it can't write its memory, "" if it doesn't say so, and ``unable_at`` since
    when, nanoseconds since 1970.
    """

    host: str
    zone: str
    at: str
    room: int = 1
    addresses: tuple[str, ...] = ()
    number: int = 0
    nonce: int = 0
    lease: Lease = "none"
    life: str = ""
    incarnation: int = 0
    boot: int = 0
    left: Duration = 0
    reported: bool = False
    set: InstanceSet = InstanceSet()
    word: Word = ""
    since: Instant = 0
    forgotten: bool = False
    steady: tuple[int, int] = (0, 0)
    unable: str = ""
    unable_at: Instant = 0

    @property
    def key(self) -> str:
        """Its key among rows of its kind."""
        return self.host

    def held(self, life: str) -> bool:
        """Whether its lease is held in this life of the store."""
        return self.lease == "held" and self.life == life

    def placeable(self, life: str) -> bool:
        """Whether an instance may be placed on it: held, reported, no word against it, able to take it, and room."""
        closed = self.word or self.unable
        return self.held(life) and self.reported and not closed and len(self.set.instances) < self.room


class InstanceRow(Struct, frozen=True, gc=False, tag="instance", omit_defaults=True):
    """One instance that somebody launched.

    ``attempt`` counts from 1 (0: never placed); ``host`` is where that attempt runs, "" while waiting. ``old`` is an
    attempt that still runs elsewhere until this one is ready, as (host, id); ("", "") for none. ``asked_at`` and
    ``ended_at`` are for people, nanoseconds since 1970. ``why`` says what it waits for, or why it ended. ``ends`` is
    how many attempts in a row ended by themselves, as their hosts said; 0 again once one has run for a while, or was
    lost with its host. ``again_at`` is when the next attempt after one that ended by itself is due, for people too; 0
    where it isn't waited for.
    """

    instance: str
    pool: str = ""
    state: InstanceState = "waiting"
    attempt: int = 0
    host: str = ""
    address: str = ""
    port: int = 0
    zone: str = ""
    command: tuple[str, ...] = ()
    old: tuple[str, str] = ("", "")
    asked_at: Instant = 0
    ended_at: Instant = 0
    why: str = ""
    ends: int = 0
    again_at: Instant = 0

    @property
    def key(self) -> str:
        """Its key among rows of its kind."""
        return self.instance

    @property
    def id(self) -> str:
        """The current attempt's id."""
        return f"{self.instance}.{self.attempt}"

    def at(self, attempt: int, address: str) -> Instance:
        """What a host is told of an attempt at it."""
        return Instance(f"{self.instance}.{attempt}", self.pool, address, self.port, self.command)


class NetworkRow(Struct, frozen=True, gc=False, tag="network", omit_defaults=True):
    """The network state of one attempt, and its host's acknowledgement.

    ``inputs`` is the snapshot it was made from. ``acked`` is the version that the host has, as (version, digest, boot,
    life); (0, "", 0, "") for none. Later versions don't take an acknowledgement's worth away: see
    :mod:`fencepost.core.capacity.network_state`.
    """

    id: str
    host: str
    version: int
    digest: str
    inputs: int
    body: str
    acked: tuple[int, str, int, str] = (0, "", 0, "")

    @property
    def key(self) -> str:
        """Its key among rows of its kind."""
        return self.id


class LaunchRow(Struct, frozen=True, gc=False, tag="launch", omit_defaults=True):
    """A launch under an idempotency key: asked again with it, the same instances are the answer.

    ``digest`` is that of what was asked, so that a key used for something else is refused.
    """

    name: str
    digest: str
    instances: tuple[str, ...]
    asked_at: Instant = 0

    @property
    def key(self) -> str:
        """Its key among rows of its kind."""
        return self.name


class CheckpointRow(Struct, frozen=True, gc=False, tag="checkpoint", omit_defaults=True):
    """When each of a block of a shard's hosts last answered, as a manager saw it: for looking at.

    One rule reads it: a host's name is free once it has been silent for a lease (by its age, and not by ``at``).

    ``hosts`` are names in order; ``ages`` the seconds since each one's last answer at ``at`` (nanoseconds since 1970),
    -1 for none yet; ``silent`` the places of those that didn't answer their last check. A block named "SHARD" alone has
    no hosts: ``counts`` is what the shard's manager says of itself, ``loops`` some of its instances that end again and
    again, as (instance, pool, how often in a row, why), and ``stuck`` some drained hosts, with how many of its
    instances have no place elsewhere. ``unable`` are some hosts that can't write their memories, as (host, why, since
    when in nanoseconds since 1970). ``past`` is how many leases it had given, of how many,
    in the last half minute: see :mod:`fencepost.core.capacity.coming_back`.
    """

    block: str
    owner: str
    at: Instant
    hosts: tuple[str, ...] = ()
    ages: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    counts: dict[str, int] = {}
    loops: tuple[tuple[str, str, int, str], ...] = ()
    stuck: tuple[tuple[str, int], ...] = ()
    unable: tuple[tuple[str, str, Instant], ...] = ()
    past: tuple[tuple[Instant, int, int], ...] = ()

    @property
    def key(self) -> str:
        """Its key among rows of its kind."""
        return self.block


class CalibrationRow(Struct, frozen=True, gc=False, tag="calibration", omit_defaults=True):
    """How much work may be in flight, as measured: ``limit`` checks at once, mean and p99.9 service time in ns.

    ``rate`` is how many leases a second come back at most; ``grants`` how many the store wrote (0: not measured), of
    ``hosts`` asked; where it is more than ``rate``, checks are what bounds it. ``measured_at`` is for people.
    """

    name: str
    limit: int
    service: Duration
    slowest: Duration
    rate: float
    measured_at: Instant = 0
    grants: float = 0.0
    hosts: int = 0

    @property
    def key(self) -> str:
        """Its key among rows of its kind."""
        return self.name


class DrainRow(Struct, frozen=True, gc=False, tag="drain", omit_defaults=True):
    """How a stage keeps up, for those whose work ends in it: see :mod:`fencepost.core.capacity.drain`.

    ``depth`` is how much waits, ``bound`` how much may; ``rate`` how much a second it gets done when it is busy;
    ``oldest`` for how long the oldest has waited. ``at`` is for people, nanoseconds since 1970.
    """

    stage: str
    depth: int = 0
    bound: int = 1
    rate: float = 0.0
    oldest: Duration = 0
    at: Instant = 0

    @property
    def key(self) -> str:
        """Its key among rows of its kind."""
        return self.stage


FleetRow: TypeAlias = (
    ShardRow | HostRow | InstanceRow | NetworkRow | LaunchRow | CheckpointRow | CalibrationRow | DrainRow
)
Kind: TypeAlias = Literal["shard", "host", "instance", "network", "launch", "checkpoint", "calibration", "drain"]
KINDS: tuple[Kind, ...] = ("shard", "host", "instance", "network", "launch", "checkpoint", "calibration", "drain")
"""The kinds of rows, as their tags say."""


def kind_of(row: FleetRow) -> Kind:
    """A row's kind."""
    kind: Kind = row.__struct_config__.tag  # type: ignore[assignment]  # each class's tag is one of KINDS
    return kind
