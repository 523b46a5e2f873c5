"""Overrides in a store's place: what every store must do when enactors put back what a lost one held."""

import asyncio

from store import on_store

from fencepost.ports import Overrides, PutBack, StorePort

LOST = "aaaa0000aaaa0000"


async def puts_back(store: StorePort, snapshot: int, lost: str = LOST, **words: bytes) -> list[str]:
    """Put back what ``lost`` held at a snapshot; the ids that changed."""
    seen = await store.overrides()
    done = await store.put_back(PutBack(seen.store, seen.snapshot, lost, snapshot, words))
    assert done is not None
    return list(done)


async def standing(store: StorePort) -> dict[str, bytes]:
    """The overrides by id; both ways to read them agree."""
    found = dict((await store.overrides()).words)
    assert found == dict((await store.inputs()).overrides)
    return found


class PutBackContract:
    """The suite, to be run beside :class:`store.StoreContract`."""

    @on_store
    async def test_overrides_are_read_again_only_if_an_input_changed(self, store: StorePort) -> None:
        """Three enactors look after each change: where there is none, they are given what they have."""
        first = await store.overrides()
        assert first == Overrides((await store.head()).store, 0, {})
        assert await store.overrides(first) is first
        await store.put_override("x", b"1")
        second = await store.overrides(first)
        assert (second.snapshot, dict(second.words)) == (1, {"x": b"1"})
        assert await store.overrides(second) is second
        elsewhere = Overrides(LOST, 1, {})
        assert dict((await store.overrides(elsewhere)).words) == {"x": b"1"}

    @on_store
    async def test_the_same_memory_is_put_back_once(self, store: StorePort) -> None:
        """Three enactors remember the same: the first places it, and the others change nothing, not even a number."""
        assert await puts_back(store, 7, x=b"1", y=b"2") == ["x", "y"]
        after = (await store.inputs()).snapshot
        assert after == 1
        assert await puts_back(store, 7, x=b"1 by another", y=b"2") == []
        assert await standing(store) == {"x": b"1", "y": b"2"}
        assert (await store.inputs()).snapshot == after

    @on_store
    async def test_what_was_read_must_still_be_so(self, store: StorePort) -> None:
        """A person who places a word between an enactor's read and its write is heard; so is another store's coming."""
        seen = await store.overrides()
        await store.put_override("x", b"a person's")
        assert await store.put_back(PutBack(seen.store, seen.snapshot, LOST, 7, {"y": b"1"})) is None
        assert await store.put_back(PutBack("another", 1, LOST, 7, {"y": b"1"})) is None
        assert await standing(store) == {"x": b"a person's"}
        assert await puts_back(store, 7, y=b"1") == ["y"], "a refused one leaves nothing behind"

    @on_store
    async def test_a_word_placed_anew_wins_and_a_resume_isnt_undone(self, store: StorePort) -> None:
        """Neither by an enactor with the same memory nor by one whose memory is newer, nor of a third store."""
        await store.put_override("x", b"a person's")
        assert await puts_back(store, 5, x=b"old", y=b"1", z=b"1") == ["y", "z"]
        assert await store.drop_override("x")
        assert await store.drop_override("y")
        await store.put_override("z", b"another's")
        for lost, snapshot in ((LOST, 5), (LOST, 6), ("bbbb", 9)):
            assert await puts_back(store, snapshot, lost, x=b"old", y=b"2", z=b"2") == []
        assert await puts_back(store, 7) == [], "a word placed anew isn't ended by a memory without it"
        assert await standing(store) == {"z": b"another's"}

    @on_store
    async def test_the_newest_memory_of_a_lost_store_wins_whoever_comes_first(self, store: StorePort) -> None:
        """An enactor that was stopped when the person resumed must not bring the drain back."""
        assert await puts_back(store, 5, stale=b"1", moved=b"1", same=b"1") == ["moved", "same", "stale"]
        assert await puts_back(store, 9, moved=b"2", same=b"1", late=b"1") == ["late", "moved", "stale"]
        assert await puts_back(store, 5, stale=b"1", moved=b"1", same=b"1") == []
        assert await standing(store) == {"moved": b"2", "same": b"1", "late": b"1"}
        assert await puts_back(store, 20, "bbbb", other=b"1") == ["other"], "of two stores both are put back"
        assert set(await standing(store)) == {"moved", "same", "late", "other"}

    @on_store
    async def test_three_at_once_agree(self, store: StorePort) -> None:
        """All have read the new store empty: one is first, the others are told to read again."""
        seen = await store.overrides()
        backs = [PutBack(seen.store, seen.snapshot, LOST, 7, {"x": b"%d" % n}) for n in range(3)]
        done = await asyncio.gather(*(store.put_back(back) for back in backs))
        assert sorted(done, key=str) == [None, None, ["x"]]
