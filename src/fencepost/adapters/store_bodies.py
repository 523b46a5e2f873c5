"""What the tables hold, checked while it is read.

SQLite stores any type in any column, and another version of fencepost, or a person with a tool, may have put something
else there. Such a row is never skipped (an endpoint without row would look unknown): it is named, by table and key.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

T = TypeVar("T")


class UnreadableError(ValueError):
    """A row that isn't what this version writes: ``table``, ``key`` (its name there) and what is wrong."""

    def __init__(self, table: str, key: object, error: object) -> None:
        super().__init__(f"row {key!r} of table {table}: {error}")
        self.table = table
        self.key = key


def decoded(table: str, key: object, decode: Callable[[bytes], T], body: bytes) -> T:
    """A row's body. Raises :class:`UnreadableError`."""
    try:
        return decode(body)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise UnreadableError(table, key, error) from error


def checked(table: str, key: object, values: Sequence[object], kinds: tuple[type, ...]) -> None:
    """A row's columns are of these types. Raises :class:`UnreadableError`."""
    for value, kind in zip(values, kinds, strict=True):
        if type(value) is not kind:
            raise UnreadableError(table, key, f"{value!r} stands where {kind.__name__} is wanted")
