"""Small mistakes that a tired engineer could make in a decider, each one line: made in memory, one at a time.

A mistake names a function and what stands there instead of what. The function is compiled anew from its own source with
that one change, so a mistake can't drift away from the code it is about: if the text isn't there any more, it says so.
"""

import __future__

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

from fencepost.core import judge, repair, store
from fencepost.core.fence import Hold
from fencepost.core.traffic import dns_enactor, dns_planner, janitor
from fencepost.core.traffic.dns_enactor import DnsEnactor


class Mistake(NamedTuple):
    """What it is called, where it is made, and the text that is replaced."""

    name: str
    owner: Any
    function: str
    old: str
    new: str

    def made(self) -> Callable[..., Any]:
        """The function with the mistake in it. Raises ``LookupError`` if its text isn't there exactly once."""
        right = vars(self.owner)[self.function]
        source = textwrap.dedent(inspect.getsource(right))
        if source.count(self.old) != 1:
            raise LookupError(f"{self.function}: {self.old!r} stands {source.count(self.old)} times in it")
        wrong = source.replace(self.old, self.new)
        found: dict[str, Any] = {}
        flags = __future__.annotations.compiler_flag if "annotations" in right.__globals__ else 0
        exec(compile(wrong, f"<{self.name}>", "exec", flags), right.__globals__, found)
        made: Callable[..., Any] = found[self.function]
        return made


MISTAKES = (
    Mistake("a release ends only what came before", Hold, "ended", "self.id <= released", "self.id < released"),
    Mistake("whatever differs is stale", judge, "stale", "<", "!="),
    Mistake("the equal is stale too", judge, "stale", "<", "<="),
    Mistake("an order is never spent", store, "publish", "order.id not in plan.spends", "True"),
    Mistake("an equal number is the same set", judge, "same", "and marker.digest == row.digest", ""),
    Mistake("writes on, once refused", DnsEnactor, "refused", "return (ReadDns(),)", "return (Compare(self.limit),)"),
    Mistake(
        "adopts only what is above",
        dns_planner,
        "needs_adoption",
        "marker.generation > row.generation or (marker.generation == row.generation and marker.digest != row.digest)",
        "marker.generation > row.generation",
    ),
    Mistake(
        "the epoch of an adoption is the row's",
        dns_planner,
        "standing_on",
        "max(row.generation.epoch if row else 0, marker.generation.epoch if marker else 0)",
        "row.generation.epoch if row else 0",
    ),
    Mistake(
        "takes whatever is unmarked for ours",
        judge,
        "unmarked",
        "standing in pair.ours or (standing == row.adopt and takes_over(row))",
        "True or standing",
    ),
    Mistake(
        "another owner's marker is none",
        dns_enactor,  # where it is called
        "judge",
        "if isinstance(marker, Foreign):",
        "if isinstance(marker, Foreign) and (marker := None):",
    ),
    Mistake("a new hold gets the epoch known", dns_planner, "hold_epoch", "max(known + 1, now // SECOND)", "known"),
    Mistake(
        "the earlier hold wins", dns_planner, "standing_on", "marker.hold.id > hold.id", "marker.hold.id < hold.id"
    ),
    Mistake(
        "a row goes once it is live itself",
        janitor,
        "superseded",
        "spent.live >= spent.newest",
        "spent.live >= spent.row.generation",
    ),
    Mistake(
        "compares the head's number only",
        store,
        "publish",
        "tables.head != plan.expected",
        "tables.head.number != plan.expected.number",
    ),
    Mistake(
        "a repair counts from the marker alone",
        repair,
        "repair",
        'hold_epoch("repair", max(stood.epoch, known.epoch), now)',
        "stood.epoch + 1",
    ),
    Mistake(
        "heals without a look at the digest",
        judge,
        "restore",
        "value is None or digest(value, marker.hold) != marker.digest",
        "value is None",
    ),
)
