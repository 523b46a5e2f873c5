"""What ``up`` says at its end: a line for people, or the one document for programs."""

import json as json_text

from fencepost.cli.check import counted
from fencepost.cli.screen import unsure_promises
from fencepost.cli.terminal import say, styled
from fencepost.roles.status.document import Status, encode


def closing(took_s: float, status: Status | None, never_ready: str, resets: str = "") -> str:
    """What was promised and held, and where the next run goes on.

    ``never_ready`` says what was missing, if so; ``resets`` what forgets this run, for a sample.
    """
    parts = [f"stopped in {took_s:.1f} s"]
    if never_ready:
        parts.append(styled(f"never ready: {never_ready}", "red"))
    if status is not None:
        checked = {name: each for name, each in status.promises.items() if each.held is not None}
        broken = sorted(name for name, each in checked.items() if not each.held)
        empty = checked.get("never_empty")
        if broken:
            parts.append(styled(f"BROKEN: {', '.join(broken)}", "red"))
        elif checked:
            times = f" (never_empty {empty.times_checked:,} checks)" if empty and empty.times_checked else ""
            parts.append(f"{counted(len(checked), 'promise')} held{times}")
        if unsure := unsure_promises(status):
            parts.append(f"can't be told: {', '.join(unsure)}")
        if status.plan is not None:
            parts.append(f"next: plan {status.plan + 1}" + (f"; `{resets}` resets" if resets else ""))
    return " · ".join(parts)


def print_document(status: Status | None) -> None:
    """The status right before the end, or that there is none."""
    if status is not None:
        say(encode(status).decode())
    else:
        what = {"kind": "unavailable", "what": "no status could be read before the end", "where": "", "hint": ""}
        say(json_text.dumps({"error": what}))
