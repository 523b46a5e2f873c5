"""Random domains, hands and batches on Route 53, beside the reference transaction: where they may differ, and how."""

from dns_agreement import NAMES, lives, shown, steps, wish
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from route53_stage import Hand, Route53Stage, sets_of

from fencepost.adapters.dns_route53.names import marker_owner_of, owner_of
from fencepost.core.zone import Change, Live, transact

Run = list[tuple[dict[str, Live], list[tuple[str, int, tuple[str, ...]]]]]


def check_exchange(stage: Route53Stage, examples: int = 15) -> None:
    """Run the property; and see that batches were applied, refused, and each of the two differences met."""
    met: set[str] = set()

    @given(first=st.tuples(*map(lives, NAMES)), run=st.lists(steps(), min_size=1, max_size=5))
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=[HealthCheck.nested_given])
    def agree(first: tuple[Live, ...], run: Run) -> None:
        stage.run(lambda: act(stage, first, run, met))

    agree()
    assert {"applied", "refused"} <= met


async def act(stage: Route53Stage, first: tuple[Live, ...], run: Run, met: set[str]) -> None:
    """Play one run. What stands is told by a fresh mirror; what may happen, by the reference."""
    await stage.hand(*first)
    port, truth = stage.port(), stage.port()
    await port.read()
    views = {name: [port.live(name)] for name in NAMES}
    for number, (hands, wishes) in enumerate(run, 4):
        if hands:
            await stage.hand(*hands.values())
        await truth.read()
        before = {name: truth.live(name) for name in NAMES}
        batch = tuple(
            wish(views[name][max(-len(views[name]), -1 - ago)], number, addresses) for name, ago, addresses in wishes
        )
        replaced = transact(before, batch)
        applied = await port.commit(batch)
        await port.read()
        met.add("applied" if applied else "refused")
        if applied and replaced is None:
            met.add("absence")
            assert all(allowed(before[change.name], change) for change in batch)
        if not applied and replaced is not None:
            met.add("ttl")
            assert any(spelled_otherwise(stage.by_hand, change) for change in batch)
        for change in batch:
            left = transacted(before[change.name], change) if applied else before[change.name]
            assert shown(structs.replace(port.live(change.name), ttl=0)) == shown(structs.replace(left, ttl=0))
        for name in NAMES:
            views[name].append(port.live(name))


def allowed(live: Live, change: Change) -> bool:
    """What Route 53 can require: all that was seen, and the absence of what is created."""
    seen, value = change.seen, change.content
    families = ((live.a, seen.a, value.a), (live.aaaa, seen.aaaa, value.aaaa))
    return live.marker == seen.marker and all(
        stood == saw or (not saw and not wanted) for stood, saw, wanted in families
    )


def transacted(live: Live, change: Change) -> Live:
    """What stands after it: a family that is neither seen nor wanted stays."""
    seen, value = change.seen, change.content
    a = value.a if seen.a or value.a else live.a
    aaaa = value.aaaa if seen.aaaa or value.aaaa else live.aaaa
    return Live(live.name, change.marker, a, aaaa, 0, live.other)


def spelled_otherwise(by_hand: Hand, change: Change) -> bool:
    """Whether a set that the change had seen isn't listed as a DELETE of what was seen would have it."""
    stands = by_hand.at(owner_of(change.name), marker_owner_of(change.name))
    return any(each not in stands for each in sets_of(change.seen))
