"""The fleet over HTTP: hosts that make themselves known, words about them, what is ended, and what is shown."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fleet_asked import Asked, held
from free_ports import free_port
from msgspec import structs

from fencepost.core.capacity import attempts
from fencepost.core.capacity.clearing import ENDED_KEPT, LAUNCH_KEPT
from fencepost.core.capacity.rows import CheckpointRow, HostRow, InstanceRow, LaunchRow, NetworkRow
from fencepost.core.instant import SECOND
from fencepost.ports import Unavailable
from fencepost.roles.fleet import changes


def asked(work: Callable[[Asked], Awaitable[None]]) -> None:
    """Do it with an API on rows in memory."""

    async def whole() -> None:
        await work(Asked())

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_changes_take_the_token_and_looking_doesnt() -> None:
    """As everywhere in the API; making hosts known is a change."""

    async def work(api: Asked) -> None:
        await api.open(held("h1"))
        for path in ("launch", "terminate", "drain", "cordon", "gone", "resume", "hosts"):
            status, _, _ = await api.call(f"/v1/fleet/{path}", {"names": ["h1"]}, token="guess")
            assert status == 401
        assert (await api.call("/v1/fleet/hosts", token=""))[0] == 200

    asked(work)


def test_terminate_is_told_once_and_stays() -> None:
    """What has ended stays so; an unknown name changes nothing of the rest."""

    async def work(api: Asked) -> None:
        await api.put(InstanceRow("web-1"), InstanceRow("web-2", state="ended"))
        status, body, _ = await api.call("/v1/fleet/terminate", {"names": ["web-1", "web-2"]})
        assert (status, body) == (202, {"instances": {"web-1": "ending", "web-2": "ended"}})
        status, body, _ = await api.call("/v1/fleet/terminate", {"names": ["web-1", "web-3"]})
        assert (status, body["error"]["what"]) == (404, "there is no instance web-3")
        assert body["error"]["hint"] == "did you mean web-1?"

    asked(work)


def test_words_about_hosts_are_placed_and_taken_back() -> None:
    """Drain, cordon, gone; resume ends any of them. The lease stays as it is."""

    async def work(api: Asked) -> None:
        await api.open(held("h1"), held("h2"))
        for word in ("drain", "cordon", "gone"):
            status, body, _ = await api.call(f"/v1/fleet/{word}", {"names": ["h1", "h2"], "by": "ops"})
            assert (status, body) == (202, {"hosts": {"h1": word, "h2": word}})
        status, body, _ = await api.call("/v1/fleet/resume", {"names": ["h1"]})
        assert body == {"hosts": {"h1": ""}}
        assert (await api.store.prove(1, [("host", "h1")])).rows[0].row == held("h1")  # type: ignore[union-attr]

    asked(work)


HOST = {"host": "h1", "zone": "a", "at": "192.0.2.1:7700", "room": 2, "addresses": ["192.0.2.10", "192.0.2.11"]}


def test_hosts_make_themselves_known_and_keep_their_leases() -> None:
    """A host that registers again, from elsewhere or with more room, is the same host with the same lease."""

    async def work(api: Asked) -> None:
        status, body, _ = await api.call("/v1/fleet/hosts", {"hosts": [HOST]})
        assert (status, body) == (200, {"renew_s": 10.0, "shards": 1, "changed": 1})
        row = (await api.store.prove(1, [("host", "h1")])).rows[0]
        assert row is not None
        assert row.row == HostRow("h1", "a", "192.0.2.1:7700", 2, ("192.0.2.10", "192.0.2.11"), since=api.now)
        leased = structs.replace(held("h1"), word="cordon")
        await api.put(leased)
        moved = {**HOST, "incarnation": leased.incarnation}
        assert (await api.call("/v1/fleet/hosts", {"hosts": [moved]}))[1]["changed"] == 1
        assert (await api.call("/v1/fleet/hosts", {"hosts": [HOST]}))[1]["changed"] == 0
        row = (await api.store.prove(1, [("host", "h1")])).rows[0]
        assert row is not None
        given = ("192.0.2.10", "192.0.2.11")
        wanted = structs.replace(leased, at=HOST["at"], room=2, addresses=given, since=api.now)
        assert row.row == wanted

    asked(work)


def test_a_second_agent_under_a_live_hosts_name_is_refused() -> None:
    """Its manager would ask the second one, which has no memory, take what runs on the first for lost, and start it
    again beside it."""

    async def work(api: Asked) -> None:
        row = structs.replace(held("h1"), since=api.now - 60 * SECOND)
        await api.open(row)
        noted = CheckpointRow("1/000000", "m1", api.now - 2 * SECOND, ("h1",), (1,))
        await api.put(noted)
        for other in (HOST, {**HOST, "incarnation": 77}):
            status, body, headers = await api.call("/v1/fleet/hosts", {"hosts": [other]})
            assert (status, headers["retry-after"]) == (409, "30")
            what = body["error"]["what"]
            assert what.startswith("h1 is the name of the host at 127.0.0.1:9 since ")
            assert what.endswith(", which answers")
            assert "--host" in body["error"]["hint"]
            assert "silent for a lease (30 s)" in body["error"]["hint"]
        assert (await api.store.prove(1, [("host", "h1")])).rows[0].row == row  # type: ignore[union-attr]
        # A note is written each ten seconds or so: that it is old says nothing of a host that wasn't silent in it.
        await api.put(structs.replace(noted, ages=(29,)))
        assert (await api.call("/v1/fleet/hosts", {"hosts": [HOST]}))[0] == 409
        await api.put(structs.replace(noted, ages=(31,), silent=(0,)))
        assert (await api.call("/v1/fleet/hosts", {"hosts": [HOST]}))[0] == 200

    asked(work)


def test_a_copied_memory_is_no_host_that_moved_while_somebody_listens_where_it_was() -> None:
    """A folder copied, and both agents up: each was asked in its turn, and started the same attempts."""

    async def work(api: Asked) -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", free_port())
        place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        row = structs.replace(held("h1"), at=place)
        await api.open(row)
        noted = CheckpointRow("1/000000", "m1", api.now - 2 * SECOND, ("h1",), (1,))
        await api.put(noted)
        copy = {**HOST, "incarnation": row.incarnation}
        status, body, headers = await api.call("/v1/fleet/hosts", {"hosts": [copy]})
        assert (status, headers["retry-after"]) == (409, "30")
        assert body["error"]["what"] == (
            f"h1 is the name of the host at {place}, which answers; its memory was copied, and is here a second time"
        )
        assert "remove its folder (--state)" in body["error"]["hint"]
        assert f"end the agent at {place}" in body["error"]["hint"]
        assert (await api.store.prove(1, [("host", "h1")])).rows[0].row == row  # type: ignore[union-attr]
        same = {**copy, "at": place}
        assert (await api.call("/v1/fleet/hosts", {"hosts": [same]}))[0] == 200
        # What listens there may be another program by now, or be stuck: who is silent for a lease has lost the name.
        await api.put(structs.replace(noted, ages=(31,), silent=(0,)))
        assert (await api.call("/v1/fleet/hosts", {"hosts": [copy]}))[0] == 200
        await api.put(structs.replace(row, at=place), noted)
        server.close()
        await server.wait_closed()
        assert (await api.call("/v1/fleet/hosts", {"hosts": [copy]}))[0] == 200, "it has moved"

    asked(work)


@pytest.mark.parametrize(
    ("addresses", "why"),
    [
        (("192.0.2.8",), ""),
        (("192.0.2.9",), "each free address of a host with room is in use at another host, which gives it too"),
        ((), "no host with room has a free address"),
        (None, "no host has room"),
    ],
)
def test_what_waits_says_what_is_short(addresses: tuple[str, ...] | None, why: str) -> None:
    """Places, addresses, or addresses that two hosts say they can give: each is mended elsewhere."""

    async def work(api: Asked) -> None:
        there, row = attempts.placed(InstanceRow("web-1", "web"), held("h1", room=1), "192.0.2.9")
        other = structs.replace(held("h2", room=0 if addresses is None else 2), addresses=addresses or ())
        await api.open(there, other)
        await api.put(row, InstanceRow("web-2", "web"))
        found = (await api.call("/v1/fleet/instances?state=waiting"))[1]["instances"]
        assert [each["why"] for each in found] == [why]

    asked(work)


def test_a_forgotten_host_is_known_again_when_its_agent_registers() -> None:
    """It is refused while its lease is held, or what it may run isn't known; what registers again begins anew."""

    async def work(api: Asked) -> None:
        there, _ = attempts.placed(InstanceRow("web-1", "web"), held("h2", life="life-0"), "192.0.2.9")
        lapsed = structs.replace(held("h1"), lease="lapsed", word="drain")
        await api.open(lapsed, there, held("h3"))
        for name, why in (("h2", "may run 1 instance: its lease is unknown"), ("h3", "holds its lease")):
            status, body, _ = await api.call("/v1/fleet/forget", {"names": [name]})
            assert (status, body["error"]["what"]) == (422, f"{name} {why}")
        assert (await api.call("/v1/fleet/forget", {"names": ["h4"]}))[0] == 404
        assert (await api.call("/v1/fleet/forget", {"names": ["h1"]}))[:2] == (202, {"hosts": ["h1"]})
        assert [each["host"] for each in (await api.call("/v1/fleet/hosts"))[1]["hosts"]] == ["h2", "h3"]
        assert (await api.call("/v1/fleet/hosts", {"hosts": [HOST]}))[1]["changed"] == 1
        found = (await api.call("/v1/fleet/hosts"))[1]["hosts"][0]
        assert (found["host"], found["word"], found["lease"]) == ("h1", "", "lapsed")

    asked(work)


