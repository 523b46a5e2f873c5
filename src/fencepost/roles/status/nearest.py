"""The name that was probably meant, where one is really near.

A suggestion that is wrong is worse than none: it gets pasted. Names of one domain are alike in all but their first
labels, so what they share at the end counts for nothing.
"""

from collections.abc import Iterable

LONGEST = 253


def really_near(word: str, names: Iterable[str]) -> str:
    """The one name a slip or two away from a word (one letter in four at most), or ""."""
    if len(word) > LONGEST:
        return ""
    found = sorted((far, name) for name in names if (far := distance(*apart(word.lower(), name))) is not None)
    if not found or (len(found) > 1 and found[0][0] == found[1][0]):
        return ""
    return found[0][1]


def apart(one: str, other: str) -> tuple[str, str]:
    """Two names without the labels that they share at the end; the first label always stays."""
    left, right = one.split("."), other.split(".")
    while len(left) > 1 and len(right) > 1 and left[-1] == right[-1]:
        left.pop()
        right.pop()
    return ".".join(left), ".".join(right)


def distance(one: str, other: str) -> int | None:
    """In how many single letters two words differ (Levenshtein's distance); None where that is too many for a slip."""
    limit = max(1, max(len(one), len(other)) // 4)
    if abs(len(one) - len(other)) > limit:
        return None
    before = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        row = [at]
        for place, against in enumerate(other, 1):
            row.append(min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != against)))
        before = row
    return before[-1] if before[-1] <= limit else None
