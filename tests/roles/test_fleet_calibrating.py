"""Measuring how many hosts may be asked at once: what is taken for the knee, and what is no measure."""

import asyncio

import pytest
from held_hosts import KEY, fleet, rows_of, run
from msgspec import structs

from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.messages import Answer
from fencepost.core.capacity.rows import CalibrationRow
from fencepost.core.instant import MILLISECOND, SECOND, Duration
from fencepost.ports import Refused
from fencepost.roles.fleet import calibrating
from fencepost.roles.fleet.calibrating import Asker, Measured, Step, knee_of
from fencepost.roles.fleet.host_manager import now
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, Wire


def step(in_flight: int, rate: float, lost: float = 0.0) -> Step:
    return Step(in_flight, rate, MILLISECOND, 2 * MILLISECOND, 3 * MILLISECOND, lost, int(lost * rate))


def test_the_knee_is_the_fewest_with_nine_tenths_of_the_most() -> None:
    """Past it answers only get slower; a step that lost answers doesn't count, however many it got."""
    assert knee_of([step(1, 100), step(2, 195), step(4, 210), step(8, 215)]) == (2, True)
    assert knee_of([step(1, 100), step(2, 195), step(4, 380)]) == (4, False)
    assert knee_of([step(1, 100), step(2, 190), step(4, 900, lost=0.2)]) == (2, True)


def test_whatever_is_slower_bounds_how_fast_leases_come_back() -> None:
    """Each takes a check and a write. A fleet too small for a knee says nothing against what hurts nobody."""
    found = Measured(10, (step(2, 190),), 150.0, True)
    assert (found.rate, found.binds) == (150.0, "grants")
    assert found.row(5, 64) == CalibrationRow("hosts", 2, MILLISECOND, 3 * MILLISECOND, 150.0, 5, 150.0, 10)
    small = Measured(10, (step(8, 90),), 150.0, False)
    assert (small.binds, small.row(5, 64).limit) == ("checks", 64)


class Hosts(asyncio.DatagramProtocol):
    """Answers for all hosts at once; of odd ones that it has a newer token."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        found = self.wire.open_to_host(data)
        assert found is not None
        request, check = found
        answer = Answer(check.host, check.token, 6, now(), 5, 0)
        packed = self.wire.pack("from host", request, answer, DATAGRAM_BYTES)
        self.transport.sendto(packed, addr)  # type: ignore[attr-defined]  # a datagram's


def test_measuring_changes_no_host_and_leaves_no_row() -> None:
    """Real sockets, a second in all: hosts' rows stand at the revisions that they had."""

    async def work() -> None:
        wire = Wire(KEY)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: Hosts(Wire(KEY)), ("127.0.0.1", 0))
        port = transport.get_extra_info("sockname")[1]
        store = fleet(20, f"127.0.0.1:{port}")
        before = await store.rows("host")
        known = await calibrating.known(store, 1)
        steps: list[Step] = []
        found = await calibrating.measured(wire, store, known, SECOND, steps.append)
        transport.close()
        assert [each.in_flight for each in steps[:2]] == [1, 2]
        assert found.at.rate > 0
        assert found.grants > 0
        assert (await store.rows("host")).rows == before.rows
        assert not (await store.rows("launch")).rows
        await calibrating.persist(store, found.row(1, 64))
        await calibrating.persist(store, structs.replace(found.row(2, 64), limit=9))
        (kept,) = (await store.rows("calibration")).rows
        assert isinstance(kept.row, CalibrationRow)
        assert kept.row.limit == 9

    run(work)


def test_nobody_is_asked_where_nobody_holds_a_lease() -> None:
    """Of another life of the store, lapsed, suspect: none of them is asked."""

    async def work() -> None:
        store = fleet(0)
        odd = [structs.replace(row, **change) for row, change in zip(rows_of(3), ODD, strict=True)]
        await store.commit(None, [(Change(row, 0),) for row in odd])
        known = await calibrating.known(store, 1)
        assert not known.hosts
        with pytest.raises(Refused, match="no host holds a lease"):
            await calibrating.measured(Wire(KEY), store, known, SECOND, print)

    run(work)


ODD: tuple[dict[str, object], ...] = ({"life": "life-0"}, {"lease": "lapsed"}, {"left": 5})


def test_a_fleet_that_loses_checks_from_the_first_step_on_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 1,808 hosts that lost half of its checks at 1 at once was "too few hosts", and 5 answers a second kept.

    Loss means "too many at once" only where there are many. So nothing comes of it, and it says what was seen.
    """
    said = refusal(monkeypatch, {1: (6, 0.5)})
    assert said.startswith("at 1 at once 50% of the checks were lost, and 6 a second")
    assert "Nothing was kept; look for what else loads" in said
    assert refusal(monkeypatch, {1: (4, 0.5), 2: (8, 0.5)}).startswith("at 2 at once 50%"), "two lost may be chance"
    assert refusal(monkeypatch, {1: (300, 0), 2: (300, 0.3)}).startswith("at 2 at once 30%"), "one step may be lucky"
    assert refusal(monkeypatch, {1: (300, 0), 2: (600, 0), 4: (900, 0.02)}).startswith("at 4 at once 2%")
    # Past a few at once it is a knee as ever, and one late answer among twenty isn't half a fleet's.
    knee: dict[int, tuple[float, float]] = {1: (300, 0), 2: (600, 0), 4: (1200, 0), 8: (900, 0.2)}
    assert refusal(monkeypatch, knee) == ""
    assert refusal(monkeypatch, knee | {1: (20, 0.05)}) == ""


def test_a_fleet_that_begins_to_lose_checks_at_l_itself_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever began meanwhile (a recovery, say), the rate of such a step isn't what the fleet carries."""
    good: dict[int, tuple[float, float]] = {1: (300, 0), 2: (600, 0), 4: (1200, 0), 8: (900, 0)}
    assert refusal(monkeypatch, good, last=(700, 0.04)) == ""
    assert refusal(monkeypatch, good, last=(700, 0.3)).startswith("at 4 at once 30%")


def refusal(
    monkeypatch: pytest.MonkeyPatch,
    steps: dict[int, tuple[float, float]],
    last: tuple[float, float] | None = None,
) -> str:
    """What measuring says that sees these steps (answers a second and share lost, by how many at once); "" if it is
    content. ``last`` is the longer step at L. Twenty hosts' store, and nobody who answers."""
    seen = []

    async def found(self: Asker, in_flight: int, length: Duration) -> Step:
        known = steps.get(in_flight) or (steps[max(steps)][0], 0.0)
        rate, lost = last if last is not None and length > SECOND else known
        seen.append(in_flight)
        return structs.replace(step(in_flight, rate, lost), mean=in_flight * MILLISECOND)

    async def work() -> None:
        store = fleet(20)
        known = await calibrating.known(store, 1)
        await calibrating.measured(Wire(KEY), store, known, 20 * SECOND, lambda _: None)

    monkeypatch.setattr(Asker, "step", found)
    try:
        run(work)
    except Refused as refused:
        return f"{refused.what}; {refused.hint}"
    return ""
