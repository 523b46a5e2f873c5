"""What is asked of the explorer's graph and its table of known worlds, each against a plain way to find the same."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.explorer.graph import Graph
from fencepost.explorer.known import Known

SIZE = 9
Edges = list[tuple[int, int, int]]
EDGES = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.integers(0, 1)), max_size=25)
STATES = st.sets(st.integers(0, SIZE - 1))


def graph_of(edges: Edges, cut: int) -> Graph:
    """These edges in two blocks."""
    graph = Graph()
    for begin, end in ((0, cut), (cut, SIZE)):
        here = [edge for edge in edges if begin <= edge[0] < end]
        sources, targets, labels = (np.array([edge[n] for edge in here], np.int64) for n in range(3))
        graph.add(begin, end, sources - begin, targets.astype(np.int32), labels.astype(np.int8))
    return graph


def marked(states: set[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """A set of states as the graph takes it."""
    return np.array([state in states for state in range(SIZE)])


def reach(edges: Edges, start: int, within: set[int]) -> set[int]:
    """What can be reached from one state, through ``within``: the plain way."""
    found, todo = {start}, [start]
    while todo:
        here = todo.pop()
        for source, target, _ in edges:
            if source == here and target in within and target not in found:
                found.add(target)
                todo.append(target)
    return found


@given(EDGES, STATES, STATES, st.integers(1, SIZE - 1))
def test_who_reaches_a_goal(edges: Edges, goals: set[int], within: set[int], cut: int) -> None:
    """Backwards by blocks finds what forwards from each state finds."""
    found = graph_of(edges, cut).reaching(marked(goals), marked(within))
    for state in range(SIZE):
        expected = state in goals
        if state in within:
            expected |= any(
                goals & ({target} | reach(edges, target, within - goals))
                for reached in reach(edges, state, within - goals)
                for source, target, _ in edges
                if source == reached
            )
        assert bool(found[state]) == expected


@given(EDGES, STATES, st.integers(1, SIZE - 1))
def test_who_may_go_round_for_ever_though_all_go_on(edges: Edges, within: set[int], cut: int) -> None:
    """A fair schedule stays for ever exactly where a strongly connected part, inside, has a step of every label."""
    found = graph_of(edges, cut).going_round(marked(within), [0, 1])
    inside = [edge for edge in edges if edge[0] in within and edge[1] in within]
    reaches = {state: reach(inside, state, within) for state in within}
    together = {state: {other for other in reaches[state] if state in reaches[other]} for state in within}
    fair = {
        state
        for state in within
        if {label for source, target, label in inside if {source, target} <= together[state]} == {0, 1}
    }
    assert {state for state in range(SIZE) if found[state]} == {state for state in within if fair & reaches[state]}


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40), max_size=8))
def test_known_worlds_are_numbered_as_they_come(batches: list[list[tuple[int, int]]]) -> None:
    """A dict does the same, one at a time."""
    known, plain = Known(2), dict[tuple[int, int], int]()
    for batch in batches:
        numbers, new = known.add(np.array(batch, np.int32))
        came = [at for at, row in enumerate(batch) if row not in plain and row not in batch[:at]]
        for at in came:
            plain[batch[at]] = len(plain)
        assert numbers.tolist() == [plain[row] for row in batch]
        assert new.tolist() == came
    assert [tuple(row) for row in known.rows[: known.size].tolist()] == list(plain)


def test_a_table_that_grows_forgets_nothing() -> None:
    """Ten thousand worlds, then all of them again."""
    rows = np.array(list(product(range(100), range(100))), np.int32)
    known = Known(2)
    for begin in range(0, len(rows), 777):
        known.add(rows[begin : begin + 777])
    numbers, new = known.add(rows[::-1].copy())
    assert numbers.tolist() == list(range(len(rows)))[::-1]
    assert not len(new)
