"""Finds the line on which each key of a TOML file stands.

The standard library's parser gives a line for broken syntax only. A mistake in a value ("min_in leaves no room for
max_out") is found long after, by path; this scanner gives paths their lines. It reads only text the real parser has
accepted, so it recognises the grammar's outline (TOML 1.0: headers, keys, strings, brackets) and judges nothing.
It holds its own stack, so deep nesting can't exhaust Python's.
"""

import re
import tomllib
from bisect import bisect_right

Path = tuple[str | int, ...]
"""Keys and, for elements of arrays, their index: ``("endpoint", 0, "name")``."""

_PIECE = re.compile(
    r"""
      (?P<string>  \"{3}(?:\\.|[^\\])*?\"{3}\"{0,2} | '{3}.*?'{3}'{0,2} | "(?:\\.|[^"\\\n])*" | '[^'\n]*' )
    | (?P<comment> \#[^\n]* )
    | (?P<space>   [ \t\r]+ )
    | (?P<newline> \n )
    | (?P<mark>    [\[\]{}=,.] )
    | (?P<bare>    [A-Za-z0-9_+:-]+ )
    | (?P<other>   . )
    """,
    re.VERBOSE | re.DOTALL,
)


class Lines:
    """The lines of a file's keys, tables and array elements; the first line is 1."""

    def __init__(self, text: str) -> None:
        """Scan the text of a file that `tomllib` has accepted."""
        self._found = _Scanner(text).found
        self.last = text.rstrip("\n").count("\n") + 1

    def of(self, path: Path) -> int:
        """Give the line of a path, or of the nearest thing around it that is in the file, or 1."""
        while path:
            line = self._found.get(path)
            if line is not None:
                return line
            path = path[:-1]
        return 1

    def has(self, path: Path) -> bool:
        """Say whether the path itself stands in the file."""
        return path in self._found


class _Scanner:
    """One pass over the pieces. `frames` holds the open brackets of the value being read, outermost first."""

    def __init__(self, text: str) -> None:
        self.found: dict[Path, int] = {}
        self.arrays: dict[Path, int] = {}  # [[headers]]: the index of the newest element
        self.table: Path = ()
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.pieces = [
            (match.lastgroup or "", match.group(), match.start())
            for match in _PIECE.finditer(text)
            if match.lastgroup not in ("space", "comment")
        ]
        self.at = 0
        while self.at < len(self.pieces):
            kind, piece, _ = self.pieces[self.at]
            if kind == "newline":
                self.at += 1
            elif piece == "[":
                self._header()
            else:
                self._pair(self.table)
                self._value()

    def _line(self) -> int:
        start = self.pieces[self.at][2] if self.at < len(self.pieces) else self.starts[-1]
        return bisect_right(self.starts, start)

    def _note(self, path: Path, line: int) -> None:
        self.found.setdefault(path, line)

    def _key(self, closing: str) -> list[str]:
        """Read a dotted key up to the mark that ends it, and step over that mark."""
        parts: list[str] = []
        while self.at < len(self.pieces):
            kind, piece, _ = self.pieces[self.at]
            self.at += 1
            if piece == closing:
                break
            if kind == "string":
                parts.append(_unquoted(piece))
            elif kind == "bare":
                parts.append(piece)
        return parts

    def _header(self) -> None:
        line = self._line()
        double = self.at + 1 < len(self.pieces) and self.pieces[self.at + 1][1] == "["
        self.at += 2 if double else 1
        parts = self._key("]")
        if double:
            self.at += 1
        path: Path = ()
        for depth, part in enumerate(parts):
            path += (part,)
            last = depth == len(parts) - 1
            self._note(path, line)
            if double and last:
                self.arrays[path] = self.arrays.get(path, -1) + 1
            if path in self.arrays:
                path += (self.arrays[path],)
                self._note(path, line)
        self.table = path
        self.at += self.at < len(self.pieces)  # the newline

    def _pair(self, table: Path) -> None:
        """Read ``key =`` and leave the path of its value in `self.path`."""
        line = self._line()
        path = table
        for part in self._key("="):
            path += (part,)
            self._note(path, line)
        self.path = path

    def _value(self) -> None:
        """Read one value, however deep, noting each element and inner key."""
        frames: list[tuple[str, Path, int]] = []  # the bracket, the path of what it holds, the next index
        while self.at < len(self.pieces):
            kind, piece, _ = self.pieces[self.at]
            if kind == "newline" and not frames:
                return
            self.at += 1
            if piece in ("[", "{") and kind == "mark":
                frames.append((piece, self.path, 0))
            elif piece in ("]", "}") and kind == "mark":
                self.path = frames.pop()[1] if frames else self.path
                continue
            elif piece == "," and frames:
                bracket, path, index = frames[-1]
                frames[-1] = (bracket, path, index + 1)
            else:
                continue
            self._next_element(frames)

    def _next_element(self, frames: list[tuple[str, Path, int]]) -> None:
        """Take up what follows an opening bracket or a comma, unless the bracket closes there."""
        while self.at < len(self.pieces) and self.pieces[self.at][0] == "newline":
            self.at += 1
        if self.at >= len(self.pieces) or self.pieces[self.at][1] in ("]", "}"):
            return
        bracket, path, index = frames[-1]
        if bracket == "{":
            self._pair(path)
        else:
            self.path = (*path, index)
            self._note(self.path, self._line())


def _unquoted(piece: str) -> str:
    if piece.startswith("'"):
        return piece[1:-1]
    if "\\" not in piece:
        return piece[1:-1]
    return str(tomllib.loads(f"k={piece}")["k"])
