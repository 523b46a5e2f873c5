"""The fleet over HTTP: launches, once a key, and three ways of saying no."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fleet_asked import Asked, held
from msgspec import structs

from fencepost.core.capacity import attempts, launches
from fencepost.core.capacity.rows import CheckpointRow, DrainRow, HostRow, LaunchRow, ShardRow
from fencepost.core.instant import MINUTE, SECOND
from fencepost.roles.fleet.launching import Launch
from fencepost.roles.fleet.requests import REGISTERED_A_SECOND


def asked(work: Callable[[Asked], Awaitable[None]]) -> None:
    """Do it with an API on rows in memory."""

    async def whole() -> None:
        await work(Asked())

    asyncio.run(asyncio.wait_for(whole(), 30))


async def launched(api: Asked, **ask: Any) -> tuple[int, Any]:
    status, body, _ = await api.call("/v1/fleet/launch", {"pool": "web", "key": "k1", **ask})
    return status, body


def test_a_launch_gives_names_and_rows_that_wait() -> None:
    """The names are the launch's answer, and each row has what its driver will need."""

    async def work(api: Asked) -> None:
        await api.open(held("h1"))
        status, body = await launched(api, count=2, by="ops", reason="more load")
        assert status == 202
        assert body["key"] == "k1"
        rows = await api.instances()
        assert sorted(rows) == sorted(body["instances"])
        for name, row in rows.items():
            assert name.startswith("web-")
            assert (row.state, row.pool, row.port, row.asked_at) == ("waiting", "web", 8080, api.now)
            assert row.command == ("/bin/web", "{address}:{port}")
        assert [row.text for row in api.history] == ["fleet: launch of 2 (key k1); reason: more load"]

    asked(work)


def test_the_same_key_gives_the_same_instances() -> None:
    """Also of another process, and after they were placed: whoever lost the reply asks again."""

    async def work(api: Asked) -> None:
        await api.open(held("h1", room=2))
        _, first = await launched(api, count=2)
        for row in (await api.instances()).values():
            await api.put(attempts.placed(row, held("h1"), "")[1])
        assert await launched(api, count=2) == (202, first)
        assert [row.text for row in api.history] == [
            "fleet: launch of 2 (key k1)",
            "fleet: launch of 2 asked for again (key k1)",
        ]
        api.api = api.fresh()
        assert await launched(api, count=2) == (202, first)
        assert len(await api.instances()) == 2

    asked(work)


def test_another_request_under_the_same_key_is_refused() -> None:
    """A key stands for one launch; with another pool or count it is somebody's mistake."""

    async def work(api: Asked) -> None:
        await api.open(held("h1"))
        await launched(api, count=2)
        status, body = await launched(api, count=3)
        assert (status, body["error"]["kind"]) == (409, "refused")
        assert "stands for another launch" in body["error"]["what"]
        assert len(await api.instances()) == 2

    asked(work)


def test_two_at_once_under_one_key_are_one_launch() -> None:
    """A client that times out and asks again while the first is still under way."""

    async def work(api: Asked) -> None:
        await api.open(held("h1"))
        other = api.fresh()

        async def second() -> LaunchRow:
            return await other.launcher.launch(Launch("web", 2, "k1"))

        (status, body), row = await asyncio.gather(launched(api, count=2), second())
        assert status == 202
        assert body["instances"] == list(row.instances)
        assert len(await api.instances()) == 2

    asked(work)


@pytest.mark.parametrize("count", [1, 250])
def test_a_launch_whose_reply_was_lost_is_found_again(count: int) -> None:
    """It was written, nobody knew (dynamolock #280): the launch's row answers, and what was missing is written then."""

    async def work(api: Asked) -> None:
        await api.open(held("h1", room=500))
        api.store.lose = 1
        status, body, headers = await api.call("/v1/fleet/launch", {"pool": "web", "count": count, "key": "k1"})
        assert (status, body["error"]["kind"], headers["retry-after"]) == (503, "unavailable", "1")
        assert len(await api.instances()) == min(count, launches.AT_ONCE - 1)
        status, body = await launched(api, count=count)
        assert status == 202
        assert sorted(body["instances"]) == sorted(await api.instances())
        assert len(body["instances"]) == count

    asked(work)


