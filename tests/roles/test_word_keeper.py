"""Enactors remember drains, keeps and pauses, and put them back into the store that stands where another stood."""

import asyncio
import itertools
import sqlite3
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fencepost.core.instant import SECOND, Duration
from fencepost.core.traffic.membership import OverrideKind
from fencepost.ports import Inputs, Overrides, StorePort, Unavailable
from fencepost.roles.local_file import LocalFile
from fencepost.roles.loop import Condition
from fencepost.roles.overrides import PUT_BACK, StoredOverride, encode, readable
from fencepost.roles.word_keeper import WordKeeper
from fencepost.world.reference_store import ReferenceStore

LATER = time.time_ns() + 3600 * SECOND
DRAIN = StoredOverride("d", OverrideKind.DRAIN, "web", "192.0.2.1", by="ann", reason="disk", until=LATER, placed_at=5)
PAUSE = StoredOverride("p", OverrideKind.PAUSE, "", zone="b", by="ann", reason="move", placed_at=6)
OVER = StoredOverride("o", OverrideKind.KEEP, "web", "192.0.2.2", by="ann", reason="noise", until=7, placed_at=6)


def new_store(identity: str) -> ReferenceStore:
    """An empty store."""
    numbers = itertools.count(1)

    async def pause(length: Duration) -> None:
        await asyncio.sleep(length / SECOND)

    return ReferenceStore(identity * 4, lambda: f"{next(numbers):08x}", pause)


class Enactors:
    """Three memories, each with a file of its own, and the store that they look at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = new_store("aaaa")
        self.keepers = {zone: self.started(zone) for zone in "abc"}

    def path(self, zone: str) -> Path:
        return self.folder / f"enactor-{zone}.known"

    def started(self, zone: str, owner: str = "eu-1") -> WordKeeper:
        """An enactor as it starts: all it knows is in its file."""
        return WordKeeper(f"enactor/{zone}", owner, self.store, LocalFile(self.path(zone)))

    def stop(self, zone: str) -> None:
        """End it; its file stays."""
        self.keepers.pop(zone).file.close()

    def lose(self, identity: str) -> None:
        """The store is another one."""
        self.store = new_store(identity)
        for keeper in self.keepers.values():
            keeper.store = self.store

    async def place(self, *words: StoredOverride) -> None:
        for word in words:
            await self.store.put_override(word.id, encode(word))

    async def look(self, zones: str = "abc") -> None:
        """These look, at once."""
        await asyncio.gather(*(self.keepers[zone].look() for zone in zones))

    async def standing(self) -> dict[str, StoredOverride]:
        words, problems = readable((await self.store.overrides()).words)
        assert not problems
        return {word.id: word for word in words}

    async def told(self) -> list[str]:
        return [f"{row.kind} {row.on}: {row.text}" for row in await self.store.history()]


@pytest.fixture
def enact(tmp_path: Path) -> Callable[[Callable[[Enactors], Coroutine[Any, Any, None]]], None]:
    """Run something with three enactors that have looked at a drain, a pause and a keep that has ended."""

    def run(work: Callable[[Enactors], Coroutine[Any, Any, None]]) -> None:
        async def go() -> None:
            three = Enactors(tmp_path)
            await three.look()
            await three.place(DRAIN, PAUSE, OVER)
            await three.look()
            try:
                await work(three)
            finally:
                for zone in tuple(three.keepers):
                    three.stop(zone)

        asyncio.run(go())

    return run


Enact = Callable[[Callable[[Enactors], Coroutine[Any, Any, None]]], None]


def test_a_word_on_an_address_in_two_pools_is_put_back_in_both_and_told_once(
    enact: Callable[[Callable[[Enactors], Coroutine[Any, Any, None]]], None],
) -> None:
    """docs/operating/commands.md, history: one line a thing. A person said it once; it has a slot in each pool."""

    async def work(three: Enactors) -> None:
        await three.place(replace(DRAIN, id="d2", pool="api"))
        await three.look()
        three.lose("bbbb")
        await three.look("a")
        assert {"d", "d2"} <= set(await three.standing())
        assert sum("drain" in line and DRAIN.target in line for line in await three.told()) == 1

    enact(work)


def test_what_hasnt_ended_is_put_back_once_by_three_at_once(enact: Enact) -> None:
    """A wiped store took an operator's drain with it, and the target came back into service."""

    async def work(three: Enactors) -> None:
        three.lose("bbbb")
        await three.look()
        standing = await three.standing()
        assert {name: word.unsigned for name, word in standing.items()} == {"d": DRAIN.unsigned, "p": PAUSE.unsigned}
        assert {word.reason for word in standing.values()} == {PUT_BACK}
        assert {word.by for word in standing.values()} <= {"enactor/a", "enactor/b", "enactor/c"}
        snapshot = (await three.store.inputs()).snapshot
        await three.look()
        assert (await three.store.inputs()).snapshot == snapshot == 1
        assert sorted(await three.told()) == [
            f"operator 192.0.2.1: drain {PUT_BACK}",
            f"operator zone b: pause {PUT_BACK}",
        ]

    enact(work)


