"""Effects: what a decider asks for, one class a port operation. Carried out in order; each says what answers it."""

from msgspec import Struct

from fencepost.core.fence import Generation
from fencepost.core.instant import Duration
from fencepost.core.store import Plan
from fencepost.core.zone import Batch


class Effect(Struct, frozen=True, gc=False):
    """The base of all effects."""


class Wake(Effect, frozen=True, gc=False):
    """Answered by :class:`~fencepost.core.events.Woke` after so long, or sooner if the store or DNS changes."""

    after: Duration


class ReadDns(Effect, frozen=True, gc=False):
    """Bring the port's mirror of the domain up to date. Answered by ``DnsRead`` or ``Failed``."""


class ReadRows(Effect, frozen=True, gc=False):
    """Bring the port's mirror of the newest rows up to date. Answered by ``RowsRead`` or ``Failed``."""


class ReadHead(Effect, frozen=True, gc=False):
    """Read the head, and the newest rows as of that head. Answered by ``HeadRead`` or ``Failed``."""


class ReadInputs(Effect, frozen=True, gc=False):
    """Read what the inputs ask of each endpoint, and the waiting orders, as one snapshot. Answered: ``InputsRead``."""


class Compare(Effect, frozen=True, gc=False):
    """Lay DNS and rows (as read by the two effects before) side by side; no IO. Answered by ``Compared``.

    At most ``limit`` endpoints that may need something, in name order from after ``cursor``, going round.
    ``rows_known`` is False when the store couldn't be read: then each row is unknown.
    """

    limit: int
    cursor: str = ""
    rows_known: bool = True


class Survey(Effect, frozen=True, gc=False):
    """Lay inputs, newest rows and DNS side by side; no IO. Answered by ``Surveyed``."""


class Commit(Effect, frozen=True, gc=False):
    """One transaction of the DNS provider, or several at once. Must come after the reads its changes name as seen.

    Answered by ``Committed``, ``Changed`` (a transaction was not applied) or ``Failed`` (the outcome of one may be
    unknown: read again). Where there were several, the others may have applied.
    """

    batch: Batch


class Findings(Effect, frozen=True, gc=False):
    """Endpoints that were judged and are not to be written: (name, verdict, why). Not answered.

    The port stops offering them until something about them changes, and makes the findings known.
    """

    found: tuple[tuple[str, str, str], ...]


class SetAside(Effect, frozen=True, gc=False):
    """An endpoint whose write failed although it was sent alone. Not answered.

    The port doesn't offer it again for ``after`` nanoseconds, or until something about it changes, and makes ``why``
    known.
    """

    name: str
    why: str
    after: Duration


class Publish(Effect, frozen=True, gc=False):
    """Publish a plan by compare-and-set on the head. Answered by ``Published``, ``Outrun`` or ``Failed``."""

    plan: Plan


class ReadSpent(Effect, frozen=True, gc=False):
    """List rows older than the newest ones, with the live generation of each name. Answered by ``SpentRead``."""


class DeleteRow(Effect, frozen=True, gc=False):
    """Delete one row if it still has this nonce. Answered by ``Deleted`` (also when it was gone) or ``Failed``."""

    name: str
    generation: Generation
    nonce: str
