"""Rows that differ in the name alone are decoded once; what comes out is what decoding each would have given."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.adapters.store_bodies import UnreadableError, decode_row, rows_alike
from fencepost.core.fence import Generation
from fencepost.core.record_set import content
from fencepost.core.store import Row

ROWS = st.builds(
    lambda name, number, last, reason: msgspec.structs.replace(
        Row.of(f"{name}.example.test", Generation(0, number), content([f"192.0.2.{last}"], 30), families="4"),
        reason=reason,
    ),
    st.text("ab", min_size=1, max_size=3),
    st.integers(1, 2),
    st.integers(1, 2),
    st.sampled_from(["", "pärlor", '"name":"b.example.test",', "back\\slash"]),
)


@given(st.lists(ROWS, max_size=20))
def test_as_if_each_were_decoded(rows: list[Row]) -> None:
    """Whatever rows there are, in whatever order."""
    found = [(row.name, msgspec.json.encode(row)) for row in rows]
    assert list(rows_alike("row", found)) == [decode_row(body) for _, body in found] == rows


def test_a_body_of_another_name_is_taken_as_it_is() -> None:
    """A body that another program wrote: with its name last, or not that of its row."""
    row = Row.of("a.example.test", Generation(0, 1), content(["192.0.2.1"], 30), families="4")
    fields = msgspec.to_builtins(row)
    last = msgspec.json.encode({key: fields[key] for key in [*sorted(fields.keys() - {"name"}), "name"]})
    body = msgspec.json.encode(row)
    found = [("a.example.test", body), ("b.example.test", body), ("a.example.test", last)]
    assert rows_alike("row", found) == (row, row, row)


def test_one_that_cant_be_read_is_named() -> None:
    """It is never skipped: an endpoint without row would look unknown."""
    row = Row.of("a.example.test", Generation(0, 1), content(["192.0.2.1"], 30), families="4")
    found = [("a.example.test", msgspec.json.encode(row)), ("b.example.test", b'{"name":"b.example.test"}')]
    with pytest.raises(UnreadableError, match=r"b\.example\.test"):
        rows_alike("row", found)
