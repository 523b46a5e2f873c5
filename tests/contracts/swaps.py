"""Of many writers' swaps each is one generation, and each refusal is told: part of the contract of every store."""

import asyncio

from store import on_store, plan

from fencepost.core.store import Head
from fencepost.ports import StorePort


async def swapped(store: StorePort, writers: int, swaps: int) -> list[int]:
    """So many writers, so many tries of a swap each: the numbers of those that won; the others were told so."""
    done: list[Head | None] = []

    async def writer(name: str) -> None:
        for _ in range(swaps):
            head = await store.head()
            await asyncio.sleep(0)  # a store that never waits would let nobody in between
            done.append(await store.publish(plan(head, head.number + 1, name)))

    await asyncio.gather(*(writer(f"e{n}.example") for n in range(writers)))
    won = [head.number for head in done if head is not None]
    assert won == list(range(1, len(won) + 1))
    assert len(done) == writers * swaps
    head, rows = await store.newest_rows(None)
    assert head.number == len(won)
    assert max(found.generation.number for found in rows) == head.number
    return won


class SwapsContract:
    """The suite; a subclass gives ``make``, as :class:`store.StoreContract` says."""

    writers = 100
    swaps = 100

    @on_store
    async def test_of_ten_thousand_swaps_each_wins_or_is_refused(self, store: StorePort) -> None:
        """A hundred writers, a hundred swaps each: generations are unique, rise by one, and each refusal is told."""
        won = await swapped(store, self.writers, self.swaps)
        assert len(won) < self.writers * self.swaps, "some were refused"
