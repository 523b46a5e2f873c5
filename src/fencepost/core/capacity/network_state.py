"""Network state: what an attempt needs of its host's network before it may serve, and who has really got it.

In October 2025 new instances were launched and served before their network state had reached them; the backlog of
such states outlasted everything else. Here the state of an attempt is one row, made from what is placed and from the
configuration, and an attempt is *ready* only when its host has said that this very state, or a newer one, is in place.

A state is whole, so only the newest is worth sending; older versions are never queued. Versions of one attempt only
rise, and a host never goes back: it refuses a lower version, and another state of an equal one, by telling what it has.
Whoever hears that publishes above it. That alone mends a store that was lost or put back from a copy, whose numbers
begin again below what the hosts have: the host's word is the floor, whatever the row says.

Rows are published by compare-and-set from inputs that were read after the row, so from none older than the row's
own, and under the shard's claim as read, so that nothing made in one life of a store is written into another. An order
is sent only with the host's current token: one from a life or a grant before is refused however late it comes. An
acknowledgement counts for one boot of the host's agent and one life of the store. Two managers do each other no harm:
the slower one's row is refused, and the same state again is put in place again.

Awkward truth: ready is judged once, when membership takes a target in. It isn't taken back when a newer version is
published, or one change of a pool's rules would take the whole pool out of service; a newer version is owed, not
required. And "in place" is the host's word: it is as good as what the agent's driver of the network makes of it.
"""

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fencepost.core.capacity.messages import Instance, NetworkAnswer, NetworkOrder, NetworkState
from fencepost.core.capacity.rows import HostRow, NetworkRow, ShardRow
from fencepost.core.capacity.token import Token

STATES_MOST = 500
"""States in one order; a host that lacks more gets them in the next ones."""
BODY_BYTES_MOST = 1 << 19
"""Their bodies together, so that an order stays well below what a connection takes."""


class Wanted(NamedTuple):
    """What the inputs ask for: the state of attempt ``id`` on ``host``. ``body`` is JSON with sorted keys."""

    id: str
    host: str
    body: str

    @property
    def digest(self) -> str:
        """What stands for the body in rows and messages."""
        return digest_of(self.body)


class Heard(Struct, frozen=True, gc=False):
    """What a host said it has of an attempt, in this life of the store; kept in a manager's memory only."""

    version: int
    digest: str
    life: str


def digest_of(body: str) -> str:
    """A body's digest: 128 bits of BLAKE2b (RFC 7693), in hex."""
    return blake2b(body.encode(), digest_size=16).hexdigest()


def wanted(host: HostRow, accept: Sequence[str]) -> tuple[Wanted, ...]:
    """What each attempt in the host's set is to have; ``accept`` is what the configuration lets reach instances."""
    return tuple(Wanted(each.id, host.host, body_of(each, host.zone, accept)) for each in host.set.instances)


def body_of(instance: Instance, zone: str, accept: Sequence[str]) -> str:
    """The state of one attempt, in JSON with sorted keys: its address and port, and what may reach it."""
    state = {
        "accept": list(accept),
        "address": instance.address,
        "id": instance.id,
        "pool": instance.pool,
        "port": instance.port,
        "zone": zone,
    }
    return msgspec.json.encode(state, order="deterministic").decode()


# Publishing


def overtakes(heard: Heard | None, row: NetworkRow | None, life: str) -> bool:
    """Whether the host has something that it would refuse the row for: higher, or another state of the same number."""
    if heard is None or heard.life != life:
        return False
    if row is None or heard.version > row.version:
        return True
    return heard.version == row.version and heard.digest != row.digest


def publication(want: Wanted, row: NetworkRow | None, heard: Heard | None, life: str, inputs: int) -> NetworkRow | None:
    """The row to publish in place of ``row``; None if that stands.

    ``inputs`` is the snapshot that ``want`` was made from, read after the row: that order is what keeps a row from
    being made from older inputs than the one it replaces, and the compare-and-set on the row ties it down.
    """
    over = overtakes(heard, row, life)
    if row is not None and not over and (row.digest, row.host) == (want.digest, want.host):
        return None
    known = row.version if row is not None else 0
    told = heard.version if heard is not None and over else 0
    made = NetworkRow(want.id, want.host, max(known, told) + 1, want.digest, inputs, want.body)
    return made if row is None else replace(made, acked=row.acked)


