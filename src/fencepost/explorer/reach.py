"""Which states can reach a goal: one walk backwards over the edges, whatever the size of the graph."""

from array import array


def stuck(size: int, begins: "array[int]", targets: "array[int]", goals: list[int]) -> int | None:
    """The first state from which no goal is reachable; None if there is none.

    ``targets[begins[n] : begins[n + 1]]`` are the states one step after state n; ``goals`` are states.
    """
    first = array("I", bytes(4 * (size + 1)))
    for number in targets:
        first[number + 1] += 1
    for n in range(size):
        first[n + 1] += first[n]
    place = array("I", first)
    origins = array("I", bytes(4 * len(targets)))
    for n in range(size):
        for number in targets[begins[n] : begins[n + 1]]:
            origins[place[number]] = n
            place[number] += 1
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
    found = reaches.find(0)
    return None if found < 0 else found