@pytest.mark.parametrize("fields", [{"lease": "lapsed"}, {"lease": "none"}, {"life": "life-0"}])
def test_a_host_whose_lease_isnt_held_may_come_back_from_elsewhere_with_nothing(fields: dict[str, Any]) -> None:
    """Its machine was replaced: what ran there is over, or nothing is known of it."""

    async def work(api: Asked) -> None:
        await api.open(structs.replace(held("h1"), **fields))
        assert (await api.call("/v1/fleet/hosts", {"hosts": [HOST]}))[1]["changed"] == 1

    asked(work)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"host": "h 1"}, "has a name that can't be used"),
        ({"zone": "d"}, "is in zone 'd', which is none of this region's"),
        ({"at": "h1.example.com:7700"}, "is at 'h1.example.com:7700'"),
        ({"at": "192.0.2.1"}, "is at '192.0.2.1'"),
        ({"at": "192.0.2.1:70000"}, "is at '192.0.2.1:70000'"),
        ({"room": -1}, "has room for -1"),
        ({"addresses": ["192.0.2.300"]}, "can't be: '192.0.2.300'"),
        ({"addresses": ["192.0.2.3", "192.0.2.3"]}, "192.0.2.3 is given twice"),
        ({"addresses": ["2001:db8::1", "2001:DB8:0::1"]}, "2001:db8::1 is given twice"),
        ({"addresses": ["0.0.0.0"]}, "'0.0.0.0' is no one's address"),
        ({"addresses": ["224.0.0.1"]}, "'224.0.0.1' is multicast"),
        ({"addresses": ["255.255.255.255"]}, "is multicast, broadcast or reserved"),
        ({"addresses": ["::ffff:10.0.0.1"]}, "is IPv4 written as IPv6; write 10.0.0.1"),
        ({"addresses": ["fe80::1%eth0"]}, "names an interface"),
    ],
)
def test_a_host_that_cant_be_one_is_refused(fields: dict[str, Any], what: str) -> None:
    """And with it the whole request, so that its agent says so."""

    async def work(api: Asked) -> None:
        status, body, _ = await api.call("/v1/fleet/hosts", {"hosts": [{**HOST, "host": "h0"}, {**HOST, **fields}]})
        assert status == 422
        assert what in body["error"]["what"]
        assert (await api.store.rows("host")).rows == ()

    asked(work)


