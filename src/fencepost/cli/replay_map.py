"""``fencepost replay --map``: how long it takes to recover for good, and what would have brought it back."""

import json as json_text
import sys
from typing import TYPE_CHECKING

from fencepost.cli.layout import table, width
from fencepost.cli.progress import Progress
from fencepost.cli.terminal import say
from fencepost.ports import Misconfigured

if TYPE_CHECKING:  # the replay is loaded when it is wanted
    from fencepost.incident.replay.least import Least
    from fencepost.incident.replay.options import Options
    from fencepost.incident.replay.recovery_map import Pane, RecoveryMap
    from fencepost.incident.replay.scenario import Scenario

ALIKE = 1.25
"""Numbers of a table that differ by no more than this factor are told in one line."""


def recovery(scenario: "Scenario", options: "Options", json: bool) -> int:
    """As it was, then with guards: those asked for, or all that ship."""
    import msgspec
    from msgspec import structs

    from fencepost.incident.replay.recovery_map import HOSTS, recovery_map
    from fencepost.incident.replay.show.naming import outage_s

    options = structs.replace(options, hosts=options.hosts or HOSTS)
    length = options.outage_s or outage_s(scenario)
    if length is None:
        raise Misconfigured("this scenario says of no outage how long it was", where=scenario.name, hint="--dns-outage")
    told = Progress()
    found = recovery_map(
        scenario, options, length, lambda done, of: told.say(lambda: f"{done} of {of} questions are answered")
    )
    if json:
        say(json_text.dumps({"schema": "fencepost.recovery-map/1", **msgspec.to_builtins(found)}))
        return 0
    say(
        "Minutes from the store's return until leases are held and launches succeed, for good · nobody at the keyboard"
        f" · {options.hosts:,} hosts"
    )
    for pane in found.panes:
        _pane(found, pane)
    _loads(found)
    _least(found)
    return 0


def _pane(found: "RecoveryMap", pane: "Pane") -> None:
    from fencepost.incident.replay.recovery import WITHIN_S

    say("")
    say(f"{pane.name}, by workers at the knee ÷ workers needed ({found.needed:,.0f} for 100,000 hosts)")
    _table(found, [["never" if each is None else f"{each:.0f}" for each in row] for row in pane.minutes])
    if pane is found.panes[0]:
        say(f"never: not within {WITHIN_S // 3600} h. Needed: to give every host a lease anew while callers come back.")
    say("")
    numbers = [each for row in pane.work for each in row if each is not None]
    title = f"{pane.name}, work done ÷ work that somebody still waited for"
    if numbers and max(numbers) <= ALIKE * min(numbers):
        low, high = f"{min(numbers):.2f}", f"{max(numbers):.2f}"
        say(f"{title}: {low if low == high else f'{low} to {high}'} in each case")
        return
    say(title)
    _table(found, [["–" if each is None else f"{each:.1f}" for each in row] for row in pane.work])


def _table(found: "RecoveryMap", rows: list[list[str]]) -> None:
    cells = [("OUTAGE", *(f"{share:.2f}" for share in found.shares))]
    cells += [(f"{each // 60} min", *row) for each, row in zip(found.outages_s, rows, strict=True)]
    say("\n".join(table(cells, "", columns=width(sys.stdout), right=range(len(cells[0])))))


def _loads(found: "RecoveryMap") -> None:
    from fencepost.incident.replay.hysteresis import LOADS

    say("")
    say(f"Hysteresis: load is workers needed ÷ workers at the knee; this scenario's own is {found.load:.1f}")
    cells = [("", "OUTAGE", "BORNE UP TO", "TIPPED AT", "BACK ONLY BELOW")]
    for pane in found.panes:
        for each in pane.hysteresis:
            most = each.borne is not None and each.tipped is None
            borne = "none tried" if each.borne is None else f"{each.borne:.2f}{' and more' if most else ''}"
            beyond = "–" if each.tipped is None else "no fall tried"
            cells.append(
                (
                    pane.name,
                    f"{each.outage_s // 60} min",
                    borne,
                    "–" if each.tipped is None else f"{each.tipped:.2f}",
                    beyond if each.returns is None else f"{each.returns:.2f}",
                )
            )
    say("\n".join(table(cells, "", columns=width(sys.stdout), right=(1, 2, 3, 4))))
    say(f"Tried: loads from {LOADS[-1]:g} to {LOADS[0]:g}. Once tipped, it falls an hour after the store's return.")


def _least(found: "RecoveryMap") -> None:
    length = f"{found.outage_s // 3600}h{found.outage_s % 3600 // 60:02d}m"
    say("")
    if not found.least:
        say(f"After an outage of {length} this region is well again by itself, as it was: nothing has to be done.")
        return
    say(f"The least that brings it back, as it was, an hour after the store's return from an outage of {length}")
    cells = [("WHAT", "LEAST", "WELL AFTER", "WORK ÷ WAITED FOR")]
    cells += [(each.words, *_amounts(each)) for each in found.least]
    say("\n".join(table(cells, "", columns=width(sys.stdout), right=(1, 2, 3))))
    say("Rates: new leases a second for 100,000 hosts, the highest that recovers. Well after: from the store's return.")


def _amounts(each: "Least") -> tuple[str, str, str]:
    if each.amount is None or each.minutes is None:
        return "not enough", "never", "–"
    amount = {"per second": f"{each.amount:.1f}/s", "share": f"{each.amount:.0%}"}.get(
        each.unit, f"{each.amount:.1f} ×"
    )
    return amount, f"{each.minutes:.0f} min", "–" if each.work is None else f"{each.work:.1f}"
