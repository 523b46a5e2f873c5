"""What Python's TOML parser is spared: it recurses into brackets, and its memory grows with the square of a dotted key.

Awkward truth: a line is looked at by itself, so within a text of many lines one with 65 dots is taken for a key.
"""

import re

DEPTH_MAX = 64
"""Nothing here needs more than three."""

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'')


def too_deep(text: str) -> int:
    """Give the line that goes deeper than allowed, by brackets or by a dotted key, or 0. The parser is slow at both."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count("[") + line.count("{") > DEPTH_MAX:
            opened = 0
            for c in line:
                opened += (c in "[{") - (c in "]}")
                if opened > DEPTH_MAX:
                    return number
        if line.count(".") > DEPTH_MAX and any(
            part.count(".") > DEPTH_MAX and not {'"', "'", "#"} & set(part) for part in _QUOTED.sub("", line).split("=")
        ):
            return number
    return 0


def parser_said(error: Exception) -> str:
    """What a parser said, in words where it would be Python's about itself: its recursion, its limit of digits."""
    if isinstance(error, RecursionError):
        return "is nested too deep"
    said = str(error)
    return "a number has too many digits" if said.startswith("Exceeds the limit") else said
