"""What becomes of a region after the race, if it is left to itself: every situation that its own steps lead to.

Nothing here says beforehand that it is stuck. From the situation at a story's end all steps of planner and enactors are
taken, in every order (no operator, nothing passed over), and it is looked at which endpoints answer in which of them,
and what is left to do where nothing changes any more.
"""

from collections import deque
from collections.abc import Iterator

from msgspec import Struct

from fencepost.incident.messages import Turn
from fencepost.incident.tree_model import Situation, TreeModel, TreePart, TreeShared

FAILS = "before missing"
"""The event of a turn that can't save what was live before."""


class Aftermath(Struct, frozen=True, gc=False):
    """What follows a situation in which ``empty`` endpoints (names) have lost ``missing`` plans.

    ``situations`` were reached, ``mended`` of them have every one of those endpoints answer again. ``ends`` change no
    more; ``failing`` are the enactors that in every one of them have nothing left but turns that can't save what was
    live before. ``endless`` is whether they may also go round without ever coming to such an end.
    """

    empty: tuple[str, ...]
    missing: tuple[int, ...]
    situations: int
    mended: int
    ends: int
    failing: tuple[str, ...]
    endless: bool

    @property
    def stuck(self) -> bool:
        """Whether no step of the parts, in any order, mends it."""
        return bool(self.empty) and not self.mended


def aftermath(model: TreeModel, begin: Situation) -> Aftermath:
    """Everything that planner and enactors can come to from ``begin``."""
    lost = tuple(model.names[at] for at in emptied(begin[1]))
    missing = tuple(sorted({begin[1].tree.live[at] for at in emptied(begin[1])}))
    watched = emptied(begin[1])
    known = {keyed(begin): begin}
    origins: dict[object, int] = {keyed(begin): 0}
    todo, mended, ends = deque([begin]), 0, []
    edges: dict[object, list[object]] = {}
    while todo:
        here = todo.popleft()
        mended += not any(here[1].tree.empty(at) for at in watched)
        edges[keyed(here)] = []
        for after in steps(model, here):
            key = keyed(after)
            edges[keyed(here)].append(key)
            origins[key] = origins.get(key, 0) + 1
            if key not in known:
                known[key] = after
                todo.append(after)
        if not edges[keyed(here)]:
            ends.append(here)
    failing = [part.name for at, part in enumerate(begin[0]) if ends and all(fails(model, end, at) for end in ends)]
    endless = cyclic(edges, origins, keyed(begin))
    return Aftermath(lost, missing, len(known), mended, len(ends), tuple(failing), endless)


def emptied(shared: TreeShared) -> tuple[int, ...]:
    """The endpoints whose callers get no addresses."""
    return tuple(at for at in range(len(shared.tree.live)) if shared.tree.empty(at))


def keyed(situation: Situation) -> object:
    """What tells one situation from another."""
    return tuple(part.key() for part in situation[0]), situation[1]


def steps(model: TreeModel, here: Situation) -> Iterator[Situation]:
    """Every step of the parts themselves that changes anything."""
    parts, shared = here
    for at, part in enumerate(parts):
        for move in model.moves(part, shared):
            after = model.lean_shared(move.shared)
            if move.calm and (move.slot.key() != part.key() or after != shared):
                yield (*parts[:at], move.slot, *parts[at + 1 :]), after


def fails(model: TreeModel, end: Situation, at: int) -> bool:
    """Whether a part has only turns left that can't save what was live before."""
    part: TreePart = end[0][at]
    turns = bool(part.pending) and all(isinstance(effect, Turn) for effect in part.pending)
    return turns and all(move.event == FAILS for move in model.moves(part, end[1]) if move.calm)


def cyclic(edges: dict[object, list[object]], origins: dict[object, int], begin: object) -> bool:
    """Whether steps may go round: what is left when situations that nothing more leads to are taken away in turn."""
    left, free = dict(origins), [begin] if not origins[begin] else []
    taken = 0
    while free:
        taken += 1
        for after in edges[free.pop()]:
            left[after] -= 1
            if not left[after]:
                free.append(after)
    return taken < len(edges)
