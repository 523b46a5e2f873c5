"""``fencepost replay --trap``: guards that look right, and what comes of them."""

import json as json_text
import sys
from typing import TYPE_CHECKING

from fencepost.cli.layout import table, width
from fencepost.cli.terminal import say
from fencepost.ports import Misconfigured

if TYPE_CHECKING:  # the replay is loaded when it is wanted
    from fencepost.incident.replay.options import Options
    from fencepost.incident.replay.scenario import Scenario


def trap(scenario: "Scenario", options: "Options", name: str, json: bool) -> int:
    """Run a trap, or list all; exit 1 if its runs don't show what it says. Raises Misconfigured for another name."""
    import msgspec

    from fencepost.incident.replay.show.naming import outage_s
    from fencepost.incident.replay.traps import TRAPS, show_trap
    from fencepost.settings.mistakes import advice

    if name == "list":
        return _list(json)
    if name not in TRAPS:
        raise Misconfigured(f'no trap is called "{name}"', where="--trap", hint=advice(name, TRAPS))
    if options.guards or not options.operators:
        raise Misconfigured("a trap has guards of its own", where="--trap", hint="leave --guards and --without out")
    length = options.outage_s or outage_s(scenario)
    if length is None:
        raise Misconfigured("this scenario says of no outage how long it was", where=scenario.name, hint="--dns-outage")
    shown = show_trap(name, scenario, options, length)
    if json:
        say(json_text.dumps({"schema": "fencepost.trap/1", **msgspec.to_builtins(shown)}))
        return 0 if shown.holds else 1
    heads = list(shown.runs[0].figures)
    cells = [("RUN", *(each.upper() for each in heads))]
    cells += [(run.name, *(_figure(run.figures[each]) for each in heads)) for run in shown.runs]
    say(shown.statement)
    say("\n".join(table(cells, "", columns=width(sys.stdout), right=range(1, len(heads) + 1))))
    say(f"These runs {'show' if shown.holds else 'do NOT show'} it. Instead: {shown.so}.")
    return 0 if shown.holds else 1


def _figure(value: float | None) -> str:
    return "never" if value is None else f"{value:g}"


def _list(json: bool) -> int:
    from fencepost.incident.replay.traps import TRAPS

    if json:
        rows = [{"name": name, "statement": each.statement, "so": each.so} for name, each in TRAPS.items()]
        say(json_text.dumps({"schema": "fencepost.traps/1", "traps": rows}))
        return 0
    cells = [("TRAP", "WHAT IT SHOWS"), *((name, each.statement) for name, each in TRAPS.items())]
    say("\n".join(table(cells, "", columns=width(sys.stdout), last=24)))
    return 0
