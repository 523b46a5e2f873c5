"""What a walk has seen: how often each promise was checked, what happened, and which promise broke."""

from collections import Counter
from collections.abc import Callable

from fencepost.core.instant import SECOND, Instant
from fencepost.core.promises import ALWAYS, EVENTUALLY

ON_COMMIT = ("never_empty", "never_backward", "never_torn", "hold_stands", "spares_others")
"""Judged at each endpoint of each commit that applied, however late it came."""


class Broken(Exception):  # noqa: N818  it is what the walk is for, no error of ours
    """A promise broke: the walk ends here."""

    def __init__(self, promise: str, words: str = "") -> None:
        super().__init__(promise)
        self.promise = promise
        self.words = words


class Watch:
    """Counts, and the story so far if somebody wants it.

    ``seen`` are the "sometimes" partners of the promises: a promise that held because nothing happened is worth
    nothing. ``told`` is called with (time since the start, who, what, outcome) for each move; None is cheapest.
    """

    def __init__(self, begun: Instant) -> None:
        self.begun = begun
        self.moves = 0
        self.judged: tuple[str, ...] = (*ALWAYS, *EVENTUALLY)
        self.checked: Counter[str] = Counter(dict.fromkeys((*ALWAYS, *EVENTUALLY), 0))
        self.seen: Counter[str] = Counter()
        self.told: Callable[[Instant, str, str, object], None] | None = None

    def saw(self, event: str) -> None:
        """Something happened that a promise speaks of."""
        self.seen["published" if event.endswith(" published") else event] += 1

    def judge(self, promise: str | None, words: str = "") -> None:
        """End the walk if a promise is broken that is judged here."""
        if promise is not None and promise in self.judged:
            raise Broken(promise, words)

    def tell(self, now: Instant, who: str, what: str, outcome: object = None) -> None:
        """A move, for whoever listens."""
        if self.told is not None:
            self.told(now - self.begun, who, what, outcome)


def clock_face(since: Instant) -> str:
    """A time since the start, for people: minutes, seconds and milliseconds."""
    minutes, rest = divmod(since, 60 * SECOND)
    return f"{minutes:3}:{rest // SECOND:02}.{rest % SECOND // 1_000_000:03}"
