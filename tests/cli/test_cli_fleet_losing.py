"""What ``fencepost fleet terminate`` says callers lose, before it asks."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from fleet_running import FleetRegion

from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.cli import flags
from fencepost.cli.fleet import losing
from fencepost.cli.scopes import Effect
from fencepost.cli.terminal import Declined
from fencepost.core.capacity import attempts
from fencepost.core.capacity.rows import InstanceRow
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.core.zone import Live
from fencepost.roles import configuration
from fencepost.roles.configuration import Loaded


@pytest.fixture
def region(tmp_path: Path) -> FleetRegion:
    return FleetRegion(tmp_path)


def serve(region: FleetRegion, *addresses: str) -> None:
    """A region that has run, whose row has these in service: the first is web-aaaa2222's, the others are others'."""
    there, row = attempts.placed(InstanceRow("web-aaaa2222", "web", port=8080), region.held("h1"), addresses[0])
    region.put(there, row, InstanceRow("web-bbbb3333", "web", attempt=1))
    names = ["web-aaaa2222.1", *(f"web-other{number}.1" for number in range(2, len(addresses) + 1))]
    members = tuple(Member(a, "a", State.IN, source=n, healthy=True) for a, n in zip(addresses, names, strict=True))

    async def put() -> None:
        store = SqliteStore.open(region.region.store.path)
        await store.put_config(configuration.encode(Loaded(region.region, 1, 0)), b"")
        await store.put_membership("web", 0, msgspec.json.encode(Membership("web", members=members)))
        await store.close()

    asyncio.run(put())


def test_terminate_says_what_callers_lose(region: FleetRegion) -> None:
    """No limit holds it back, so who does it sees the numbers first, in a drain's manner (docs/operating/fleet.md)."""
    serve(region, "192.0.2.10", "192.0.2.11", "192.0.2.12")
    done = region.call("fleet", "terminate", "web-aaaa2222", "web-bbbb3333")
    assert done.returncode == 2
    assert "pool web: 192.0.2.10 (a) goes out of service; 2 of 3 stay in (min_in 2)\n" in done.stderr
    assert "what callers get now isn't known" in done.stderr, "no DNS server runs in this test"
    assert region.instances()["web-aaaa2222"].state == "placed"
    code, found = region.json("fleet", "terminate", "web-aaaa2222", "--yes")
    assert code == 0
    numbers = {"in": 2, "targets": 3, "min_in": 2, "under_min_in": False}
    assert found["pools"] == [{"pool": "web", "leaving": ["192.0.2.10"], **numbers}]


def test_terminate_says_what_limit_it_passes_and_what_to_launch_first(region: FleetRegion) -> None:
    """The last of a family stays answered though nothing runs there; seen by hand: all six of a sample."""
    serve(region, "192.0.2.10")
    done = region.call("fleet", "terminate", "web-aaaa2222")
    assert "0 of 1 stay in (min_in 1)" in done.stderr
    assert "of 192.0.2.10 the last stays answered though nothing runs there" in done.stderr
    assert "that is under min_in, and no limit holds a terminate back" in done.stderr
    assert "fencepost fleet launch web --count 1 --wait" in done.stderr
    assert "add --confirm web" in done.stderr
    refused = region.call("fleet", "terminate", "web-aaaa2222", "--yes")
    assert (refused.returncode, region.instances()["web-aaaa2222"].state) == (2, "placed"), (
        "a yes isn't enough for that"
    )
    region.call("fleet", "terminate", "web-aaaa2222", "--confirm", "web")
    done = region.call("fleet", "terminate", "web-aaaa2222", "--yes")
    assert "out of service" not in done.stderr, "it ends already: asked twice, nobody more is lost"


def test_at_a_terminal_the_pool_that_goes_under_min_in_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a drain (docs/operating/commands.md: past `min_in` it takes the pool's name); else one y/N, or none."""
    asked: list[str] = []

    def said(question: str) -> str:
        asked.append(question)
        return "web"

    monkeypatch.setattr(flags, "asking", lambda: True)
    monkeypatch.setattr(flags, "ask", said)
    under = Effect("web", (), 1, 3, 2, under=True, empties=False)
    losing.agreed([under], "End it?", yes=False, said=None)
    losing.agreed([under], "End it?", yes=True, said=None)
    assert asked == ["Type web to go on: "] * 2
    losing.agreed([under], "End it?", yes=False, said="web")
    with pytest.raises(Declined):
        losing.agreed([under._replace(under=False)], "End it?", yes=False, said=None)
    assert asked[2:] == ["End it? [y/N] "]


@pytest.mark.parametrize(
    ("now", "gone", "apart", "said"),
    [
        (("192.0.2.1", "192.0.2.2"), {"192.0.2.1"}, "", ": 1 of 2 addresses stays answered"),
        (("192.0.2.1",), {"192.0.2.1"}, "", ": 0 of 1 address stay answered, and 1 where nothing will run"),
        (("192.0.2.1",), {"192.0.2.1"}, "is held", " is held: goes on answering 1 address where nothing will run"),
        (("192.0.2.1",), {"192.0.2.9"}, "is held", ""),
    ],
)
def test_each_endpoint_says_what_it_answers_then(now: tuple[str, ...], gone: set[str], apart: str, said: str) -> None:
    """A hold answers on what it holds, and the last of a family stays (never empty)."""
    assert losing.answer(Live("web.example.test", a=now), gone, apart) == said
