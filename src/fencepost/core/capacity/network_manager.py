"""The network manager: publishes what each attempt's network state is to be, and sends it to the hosts that owe it.

A pass reads the rows of network states, then places and configuration, lays them side by side, and publishes what
differs. The order matters: inputs read before a row could be older than those that the row was made from. Sending is a
chain of its own for each host, pulled when there is room for it, so that the backlog is at most the number of hosts:
one look at the store shows token and newest rows, the order goes out, and what the answer says is written or
remembered. Chains and passes may overlap in any way; nothing between them is kept but what hosts were heard to have.

    Woke -> ReadStates -> ReadPlaces -> Publish -> Wake         Due(host) -> Prove -> SendNetwork -> Record

Without the store nothing is published and nothing sent, since the token can't be read: what hosts have stays as it is.
"""

from typing import NamedTuple

from msgspec import Struct, field

from fencepost.core.capacity.fleet_store import Change, Claim, Versioned
from fencepost.core.capacity.messages import FromHost, NetworkAnswer, NetworkOrder
from fencepost.core.capacity.network_state import Heard, Wanted, order, outcome, publication
from fencepost.core.capacity.rows import HostRow, NetworkRow, ShardRow
from fencepost.core.effects import Effect, Wake
from fencepost.core.events import Event, Woke
from fencepost.core.instant import SECOND, Duration, Instant


class Pair(NamedTuple):
    """What one attempt is to have, and the row as read before; None if there was none."""

    want: Wanted
    row: Versioned | None


class Look(Struct, frozen=True, gc=False):
    """One consistent look at a host: the store's life, its shard, its row, and the network rows of its attempts."""

    life: str
    shard: ShardRow | None
    host: HostRow | None
    rows: tuple[Versioned, ...] = ()

    @property
    def states(self) -> tuple[NetworkRow, ...]:
        """The network rows alone."""
        return tuple(each.row for each in self.rows if isinstance(each.row, NetworkRow))


class ReadStates(Effect, frozen=True, gc=False):
    """Bring the mirror of network rows up to date. Answered by :class:`StatesRead`."""


class ReadPlaces(Effect, frozen=True, gc=False):
    """Then that of hosts and shards, and the configuration; lay them side by side. Answered by :class:`PlacesRead`."""


class Publish(Effect, frozen=True, gc=False):
    """Write these rows, each over the one it was compared with, under the claim as read. Answered: `Published`."""

    claim: Claim
    changes: tuple[Change, ...]


class Prove(Effect, frozen=True, gc=False):
    """Look at a host, its shard and its attempts' network rows at once. Answered by :class:`Proven`."""

    host: str


class SendNetwork(Effect, frozen=True, gc=False):
    """Send an order to the host looked at. Answered by :class:`Answered`, or by :class:`Silent`."""

    order: NetworkOrder
    look: Look


class Record(Effect, frozen=True, gc=False):
    """Write these acknowledgements, each over the row that was sent, under the claim as proven. Not answered."""

    claim: Claim
    changes: tuple[Change, ...]


class Settled(Effect, frozen=True, gc=False):
    """A host's chain is over. ``again`` says that it may owe something still, and is to be asked again later."""

    host: str
    again: bool


class StatesRead(Event, frozen=True, gc=False):
    """The network rows are read."""


class PlacesRead(Event, frozen=True, gc=False):
    """Which attempts differ from what was published, of hosts that may be told anything, all of one shard.

    ``inputs`` is the snapshot of the places; ``claim`` the shard's owner and epoch in it.
    """

    claim: Claim
    inputs: int
    pairs: tuple[Pair, ...] = ()


class Published(Event, frozen=True, gc=False):
    """The commit is done; what didn't apply had changed, and the next pass sees how."""


class Due(Event, frozen=True, gc=False):
    """There is room for a call to this host, which owes something."""

    host: str


class Proven(Event, frozen=True, gc=False):
    """What the look at a host showed."""

    name: str
    look: Look


class Answered(Event, frozen=True, gc=False):
    """A host's answer to an order made from ``look``."""

    answer: FromHost
    look: Look


class Silent(Event, frozen=True, gc=False):
    """No answer came in the time that a call may take."""

    host: str


class NetworkManager(Struct, gc=False):
    """What the hosts were heard to have that the rows don't say yet; it can be lost at any moment without harm.

    ``idle`` is the longest sleep between passes.
    """

    idle: Duration = SECOND
    heard: dict[str, Heard] = field(default_factory=dict)

    def __copy__(self) -> "NetworkManager":
        return NetworkManager(self.idle, dict(self.heard))

    def key(self) -> tuple[object, ...]:
        """What tells it from another, hashable."""
        return (self.idle, *sorted((id_, *_plain(heard)) for id_, heard in self.heard.items()))

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:  # noqa: ARG002  it keeps no time
        """One step of a pass, or of a host's chain; see :class:`~fencepost.core.decider.Decider`."""
        match event:
            case Woke():
                return (ReadStates(),)
            case StatesRead():
                return (ReadPlaces(),)
            case PlacesRead():
                return self.publish(event)
            case Published():
                return (Wake(self.idle),)
            case Due(host=host):
                return (Prove(host),)
            case Proven():
                return self.send(event)
            case Answered():
                return self.record(event)
            case Silent(host=host):
                return (Settled(host, again=True),)
            case _:
                raise TypeError(f"a network manager is never told {type(event).__name__}")

    def publish(self, event: PlacesRead) -> tuple[Effect, ...]:
        """Publish what differs from what is asked, and what hosts would refuse as it is."""
        changes = []
        for want, row in event.pairs:
            there = row.row if row is not None and isinstance(row.row, NetworkRow) else None
            heard = self.heard.get(want.id)
            made = publication(want, there, heard, event.claim.life, event.inputs)
            if made is not None:
                changes.append(Change(made, row.revision if row is not None else 0))
        return (Publish(event.claim, tuple(changes)) if changes else Wake(self.idle),)

    def send(self, event: Proven) -> tuple[Effect, ...]:
        """Send what the host lacks, as of this look."""
        look = event.look
        made = order(look.host, look.shard, look.states, look.life)
        if made is not None:
            return (SendNetwork(made, look),)
        return (Settled(event.name, again=False),)

    def record(self, event: Answered) -> tuple[Effect, ...]:
        """Write what the host has taken; remember what else it has, for the next pass to publish above it."""
        look, answer = event.look, event.answer
        if not isinstance(answer, NetworkAnswer) or look.shard is None:
            # A newer token: its lease's manager is told the same, and the row will say so.
            return (Settled(answer.host, again=True),)
        took, heard = outcome(answer, look.states, look.life)
        for id_ in (*(row.id for row in took), *answer.unknown):
            self.heard.pop(id_, None)
        self.heard = {id_: told for id_, told in self.heard.items() if told.life == look.life} | dict(heard)
        revisions = {row.row.key: row.revision for row in look.rows}
        changes = tuple(Change(row, revisions[row.id]) for row in took)
        over = Settled(answer.host, again=bool(heard or answer.unknown))
        return (Record(claim_of(look.shard, look.life), changes), over) if changes else (over,)


def claim_of(shard: ShardRow, life: str) -> Claim:
    """A claim that stands as long as the shard's row and the store's life are as seen; it isn't ours, and need not be.

    It keeps what was made from one life of a store out of the next, where revisions come again.
    """
    return Claim(shard.shard, shard.owner, shard.epoch, life)


def _plain(heard: Heard) -> tuple[object, ...]:
    return heard.version, heard.digest, heard.life
