"""Troubles in a region's history: what began, on what, and when it was over.

    removed, kept               a target; over with the next "back" of the same target (kept also with "removed");
                                a removal that a person asked for is none
    finding "emptied by …"      an endpoint; over with the next "healed"
    finding "fail open: …"      a pool; over with "fail open is over"
    fenced, refused, finding    a moment: it has no length of its own

The lines are written for people, so their beginnings are read, and only those that are written in one place each. A
line that isn't understood is a moment, never lost. What began before the first line that was read has no beginning
here; what isn't over has no end.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from fencepost.core.instant import Instant
from fencepost.ports import HistoryRow


class What(Enum):
    """What kind of trouble; the value is a symptom's name."""

    EMPTIED = "endpoint-emptied"
    ALTERED = "endpoint-altered"
    FAIL_OPEN = "fail-open"
    SUSPECT = "pool-suspect"
    REMOVED = "target-removed"
    KEPT = "target-kept"
    FENCED = "write-fenced"
    REFUSED = "write-refused"
    FOUND = "finding"


WORDS = {
    What.EMPTIED: "an endpoint had no addresses: another writer emptied it",
    What.ALTERED: "another writer altered an endpoint",
    What.FAIL_OPEN: "so much looked dead at once that nothing more was removed",
    What.SUSPECT: "so much looked dead that removals were slowed",
    What.REMOVED: "targets were taken out of DNS, nobody having asked for it",
    What.KEPT: "targets looked dead and were still answered, since a limit said so",
    What.FENCED: "a writer came with an older plan than the live one, and was refused",
    What.REFUSED: "the DNS provider refused a write",
    What.FOUND: "something was found that isn't as it should be",
}
"""Each as a symptom."""

ASKED_FOR = (" out by ", " out (operator", " out (listing")
"""Removals that a person asked for, by a drain or by the list of targets: no trouble."""

LASTING = (What.EMPTIED, What.ALTERED, What.FAIL_OPEN, What.REMOVED, What.KEPT)
"""Those that last."""


class Trouble(Struct, frozen=True, gc=False):
    """One of them: ``on`` an endpoint or pool, ``target`` an address ("" for none). ``begun`` None: before all lines
    read; ``ended`` None: not over, or (``what`` not in ``LASTING``) a moment at ``begun``."""

    what: What
    on: str
    target: str
    begun: Instant | None
    ended: Instant | None
    by: str
    text: str


def troubles(rows: Sequence[HistoryRow]) -> tuple[Trouble, ...]:
    """All of them, by when they began; those from before come first."""
    reader = _Reader()
    for row in sorted(rows, key=lambda row: (row.at, row.id)):
        reader.take(row)
    return reader.all()


class _Reader:
    """Goes through the lines in order of time."""

    def __init__(self) -> None:
        self.open: dict[tuple[What, str, str], HistoryRow] = {}
        self.done: list[Trouble] = []
        self.known: set[tuple[str, str]] = set()

    def take(self, row: HistoryRow) -> None:
        """One line."""
        if row.kind in ("removed", "kept", "back"):
            self._target(row)
        elif row.kind == "healed":
            if not (self._end(What.EMPTIED, row) or self._end(What.ALTERED, row)):
                what = What.EMPTIED if "empty" in row.text else What.ALTERED
                self.done.append(Trouble(what, row.on, "", None, row.at, row.by, row.text))
        elif row.kind == "fenced":
            self._moment(What.FENCED, row)
        elif row.kind == "refused":
            self._moment(What.REFUSED, row)
        elif row.kind == "finding":
            self._finding(row)

    def _target(self, row: HistoryRow) -> None:
        target = row.text.partition(" ")[0]
        first = (row.on, target) not in self.known
        self.known.add((row.on, target))
        ended = self._end(What.KEPT, row, target)
        if row.kind != "kept":
            ended = self._end(What.REMOVED, row, target) or ended
        if row.kind == "removed" and not any(word in row.text for word in ASKED_FOR):
            self.open.setdefault((What.REMOVED, row.on, target), row)
        elif row.kind == "kept":
            self.open.setdefault((What.KEPT, row.on, target), row)
        elif first and not ended and "it was kept all the while" in row.text:
            self.done.append(Trouble(What.KEPT, row.on, target, None, row.at, row.by, row.text))
        elif first and not ended and " back: " in row.text:
            self.done.append(Trouble(What.REMOVED, row.on, target, None, row.at, row.by, row.text))

    def _finding(self, row: HistoryRow) -> None:
        if row.text.startswith("emptied by another writer"):
            self.open.setdefault((What.EMPTIED, row.on, ""), row)
        elif row.text.startswith("altered by another writer"):
            self.open.setdefault((What.ALTERED, row.on, ""), row)
        elif row.text.startswith("fail open: "):
            self.open.setdefault((What.FAIL_OPEN, row.on, ""), row)
        elif row.text == "fail open is over":
            if not self._end(What.FAIL_OPEN, row):
                self.done.append(Trouble(What.FAIL_OPEN, row.on, "", None, row.at, row.by, row.text))
        else:
            self._moment(What.SUSPECT if row.text.startswith("suspect: ") else What.FOUND, row)

    def _moment(self, what: What, row: HistoryRow) -> None:
        self.done.append(Trouble(what, row.on, "", row.at, None, row.by, row.text))

    def _end(self, what: What, row: HistoryRow, target: str = "") -> bool:
        begun = self.open.pop((what, row.on, target), None)
        if begun is None:
            return False
        self.done.append(Trouble(what, row.on, target, begun.at, row.at, begun.by, begun.text))
        return True

    def all(self) -> tuple[Trouble, ...]:
        """What there was, what isn't over too."""
        left = [
            Trouble(what, on, target, row.at, None, row.by, row.text) for (what, on, target), row in self.open.items()
        ]
        return tuple(sorted([*self.done, *left], key=lambda each: (each.begun or 0, each.what.value, each.target)))


def at_most(found: Sequence[Trouble], what: What, on: str) -> int:
    """How many targets of a pool were so at the same time, at most."""
    steps = []
    for each in found:
        if each.what is what and each.on == on:
            steps.append((each.begun or 0, 1))
            if each.ended is not None:
                steps.append((each.ended, -1))
    count = most = 0
    for _, step in sorted(steps):
        count += step
        most = max(most, count)
    return most