def test_addresses_are_kept_in_their_one_spelling() -> None:
    """RFC 5952 section 4: one address written in two ways is one, here as in a region's file."""

    async def work(api: Asked) -> None:
        await api.open()
        status, _, _ = await api.call("/v1/fleet/hosts", {"hosts": [{**HOST, "addresses": ["2001:DB8:0::1"]}]})
        assert status == 200
        rows = [at.row for at in (await api.store.store.rows("host")).rows]
        assert [row.addresses for row in rows if isinstance(row, HostRow)] == [("2001:db8::1",)]

    asked(work)


def test_a_host_that_isnt_named_is_refused_where_all_are() -> None:
    """Somebody who names all hosts waits for no others after a lost store, so no others may have anything to tell."""

    async def work(api: Asked) -> None:
        region = api.region
        assert region.fleet is not None
        api.region = structs.replace(region, fleet=structs.replace(region.fleet, hosts=("h1", "h2")))
        assert (await api.call("/v1/fleet/hosts", {"hosts": [HOST]}))[0] == 200
        status, body, _ = await api.call("/v1/fleet/hosts", {"hosts": [{**HOST, "host": "h3"}]})
        assert status == 422
        assert "isn't one of the hosts that [fleet] names" in body["error"]["what"]
        assert "reload" in body["error"]["hint"]

    asked(work)


