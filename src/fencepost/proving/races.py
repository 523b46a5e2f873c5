"""The races. Each makes its own situation, has one writer write what must be refused, and looks at what stands then.

A race is held only if the write was answered as refused *and* nothing changed: a provider that answers an error and
applies half of it doesn't hold. Each begins by reading, so one that isn't held leaves the next ones a fair start.
"""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from fencepost.core.fence import Marker
from fencepost.core.record_set import NOTHING
from fencepost.core.zone import Change, Live
from fencepost.ports import DnsPort, Refused
from fencepost.proving.scene import WRITERS, Scene, said_by


class Race(Struct, frozen=True):
    """How one race ended. ``said`` is the provider's own refusal, ``found`` what was wrong if it wasn't ``held``."""

    name: str
    asks: str
    held: bool
    said: str
    found: str = ""


Outcome = tuple[bool, str, str]


async def _refuses(scene: Scene, port: DnsPort, *batch: Change) -> Outcome:
    """Make a write that must be refused: (held, what the provider said, what was wrong)."""
    before = await scene.standing()
    applied = await scene.commit(port, *batch)
    after = await scene.standing()
    if applied:
        wrote = "its records stand" if after != before else "though nothing changed"
        return False, "", f"the write was answered as applied; {wrote}"
    return after == before, said_by(port), "" if after == before else f"refused, yet records changed: {_diff(after)}"


def _diff(lives: tuple[Live, ...]) -> str:
    return "; ".join(f"{live.name}: {', '.join(live.a) or 'nothing'} ({_generation(live)})" for live in lives)


def _generation(live: Live) -> str:
    return f"gen {live.marker.generation}" if isinstance(live.marker, Marker) else "no marker"


async def _second_creator(scene: Scene) -> Outcome:
    one, two, *_ = scene.writers
    await scene.read(one, two)
    late = scene.change(two, 2)
    await scene.must(one, scene.change(one, 1))
    return await _refuses(scene, two, late)


async def _stale_writer(scene: Scene) -> Outcome:
    one, two, *_ = scene.writers
    await scene.read(one, two)
    older = scene.change(two, 2)
    await scene.must(one, scene.change(one, 3))
    return await _refuses(scene, two, older)


async def _duplicate_delivery(scene: Scene) -> Outcome:
    one, *_ = scene.writers
    await scene.read(one)
    change = scene.change(one, 4)
    await scene.must(one, change)
    return await _refuses(scene, one, change)


async def _late_delivery(scene: Scene) -> Outcome:
    """The write waits, already made, until newer generations are live, the last with the addresses that it had seen."""
    one, two, *_ = scene.writers
    await scene.read(one, two)
    seen = [int(address.rpartition(".")[2]) for address in two.live(scene.name).a]
    held_back, live = scene.change(two, 5), asyncio.Event()

    async def delivered() -> Outcome:
        await live.wait()
        return await _refuses(scene, two, held_back)

    delivery = asyncio.ensure_future(delivered())
    try:
        for last in ([6], seen):
            await scene.must(one, scene.change(one, *last))
            await scene.read(one)
        live.set()
        return await delivery
    finally:
        delivery.cancel()


async def _partial_batch(scene: Scene) -> Outcome:
    one, two, *_ = scene.writers
    await scene.read(one)
    await scene.must(one, scene.change(one, 7, name=scene.second))
    await scene.read(one, two)
    batch = scene.change(two, 8), scene.change(two, 8, name=scene.second)
    await scene.must(one, scene.change(one, 9, name=scene.second))
    return await _refuses(scene, two, *batch)


async def _altered_by_hand(scene: Scene) -> Outcome:
    """Somebody changes the addresses and leaves the marker: the marker alone would let an older write through."""
    one, two, *_ = scene.writers
    await scene.read(one, two)
    mine, older = scene.change(one, 11), scene.change(two, 10)
    stood = mine.seen.marker if isinstance(mine.seen.marker, Marker) else mine.marker
    await scene.must(one, Change(mine.name, mine.seen, stood, mine.content, "4"))
    return await _refuses(scene, two, older)


async def _at_once(scene: Scene) -> Outcome:
    """All writers have seen the same and write together: one of them does, and its records stand whole."""
    await scene.read()
    wishes = [scene.change(port, 20 + at) for at, port in enumerate(scene.writers)]
    pairs = zip(scene.writers, wishes, strict=True)
    done = await asyncio.gather(*(scene.commit(port, wish) for port, wish in pairs))
    stands, _ = await scene.standing()
    losers = [said_by(port) for port, applied in zip(scene.writers, done, strict=True) if not applied]
    said = "; ".join(dict.fromkeys(losers))
    if sum(done) != 1:
        return False, said, f"{sum(done)} of {WRITERS} writes were answered as applied"
    wish = wishes[done.index(True)]
    whole = stands.marker == wish.marker and stands.holds(wish.content)
    return whole, said, "" if whole else f"other records stand than the winner's: {_diff((stands,))}"


async def _emptying(scene: Scene) -> Outcome:
    """The adapter itself must refuse it, before anything is sent: ``never_empty``."""
    one, *_ = scene.writers
    await scene.read(one)
    before = await scene.standing()
    full = scene.change(one, 1)
    try:
        applied = await scene.commit(one, Change(full.name, full.seen, full.marker, NOTHING, "4"))
    except Refused as refusal:
        same = await scene.standing() == before
        return same, f"not sent: {refusal.what}", "" if same else "refused, yet records changed"
    return False, "", "the write was " + ("answered as applied" if applied else "sent, and refused by the provider")


_PLAYED: tuple[tuple[str, str, Callable[[Scene], Awaitable[Outcome]]], ...] = (
    ("a second creator", "two saw nothing and create; the second is refused", _second_creator),
    ("a stale writer", "an older plan is written after a newer one", _stale_writer),
    ("a duplicate delivery", "a write that applied arrives again", _duplicate_delivery),
    ("a late delivery", "held back until newer is live, with the addresses it had seen", _late_delivery),
    ("a partial batch", "one of two changes is stale; neither applies", _partial_batch),
    ("records altered by hand", "the marker is as seen, the addresses aren't", _altered_by_hand),
    ("four at once", "four writers that saw the same write together; one applies", _at_once),
    ("an emptying write", "a write that leaves nothing is not even sent", _emptying),
)


def _named(name: str, asks: str, play: Callable[[Scene], Awaitable[Outcome]]) -> Callable[[Scene], Awaitable[Race]]:
    async def race(scene: Scene) -> Race:
        held, said, found = await play(scene)
        return Race(name, asks, held, said, found)

    return race


RACES: tuple[Callable[[Scene], Awaitable[Race]], ...] = tuple(_named(*each) for each in _PLAYED)
"""In the order in which they are run: the first wants the names empty."""
