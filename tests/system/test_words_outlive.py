"""A drain, a keep and a pause outlive the store: enactors remember them in their local files and put them back."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
from damage import looked_up
from regions import RunningRegion

from fencepost.cli.loaded import pools_in
from fencepost.core.traffic.membership import State
from fencepost.ports import PortError, StorePort
from fencepost.roles.overrides import PUT_BACK, KeptWords

API = "api.example.test"
DRAINED, KEPT, RESUMED = "127.0.1.1", "127.0.2.1", "127.0.3.1"
WHY = ("--yes", "--reason", "a test")


def lose_store(region: RunningRegion) -> None:
    """Delete the store's files, whether or not roles run."""
    store = Path(region.region.store.path)
    for path in store.parent.glob(store.name + "*"):
        if not path.name.endswith(".lock"):
            path.unlink()


def identity(region: RunningRegion) -> str:
    """The store's identity."""

    async def read(store: StorePort) -> str:
        return (await store.head()).store

    return region.with_store(read)


def kept(region: RunningRegion) -> list[tuple[str, set[str]]]:
    """The store that each enactor's local file last read, and the words it held, in people's words."""
    found = []
    for zone in "abc":
        for (body,) in looked_up(region.state / f"enactor-{zone}.known", "select body from words"):
            words = msgspec.json.decode(body, type=KeptWords)
            found.append((words.store, {f"{word.what} {word.on}" for word in words.words}))
    return found


def all_keep(region: RunningRegion, words: set[str]) -> bool:
    """Whether every enactor has seen that exactly these stand in the store that is there now."""
    return kept(region) == [(identity_or_none(region), words)] * 3


def standing(region: RunningRegion) -> dict[str, Any]:
    """What `status` shows that people said, by word and what it is on."""
    document = json.loads(region.fencepost("status", "--json", ok=(0, 1)))
    return {f"{each['what']} {each['on']}": each for each in document["overrides"]}


def taken_up(region: RunningRegion, drained: str, frozen: str, forced: Collection[str]) -> bool:
    """Whether the pool's row shows the drain, the pause of a zone, and a word on exactly these targets."""

    async def read(store: StorePort) -> bool:
        row = pools_in(await store.inputs())["web"]
        members = {member.key: member for member in row.members}
        shown = {key for key, member in members.items() if member.forced is not None and member.zone != frozen}
        in_zone = [member for member in members.values() if member.zone == frozen]
        paused = all(member.forced is not None for member in in_zone)
        return members[drained].state is State.DRAINED and shown == set(forced) and bool(in_zone) and paused

    return region.with_store(read)


def test_drain_keep_and_pause_outlive_the_store_and_resumes_stay(tmp_path: Path) -> None:
    """Deleted under running roles, then again while all of them were stopped: what stood stands, what ended doesn't."""
    region = RunningRegion(tmp_path)
    with region:
        region.fencepost("drain", DRAINED, *WHY)
        region.fencepost("keep", KEPT, *WHY)
        region.fencepost("pause", "--zone", "c", *WHY)
        region.fencepost("drain", RESUMED, *WHY)
        region.fencepost("resume", RESUMED, "--yes")
        words = {f"drain {DRAINED}", f"keep {KEPT}", "pause zone c"}
        region.until(lambda: all_keep(region, words), 10, "every enactor has seen them, and the resume")
        region.until(lambda: set(standing(region)) == words, 10, "status has, too")
        before = standing(region)
        first = identity(region)
        lose_store(region)
        region.until(lambda: identity_or_none(region) not in ("", first), 10, "a new store is made")
        region.until(lambda: all_keep(region, words), 10, "put back")
        region.until(lambda: taken_up(region, DRAINED, "c", {DRAINED, KEPT}), 10, "they are heeded")
        region.until(lambda: region.converged(), 10, "the new store's plan is enacted")
        assert DRAINED not in region.addresses(API)
        region.until(lambda: set(standing(region)) == words, 10, "status shows them")
        known = json.loads(region.fencepost("status", "--json", ok=(0, 1)))
        assert "store-new" in {each["id"] for each in known["problems"]}, "and that there was one before"
        after = standing(region)
        assert {name: each["until"] for name, each in after.items()} == {
            name: each["until"] for name, each in before.items()
        }
        assert {each["reason"] for each in after.values()} == {PUT_BACK}
        assert {each["by"] for each in after.values()} <= {"enactor/a", "enactor/b", "enactor/c"}

        def told() -> list[str]:
            rows = [row for row in region.history("operator") if row.text.endswith(PUT_BACK)]
            return sorted(f"{row.text.split()[0]} {row.on}" for row in rows)

        region.until(lambda: len(told()) >= len(words), 10, "it is written down")
        assert told() == sorted(words), "each is told once"
        region.fencepost("resume", KEPT, "--yes")
        words.remove(f"keep {KEPT}")
        region.until(lambda: all_keep(region, words), 10, "the resume in the new store stands, and is known")
    second = identity(region)
    lose_store(region)
    with region:
        region.until(lambda: identity_or_none(region) not in ("", second), 10, "a third store is made")
        region.until(lambda: all_keep(region, words), 10, "put back by enactors that find it at their start")
        region.until(lambda: taken_up(region, DRAINED, "c", {DRAINED}), 10, "they are heeded")
        region.until(lambda: set(standing(region)) == words, 10, "status shows them")
        assert DRAINED not in region.addresses(API)


def identity_or_none(region: RunningRegion) -> str:
    """The store's identity; "" while there is none."""
    try:
        return identity(region)
    except PortError:
        return ""