def test_it_outlives_a_second_loss_and_a_restart(enact: Enact) -> None:
    """The file knows the store it last read: an enactor that finds another at its start acts as one that saw it go."""

    async def work(three: Enactors) -> None:
        for identity in ("bbbb", "cccc"):
            for zone in "abc":
                three.stop(zone)
            three.lose(identity)
            three.keepers = {zone: three.started(zone) for zone in "abc"}
            await three.look("b")
            await three.look("ac")
            assert set(await three.standing()) == {"d", "p"}
            assert len(await three.told()) == 2

    enact(work)


def test_author_and_reason_are_in_no_file(enact: Enact) -> None:
    """They are the store's: a file on each machine is no place for people's names."""

    async def work(three: Enactors) -> None:
        for zone in "abc":
            three.stop(zone)
            with sqlite3.connect(three.path(zone)) as db:
                (body,) = db.execute("select body from words").fetchone()
            assert b"192.0.2.1" in body
            assert b"ann" not in body
            assert b"disk" not in body

    enact(work)


def test_a_resume_before_the_loss_stands_even_if_one_enactor_missed_it(enact: Enact) -> None:
    """The stopped one comes first, with the drain; those who saw the resume end it again."""

    async def work(three: Enactors) -> None:
        await three.store.drop_override("d")
        await three.look("ab")
        three.lose("bbbb")
        await three.look("c")
        assert set(await three.standing()) == {"d", "p"}
        await three.look("ab")
        assert set(await three.standing()) == {"p"}
        assert "operator 192.0.2.1: drain ended: it had been resumed before the store was lost" in await three.told()
        await three.look()
        assert set(await three.standing()) == {"p"}

    enact(work)


def test_a_resume_in_the_new_store_isnt_undone_by_a_slower_enactor(enact: Enact) -> None:
    """Each id is put back once per store, even if it doesn't stand any more when the last enactor comes."""

    async def work(three: Enactors) -> None:
        three.lose("bbbb")
        await three.look("a")
        await three.store.drop_override("d")
        await three.look("bc")
        assert set(await three.standing()) == {"p"}

    enact(work)


@pytest.mark.parametrize("name", ["d", "an id of their own"])
def test_a_word_placed_anew_wins(enact: Enact, name: str) -> None:
    """A keep in the drain's place, through the command line or the API: the drain isn't put beside or over it."""

    async def work(three: Enactors) -> None:
        three.lose("bbbb")
        anew = replace(DRAIN, id=name, what=OverrideKind.KEEP, by="bob")
        await three.place(anew)
        await three.look()
        standing = await three.standing()
        assert standing.pop(name) == anew
        assert set(standing) == {"p"}

    enact(work)


def test_a_person_who_is_faster_than_the_write_is_heard(enact: Enact, monkeypatch: pytest.MonkeyPatch) -> None:
    """The word comes between an enactor's read and its write: it reads again, and leaves the place alone."""

    async def work(three: Enactors) -> None:
        three.lose("bbbb")
        anew = replace(DRAIN, id="x", what=OverrideKind.KEEP, by="bob")
        put_back = three.store.put_back

        async def later(back: Any) -> Any:
            if not await three.standing():
                await three.place(anew)
            return await put_back(back)

        monkeypatch.setattr(three.store, "put_back", later)
        await three.look("a")
        assert set(await three.standing()) == {"x", "p"}

    enact(work)


