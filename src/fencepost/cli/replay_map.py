"""``fencepost replay --map``: how long it takes to recover for good, by the outage's length and the workers."""

import json as json_text
import sys
from typing import TYPE_CHECKING

from fencepost.cli.layout import table, width
from fencepost.cli.progress import Progress
from fencepost.cli.terminal import say

if TYPE_CHECKING:  # the replay is loaded when it is wanted
    from fencepost.incident.replay.options import Options
    from fencepost.incident.replay.scenario import Scenario


def recovery(scenario: "Scenario", options: "Options", json: bool) -> int:
    """As it was, then with guards: those asked for, or all that ship."""
    import msgspec
    from msgspec import structs

    from fencepost.incident.replay.recovery_map import HOSTS, WITHIN_S, recovery_map

    options = structs.replace(options, hosts=options.hosts or HOSTS)
    told = Progress()
    found = recovery_map(scenario, options, lambda done, of: told.say(lambda: f"{done} of {of} runs are done"))
    if json:
        say(json_text.dumps({"schema": "fencepost.recovery-map/1", **msgspec.to_builtins(found)}))
        return 0
    say(
        "Minutes from the store's return until leases are held and launches succeed, for good · nobody at the keyboard"
        f" · {options.hosts:,} hosts"
    )
    heads = ("OUTAGE", *(f"{share:.2f}" for share in found.shares))
    for pane in found.panes:
        say("")
        say(f"{pane.name}, by workers at the knee ÷ workers needed ({found.needed:,.0f} of 100,000 hosts)")
        cells = [heads]
        cells += [
            (f"{outage // 60} min", *("never" if each is None else f"{each:.0f}" for each in row))
            for outage, row in zip(found.outages_s, pane.minutes, strict=True)
        ]
        say("\n".join(table(cells, "", columns=width(sys.stdout), right=range(len(heads)))))
    say("")
    say(f"never: not within {WITHIN_S // 3600} hours. Needed: to give every host a lease anew while callers come back.")
    return 0