def test_requests_are_bounded() -> None:
    """A thousand at once, half a megabyte of body; and so many hosts in the midst of being made known."""

    async def work(api: Asked) -> None:
        hosts = [{**HOST, "host": f"h{n}", "addresses": []} for n in range(1001)]
        assert (await api.call("/v1/fleet/hosts", {"hosts": hosts[:1000]}))[0] == 200
        assert (await api.call("/v1/fleet/hosts", {"hosts": hosts}))[0] == 422
        assert (await api.call("/v1/fleet/hosts", {"hosts": []}))[0] == 422
        assert (await api.call("/v1/fleet/launch", raw=b" " * 600_000))[0] == 422
        assert (await api.call("/v1/fleet/launch", raw=b"{"))[0] == 422
        api.api.registering = 4000
        status, body, headers = await api.call("/v1/fleet/hosts", {"hosts": hosts[:1]})
        assert (status, body["error"]["kind"]) == (429, "request limit exceeded")
        assert int(headers["retry-after"]) >= 2

    asked(work)


def test_hosts_and_instances_are_shown_in_words() -> None:
    """Leases held, suspect, lapsed or unknown; instances waiting, pending, ready, ending, ended, each with why."""

    async def work(api: Asked) -> None:
        row, other = InstanceRow("web-1", "web", address="192.0.2.9"), InstanceRow("web-2", "web")
        there, row = attempts.placed(row, held("h1"), "192.0.2.9")
        there, other = attempts.placed(other, there, "")
        state = NetworkRow("web-1.1", "h1", 3, "d", 1, "{}", (3, "d", 6, "life-1"))
        await api.open(there, structs.replace(held("h2"), left=5), structs.replace(held("h3"), lease="lapsed"))
        await api.put(held("h4", life="life-0"), row, other, InstanceRow("web-3", "web"), state)
        await api.put(CheckpointRow("1", "m1", api.now - 2 * SECOND, ("h1", "h2"), (1, 40)))
        hosts = (await api.call("/v1/fleet/hosts"))[1]["hosts"]
        seen = [(each["host"], each["lease"], each["used"], each["seen_s"]) for each in hosts]
        assert seen == [("h1", "held", 2, 3), ("h2", "suspect", 0, 42), ("h3", "lapsed", 0, None)] + [
            ("h4", "unknown", 0, None)
        ]
        instances = (await api.call("/v1/fleet/instances"))[1]["instances"]
        assert [(each["instance"], each["state"], each["why"]) for each in instances] == [
            ("web-1", "ready", ""),
            ("web-2", "pending", "its network state isn't made yet"),
            ("web-3", "waiting", ""),
        ]
        await api.put(structs.replace(state, version=4))
        assert (await api.call("/v1/fleet/instances?pool=web&state=ready"))[1]["instances"][0]["instance"] == "web-1"

    asked(work)


