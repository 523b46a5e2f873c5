"""Worlds whose parts act on one thing at a time: each act is worked out once, wherever it may be done.

Where every situation has parts of its own, each pair of a shared part and a slot is nearly a world, and working out the
steps of a pair saves nothing (:mod:`fencepost.explorer.worlds`). Here a part looks at the things that it may act on,
one by one (the store's rows; a message); what it then does is an act: the part after it, and an effect on what is
shared. Acts are worked out for each pair of a part and a thing, effects for each pair of a shared part and an effect.
Both are few, and the deciders run in the first only. No step is left out, and none comes to pass that the model's own
``moves`` doesn't make: those are put together from the same acts and effects, and a story is told by them.

In the same way parts are told of what has stirred them by the news alone, once for each pair of a part and its news,
and news that all have been told are news no more.
"""

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fencepost.explorer.known import Ints, Known, Numbers
from fencepost.explorer.worlds import OUTSIDE, Expansion, NumberedStep, Steps, Worlds
from fencepost.world.model import Model, Move, P, S

CANT = -1
"""In place of the shared part after an effect: it can't be done there."""


class Acted(Protocol):
    """What a part may do about one thing: the part after it, and what comes of it for all that is shared."""

    @property
    def slot(self) -> Any:
        """The part after it."""
        ...

    @property
    def effect(self) -> Any:
        """Hashable; it says whether the act is ``calm`` too."""
        ...


@runtime_checkable
class FactoredModel(Model[P, S], Protocol):
    """A model some kinds of whose parts act on one thing at a time."""

    def acting(self, part: P) -> bool:
        """Whether this part, and whatever takes its place, does so."""
        ...

    def seen(self, shared: S) -> Iterable[Hashable]:
        """The things that parts may act on."""
        ...

    def acts(self, part: P, thing: Any) -> Iterator[Acted]:
        """What one part may do about one thing."""
        ...

    def applied(self, shared: S, effect: Any) -> Move | None:
        """What comes of an effect; None where it can't be done."""
        ...

    def news(self, shared: S) -> Hashable:
        """What parts that are stirred are told."""
        ...

    def told(self, part: P, news: Any) -> P:
        """The part once told."""
        ...

    def rested(self, shared: S) -> S:
        """The shared part once all parts are told."""
        ...


class Numbering:
    """Hashable values, numbered as they come."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def of(self, value: Hashable) -> int:
        """A value's number."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class Effects:
    """What comes of effects: for each pair of a shared part and an effect the shared part after it, and what broke."""

    def __init__(self) -> None:
        self.pairs = Known(2)
        self._shared, self._broken = array("i"), array("h")

    def of(self, pairs: Ints, work: Callable[[int, int], tuple[int, int]]) -> tuple[Ints, NDArray[np.int16]]:
        """Of each pair the shared part after it (``CANT``: none), and the promise broken. ``work`` is asked once."""
        numbers, new = self.pairs.add(pairs)
        for shared, effect in pairs[new].tolist():
            after, broken = work(shared, effect)
            self._shared.append(after)
            self._broken.append(broken)
        if not len(numbers):
            return np.empty(0, np.int32), np.empty(0, np.int16)
        return np.frombuffer(self._shared, np.int32)[numbers], np.frombuffer(self._broken, np.int16)[numbers]


class Found(NamedTuple):
    """Steps of one place: from which rows, to which, whether parts are stirred, whether calm, what broke."""

    source: Numbers
    after: Ints
    stirs: NDArray[np.int8]
    calm: NDArray[np.int8]
    broken: NDArray[np.int16]


