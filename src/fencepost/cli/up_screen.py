"""What ``up`` shows: event lines, and on a terminal a panel under them that is kept up to date."""

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from fencepost.cli.history import line as history_line
from fencepost.cli.history import what, who
from fencepost.cli.screen import endpoint_table, headed, pool_line, zone_table
from fencepost.cli.terminal import clock, interactive, say, styled
from fencepost.cli.up_tries import Tries
from fencepost.core.instant import Instant
from fencepost.ports import HistoryRow
from fencepost.roles.status.document import Status
from fencepost.settings import Region

TALL = 24
"""Lines of a terminal from which on the list of things to try is shown."""


_PID = re.compile(r"(,)? \(?pid \d+\)")
"""Which process it was: of no use for a stand-in, and in the way."""


class Screen(Protocol):
    """Where lines and the panel go."""

    def line(self, text: str) -> None:
        """Print a line."""
        ...

    def panel(self, lines: list[str]) -> None:
        """Replace the panel."""
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

    def close(self) -> None:
        """Nothing to leave."""


class Drawn:
    """A terminal: lines scroll above a panel that stays at the bottom."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        self.text: Callable[[str], Text] = Text.from_ansi
        self.console = Console(highlight=False, soft_wrap=False)
        self.live = Live(Text(""), console=self.console, auto_refresh=False, vertical_overflow="crop")
        self.live.start()

    def line(self, text: str) -> None:
        """Print a line above the panel."""
        self.console.print(self.text(text))

    def panel(self, lines: list[str]) -> None:
        """Replace the panel."""
        shown = self.text("\n".join(lines))
        shown.no_wrap, shown.overflow = True, "crop"
        self.live.update(shown, refresh=True)

    def close(self) -> None:
        """Leave the last panel standing."""
        self.live.stop()


def screen(*, as_json: bool) -> Screen:
    """The screen that fits: stdout is for JSON alone if that was asked for."""
    return Drawn() if interactive() and not as_json else Plain(sys.stderr if as_json else sys.stdout)


def panel(
    region: Region, status: Status, pids: dict[str, int | None], began: float, offered: Tries | None = None
) -> list[str]:
    """The panel: endpoints, pools, zones, what to try."""
    now = time.time_ns()
    up = int(time.monotonic() - began)
    restarts = status.restarts if status.restarts is not None else 0
    fenced = status.fenced if status.fenced is not None else 0
    tail = f"fenced {fenced} · restarts {restarts} · up {up // 60}:{up % 60:02d}"
    lines = headed(endpoint_table(status, now, tail))
    lines += [pool_line(pool, status) for pool in status.pools]
    lines += headed(zone_table(status, targets_by_zone(region, pids)))
    lines += [
        f" {styled('attention', 'red')}  {each.on}: {each.what}" for each in status.problems if each.needs_person
    ][:2]
    if offered is not None and region.drills and shutil.get_terminal_size().lines >= TALL:
        lines += offered.lines(status, pids, time.monotonic())
    return lines


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


def told(at: Instant, name: str, text: str) -> str:
    """A line from the supervisor. ``text`` says how a process ended and when it is started again."""
    if name.startswith("target/"):
        how = text.partition(", back in ")[0].replace("died", "exited")
        how = _PID.sub(lambda found: ")" if found[1] else "", how)
        return event(at, "target", f"{name.partition('/')[2]} {how}; the sample starts it again in 60 s")
    return event(at, name.replace("/", " "), text)


def event(at: Instant, name: str, text: str) -> str:
    """An event: when, who, what."""
    import textwrap

    head = f"{clock(at)}  {name:<10} "
    body = textwrap.wrap(text, max(40, 100 - len(head)), break_on_hyphens=False) or [""]
    return styled(head, "dim") + f"\n{' ' * len(head)}".join(body)