def test_long_lists_come_in_pages() -> None:
    """By name; what isn't a number of rows is refused."""

    async def work(api: Asked) -> None:
        await api.open(*(held(f"h{n}", "ab"[n % 2]) for n in range(5)))
        body = (await api.call("/v1/fleet/hosts?most=2&zone=a"))[1]
        assert ([each["host"] for each in body["hosts"]], body["more"]) == (["h0", "h2"], "h2")
        body = (await api.call("/v1/fleet/hosts?most=2&zone=a&after=h2"))[1]
        assert ([each["host"] for each in body["hosts"]], body["more"]) == (["h4"], "")
        for most in ("0", "x", "-1", "9" * 20, "%C2%B2"):
            assert (await api.call(f"/v1/fleet/hosts?most={most}"))[0] == 422

    asked(work)


def test_another_life_of_the_store_is_read_from_the_start() -> None:
    """What was known of the one before would be shown as if it were still there."""

    async def work(api: Asked) -> None:
        await api.open(held("h1"))
        assert len((await api.call("/v1/fleet/hosts"))[1]["hosts"]) == 1
        api.held.wipe("life-2")
        assert (await api.call("/v1/fleet/hosts"))[1]["hosts"] == []

    asked(work)


def test_rows_that_others_write_all_the_time_are_unavailable() -> None:
    """A few tries, and then the one who asked may decide."""

    async def work(api: Asked) -> None:
        await api.put(held("h1"))
        commit = api.store.commit

        async def late(claim: Any, groups: Any) -> Any:
            row = (await api.store.prove(1, [("host", "h1")])).rows[0]
            assert row is not None
            assert isinstance(row.row, HostRow)
            await api.put(structs.replace(row.row, boot=row.row.boot + 1))
            return await commit(claim, groups)

        api.store.commit = late  # type: ignore[method-assign]
        with pytest.raises(Unavailable, match="written by others"):
            await changes.say(api.store, ["h1"], "drain")

    asked(work)


def test_what_ended_long_ago_is_cleared_away_and_nothing_else() -> None:
    """An hour for instances, a day for launches; never what stands in a host's set, or may still be asked for."""

    async def work(api: Asked) -> None:
        ended = InstanceRow("web-1", "web", "ended", ended_at=api.now)
        there = attempts.joined(held("h1"), InstanceRow("web-2").at(1, ""))
        await api.open(there)
        await api.put(ended, structs.replace(ended, instance="web-2"), structs.replace(ended, instance="web-3"))
        await api.put(structs.replace(ended, instance="web-4", state="ending"))
        await api.put(LaunchRow("k1", "d", ("web-1",), api.now), LaunchRow("k2", "d", ("web-1", "web-2"), api.now))
        api.now += ENDED_KEPT
        assert await api.api.view.clear(api.now) == 0
        await api.put(structs.replace(ended, instance="web-3", ended_at=api.now))
        api.now += SECOND
        assert await api.api.view.clear(api.now) == 1
        assert sorted(await api.instances()) == ["web-2", "web-3", "web-4"]
        api.now += LAUNCH_KEPT
        assert await api.api.view.clear(api.now) == 2
        assert sorted(await api.instances()) == ["web-2", "web-4"]
        assert [at.row.key for at in (await api.store.rows("launch")).rows] == ["k2"]
        status, body, _ = await api.call("/v1/fleet/instances")
        assert (status, [each["instance"] for each in body["instances"]]) == (200, ["web-2", "web-4"])

    asked(work)
