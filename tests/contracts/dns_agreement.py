"""Random domains, hands and batches on a stage, beside :func:`~fencepost.core.zone.transact`: both must agree."""

from dns_scene import Stage, change, marker
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.core.fence import Foreign, Hold
from fencepost.core.record_set import NOTHING, content
from fencepost.core.zone import Change, Live, transact

Run = list[tuple[dict[str, Live], list[tuple[str, int, tuple[str, ...]]]]]

NAMES = ("p0.example.test", "*.p1.example.test", "p2.example.test")
_POOL = ("192.0.2.1", "192.0.2.2", "10.0.0.9", "2001:db8::1", "2001:db8::2")
_ADDRESSES = st.lists(st.sampled_from(_POOL), max_size=3, unique=True)
_FOREIGN = st.sampled_from((Foreign("", ((b"mine",),)), Foreign("", ((b"a", b""), (b"b",)))))


@st.composite
def lives(draw: st.DrawFn, name: str) -> Live:
    """An endpoint in any state that people and writers may have left it in."""
    value = content(draw(_ADDRESSES), draw(st.sampled_from((30, 60))))
    stands = draw(st.one_of(st.none(), _FOREIGN, st.integers(1, 3).map(lambda number: marker(number, value))))
    return Live(name, stands, value.a, value.aaaa, 0 if value.empty else value.ttl)


@st.composite
def steps(draw: st.DrawFn) -> tuple[dict[str, Live], list[tuple[str, int, tuple[str, ...]]]]:
    """One step of a run: endpoints altered by hand, then a batch (name, views ago, addresses; none withdraws)."""
    altered = draw(st.lists(st.sampled_from(NAMES), max_size=1))
    hands = {name: draw(lives(name)) for name in altered}
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    return hands, [(name, draw(st.integers(0, 3)), tuple(draw(_ADDRESSES))) for name in names]


def check_agreement(stage: Stage) -> None:
    """Run the property on one stage; and see that batches were applied, and refused."""
    outcomes: set[bool] = set()

    @given(first=st.tuples(*map(lives, NAMES)), run=st.lists(steps(), min_size=1, max_size=6))
    @settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.nested_given])
    def agree(first: tuple[Live, ...], run: Run) -> None:
        stage.run(lambda: act(stage, first, run, outcomes))

    agree()
    assert outcomes == {True, False}


async def act(stage: Stage, first: tuple[Live, ...], run: Run, outcomes: set[bool]) -> None:
    """Play one run: outcome, records and the names that a read reports are the reference's, exactly."""
    await stage.hand(*first)
    port = stage.port()
    await port.read()
    domain = {live.name: live for live in first}
    views: dict[str, list[Live]] = {name: [live] for name, live in domain.items()}
    for number, (hands, wishes) in enumerate(run, 4):
        if hands:
            await stage.hand(*hands.values())
            domain |= hands
        batch = tuple(
            wish(views[name][max(-len(views[name]), -1 - ago)], number, addresses) for name, ago, addresses in wishes
        )
        replaced = transact(domain, batch)
        assert await port.commit(batch) is (replaced is not None)
        outcomes.add(replaced is not None)
        domain |= replaced or {}
        changed = set(await port.read()) & set(NAMES)
        for name in NAMES:
            assert shown(port.live(name)) == shown(domain[name])
            assert name in changed or port.live(name) == views[name][-1]
            views[name].append(port.live(name))


def wish(seen: Live, number: int, addresses: tuple[str, ...]) -> Change:
    """A change from what was once seen; without addresses a withdrawal."""
    if addresses:
        return change(seen, number, *addresses)
    return Change(seen.name, seen, marker(number, NOTHING, hold=Hold("withdraw", number), epoch=number), NOTHING, "46")


def shown(live: Live) -> Live:
    """An endpoint without what no record shows: the TTL where no address stands."""
    return Live(live.name, live.marker, live.a, live.aaaa, 0 if live.empty else live.ttl, live.other)