def test_while_the_store_is_away_what_is_kept_stays(enact: Enact, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a store that doesn't answer nor a put-back that fails costs the memory; the role runs on."""

    async def work(three: Enactors) -> None:
        condition = Condition()

        async def away(*_: object) -> Any:
            raise Unavailable("gone")

        keeper = three.keepers["a"]
        kept = keeper.kept
        for call in ("overrides", "put_back"):
            with monkeypatch.context() as patch:
                patch.setattr(three.store, call, away)
                running = asyncio.ensure_future(keeper.run(condition))
                while condition.state == "up":
                    condition.changed.clear()
                    await asyncio.wait_for(condition.changed.wait(), 10)
                running.cancel()
            condition.now("overrides", None)
            assert keeper.kept == kept
            three.lose("bbbb")
        await three.look("a")
        assert set(await three.standing()) == {"d", "p"}

    enact(work)


@pytest.mark.parametrize("damage", ["no database", "no JSON", "another owner's", "another shape", "gone"])
def test_a_wrong_or_damaged_file_costs_only_itself(enact: Enact, damage: str) -> None:
    """Its enactor knows nothing at its start, ends nothing that others put back, and keeps again."""

    async def work(three: Enactors) -> None:
        three.stop("a")
        path = three.path("a")
        if damage in ("no database", "gone"):
            for end in ("", "-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
            if damage == "no database":
                path.write_bytes(b"no database" * 500)
        else:
            with sqlite3.connect(path) as db:
                (body,) = db.execute("select body from words").fetchone()
                bodies = {"no JSON": b"\xff", "another owner's": body.replace(b"eu-1", b"us-1"), "another shape": b"5"}
                db.execute("update words set body = ?", (bodies[damage],))
        three.lose("bbbb")
        three.keepers["a"] = three.started("a")
        await three.look("a")
        assert not await three.standing()
        await three.look("bc")
        assert set(await three.standing()) == {"d", "p"}
        await three.look("a")
        three.lose("cccc")
        await three.look("a")
        assert set(await three.standing()) == {"d", "p"}

    enact(work)


def test_a_file_damaged_while_its_enactor_runs_is_written_anew(enact: Enact) -> None:
    """What is in memory isn't lost with the file: the next look puts it there again."""

    async def work(three: Enactors) -> None:
        with sqlite3.connect(three.path("a")) as db:
            db.execute("delete from words")
        await three.look("a")
        three.stop("a")
        three.lose("bbbb")
        three.keepers["a"] = three.started("a")
        await three.look("a")
        assert set(await three.standing()) == {"d", "p"}

    enact(work)


def test_an_override_of_another_version_isnt_kept_and_harms_none(enact: Enact) -> None:
    """What can't be read can't be judged; the others are kept."""

    async def work(three: Enactors) -> None:
        await three.store.put_override("later", b'{"what": "drain-slowly"}')
        await three.look()
        three.lose("bbbb")
        await three.look()
        assert set(await three.standing()) == {"d", "p"}

    enact(work)


def test_silence_costs_a_look_a_minute_and_a_change_one_small_read(tmp_path: Path) -> None:
    """Idle enactors sleep: overrides are read when an input changed, and the configuration isn't read for them."""

    class Counting(ReferenceStore):
        looks = 0

        async def overrides(self, known: Overrides | None = None) -> Overrides:
            self.looks += 1
            return await super().overrides(known)

        async def inputs(self) -> Inputs:
            raise AssertionError

    async def go() -> None:
        woken: asyncio.Queue[Duration] = asyncio.Queue()
        asleep = asyncio.Event()

        class Waiter:
            async def wait(self, most: Duration) -> None:
                waits.append(most)
                asleep.set()
                await woken.get()

        waits: list[Duration] = []
        store = Counting("aaaa" * 4, lambda: "n", asyncio.sleep)
        store.waiter = lambda **_: Waiter()  # type: ignore[method-assign,assignment]
        file = LocalFile(tmp_path / "known")
        port: StorePort = store
        running = asyncio.ensure_future(WordKeeper("enactor/a", "eu-1", port, file).run(Condition()))
        for n in range(1, 4):
            await asyncio.wait_for(asleep.wait(), 10)
            asleep.clear()
            assert (store.looks, waits[-1]) == (n, 60 * SECOND)
            await store.put_override("d", encode(replace(DRAIN, until=LATER + n)))
            woken.put_nowait(0)
        running.cancel()
        file.close()

    asyncio.run(go())
