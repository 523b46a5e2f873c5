"""Histories for tests, written as the roles write them."""

from collections.abc import Sequence

from fencepost.incident.record.from_journal import Region
from fencepost.ports import HistoryRow

SECOND = 1_000_000_000
NOON = 1_796_040_000 * SECOND
"""2026-11-30 12:00:00 UTC."""
REGION = Region("demo", "embedded", {"api.example.test": "web", "www.example.test": "web", "db.example.test": "db"})
API = "api.example.test"


def row(after_s: float, kind: str, on: str, text: str, by: str = "load balancer") -> HistoryRow:
    """One line, so many seconds after noon."""
    return HistoryRow(kind, on, by, text, NOON + int(after_s * SECOND), int(after_s * 10) + 1)


def bad_noon() -> Sequence[HistoryRow]:
    """Two targets out and a third kept, an endpoint emptied for 2 s, a stale write, a person's drain."""
    return (
        row(0, "plan", "api, www", "plan 8: takes out 127.0.2.1 (api, www)", "planner"),
        row(1, "removed", "web", "127.0.2.1 dead, out: refused, 0 of 3 checkers see it healthy; 5 of 6 stay"),
        row(10, "removed", "web", "127.0.3.1 dead, out: refused, 0 of 3 checkers see it healthy; 4 of 6 stay"),
        row(20, "kept", "web", "127.0.1.1 dead, KEPT, max_out: 3 of 6 would be out; 0 of 3 checkers see it healthy"),
        row(40, "finding", API, "emptied by another writer; its marker still says gen 9, 4 addresses", ""),
        row(42, "healed", API, "healed: gen 9, second write; it was empty for 2 s", "enactor/c"),
        row(50, "fenced", API, "plan 7, live is 9. Nothing was written; it had last read 126 s before.", "enactor/a"),
        row(60, "operator", "127.0.1.1", "drain; reason: disk swap", "ada"),
        row(61, "removed", "web", "127.0.1.1 out (operator); 3 of 6 stay"),
        row(100, "back", "web", "127.0.2.1 back: 5 passes, held 30 s (1 flip); 4 of 6 in"),
        row(160, "back", "web", "127.0.3.1 back: 5 passes, held 30 s (1 flip); 5 of 6 in"),
    )  # fmt: skip
