"""A walk as a story: what happened, when, and who did it, in plain lines; what repeats itself is left out."""

from fencepost.core.instant import Instant
from fencepost.core.traffic.membership import Membership
from fencepost.simulator.schedule import Upset
from fencepost.simulator.trace import Header, told_by
from fencepost.simulator.watch import clock_face
from fencepost.world.model import Move

QUIET_EVENTS = frozenset(("", "store away", "DNS away", "row gone already"))
MOST = 120
"""Lines of a story; what came long before its end is left out then."""


def story(header: Header, *, most: int = MOST) -> list[str]:
    """The lines of one walk, up to its end or to the promise that it breaks, which is the last line."""
    lines: list[str] = []

    def listen(at: Instant, who: str, what: str, outcome: object) -> None:
        if worth_telling(what, outcome):
            lines.append(f"{clock_face(at)}  {who:11} {shortened(what)}")

    walked = told_by(header, listen)
    if len(lines) > most:
        lines = [f"({len(lines) - most} lines before are left out)", *lines[-most:]]
    if walked.promise:
        words = f": {walked.words}" if walked.words else ""
        lines.append(f"{clock_face(walked.ended)}  BROKEN      {walked.promise}{words}")
    else:
        lines.append(f"{clock_face(walked.ended)}  all promises held")
    return lines


def worth_telling(what: str, outcome: object) -> bool:
    """Whether a move changed something, or was refused."""
    if isinstance(outcome, Move):
        return outcome.event not in QUIET_EVENTS
    if isinstance(outcome, Membership):
        return ": " in what
    return isinstance(outcome, (Upset, str)) and not what.endswith("nothing to do")


def shortened(what: str) -> str:
    """Many endpoints in one line become a few and a number; names lose what all have in common."""
    what = what.replace(".example.test", "")
    for mark in (", ", "; "):
        parts = what.split(mark)
        if len(parts) > 6:
            what = mark.join([*parts[:4], f"and {len(parts) - 4} more"])
    return what