def test_an_old_launch_is_not_finished_any_more() -> None:
    """Its instances may have ended and been cleared away since: they must not come back."""

    async def work(api: Asked) -> None:
        await api.open(held("h1", room=500))
        api.store.lose = 1
        await launched(api, count=250)
        api.now += launches.FINISHED_WITHIN + SECOND
        status, body = await launched(api, count=250)
        assert (status, len(body["instances"])) == (202, 250)
        assert len(await api.instances()) == launches.AT_ONCE - 1

    asked(work)


def test_without_room_it_is_insufficient_capacity() -> None:
    """What waits already has its room reserved; only held hosts that take instances count."""

    async def work(api: Asked) -> None:
        await api.open(held("h1", room=3), structs.replace(held("h2"), word="cordon"), HostRow("h3", "a", "x:1", 9))
        assert (await launched(api, count=2))[0] == 202
        status, body, headers = await api.call("/v1/fleet/launch", {"pool": "web", "count": 2})
        assert (status, body["error"]["kind"]) == (503, "insufficient capacity")
        shut = "4 more on hosts that are cordoned or drained"
        assert body["error"]["what"] == f"insufficient capacity: room for 1, and 2 asked for; {shut}"
        assert "fencepost resume HOST    opens one; or add hosts, or terminate" in body["error"]["hint"]
        assert "retry-after" not in headers
        assert len(await api.instances()) == 2
        await api.call("/v1/fleet/resume", {"names": ["h2"]})
        assert (await launched(api, count=2, key="b"))[0] == 202
        await api.call("/v1/fleet/drain", {"names": ["h1"]})
        await api.call("/v1/fleet/gone", {"names": ["h2"]})
        status, body, _ = await api.call("/v1/fleet/launch", {"pool": "web", "count": 1})
        assert "; 3 more on hosts that are cordoned or drained" in body["error"]["what"], "who is gone has none"

    asked(work)


def test_what_is_short_is_said_addresses_or_places() -> None:
    """A host with places and no address to give is no room: more such hosts wouldn't help, more addresses would."""

    async def work(api: Asked) -> None:
        await api.open(
            structs.replace(held("h1", room=3), addresses=("192.0.2.9",)), structs.replace(held("h2"), addresses=())
        )
        status, body, _ = await api.call("/v1/fleet/launch", {"pool": "web", "count": 2})
        assert (status, body["error"]["kind"]) == (503, "insufficient capacity")
        assert body["error"]["what"] == (
            "insufficient capacity: room for 1 (7 places, and addresses for 1: addresses are short), and 2 asked for"
        )
        assert "give agents more addresses (--address)" in body["error"]["hint"]

    asked(work)


def test_without_a_store_it_is_unavailable_and_nothing_else() -> None:
    """Nothing is known, so nothing is said of capacity or limits."""

    async def work(api: Asked) -> None:
        await api.open(held("h1"))
        api.store.away = True
        for path, body in (("launch", {"pool": "web"}), ("terminate", {"names": ["x"]}), ("drain", {"names": ["h1"]})):
            status, said, headers = await api.call(f"/v1/fleet/{path}", body)
            assert (status, said["error"]["kind"], headers["retry-after"]) == (503, "unavailable", "1")
        assert (await api.call("/v1/fleet/hosts"))[0] == 503

    asked(work)


def test_before_every_shard_is_open_it_is_unavailable() -> None:
    """After a restore nobody knows yet what runs where: that isn't a lack of room."""

    async def work(api: Asked) -> None:
        await api.put(ShardRow(1, 1, "m1", 1, 1, "life-0"), held("h1"))
        status, body = await launched(api)
        assert (status, body["error"]["kind"]) == (503, "unavailable")
        assert "not every host has been heard of yet (shard 1)" in body["error"]["what"]
        assert body["error"]["what"].endswith("it waits for its manager")
        said = CheckpointRow("1", "m1", time.time_ns(), counts={"hosts": 1, "unheard": 0, "waits_s": 27})
        await api.put(said)
        _, body = await launched(api)
        assert re.search(r"it waits for 2[567] s for hosts that nobody remembers$", body["error"]["what"])
        assert re.match(r"ask again in 2[567] s;  fencepost status", body["error"]["hint"])
        await api.put(structs.replace(said, counts={"hosts": 1, "missing": 2, "waits_s": 27}))
        _, body = await launched(api)
        assert body["error"]["what"].endswith("it waits for 2 of the hosts that [fleet] names")
        assert body["error"]["hint"].startswith("ask again once that is over;  fencepost status")

    asked(work)


