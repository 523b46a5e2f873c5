"""The promises about DNS, and what is needed to check them: shared by the explorer and running roles.

``never_backward`` and ``hold_stands`` speak of the last enacted generation and hold. That is remembered by the marker,
and by the newest row where the marker is gone; when the last that remembers is destroyed by hand, the memory falls with
it. :class:`Memory` keeps exactly that, one for each endpoint.
"""

from msgspec import Struct, structs

from fencepost.core.fence import NEVER, Foreign, Generation, Hold, Marker
from fencepost.core.instant import Instant
from fencepost.core.record_set import Content, record_digest
from fencepost.core.store import Row
from fencepost.core.zone import Change, Live, withdraws

ALWAYS = {
    "never_empty": "a published address family has an address, unless withdrawn or emptied by another writer",
    "never_backward": "an endpoint's live generation never falls",
    "never_torn": "at the primary, a reader sees one plan's set for an endpoint, whole",
    "inputs_never_backward": "no published plan is made from older inputs than its predecessor's",
    "cleanup_spares_live": "no live, newest or pinned row is ever deleted",
    "hold_stands": "a repair, rollback or withdrawal is undone only by its own release, or by a later hold",
    "spares_others": "another owner's records, and unmarked ones not known as ours, go only by a person's word",
    "bounded_removal": "automation takes out no more than burst + rate x time, and never goes below min_in",
}
"""Name to meaning, of the promises that hold in every state."""

EVENTUALLY = {
    "converges": "from any reachable state one live enactor, a planner and an answering provider reach the newest plan",
}
"""Name to meaning, of the promises about where things end."""

FLEET = {
    "single_holder": "a host obeys nobody after it has acknowledged a later grant, and one token is one manager's",
    "started_once": "an attempt is started at most once, and never after it was taken for over",
    "ended_stays_ended": "what is told as ended runs on no host that is held, and never starts again",
    "outage_lapses_nothing": "no lease lapses of a host that answers its manager, however long the store is away",
    "backlog_bounded": "no queue outgrows what it is about, and no host is asked again and again for nothing",
    "recovers": "once nothing goes wrong any more, leases, instances and hosts come to be as the rows say, unaided",
}
"""Name to meaning, of the promises about leases and placement; the last one is about where things end."""


NETWORK = {
    "ready_before_serving": "no launched instance serves before its host acknowledged its network state, in this life",
    "network_never_backward": "what is in place on a host is never replaced by an older network state",
}
"""Name to meaning, of the promises about network state. No caller of DNS sees them and no simulated fleet has any: the
explorer judges them, in every state of :mod:`fencepost.world.network`. There ``inputs_never_backward`` is of rows, too.
"""


class Memory(Struct, frozen=True, gc=False):
    """An endpoint's last enacted generation, the hold that stands in it with its content, the highest id released.

    ``highest`` is the highest generation ever enacted: the only one here that nothing makes fall. ``adopted`` is the
    digest of the unmarked records that a person has let us take over, "" for none.
    """

    enacted: Generation = NEVER
    held: Hold | None = None
    content: Content | None = None
    released: int = 0
    highest: Generation = NEVER
    adopted: str = ""


def replaces(memory: Memory, before: Live, change: Change, *, ours: bool) -> str | None:
    """The promise that a commit broke by what it replaced, if any; ``ours``: the records before it are known as ours.

    A person's repair is his word: it replaces unmarked records, and never another owner's.
    """
    if isinstance(before.marker, Foreign):
        return "spares_others"
    if before.marker is not None or before.empty or ours or record_digest(before.a, before.aaaa) == memory.adopted:
        return None
    hold = change.marker.hold
    repaired = hold is not None and hold.kind == "repair" and (memory.held is None or hold.id > memory.held.id)
    return None if repaired else "spares_others"


def enact(memory: Memory, live: Live, now: Instant = 0) -> tuple[Memory, str | None]:
    """The memory after a commit that left ``live``, and the promise it broke, if any."""
    marker = live.marker
    if not isinstance(marker, Marker):
        return memory, "never_torn"
    broken = None
    if live.empty and not withdraws(marker):
        broken = "never_empty"
    elif not live.verified():
        broken = "never_torn"
    elif marker.generation < memory.enacted:
        broken = "never_backward"
    elif undoes(memory, marker, now):
        broken = "hold_stands"
    held = marker.content if marker.hold is not None else None
    highest = max(memory.highest, marker.generation)
    after = structs.replace(memory, enacted=marker.generation, held=marker.hold, content=held, highest=highest)
    return after, broken


def undoes(memory: Memory, marker: Marker, now: Instant) -> bool:
    """Whether the marker takes away a hold that neither release nor time has ended, nor a later hold replaces.

    Another content under the same id is another hold, whatever it calls itself.
    """
    held = memory.held
    if held is None or held.ended(memory.released, now):
        return False
    if marker.hold is None or marker.hold.id < held.id:
        return True
    return marker.hold.id == held.id and marker.content != memory.content


def cleaned(memory: Memory, live: Live, gone: Generation, newest: Generation) -> str | None:
    """The promise that deleting the row ``gone`` broke, if any; ``newest`` is the endpoint's newest row's generation.

    A row that is live again only because a hand has since deleted a newer marker doesn't count: the janitor had seen
    the newer one, the newest row is there to follow, and what DNS answers needs no row.
    """
    standing = isinstance(live.marker, Marker) and live.marker.generation == gone and gone >= memory.highest
    return "cleanup_spares_live" if gone == newest or standing else None


def destroy(memory: Memory, live: Live, row: Row | None) -> Memory:
    """The memory after something was destroyed by hand, leaving ``live`` in DNS and ``row`` the newest in the store."""
    if isinstance(live.marker, Marker):
        return memory
    if row is None or live.empty:
        return structs.replace(memory, enacted=NEVER, held=None, content=None)
    stands = row.hold is not None and row.hold == memory.held
    return structs.replace(
        memory,
        enacted=min(memory.enacted, row.generation),
        held=memory.held if stands else None,
        content=memory.content if stands else None,
    )
