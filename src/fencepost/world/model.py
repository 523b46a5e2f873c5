"""What a model is to those who walk it: parts, something shared, and moves from one situation to the next.

The explorer takes every move, the simulator one at a time. Neither knows what the parts are: a model says. The parts of
one kind are interchangeable, whatever their names.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, TypeVar


class Part(Protocol):
    """One part of a region, as an immutable value."""

    @property
    def name(self) -> str:
        """How stories call it."""
        ...

    def key(self) -> tuple[object, ...]:
        """What tells it from another, hashable; the name doesn't, so that equal parts are interchangeable."""
        ...


class Move(NamedTuple):
    """One step: what it was, what it led to, the promise it broke, and whether it is the part's own (no fault in it).

    ``slot`` is the part after it, None if no part changed. ``event`` names what a promise's "sometimes" partner waits
    for: "fenced", "healed", "adopted" and so on.
    """

    label: str
    slot: Any
    shared: Any
    broken: str | None = None
    calm: bool = True
    event: str = ""


P = TypeVar("P", bound=Part)
S = TypeVar("S")


class Model(Protocol[P, S]):
    """A region of parts ``P`` around something shared ``S``, both immutable; ``S`` is hashable.

    The three reductions may forget what no step can tell any more; a model without any returns its arguments, and
    False. ``sometimes`` is where they count what they saw.
    """

    sometimes: Counter[str]

    def start(self) -> tuple[tuple[P, ...], S]:
        """The first situation; parts of one kind follow each other."""
        ...

    def kind(self, part: P) -> object:
        """Parts of the same kind may be exchanged without changing anything."""
        ...

    def moves(self, part: P, shared: S) -> Iterator[Move]:
        """What one part may do now."""
        ...

    def outside(self, shared: S) -> Iterator[Move]:
        """What may happen without any part."""
        ...

    def lean_shared(self, shared: S) -> S:
        """The shared part without what no step can tell."""
        ...

    def lean_part(self, part: P, shared: S) -> P:
        """A part without what no step can tell, given what is shared now."""
        ...

    def stirred(self, before: S, after: S) -> bool:
        """Whether a step may have outdated what other parts hold, so that each is to be made lean anew."""
        ...

    def converged(self, shared: S) -> bool:
        """Whether this is where the parts' own steps should lead."""
        ...

    def excused(self, shared: S) -> bool:
        """Whether the model's own bound, not a rule, may keep this situation from converging."""
        ...

    def title(self) -> str:
        """The model in words: how many parts of which kind."""
        ...

    def faults(self) -> tuple[str, ...]:
        """What may go wrong in it, by name."""
        ...
