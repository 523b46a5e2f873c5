"""What ``up`` shows: event lines, and on a terminal a panel under them that is kept up to date."""

import sys
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from fencepost.cli.history import event as event_line
from fencepost.cli.history import line as history_line
from fencepost.cli.history import what, who
from fencepost.cli.layout import ENDLESS, beside, fitted
from fencepost.cli.screen import endpoint_table, folded, pool_line, zone_table
from fencepost.cli.terminal import clock, interactive, say, styled
from fencepost.cli.up_tries import Tries
from fencepost.core.instant import Instant
from fencepost.ports import HistoryRow
from fencepost.roles.status.document import Status
from fencepost.settings import Region

ENDPOINTS_LEAST = 3
"""Lines that endpoints have in any panel."""
ATTENTION_MOST = 2
"""What is for a person: so much of it in any panel; the rest is counted."""


class Screen(Protocol):
    """Where lines and the panel go."""

    def line(self, text: str) -> None:
        """Print a line."""
        ...

    def panel(self, lines: list[str]) -> None:
        """Replace the panel."""
        ...

    def size(self) -> tuple[int, int]:
        """Columns, and lines that a panel may have."""
        ...

    def resized(self) -> None:
        """Draw anew on a terminal that has another size now."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class Plain:
    """No terminal: one line an event, no panel. ``to`` is where lines go."""

    def __init__(self, to: Any) -> None:
        self.to = to

    def line(self, text: str) -> None:
        """Print a line."""
        say(text, self.to)

    def panel(self, lines: list[str]) -> None:
        """Nothing: a table that is printed again each second is noise in a log."""

    def size(self) -> tuple[int, int]:
        """No panel is shown, so none is made to fit."""
        return ENDLESS, ENDLESS

    def resized(self) -> None:
        """Nothing stands."""

    def close(self) -> None:
        """Nothing to leave."""


def screen(*, as_json: bool) -> Screen:
    """The screen that fits: stdout is for JSON alone if that was asked for."""
    if not interactive() or as_json:
        return Plain(sys.stderr if as_json else sys.stdout)
    from fencepost.cli.up_drawn import Drawn

    return Drawn(sys.stdout)


def panel(
    region: Region,
    status: Status,
    pids: dict[str, int | None],
    began: float,
    size: tuple[int, int],
    offered: Tries | None = None,
    fleet: str = "",
    launched: Mapping[str, list[tuple[str, int | None]]] | None = None,
) -> list[str]:
    """The panel in rows that fit ``size``: endpoints, pools, zones, attention; and what to try, if there is room.

    ``fleet`` is a line about the sample's hosts, "" for none; ``launched`` what runs on them at other addresses than
    those listed, by zone.
    """
    columns, most = size
    up = int(time.monotonic() - began)
    tail = f"fenced {status.fenced or 0} · restarts {status.restarts or 0} · up {up // 60}:{up % 60:02d}"
    under = [row for pool in status.pools for row in fitted(pool_line(pool, status), columns)]
    under += fitted(fleet, columns) if fleet else []
    targets = targets_by_zone(region, pids)
    for zone, more in (launched or {}).items():
        targets[zone] = [*targets.get(zone, []), *more]
    zones = zone_table(status, targets, columns)
    under += [row for line in zones for row in fitted(line, columns)]
    persons = [each for each in folded(status.problems) if each.needs_person]
    for each in persons[:ATTENTION_MOST]:
        under += beside(f" {styled('attention', 'red')}  ", f"{each.on}: {each.what}", columns)
    if len(persons) > ATTENTION_MOST:
        under += fitted(f" {len(persons) - ATTENTION_MOST} more for a person: fencepost status", columns)
    room = max(ENDPOINTS_LEAST, most - len(under) - 1)
    lines = endpoint_table(status, time.time_ns(), tail, columns, room) + under
    tries = offered.lines(status, pids, columns) if offered is not None and region.drills else []
    return lines + (tries if len(lines) + len(tries) <= most else [])


def targets_by_zone(region: Region, pids: dict[str, int | None]) -> dict[str, list[tuple[str, int | None]]]:
    """The stand-ins that run here, by zone."""
    found: dict[str, list[tuple[str, int | None]]] = {}
    for pool in region.pools:
        for target in pool.targets:
            name = f"target/{target.address}"
            if name in pids:
                found.setdefault(target.zone, []).append((target.address, pids[name]))
    return found


def history_lines(rows: Iterable[HistoryRow]) -> list[str]:
    """New history, one line an event; writes that one enactor made together share a line."""
    lines: list[str] = []
    together: list[HistoryRow] = []
    for row in [*rows, None]:
        if together and (row is None or row.kind != "enacted" or row.by != together[0].by):
            lines.append(joined(together))
            together = []
        if row is None:
            break
        if row.kind == "enacted":
            together.append(row)
        else:
            lines.append(history_line(row))
    return lines


def joined(rows: list[HistoryRow]) -> str:
    """Several writes as one line."""
    text = "; ".join(what(row, None) for row in rows[:3]) + (f"; and {len(rows) - 3} more" if len(rows) > 3 else "")
    return event(rows[0].at, who(rows[0]), text)


def told(at: Instant, name: str, text: str, gone: Collection[str] = (), ended: tuple[int, bool] | None = None) -> str:
    """A line from the supervisor; ``ended`` is the process's exit code, or minus its signal, and whether it is back.

    At addresses that are ``gone`` nothing is: an instance was moved away from there, or ended for good.
    """
    if name.startswith("target/") and ended is not None:
        code, again = ended
        how = f"exited ({f'signal {-code}' if code < 0 else f'code {code}'})" if code else "exited"
        when = "in 60 s" if again else "in about 60 s"  # a fleet has to notice first
        address = name.partition("/")[2]
        then = "its instance was moved or ended" if address in gone else f"the sample starts it again {when}"
        return event(at, "target", f"{address} {how}; {then}")
    return event(at, name.replace("/", " "), text)


def event(at: Instant, name: str, text: str) -> str:
    """An event: when, who, what."""
    return event_line(f"{clock(at)}  {name:<10} ", text)
