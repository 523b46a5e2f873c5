"""Several UPDATEs under way at once, on each server (RFC 7766 section 6.2.1.1): each stands or falls by itself."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from dns_scene import DOMAIN, change, standing
from dns_stages import ServerStage
from msgspec.structs import replace
from servers import Served, bind, embedded, knot, powerdns

SERVERS = {"bind": bind, "knot": knot, "powerdns": powerdns, "embedded": embedded}


@pytest.fixture(scope="module", params=SERVERS)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerStage]:
    """Each server."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    server: AbstractContextManager[Served] = SERVERS[request.param](folder)
    with server as served:
        yield ServerStage(served)


def test_a_stale_one_among_several(stage: ServerStage) -> None:
    """Of five transactions at once the one that another writer came before is refused, and the others apply whole."""
    names = [f"p{n}.{DOMAIN}" for n in range(10)]

    async def act() -> None:
        await stage.hand(*(standing(name, 1, "192.0.2.1") for name in names))
        port, other = stage.port(), stage.port()
        await port.read()
        await other.read()
        assert port.read_back() is None, "nothing has been committed yet"
        assert await other.commit((change(other.live(names[5]), 2, "192.0.2.9"),))
        batches = [
            tuple(change(port.live(name), 3, "192.0.2.3") for name in names[at : at + 2]) for at in (0, 2, 4, 6, 8)
        ]
        assert await port.commit_each(batches) == [True, True, False, True, True]
        changed = port.read_back()
        assert changed is not None
        assert set(changed) == {*names} - {names[4]}, "others' writes too, as a read would have named them"
        assert port.live(names[5]) == standing(names[5], 2, "192.0.2.9")
        assert set(await port.read()) == set()
        for name in names:
            await other.read()
            expected = {names[4]: standing(names[4], 1, "192.0.2.1"), names[5]: standing(names[5], 2, "192.0.2.9")}
            assert other.live(name) == expected.get(name, standing(name, 3, "192.0.2.3"))

    stage.run(act)


def test_one_that_may_not_be_sent(stage: ServerStage) -> None:
    """A transaction that would empty an endpoint isn't sent; those beside it are."""

    async def act() -> None:
        name, emptied = f"q0.{DOMAIN}", f"q1.{DOMAIN}"
        await stage.hand(standing(name, 1, "192.0.2.1"), standing(emptied, 1, "192.0.2.1"))
        port = stage.port()
        await port.read()
        empties = replace(change(port.live(emptied), 2), families="4")
        first, second = await port.commit_each([(empties,), (change(port.live(name), 2, "192.0.2.2"),)])
        assert "would be left without an address" in str(first)
        assert second is True

    stage.run(act)
