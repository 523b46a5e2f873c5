"""Who follows the history goes on where its store is lost, made anew or replaced by a copy."""

import asyncio
import itertools
from collections.abc import Sequence

from fencepost.core.instant import Duration, Instant
from fencepost.core.store import Head
from fencepost.ports import HistoryRow
from fencepost.roles.history import Following
from fencepost.world.reference_store import ReferenceStore


async def pause(length: Duration) -> None:
    await asyncio.sleep(length / 1e9)


def new_store(identity: str) -> ReferenceStore:
    numbers = itertools.count(1)
    return ReferenceStore(identity, lambda: f"{next(numbers):08x}", pause)


async def note(store: ReferenceStore, *texts: str, at: int) -> None:
    await store.note([HistoryRow("plan", "web", "planner", text, at) for text in texts])


async def texts(following: Following) -> list[str]:
    return [row.text for row in await following.new(100)]


def test_a_store_made_anew_counts_from_one_and_its_lines_are_shown() -> None:
    """The demonstration that loses its store on purpose went silent exactly then."""

    async def go() -> None:
        first, second = new_store("first"), new_store("second")
        following = Following(first, 5)
        await note(first, "before", at=4)
        await note(first, "a", "b", "c", at=10)
        assert await texts(following) == ["a", "b", "c"]
        assert await texts(following) == []
        following.store = second
        await note(second, "d", at=11)
        assert await texts(following) == ["d"]
        await note(second, *"efgh", at=12)
        assert await texts(following) == ["e", "f", "g", "h"]

    asyncio.run(go())


def test_a_copy_put_back_shows_what_comes_and_nothing_twice() -> None:
    """It has the store's own identity and an older count."""

    async def go() -> None:
        first, copy = new_store("first"), new_store("first")
        following = Following(first, 5)
        await note(first, "a", at=10)
        await note(copy, "a", at=10)
        await note(first, "b", "c", at=11)
        assert await texts(following) == ["a", "b", "c"]
        following.store = copy
        assert await texts(following) == []
        await note(copy, "d", at=12)
        assert await texts(following) == ["d"]
        assert await texts(following) == []

    asyncio.run(go())


def test_while_nothing_comes_one_question_is_asked() -> None:
    """The screen of `up` asks twice a second or more; three calls each time were a third of what it cost."""

    async def go() -> None:
        store = new_store("first")
        following = Following(store, 5)
        await note(store, "a", at=10)
        assert await texts(following) == ["a"]
        asked: list[object] = []
        history, head = store.history, store.head

        async def counted_history(*, after: int = 0, since: Instant = 0, most: int = 1000) -> Sequence[HistoryRow]:
            asked.append(most)
            return await history(after=after, since=since, most=most)

        async def counted_head() -> Head:
            asked.append("head")
            return await head()

        store.history, store.head = counted_history, counted_head  # type: ignore[method-assign]
        assert await texts(following) == []
        assert asked == [1]
        await note(store, "b", at=11)
        assert await texts(following) == ["b"]

    asyncio.run(go())


def test_a_line_of_another_store_with_the_same_number_is_new() -> None:
    """Stores count from 1 each: the number alone says nothing about whose line it is."""

    async def go() -> None:
        first, second = new_store("first"), new_store("second")
        following = Following(first, 5)
        await note(first, "a", at=10)
        assert await texts(following) == ["a"]
        following.store = second
        await note(second, "b", at=10)
        assert await texts(following) == ["b"]

    asyncio.run(go())