def test_too_many_waiting_is_request_limit_exceeded_with_a_time() -> None:
    """Backlog by rate, and a part by chance, in whole seconds of at least one."""

    async def work(api: Asked) -> None:
        await api.open(held("h1", room=10_000))
        for n in range(3):
            status, body = await launched(api, count=1000, key=f"k{n}")
            if status != 202:
                break
        assert (status, body["error"]["kind"]) == (429, "request limit exceeded")
        status, body, headers = await api.call("/v1/fleet/launch", {"pool": "web", "count": 1000, "key": "k2"})
        after = int(headers["retry-after"])
        assert body["error"]["retry_after_s"] == after >= 10
        assert body["error"]["what"] == "request limit exceeded: 1000 launches wait already"
        api.now += after * SECOND
        assert (await launched(api, count=1000, key="k2"))[0] == 202

    asked(work)


def test_a_launch_turned_away_while_none_waits_says_why() -> None:
    """ "0 launches wait already" was the reason given, right after a thousand had been placed."""

    async def work(api: Asked) -> None:
        await api.open(held("h1", room=10_000))
        assert (await launched(api, count=1000, key="k0"))[0] == 202
        rows = [structs.replace(row, state="placed", attempt=1, host="h1") for row in (await api.instances()).values()]
        await api.put(*rows)
        status, body = await launched(api, count=1000, key="k1")
        assert (status, body["error"]["kind"]) == (429, "request limit exceeded")
        reason = "more was launched a moment ago than is placed in so short a time"
        assert body["error"]["what"] == f"request limit exceeded: {reason}"
        await api.put(DrainRow("network", 640, 640, 10.0))
        _, body = await launched(api, count=1000, key="k2")
        assert body["error"]["what"] == "request limit exceeded: 640 instances wait for their network state already"

    asked(work)


def test_those_turned_away_at_once_are_told_different_times() -> None:
    """A thousand who were told at once would return at once (consul #9469)."""

    async def work(api: Asked) -> None:
        await api.open(held("h1", room=10_000))
        await launched(api, count=1000, key="first")
        times = []
        for n in range(40):
            _, _, headers = await api.call("/v1/fleet/launch", {"pool": "web", "count": 900, "key": f"c{n}"})
            times.append(int(headers["retry-after"]))
        assert min(times) >= 9
        assert len(set(times)) >= 8

    asked(work)


def test_hosts_turned_away_at_once_are_told_different_times() -> None:
    """Hosts that all register after an outage would come back together too (consul #9469): what waits, and as much."""

    async def work(api: Asked) -> None:
        host = {"host": "h1", "zone": "a", "at": "192.0.2.1:7700", "room": 2, "addresses": []}
        api.api.registering, times = 20 * REGISTERED_A_SECOND, []
        for _ in range(60):
            status, body, headers = await api.call("/v1/fleet/hosts", {"hosts": [host]})
            assert (status, body["error"]["kind"]) == (429, "request limit exceeded")
            times.append(int(headers["retry-after"]))
        assert all(20 <= each <= 40 for each in times)
        assert len(set(times)) >= 8
        assert min(times) < 25
        assert max(times) > 35
        api.api.registering = 0
        assert (await api.call("/v1/fleet/hosts", {"hosts": [host]}))[0] == 200

    asked(work)