# Sending


def acknowledged(row: NetworkRow, host: HostRow, life: str) -> bool:
    """Whether the host has this state or a newer one in place: on the boot as last seen, in this life of the store."""
    version, digest, boot, of = row.acked
    if of != life or boot != host.boot:
        return False
    return version > row.version or (version == row.version and digest == row.digest)


def owed(row: NetworkRow | None, host: HostRow, life: str) -> bool:
    """Whether the row's state is to be sent to this host."""
    return row is not None and row.host == host.host and not acknowledged(row, host, life)


def commands(host: HostRow | None, life: str) -> bool:
    """Whether a host may be told anything: its lease is held in this life of the store, and it has told its set."""
    return host is not None and host.held(life) and host.reported


def order(
    host: HostRow | None, shard: ShardRow | None, rows: Iterable[NetworkRow | None], life: str
) -> NetworkOrder | None:
    """What to send a host, from one look at shard, host and rows; None if nothing is owed or it may be told nothing.

    The token is the one that look shows. Only attempts in the host's set are sent.
    """
    if host is None or shard is None or not commands(host, life):
        return None
    ids, room = host.set.ids, BODY_BYTES_MOST
    states: list[NetworkState] = []
    for row in rows:
        if row is None or row.id not in ids or not owed(row, host, life):
            continue
        room -= len(row.body)
        if states and (len(states) >= STATES_MOST or room < 0):
            break
        states.append(NetworkState(row.id, row.version, row.digest, row.body.encode()))
    if not states:
        return None
    return NetworkOrder(host.host, token_of(shard, host), tuple(states))


def token_of(shard: ShardRow, host: HostRow) -> Token:
    """The host's current token, as the rows say."""
    return Token(shard.epoch, host.number, host.nonce)


class Outcome(NamedTuple):
    """What an answer comes to: rows with their new acknowledgements, and what else the hosts said they have."""

    acknowledged: tuple[NetworkRow, ...]
    heard: tuple[tuple[str, Heard], ...]


def outcome(answer: NetworkAnswer, sent: Collection[NetworkRow], life: str) -> Outcome:
    """What a host's answer to these rows comes to; ``life`` is that of the look the order was made from.

    Only the very state that was sent is acknowledged; anything else that the host has is only heard of. An
    attempt that the host doesn't have is neither.
    """
    rows = {row.id: row for row in sent}
    took, heard = [], []
    for id_, version, digest in answer.has:
        row = rows.get(id_)
        if row is None:
            continue
        if (version, digest) == (row.version, row.digest):
            acked = (version, digest, answer.boot, life)
            if row.acked != acked:  # else nothing is news, and a row that is written for nothing wakes everybody
                took.append(replace(row, acked=acked))
        else:
            heard.append((id_, Heard(version, digest, life)))
    return Outcome(tuple(took), tuple(heard))


# Readiness


def missing(row: NetworkRow | None, host: HostRow | None, life: str) -> str:
    """What an attempt still lacks of its network state, in words for people; empty when it is network-ready now.

    Whoever was found ready once stays so: later versions take nothing away. Remembering that is the asker's.
    """
    if host is None or not host.held(life):
        return "its host has no lease"
    if row is None or row.host != host.host:
        return "its network state isn't made yet"
    if acknowledged(row, host, life):
        return ""
    version, _, boot, of = row.acked
    if not version or of != life:
        return "its host hasn't acknowledged its network state"
    if boot != host.boot:
        return "its host has started anew since it acknowledged its network state"
    return f"its host acknowledged version {version} of its network state, not yet {row.version}"


def ready(row: NetworkRow | None, host: HostRow | None, life: str) -> bool:
    """Whether an attempt is network-ready now; see :func:`missing`."""
    return not missing(row, host, life)
