"""Pages, of record sets above all: where one begins, how long it is, and where the next begins.

API reference, ListResourceRecordSets: sorted by reversed labels, then type, then set identifier; a page begins at the
first set not before the name, type and identifier asked for; 300 at most, whatever is asked.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import msgspec

from fencepost.dev.route53.names import BadNameError, canonical, order
from fencepost.dev.route53.record_set import RecordSet
from fencepost.dev.route53.refusals import invalid_input


def most_asked(query: Mapping[str, str], limit: int) -> int:
    """How many items a page may have. Raises ApiError."""
    asked = query.get("maxitems", str(limit))
    if not asked.isdigit() or not int(asked):
        raise invalid_input(f"Invalid request: maxitems is a number from 1, not {asked!r}")
    return min(int(asked), limit)


class Page(msgspec.Struct, frozen=True):
    """What stands on a page, and the first set of the next one."""

    sets: Sequence[RecordSet]
    following: RecordSet | None
    most: int


def page(listed: Sequence[RecordSet], *, name: str | None, kind: str | None, identifier: str | None, most: int) -> Page:
    """The page of `listed` (which is in order) that begins at name, type and identifier. Raises ApiError."""
    if (kind is not None and name is None) or (identifier is not None and (name is None or kind is None)):
        raise invalid_input("Invalid request: a page begins at a name, a name and type, or these and an identifier")
    begin = 0
    if name is not None:
        try:
            wanted = (order(canonical(name)), kind or "", identifier or "")
        except BadNameError as error:
            raise invalid_input(str(error)) from error
        begin = bisect_left(listed, wanted, key=lambda each: (order(each.name), *each.key))
    after = listed[begin + most] if begin + most < len(listed) else None
    return Page(listed[begin : begin + most], after, most)
