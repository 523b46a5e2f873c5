"""Holds as commands place and end them: what stands in the marker and the store, and waiting until DNS shows it."""

import secrets
from typing import NamedTuple

from fencepost.cli.regions import start_line
from fencepost.cli.talk import Talk
from fencepost.core.fence import NEVER, Foreign, Generation, Hold, Marker
from fencepost.core.record_set import NOTHING, Content
from fencepost.core.store import Order, Row
from fencepost.core.zone import Live
from fencepost.ports import PortError, Refused


class Standing(NamedTuple):
    """An endpoint as DNS and the store have it; ``row`` is None if there is none or the store is away."""

    live: Live
    row: Row | None

    @property
    def marker(self) -> Marker | None:
        """Its marker, if it is one of ours or another owner's readable one."""
        return self.live.marker if isinstance(self.live.marker, Marker) else None

    @property
    def hold(self) -> Hold | None:
        """The later of the holds that marker and row show."""
        holds = [each.hold for each in (self.marker, self.row) if each is not None and each.hold is not None]
        return max(holds, key=lambda hold: hold.id, default=None)

    @property
    def generation(self) -> Generation:
        """The later of marker's and row's."""
        return max((each.generation for each in (self.marker, self.row) if each is not None), default=NEVER)


async def standing(talk: Talk, name: str) -> Standing:
    """What stands at an endpoint. Raises ``Refused`` if it is another owner's."""
    dns = await talk.read_dns()
    live = dns.live(name)
    if isinstance(live.marker, Foreign) or (live.marker is not None and live.marker.owner != talk.region.owner):
        raise Refused(f'its owner is "{live.marker.owner or "unknown"}"', where=name, hint="left alone; ask its owner")
    rows = await talk.within(talk.store.rows_of(name), "the store")
    return Standing(live, rows[0] if rows else None)


def order(
    kind: str, name: str, talk: Talk, reason: str, *, content: Content = NOTHING, until: int = 0, hold: int = 0
) -> Order:
    """An order in the operator's name; ``until`` is nanoseconds since 1970."""
    until_s = -(-until // 1_000_000_000)
    return Order(secrets.token_hex(8), kind, name, content, until_s, hold, by=talk.by, reason=reason)  # type: ignore[arg-type]


async def placed(talk: Talk, name: str, kind: str, above: Generation) -> Marker:
    """Wait until the marker in DNS shows a hold of this kind newer than ``above``."""

    async def look() -> Marker | None:
        dns = await talk.read_dns()
        marker = dns.live(name).marker
        if isinstance(marker, Marker) and marker.hold is not None and marker.hold.kind == kind:
            return marker if marker.hold.id > above.epoch else None
        return None

    return await talk.until(look, f"{name}: the {kind} isn't in DNS yet{await planner_word(talk)}")


async def released(talk: Talk, name: str, hold: int, *, listed: bool = True) -> Marker:
    """Wait until the marker in DNS shows no hold up to this one.

    An endpoint that isn't ``listed`` in the configuration that runs is released only once it is again: the planner
    wants nothing for it until then, and never makes a name empty.
    """

    async def look() -> Marker | None:
        dns = await talk.read_dns()
        marker = dns.live(name).marker
        over = isinstance(marker, Marker) and (marker.hold is None or marker.hold.id > hold)
        return marker if isinstance(marker, Marker) and over else None

    if not listed:
        waits = f"{name}: released, and nothing is wanted for this name: it isn't in the region.toml that runs"
        return await talk.until(look, waits, hint="put it back into region.toml, then  fencepost reload")
    return await talk.until(look, f"{name}: the release isn't in DNS yet{await planner_word(talk)}")


async def planner_word(talk: Talk) -> str:
    """What to add when the planner isn't known to be up."""
    from fencepost.cli.terminal import ago
    from fencepost.cli.up_state import supervised
    from fencepost.roles.status.processes import alive

    state = supervised(talk.region)
    if state is not None and state.get("planner") is None:
        return "; the planner isn't running"
    try:
        beats = {beat.role: beat for beat in await talk.within(talk.store.beats(), "the store")}
    except PortError:
        return "; the store doesn't answer"
    beat = beats.get("planner")
    if state is None and beat is not None and not alive(beat.pid):
        return "; the planner isn't running"
    if beat is None:
        return "; no planner has ever run"
    if beat.state != "up":
        return f"; the planner is {beat.state}: {beat.error}"
    import time

    return f"; the planner was last seen {ago(beat.at)}" if time.time_ns() - beat.at > 15_000_000_000 else ""


def planner_hint(talk: Talk, word: str) -> str:
    """What to try where the planner isn't up, as :func:`planner_word` has it; "" for nothing special."""
    from fencepost.cli.up_state import supervised

    if not word or supervised(talk.region) is not None:
        return ""
    return f"{start_line(talk.region)}    starts it (under systemd: its planner role)"
