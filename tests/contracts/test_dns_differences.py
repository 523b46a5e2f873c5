"""What happened between two serials, as a primary tells it: BIND, Knot and our own server (RFC 1995)."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from dns_scene import DOMAIN, OWNER
from dns_stages import ServerStage
from msgspec import structs
from servers import Served, bind, embedded, knot

from fencepost.adapters.dns_differences import Differences, DnsWitness
from fencepost.adapters.dns_session import NotOffered
from fencepost.core.differences import Records, states
from fencepost.core.dns_numbers import SOA, A
from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.record_set import Content, content
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured

# BIND gives the whole domain where that is shorter than the differences, which in so small a one it soon is.
SERVERS: dict[str, Callable[[Path], AbstractContextManager[Served]]] = {
    "bind": partial(bind, options="max-ixfr-ratio unlimited;"),
    "knot": knot,
    "embedded": embedded,
}
API, WWW = f"api.{DOMAIN}", f"*.www.{DOMAIN}"
OLD = content(("192.0.2.1", "192.0.2.2", "2001:db8::1"), 5)
NEW = content(("192.0.2.2", "192.0.2.3", "2001:db8::1", "::ffff:192.0.2.9"), 60)
# BIND takes at most 100 addresses at a name (max-records-per-type).
REPAIRED = content({f"192.0.2.{n}": n for n in range(1, 61)}, 5)


@pytest.fixture(scope="module", params=SERVERS)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerStage]:
    """Each server in turn, for the module."""
    with SERVERS[request.param](tmp_path_factory.mktemp(request.param)) as served:
        yield ServerStage(served)


def enacted(name: str, number: int, value: Content, hold: Hold | None = None) -> Live:
    marker = Marker.of(OWNER, "beef", Generation(0, number), value, hold, 1)
    return Live(name, marker, value.a, value.aaaa, value.ttl)


async def story(stage: ServerStage, name: str) -> list[Live]:
    """What is done to an endpoint, each in a transaction of its own; what stood after each."""
    first = enacted(name, 1, OLD)
    done = [
        first,
        enacted(name, 2, NEW),
        structs.replace(enacted(name, 2, NEW), marker=None),
        Live(name),
        first,
        structs.replace(first, a=("203.0.113.9",)),
        enacted(name, 3, REPAIRED, Hold("repair", 9)),
    ]
    for live in done:
        await stage.hand(live)
    return done


@pytest.mark.parametrize("name", [API, WWW])
def test_every_transaction_is_told_in_order(stage: ServerStage, name: str) -> None:
    """Writes, a TTL that changed, a marker and all records deleted by hand, the same set once more, large markers."""

    async def telling() -> None:
        port = stage.port()
        await port.read()
        since, stood = port.serial, port.live(name)
        done = await story(stage, name)
        found = await DnsWitness(stage.settings()).differences(since, frozenset((name, f"other.{DOMAIN}")))
        await port.close()
        assert found is not None
        assert found[f"other.{DOMAIN}"] == ()
        assert all(each.alone for each in found[name])
        placed = states(Records.of(stood), found[name])
        assert placed is not None
        assert [live.live(name) for live in placed[1]] == [stood, *done]

    asyncio.run(telling())


def test_a_serial_that_the_journal_does_not_reach_is_no_story(stage: ServerStage) -> None:
    """The server offers the whole domain instead, or a serial that lies behind: it can't be told."""

    async def telling() -> None:
        port = stage.port()
        await port.read()
        serial = port.serial
        await port.close()
        witness = DnsWitness(stage.settings())
        assert await witness.differences((serial - 100_000) % 2**32, frozenset((API,))) is None
        assert await witness.differences(serial + 1000, frozenset((API,))) is None
        assert await witness.differences(serial, frozenset((API,))) == {API: ()}

    asyncio.run(telling())


def test_a_key_that_the_server_does_not_know_is_said(stage: ServerStage) -> None:
    """The observer then counts as unsure; `doctor` and the enactors say what is wrong."""
    settings = structs.replace(stage.settings(), key_name="nobody")
    with pytest.raises(Misconfigured):
        asyncio.run(DnsWitness(settings).differences(1, frozenset((API,))))


def soa(serial: int) -> tuple[bytes, bytes]:
    """A SOA record: its owner, its data with empty names."""
    return b"\x07example\x04test\0", b"\0\0" + serial.to_bytes(4, "big") + bytes(16)


def test_a_whole_domain_in_place_of_differences_is_not_read_to_its_end() -> None:
    """RFC 1995 section 4: a second record that is no SOA. 300,000 records more say nothing about what happened."""
    owner, data = soa(9)
    message = data + bytes((192, 0, 2, 1))
    taken = Differences(DOMAIN, 7, frozenset((API,)))
    with pytest.raises(NotOffered):
        taken.feed(message, [(owner, SOA, 0, 0, 22), (owner, A, 5, 22, 26)], {})
