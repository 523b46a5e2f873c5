"""What a store's tables hold, checked while it is read.

Another version of fencepost, or a person with a tool, may have put something else there, and SQLite stores any type in
any column. Such a row is never skipped (an endpoint without row would look unknown): it is named, by table and key.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from fencepost.core.store import Row

T = TypeVar("T")
_REPEATED = ("content", "digest", "families", "store", "nonce", "by", "reason")
_ALIKE_MAX = 1024
decode_row = msgspec.json.Decoder(Row).decode


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


def rows_alike(table: str, found: Iterable[tuple[str, bytes]]) -> tuple[Row, ...]:
    """Rows by name and body, holding equal contents and the like only once. Raises :class:`UnreadableError`.

    The endpoints of one plan and pool have bodies that differ in the name alone, with which a body begins. What follows
    it is decoded once: 30,000 rows take a third of the time.
    """
    known: dict[bytes, Row] = {}
    made = []
    for name, body in found:
        head = b'{"name":"%b",' % name.encode()
        rest = body[len(head) :]
        alike = known.get(rest)
        if alike is not None and body.startswith(head):
            made.append(msgspec.structs.replace(alike, name=name))
            continue
        row = decoded(table, name, decode_row, body)
        if row.name == name and len(known) < _ALIKE_MAX:
            known[rest] = row
        made.append(row)
    return shared(made) if len(known) > 1 else tuple(made)


def checked(table: str, key: object, values: Sequence[object], kinds: tuple[type, ...]) -> None:
    """A row's columns are of these types. Raises :class:`UnreadableError`."""
    for value, kind in zip(values, kinds, strict=True):
        if type(value) is not kind:
            raise UnreadableError(table, key, f"{value!r} stands where {kind.__name__} is wanted")


def shared(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows, holding equal contents, nonces and the like only once: most endpoints of a pool answer the same.

    Rows just decoded are nobody else's yet, so they may be changed in place.
    """
    known: dict[object, object] = {}
    made = []
    for row in rows:
        for field in _REPEATED:
            value = getattr(row, field)
            msgspec.structs.force_setattr(row, field, known.setdefault(value, value))
        made.append(row)
    return tuple(made)
