"""Events: what a decider is told, one class an answer (see :mod:`fencepost.core.effects`)."""

from enum import Enum

from msgspec import Struct

from fencepost.core.fence import Generation
from fencepost.core.judge import Pair
from fencepost.core.store import Head, Order, Row, Wanted
from fencepost.core.zone import Live


class Event(Struct, frozen=True, gc=False):
    """The base of all events."""


class Woke(Event, frozen=True, gc=False):
    """The process started, the time asked for is over, or the store or DNS changed."""


class DnsRead(Event, frozen=True, gc=False):
    """The mirror of the domain is as of now."""


class RowsRead(Event, frozen=True, gc=False):
    """The mirror of the newest rows is as of now."""


class HeadRead(Event, frozen=True, gc=False):
    """The head, with the newest rows mirrored as of it."""

    head: Head


class InputsRead(Event, frozen=True, gc=False):
    """Inputs and orders are mirrored as of snapshot ``inputs``."""

    inputs: int


class Compared(Event, frozen=True, gc=False):
    """The endpoints that may need a write. ``more`` says that the limit cut the list."""

    pairs: tuple[Pair, ...]
    more: bool = False


class Standing(Struct, frozen=True, gc=False):
    """One endpoint as a planner sees it. ``wanted`` is None when the inputs don't (or no longer) name it.

    ``enacted`` says whether the newest row is known to have been enacted by this store's enactors.
    """

    name: str
    live: Live
    row: Row | None
    wanted: Wanted | None
    orders: tuple[Order, ...] = ()
    enacted: bool = False


class Surveyed(Event, frozen=True, gc=False):
    """The endpoints whose inputs, orders, row and marker don't agree; ``highest`` is any marker's highest number."""

    standings: tuple[Standing, ...]
    highest: int


class Committed(Event, frozen=True, gc=False):
    """The provider applied the whole batch; or all that was sent of it, up to and with the endpoint ``last``."""

    last: str = ""


class Changed(Event, frozen=True, gc=False):
    """The provider refused the batch, since something had changed since it was read. Nothing was applied.

    Of several transactions some may have been; ``last`` is as of :class:`Committed`.
    """

    last: str = ""


class Published(Event, frozen=True, gc=False):
    """The plan is the head now."""


class Outrun(Event, frozen=True, gc=False):
    """Another plan was published first: this one is to be thrown away, never renumbered."""


class Spent(Struct, frozen=True, gc=False):
    """One old row: its place among its name's rows (0 = newest), the newest row's generation, and what is live."""

    row: Row
    place: int
    newest: Generation
    live: Generation | None


class SpentRead(Event, frozen=True, gc=False):
    """Old rows that a janitor may consider."""

    rows: tuple[Spent, ...]


class Deleted(Event, frozen=True, gc=False):
    """The row is gone (by this delete or before it)."""


class Failure(Enum):
    """Whose fault a failed call was, and so what to do: see :mod:`fencepost.ports`."""

    UNAVAILABLE = "unavailable"
    MISCONFIGURED = "misconfigured"
    REFUSED = "refused"


class Failed(Event, frozen=True, gc=False):
    """A call failed; ``effect`` is the name of its class. After a failed write the outcome is unknown: read again."""

    effect: str
    failure: Failure
