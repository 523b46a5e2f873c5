"""Many writers at one endpoint of a real server: each swap is one generation, generations only rise, refusals count.

Each writer has a port of its own and knows no other. It reads, then asks for a swap to the next generation and an
address of its own; refused, it reads again. In the end the server has seen exactly as many generations as there were
swaps, each by one writer, and every try is accounted for: applied, refused, or left without an answer.

The size by default is what a server does in a few seconds; ``make soak`` takes 100 writers of 100 swaps each.
"""

import asyncio
import random
import sys
from collections.abc import Iterator

import pytest
from dns_scene import DOMAIN, Stage, change, standing
from dns_stages import ServerStage
from route53_stage import Route53Stage, server
from route53_stage import stage as route53_stage
from servers import Served, bind, embedded, knot, powerdns

from fencepost.core.fence import Marker
from fencepost.ports import DnsPort, Unavailable

__all__ = ["route53_stage", "server"]
NAME = f"race.{DOMAIN}"
SERVERS = {"bind": bind, "knot": knot, "powerdns": powerdns, "embedded": embedded}


@pytest.fixture(scope="module", params=list(SERVERS))
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server of each kind for the module."""
    with SERVERS[request.param](tmp_path_factory.mktemp("server")) as running:
        yield running


class Tally:
    """What the writers were told."""

    def __init__(self) -> None:
        self.applied: list[tuple[int, int]] = []  # (generation, writer), in the order in which answers came
        self.refused = 0
        self.unknown: set[int] = set()  # generations whose writing had no answer
        self.unanswered = 0
        self.tries = 0
        self.last = 0


async def writer(port: DnsPort, number: int, swaps: int, tally: Tally, most_s: float) -> None:
    """Swap so many times; a refusal is read again, an unknown outcome looked up."""
    back_off = random.Random(number)
    address = f"10.0.{number >> 8}.{number & 255}"
    done = 0
    while done < swaps:
        await read(port)
        seen = port.live(NAME)
        assert isinstance(seen.marker, Marker)
        wish = change(seen, seen.marker.generation.number + 1, address)
        tally.tries += 1
        try:
            applied = await port.commit((wish,))
        except Unavailable:
            # Whether it applied can't be known by looking: somebody may have written since.
            tally.unanswered += 1
            tally.unknown.add(wish.marker.generation.number)
            continue
        if applied:
            done += 1
            tally.applied.append((wish.marker.generation.number, number))
        else:
            tally.refused += 1
            await asyncio.sleep(back_off.random() * most_s)


async def read(port: DnsPort) -> None:
    """Read, again if need be: BIND answers SERVFAIL to more than ten transfers at once (``transfers-out``)."""
    while True:
        try:
            await port.read()
        except Unavailable:
            await asyncio.sleep(0.02)
        else:
            return


async def watch(stage: Stage, stop: asyncio.Event, seen: list[int]) -> None:
    """Another reader: every generation it finds, in order."""
    port = stage.port()
    while not stop.is_set():
        await read(port)
        marker = port.live(NAME).marker
        if isinstance(marker, Marker) and (not seen or seen[-1] != marker.generation.number):
            seen.append(marker.generation.number)
            assert port.live(NAME).verified(), "never torn"
        await asyncio.sleep(0.01)


def race(stage: Stage, writers: int, swaps: int) -> Tally:
    """Run a race; what was told."""
    tally, seen = Tally(), list[int]()

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        stop = asyncio.Event()
        watching = asyncio.ensure_future(watch(stage, stop, seen))
        await asyncio.gather(
            *(writer(stage.port(), number, swaps, tally, (writers / 100) ** 2) for number in range(writers))
        )
        stop.set()
        await watching
        port = stage.port()
        await read(port)
        marker = port.live(NAME).marker
        assert isinstance(marker, Marker)
        tally.last = marker.generation.number

    stage.run(act)
    total = writers * swaps
    told = sorted(generation for generation, _ in tally.applied)
    assert len(told) == len(set(told)) == total, "each generation is one writer's"
    untold = set(range(2, tally.last + 1)) - set(told)
    assert untold <= tally.unknown, "none is anybody's but a writer's who was left without an answer"
    assert told[-1] <= tally.last
    assert seen == sorted(set(seen)), "a reader never sees one fall"
    assert tally.tries == total + tally.refused + tally.unanswered
    for number in range(writers):
        own = [generation for generation, by in tally.applied if by == number]
        assert own == sorted(own)
        assert len(own) == swaps
    return tally


def test_many_writers(served: Served) -> None:
    """``never_backward`` at the server: 20 writers of 10 swaps all get their turn, once each."""
    tally = race(ServerStage(served), 20, 10)
    assert tally.refused > 0, "they did meet"


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_hundred_writers_of_a_hundred_swaps(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """The same at full size: 10,000 generations."""
    tally = race(ServerStage(served), 100, 100)
    told = f"10,000 swaps, {tally.refused:,} refused, {tally.unanswered:,} left without an answer"
    with capsys.disabled():
        sys.stdout.write(f"\n{served.kind}: {told}\n")


def test_many_writers_on_route_53(route53_stage: Route53Stage) -> None:
    """The same on Route 53's stand-in, by its API."""
    assert race(route53_stage, 8, 5).refused > 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_hundred_writers_of_a_hundred_swaps_on_route_53(
    route53_stage: Route53Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same at full size, 10,000 generations."""
    tally = race(route53_stage, 100, 100)
    told = f"10,000 swaps, {tally.refused:,} refused, {tally.unanswered:,} left without an answer"
    with capsys.disabled():
        sys.stdout.write(f"\nRoute 53's stand-in: {told}\n")
