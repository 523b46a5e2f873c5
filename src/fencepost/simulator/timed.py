"""The region's shared value with time in it, and a store that finds newest rows at once."""

from typing import Any

from msgspec import Struct, structs

from fencepost.core.instant import Instant
from fencepost.core.store import Plan, Row, Tables
from fencepost.world.region import Shared


class Timed(Shared, frozen=True, gc=False):
    """What all parts see, at one moment.

    ``clock`` is the time on the clock of whoever acts (nanoseconds since 1970). ``latest`` is what the clock furthest
    ahead of all has shown: a planner ends a hold by its own clock, so that is the time by which its end is judged.
    """

    clock: Instant = 0
    latest: Instant = 0

    @property
    def now(self) -> Instant:
        """The time of whoever acts."""
        return self.clock

    @property
    def judged_at(self) -> Instant:
        """As late as anybody has thought it is."""
        return self.latest

    def nonce(self, tables: Tables, plan: Plan) -> str:
        """No two plans have one, though a store that was set back counts the same numbers again."""
        return f"{tables.head.store}-{plan.number}.{self.life}"


class Indexed(Tables, frozen=True, gc=False):
    """The same store. It keeps each endpoint's newest row at hand: hours of plans make long tables."""

    first: dict[str, Row] = {}  # noqa: RUF012  msgspec gives each its own
    indexed: tuple[Row, ...] | None = None

    def __post_init__(self) -> None:
        """Look the rows through anew if they are others."""
        if self.indexed is not self.rows:
            first: dict[str, Row] = {}
            for row in self.rows:
                first.setdefault(row.name, row)
            structs.force_setattr(self, "first", first)
            structs.force_setattr(self, "indexed", self.rows)

    def newest(self, name: str) -> Row | None:
        """The newest row of an endpoint; None means unknown, never withdrawn."""
        return self.first.get(name)


def indexed(tables: Tables) -> Tables:
    """A store as it is, with its index."""
    if isinstance(tables, Indexed):
        return tables
    fields: dict[str, Any] = {name: getattr(tables, name) for name in Tables.__struct_fields__}
    return Indexed(**fields)


class EndpointSetting(Struct, frozen=True, gc=False):
    """What the configuration says of one endpoint: its pool's place, the record types it publishes, its TTL."""

    name: str
    pool: int
    records: tuple[str, ...]
    ttl_s: int
    listed: bool = True
