"""Which states can reach a goal: one walk backwards over the edges, whatever the size of the graph."""

from array import array


def reaching(size: int, begins: "array[int]", targets: "array[int]", goals: list[int]) -> bytearray:
    """For each state 1 if a goal is reachable from it, else 0.

    ``targets[begins[n] : begins[n + 1]]`` are the states one step after state n; ``goals`` are states.
    """
    first = array("I", bytes(4 * (size + 1)))
    for number in targets:
        first[number] += 1
    for n in range(size):
        first[n + 1] += first[n]
    origins = array("I", bytes(4 * len(targets)))
    for n in range(size):
        for number in targets[begins[n] : begins[n + 1]]:
            first[number] -= 1  # each state's part is filled from its end, so its beginning is known in the end
            origins[first[number]] = n
    reaches = bytearray(size)
    todo = list(goals)
    for n in todo:
        reaches[n] = 1
    while todo:
        n = todo.pop()
        for origin in origins[first[n] : first[n + 1]]:
            if not reaches[origin]:
                reaches[origin] = 1
                todo.append(origin)
    return reaches
