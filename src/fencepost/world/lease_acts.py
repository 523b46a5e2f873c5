"""What a manager does in the leases' world, apart from where it does it: so that each act is worked out once.

What a manager does depends on its own state and on one thing that it sees: the store's rows, or one message. What comes
of that for everything shared is an :class:`Effect`, which is worth the same wherever the manager may do it. So acts are
worked out for each (state, thing seen), effects for each (situation, effect), and never for each pair of a situation
and a state: there are many times as many of those.
"""

from typing import NamedTuple, TypeAlias

from msgspec import Struct, structs

from fencepost.core.capacity.messages import Check
from fencepost.world.leases import Fault, Flying, Rows, Shared, Slot
from fencepost.world.model import Move


class Store(NamedTuple):
    """What a manager sees of the store: its rows. And which managers died, whose shard needs no take-over."""

    rows: Rows
    dead: frozenset[str]


Seen: TypeAlias = Store | Flying
"""One thing that a manager may act on."""


class Effect(Struct, frozen=True, gc=False, omit_defaults=True):
    """What an act does to what is shared.

    It may be done only if the faults it ``spends`` may still happen, and if no check by ``asks`` is under way.
    ``heard`` is the message that is there no more, ``dies`` a manager whose messages nobody hears any more. ``rows`` is
    what is in the store then, None for no change. ``sends`` are new messages. ``unheard``: a lapse was decided (True),
    or an answer came (False). ``grants``: a lease is given. ``over``: attempts that run elsewhere from now on, or were
    reported as ended. ``ended``: those reported, of a host that hasn't lapsed. ``elsewhere``: an attempt that is
    placed elsewhere at first.
    """

    event: str = ""
    calm: bool = True
    spends: tuple[Fault, ...] = ()
    asks: str = ""
    heard: Flying | None = None
    dies: str = ""
    rows: Rows | None = None
    sends: tuple[Flying, ...] = ()
    unheard: bool | None = None
    grants: bool = False
    over: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()
    elsewhere: str = ""


NOTHING = Effect()


class Act(NamedTuple):
    """What a manager may do: it is then ``slot``."""

    label: str
    slot: Slot
    effect: Effect


def seen(shared: Shared) -> tuple[Seen, ...]:
    """All that a manager may act on, one by one."""
    heard = [each for each in shared.flight if not each.to_host]
    return (Store(shared.rows, shared.dead), *heard)


def applied(shared: Shared, effect: Effect) -> Move | None:
    """What comes of an effect here; None where it can't be done."""
    if effect.asks and any(each.who == effect.asks and isinstance(each.message, Check) for each in shared.flight):
        return None
    broken = wrong(shared, effect)
    for fault in effect.spends:
        if not shared.budgeted(fault):
            return None
        shared = shared.spent(fault)
    if effect.heard is not None:
        at = shared.flight.index(effect.heard)
        shared = shared.flying(*shared.flight[:at], *shared.flight[at + 1 :])
    if effect.dies:
        shared = structs.replace(shared, dead=shared.dead | {effect.dies}).flying(*shared.flight)
    shared = structs.replace(
        shared,
        rows=shared.rows if effect.rows is None else effect.rows,
        unheard=shared.unheard if effect.unheard is None else effect.unheard,
        over=shared.over | effect.over,
    )
    for message in effect.sends:
        # One too many is lost, and the same one again is one.
        if message not in shared.flight and len(shared.flight) < shared.room:
            shared = shared.flying(*shared.flight, message)
    return Move("", None, shared, broken, calm=effect.calm, event=effect.event)


def wrong(shared: Shared, effect: Effect) -> str | None:
    """The promise that an effect breaks here."""
    if effect.grants and shared.unheard:
        return "lapsed_until_heard"
    if effect.ended & shared.running:
        return "ended_stays_ended"
    here = effect.elsewhere
    if here in shared.started and not has_ended(shared, here):
        return "started_once"
    return None


def has_ended(shared: Shared, id_: str) -> bool:
    """Whether an attempt is over here, and has left the host's set too."""
    return id_ in shared.started and id_ not in shared.running | shared.memory.set.ids
