"""What the API is told: by whom, and whether it can be right; nothing else is stored."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from api_running import NAME, ORDER, VALUE, World
from msgspec import structs

from fencepost.core.fence import Generation, Hold
from fencepost.core.record_set import content
from fencepost.core.store import Plan, Row
from fencepost.core.traffic.membership import OverrideKind
from fencepost.roles import overrides
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status import decode


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_change_takes_the_token(world: World) -> None:
    """No token, another token, or the right one; the token's file is its user's alone."""

    async def telling(world: World) -> None:
        body = msgspec.json.encode(ORDER)
        for token in (None, "", "x" * 43, world.token() + "x"):
            status, answer, headers = await world.call("/orders", "POST", body, token)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert json.loads(answer)["error"]["kind"] == "Refused"
        assert (await world.store.inputs()).orders == ()
        status, answer, _ = await world.call("/orders", "POST", body, world.token())
        assert (status, json.loads(answer)) == (202, {"accepted": "o-1", "on": NAME})
        assert [order.name for order in (await world.store.inputs()).orders] == [NAME], "in its one form"
        [row] = [row for row in await world.store.history() if row.kind == "operator"]
        assert (row.on, row.by, row.text) == (NAME, "ops", "withdraw: moved away")
        assert (await world.call("/orders"))[0] == 405
        assert os.stat(world.folder / "api.token").st_mode & 0o777 == 0o600

    world.run(telling)


BAD_ORDERS = [
    structs.replace(ORDER, name="other.example.test"),
    structs.replace(ORDER, name="not a name!"),
    structs.replace(ORDER, by=""),
    structs.replace(ORDER, reason=" "),
    structs.replace(ORDER, id=""),
    structs.replace(ORDER, kind="rollback"),
    structs.replace(ORDER, kind="adopt"),
    structs.replace(ORDER, kind="adopt", adopt="none"),
    structs.replace(ORDER, kind="rollback", content=structs.replace(VALUE, a=("garbage",))),
    structs.replace(ORDER, kind="rollback", content=structs.replace(VALUE, a=("0.0.0.0",))),
    structs.replace(ORDER, kind="rollback", content=structs.replace(VALUE, weights=(1, 999))),
    structs.replace(ORDER, kind="rollback", content=structs.replace(VALUE, ttl=-1)),
    structs.replace(ORDER, kind="rollback", content=content(["::1"], 5)),
    structs.replace(ORDER, until_s=1),
    structs.replace(ORDER, until_s=2**33),
    structs.replace(ORDER, kind="release"),
    structs.replace(ORDER, kind="release", hold=1),
    structs.replace(ORDER, kind="release", hold=10**18),
    structs.replace(ORDER, reason="\x1b[2Jboo"),
    structs.replace(ORDER, reason="x" * 501),
]
WORD = StoredOverride("w-1", OverrideKind.DRAIN, "web", "127.0.1.1", by="ops", reason="disk")
BAD_WORDS = [
    structs.replace(WORD, pool="wbe"),
    structs.replace(WORD, target="192.0.2.1"),
    structs.replace(WORD, target="", zone="z"),
    structs.replace(WORD, until=1),
    structs.replace(WORD, by=""),
    structs.replace(WORD, until=10**19),
    structs.replace(WORD, zone="a"),
    structs.replace(WORD, target="", pool=""),
    structs.replace(WORD, target=""),
    structs.replace(WORD, target="", pool="", what=OverrideKind.OBSERVE),
    structs.replace(WORD, by="ops\nnote"),
    structs.replace(WORD, id="\u202e"),
]


def test_nonsense_is_refused_with_a_reason(world: World) -> None:
    """Unknown names, no author, no reason, a rollback to nothing, an end in the past, too much, not JSON."""

    async def telling(world: World) -> None:
        bodies = [("/orders", msgspec.json.encode(order)) for order in BAD_ORDERS]
        bodies += [("/overrides", msgspec.json.encode(word)) for word in BAD_WORDS]
        bodies += [("/orders", b"{"), ("/overrides", b"[]"), ("/orders", b" " * 70_000)]
        for path, body in bodies:
            status, answer, _ = await world.call(path, "POST", body, world.token())
            assert status == 422, body
            error = json.loads(answer)["error"]
            assert all(error[part] for part in ("what", "where", "hint")), error
        inputs = await world.store.inputs()
        assert (inputs.orders, inputs.overrides) == ((), {})

    world.run(telling)


def test_an_override_is_placed_and_shown(world: World) -> None:
    """A drain by POST stands in the store and in the next document."""

    async def telling(world: World) -> None:
        status, _, _ = await world.call("/overrides", "POST", msgspec.json.encode(WORD), world.token())
        assert status == 202
        stored = overrides.decode((await world.store.inputs()).overrides["w-1"])
        assert stored.placed_at > 0
        await world.anew()
        [shown] = decode((await world.call("/status"))[1]).overrides
        assert (shown.what, shown.on, shown.by, shown.reason) == ("drain", "127.0.1.1", "ops", "disk")
        assert shown.until is None

    world.run(telling)


def test_a_listing_is_stored_in_order_and_a_release_up_to_what_stands(world: World) -> None:
    """The fence compares digests, so one set has one form; a release of holds to come would end each of them."""
    held = Hold("rollback", 1_700_000_000)
    row = Row.of(NAME, Generation(held.id, 2), VALUE, held, families="4")

    async def telling(world: World) -> None:
        listed = structs.replace(VALUE, a=("127.0.1.2", "127.0.1.1", "127.0.1.2"))
        order = structs.replace(ORDER, kind="rollback", content=listed)
        assert (await world.call("/orders", "POST", msgspec.json.encode(order), world.token()))[0] == 202
        assert [order.content for order in (await world.store.inputs()).orders] == [VALUE]
        head = await world.store.head()
        assert await world.store.publish(Plan(head, 2, (await world.store.inputs()).snapshot, (row,)))
        await world.anew()
        over = structs.replace(ORDER, id="o-2", kind="release", hold=held.id + 1)
        status, answer, _ = await world.call("/orders", "POST", msgspec.json.encode(over), world.token())
        assert status == 422
        assert f"what stands is the rollback {held.id}" in json.loads(answer)["error"]["what"]
        release = structs.replace(over, hold=held.id)
        assert (await world.call("/orders", "POST", msgspec.json.encode(release), world.token()))[0] == 202

    world.run(telling)


def test_a_word_about_a_whole_pool_or_region_takes_its_name(world: World) -> None:
    """As on the command line: what empties a pool, or stops all removals, isn't one slip away."""

    async def telling(world: World) -> None:
        whole = {"id": "w-2", "what": "observe", "by": "ops", "reason": "a look", "confirmed": world.region.name}
        assert (await world.call("/overrides", "POST", json.dumps(whole).encode(), world.token()))[0] == 202
        stored = overrides.decode((await world.store.inputs()).overrides["w-2"])
        assert (stored.on, stored.what) == ("the region", OverrideKind.OBSERVE)
        pool = whole | {"id": "w-3", "what": "drain", "pool": "web"}
        assert (await world.call("/overrides", "POST", json.dumps(pool).encode(), world.token()))[0] == 422
        pool["confirmed"] = "web"
        assert (await world.call("/overrides", "POST", json.dumps(pool).encode(), world.token()))[0] == 202

    world.run(telling)
