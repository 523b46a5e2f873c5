"""A line of history as a sentence: what a person did, and what a write brought.

The store keeps short words with a fixed beginning, since programs read them (``history --json``, incident records) and
older lines stay for as long as the store does. Only what people read is put into sentences, here. A text that isn't
known is shown as it is.
"""

import re
from collections.abc import Callable

Said = Callable[[re.Match[str], str], str]

NOUNS = {"withdraw": "withdrawal", "observe": "observing"}
"""What ends of acts whose word isn't its own noun."""
VERBS = {"drain": "drains", "pause": "pauses", "withdraw": "withdraws", "cordon": "cordons"}
VERBS |= {"terminate": "terminates", "forget": "forgets", "observe": "only observes"}

ACTS: tuple[tuple[re.Pattern[str], Said], ...] = (
    (re.compile(r"rollback to plan (\d+)"), lambda m, on: f"rolls {on} back to plan {m[1]}"),
    (re.compile(r"repair: (.+)"), lambda m, on: f"repairs {on}: {m[1]}"),
    (re.compile(r"keep"), lambda _, on: f"keeps {on} in service"),
    (re.compile(r"(drain|pause|withdraw|observe)"), lambda m, on: f"{VERBS[m[1]]} {on}"),
    (re.compile(r"(\w+) (?:ended|released)"), lambda m, on: f"ends the {NOUNS.get(m[1], m[1])} of {on}"),
    (re.compile(r"fleet: (drain|cordon|forget) \d+"), lambda m, on: f"{VERBS[m[1]]} host {on}"),
    (re.compile(r"fleet: gone \d+"), lambda _, on: f"says that host {on} is gone for good"),
    (re.compile(r"fleet: (\w+) ended"), lambda m, on: f"ends the {m[1]} of host {on}"),
    (re.compile(r"fleet: terminate \d+"), lambda _, on: f"terminates {on}"),
    (re.compile(r"fleet: launch of (\d+) (\(.*\))"), lambda m, on: f"launches {m[1]} of {on} {m[2]}"),
)
WRITE = re.compile(r"(-|\d+)((?: \(epoch \d+\))?) -> (\d+)((?: \(epoch \d+\))?) in (.+)")


def act(on: str, text: str) -> str:
    """What a person did, and why if that was said; "" for a text that isn't known."""
    did, why, reason = text.partition("; reason: ")
    for pattern, said in ACTS if on else ():
        found = pattern.fullmatch(did)
        if found is not None:
            return said(found, on) + why + reason
    return ""


def write(text: str) -> str:
    """What a write brought to the endpoint that is asked about; "" for a text that says something else."""
    found = WRITE.fullmatch(text)
    if found is None:
        return ""
    before, older, after, epoch, took = found.groups()
    over = "the first" if before == "-" else f"over gen {before}{older if older != epoch else ''}"
    return f"wrote gen {after}{epoch}, {over}, in {took}"