class FactoredWorlds(Worlds[P, S]):
    """The worlds of a factored model, and the steps between them."""

    def __init__(self, model: FactoredModel[P, S], *, symmetry: bool = True) -> None:
        self.parted: FactoredModel[P, S] = model
        self.things, self.effects, self.news = Numbering(), Numbering(), Numbering()
        self.seen, self.acted, self.done = Steps(), Steps(), Effects()
        self._news: dict[int, int] = {}
        self._rested: dict[int, int] = {}
        super().__init__(model, symmetry=symmetry)
        self.acting = [model.acting(self.slots[slot]) for slot in self.started]

    def expand(self, rows: Ints) -> Expansion:
        """All steps from these worlds."""
        places = [(OUTSIDE, self.found(rows, OUTSIDE))]
        places += [
            (place, self.acts_found(rows, place) if acting else self.found(rows, place))
            for place, acting in enumerate(self.acting)
        ]
        found = [each for _, each in places]
        kinds = [self.kinds[place] if place >= 0 else OUTSIDE for place, _ in places]
        labels = [np.where(each.calm == 1, kind, OUTSIDE) for kind, each in zip(kinds, found, strict=True)]
        after = np.concatenate([each.after for each in found])
        again = np.flatnonzero(np.concatenate([each.stirs for each in found]))
        if len(again):
            after[again] = self.look(after[again])
        return Expansion(
            np.concatenate([each.source for each in found]),
            self.ordered(after),
            np.concatenate(labels).astype(np.int8),
            np.concatenate([each.broken for each in found]),
        )

    def found(self, rows: Ints, place: int) -> Found:
        """The steps of a part that looks at all that is shared, or of none."""
        table, column = (self.outside, 0) if place == OUTSIDE else (self.steps, 1 + place)
        source, steps = table.of(rows[:, [0, column]], self.outside_steps if place == OUTSIDE else self.part_steps)
        after = rows[source]
        slots, after[:, 0] = table.after(steps)
        if place != OUTSIDE:
            after[:, column] = slots
        return Found(source, after, *table.how(steps))

    def acts_found(self, rows: Ints, place: int) -> Found:
        """The steps of a part that acts on one thing at a time."""
        column = 1 + place
        viewer, views = self.seen.of(rows[:, [0, 0]], self.things_seen)
        _, things = self.seen.after(views)
        actor, acts = self.acted.of(np.stack((things, rows[viewer, column]), axis=1), self.part_acts)
        slots, effects = self.acted.after(acts)
        _, calm, _ = self.acted.how(acts)
        source = viewer[actor]
        shareds, broken = self.done.of(np.stack((rows[source, 0], effects), axis=1), self.outcome)
        can = np.flatnonzero(shareds != CANT)
        source = source[can]
        after = rows[source]
        after[:, 0], after[:, column] = shareds[can], slots[can]
        return Found(source, after, np.zeros(len(can), np.int8), calm[can], broken[can])

    def things_seen(self, shared: int, _: int) -> list[NumberedStep]:
        """The things that parts may act on, each in the place of a step's shared part."""
        return [(0, self.things.of(thing), False, True, 0) for thing in self.parted.seen(self.shareds[shared])]

    def part_acts(self, thing: int, slot: int) -> list[NumberedStep]:
        """What one part may do about one thing; effects in the place of shared parts."""
        acts = self.parted.acts(self.slots[slot], self.things.values[thing])
        return [(self.slot_id(act.slot), self.effects.of(act.effect), False, bool(act.effect.calm), 0) for act in acts]

    def outcome(self, shared: int, effect: int) -> tuple[int, int]:
        """What comes of one effect in one shared part: the part after it, and the promise broken; counted."""
        move = self.parted.applied(self.shareds[shared], self.effects.values[effect])
        if move is None:
            return CANT, 0
        if move.event:
            self.sometimes[move.event] += 1
        return self.shared_id(self.model.lean_shared(move.shared)), self.promise_id(move.broken)

    def look(self, rows: Ints) -> Ints:
        """Each part once told the news, and what is shared once all are told."""
        shareds, places = np.unique(rows[:, 0], return_inverse=True)
        news = np.array([self.news_of(shared) for shared in shareds.tolist()], np.int32)[places]
        for column in range(1, rows.shape[1]):
            pairs = np.stack((news, rows[:, column]), axis=1)
            numbers, new = self.relooked.add(pairs)
            for told, slot in pairs[new].tolist():
                self._looked.append(self.slot_id(self.parted.told(self.slots[slot], self.news.values[told])))
            rows[:, column] = np.frombuffer(self._looked, np.int32)[numbers]
        rows[:, 0] = np.array([self.rested_id(shared) for shared in shareds.tolist()], np.int32)[places]
        return rows

    def news_of(self, shared: int) -> int:
        """The number of a shared part's news."""
        found = self._news.get(shared)
        if found is None:
            found = self._news[shared] = self.news.of(self.parted.news(self.shareds[shared]))
        return found

    def rested_id(self, shared: int) -> int:
        """The number of a shared part once all parts are told."""
        found = self._rested.get(shared)
        if found is None:
            found = self._rested[shared] = self.shared_id(self.parted.rested(self.shareds[shared]))
        return found