def test_a_stage_behind_that_is_full_slows_launches() -> None:
    """Leases that came back let launches in, and those drowned the network states (October 2025, 05:28 to 10:36)."""

    async def work(api: Asked) -> None:
        await api.open(held("h1", room=10_000))
        assert (await launched(api, count=1000, key="k0"))[0] == 202
        await api.put(DrainRow("network", 640, 640, 10.0))
        api.now += MINUTE
        status, body = await launched(api, count=10, key="k1")
        assert (status, body["error"]["kind"]) == (429, "request limit exceeded")
        assert body["error"]["retry_after_s"] >= 64
        await api.put(DrainRow("network", 320, 640, 10.0))
        await launched(api, count=10, key="k1")
        api.now += 3 * SECOND
        assert (await launched(api, count=10, key="k1"))[0] == 202
        assert (await launched(api, count=10, key="k2"))[0] == 429

    asked(work)


@pytest.mark.parametrize(
    ("ask", "status", "what"),
    [
        ({"pool": "wbe"}, 404, "there is no pool 'wbe'"),
        ({"pool": "fixed"}, 422, "pool fixed launches nothing"),
        ({"count": 0}, 422, "0 instances at once; 1 to 1000"),
        ({"count": 1001}, 422, "1001 instances at once; 1 to 1000"),
        ({"key": "k" * 129}, 422, "a key has at most 128 plain letters"),
        ({"key": "a\nb"}, 422, "a key has at most 128 plain letters"),
        ({"cuont": 2}, 422, "not what is asked for here"),
    ],
)
def test_what_cant_be_right_is_refused(ask: dict[str, Any], status: int, what: str) -> None:
    """Each with what to send instead."""

    async def work(api: Asked) -> None:
        await api.open(held("h1"))
        found, body = await launched(api, **ask)
        assert (found, body["error"]["kind"]) == (status, "refused")
        assert what in body["error"]["what"]
        assert body["error"]["hint"]
        assert not await api.instances()

    asked(work)


@pytest.mark.parametrize("field", ["by", "reason"])
@pytest.mark.parametrize("path", ["launch", "terminate", "drain", "cordon", "gone", "resume", "forget"])
def test_who_and_why_are_plain_text(path: str, field: str) -> None:
    """It will stand in a line of the history on somebody's terminal, as what the command line takes."""

    async def work(api: Asked) -> None:
        await api.open(held("h1"))
        ask = {"pool": "web"} if path == "launch" else {"names": ["h1"]}
        for text, what in (("a\u0000b", "has a control character"), ("x" * 501, "501 characters; at most 500")):
            status, body, _ = await api.call(f"/v1/fleet/{path}", {**ask, field: text})
            assert (status, body["error"]["where"]) == (422, field)
            assert body["error"]["what"].startswith(what)
        assert not api.history

    asked(work)


def test_more_than_an_endpoint_can_hold_is_refused_before_any_write() -> None:
    """Else the planner could write that endpoint no more, not even to take a dead address out."""

    async def work(api: Asked) -> None:
        await api.open(held("h1", room=10_000))
        assert (await launched(api, pool="front", count=1000, key="k0"))[0] == 202
        for row in (await api.instances()).values():
            await api.put(attempts.placed(row, held("h1"), "")[1])
        api.now += MINUTE
        status, body = await launched(api, pool="front", count=500, key="k1")
        assert (status, body["error"]["kind"]) == (422, "refused")
        assert body["error"]["what"].startswith("endpoint www.example.test is too big: changing its 1500 addresses")
        assert body["error"]["hint"] == "1000 instances of pool front are there"
        status, body = await launched(api, pool="front", count=300, key="k1")
        assert status == 202

    asked(work)


def test_on_a_real_store_a_launch_is_found_again(tmp_path: Path) -> None:
    """The same on SQLite, over a lost reply and another process."""
    from fencepost.adapters.store_sqlite.fleet import SqliteFleetStore

    async def work() -> None:
        store = SqliteFleetStore.open(tmp_path / "region.db", create=True)
        try:
            api = Asked(store)
            life = (await store.rows("host")).life
            await api.open(held("h1", room=500, life=life))
            api.store.lose = 1
            assert (await launched(api, count=200))[0] == 503
            api.api = api.fresh()
            status, body = await launched(api, count=200)
            assert status == 202
            assert sorted(body["instances"]) == sorted(await api.instances())
            assert (await launched(api, count=201))[0] == 409
        finally:
            await store.close()

    asyncio.run(asyncio.wait_for(work(), 60))
