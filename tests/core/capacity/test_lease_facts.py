"""Writes about leases in columns are those about rows: the second is what ships, the first is for replays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.capacity import lease_facts, lease_rows
from fencepost.core.capacity.host_table import facts_of
from fencepost.core.capacity.lease_calls import Facts, Op, Write
from fencepost.core.capacity.messages import Instance, InstanceSet
from fencepost.core.capacity.rows import HostRow

OPS = (Op.GRANT, Op.LAPSE, Op.MARK, Op.CLEAR, Op.BOOT, Op.ADOPT)
SETS = st.builds(
    InstanceSet, st.integers(0, 3), st.sampled_from([(), (Instance("a.1"),), (Instance("a.1"), Instance("b.1"))])
)
ROWS = st.builds(
    HostRow,
    host=st.just("h"),
    zone=st.just("a"),
    at=st.just("192.0.2.1:1"),
    number=st.integers(0, 3),
    nonce=st.integers(0, 3),
    lease=st.sampled_from(["none", "held", "lapsed"]),
    life=st.just("life"),
    incarnation=st.integers(0, 2),
    boot=st.integers(0, 2),
    left=st.sampled_from([0, 5]),
    reported=st.booleans(),
    set=SETS,
    word=st.sampled_from(["", "gone"]),
)
ONE = st.tuples(ROWS, SETS, st.integers(0, 9), st.integers(0, 2), st.integers(0, 2), st.integers(4, 9))


def plain(facts: Facts) -> dict[str, tuple[list[object], str]]:
    """Columns that can be compared."""
    return {name: (column.tolist(), str(column.dtype)) for name, column in facts._asdict().items()}


@given(st.sampled_from(OPS), st.lists(ONE, min_size=1, max_size=5))
def test_a_write_makes_the_same_of_columns_as_of_rows(
    op: Op, hosts: list[tuple[HostRow, InstanceSet, int, int, int, int]]
) -> None:
    """Of every row in a store's life, whatever it says; a write that finds nothing to do leaves it as it was."""
    numbers = range(len(hosts))
    after = [
        lease_rows.composed(op, row, "life", nonce=nonce, left=left, incarnation=born, boot=boot, theirs=theirs) or row
        for row, theirs, left, born, boot, nonce in hosts
    ]
    rows, sets, left, born, boot, nonces = zip(*hosts, strict=True)
    words = [np.array(each, np.uint64) for each in (born, boot, nonces)]
    write = Write(op, np.arange(len(hosts)), np.array(left), words[0], words[1])
    version = np.array([each.version for each in sets])
    same = [each.instances == row.set.instances for each, row in zip(sets, rows, strict=True)]
    before = facts_of(numbers, rows, "life")
    found = lease_facts.written(write, before, words[2], version=version, same=same)
    expected = facts_of(numbers, after, "life")
    assert plain(found) == plain(expected)


def test_in_another_life_of_the_store_no_lease_is_known() -> None:
    """The rows of the life before say so themselves."""
    rows = [HostRow("h", "a", "192.0.2.1:1", 1, (), 3, 4, lease, "life", 5, 6, 0, True) for lease in ("held", "lapsed")]
    found = lease_facts.of_another_life(facts_of((0, 1), rows, "life"))
    assert plain(found) == plain(facts_of((0, 1), rows, "life-2"))


@pytest.mark.parametrize("op", [Op.PROVE, Op.ADOPT])
def test_what_can_t_be_written_is_refused(op: Op) -> None:
    """A proof writes nothing, and nobody can adopt a set without a version."""
    none, words = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    with pytest.raises((TypeError, ValueError)):
        lease_facts.written(Write(op, none, none, words, words), facts_of((), (), "life"), words)
