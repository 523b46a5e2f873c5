"""What the server counts about itself. Plain numbers since the start, read by whoever exports metrics."""

from msgspec import Struct, field


class Counters(Struct):
    """Counts since the start. The dictionaries go by response code name or by kind."""

    answers: int = 0
    """Queries answered NOERROR, with data or without."""
    nxdomain: int = 0
    refused: int = 0
    formerr: int = 0
    other: int = 0
    """Answers with any further response code (NOTIMP, BADVERS, SERVFAIL, NOTAUTH to a query)."""
    malformed: int = 0
    """Messages too broken to be answered, or answered FORMERR."""
    dropped: int = 0
    """Messages left unanswered: replies, too short, or no room to send."""
    updates: dict[str, int] = field(default_factory=dict)
    """Updates by response code; NOERROR are those applied, whether they changed anything or not."""
    changes: int = 0
    """Updates that changed something: the serial rose."""
    transfers: dict[str, int] = field(default_factory=dict)
    """Transfers by kind: axfr, ixfr, current (nothing new), refused."""
    notifies: dict[str, int] = field(default_factory=dict)
    """NOTIFY messages by fate: sent, answered, given_up, received."""
    signatures: dict[str, int] = field(default_factory=dict)
    """Refused signatures by error: BADKEY, BADSIG, BADTIME."""
    connections: int = 0
    """TCP connections taken since the start."""
    connections_closed_early: int = 0
    """Connections closed for being slow, idle too long or too many."""
    errors: int = 0
    """Faults of our own that were caught at the edge; anything but 0 is a bug or a failing disk."""


def count(counts: dict[str, int], kind: str) -> None:
    """Add one to a kind."""
    counts[kind] = counts.get(kind, 0) + 1
