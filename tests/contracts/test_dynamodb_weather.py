"""DynamoDB in bad weather: three processes work at once while answers get lost and requests are throttled, by seed.

What was told must be so: a head that was given out is in the chain for ever, a membership that was written counts once.
"""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from dynamodb import aws_environment, emulator
from dynamodb_faulty import Send, answered, lost, opened
from store import plan

from fencepost.adapters.store_dynamodb import DynamoDbStore, client, root
from fencepost.core.store import Head
from fencepost.ports import Unavailable

NAMES = tuple(f"e{number}.example" for number in range(5))
_tables = itertools.count(1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One emulator for this file."""
    with emulator(tmp_path_factory.mktemp("dynamodb")) as at:
        yield at


class Weather:
    """Of a hundred requests about twenty go wrong, in one of four ways."""

    def __init__(self, drawn: random.Random) -> None:
        self.drawn = drawn
        self.seen: Counter[str] = Counter()

    async def __call__(self, _operation: str, _arguments: dict[str, Any], send: Send) -> Any:
        """One request."""
        how = self.drawn.choices(("well", "busy", "lost before", "lost after", "slow"), (80, 6, 5, 5, 4))[0]
        self.seen[how] += 1
        if how == "busy":
            raise answered("ThrottlingException")
        if how == "lost before":
            raise lost()
        if how == "slow":
            await asyncio.sleep(0.02)
        answer = await send()
        if how == "lost after":
            raise lost()
        return answer


class Told:
    """What the processes were told."""

    def __init__(self) -> None:
        self.heads: list[Head] = []
        self.written = 0
        self.unknown = 0
        self.outrun = 0
        self.deleted: set[tuple[str, int]] = set()


async def works(store: DynamoDbStore, drawn: random.Random, told: Told, *, janitor: bool) -> None:
    """One process: plans, memberships, and now and then the janitor."""
    for _ in range(8):
        try:
            head = await store.head()
            done = await store.publish(plan(head, head.number + 1, *drawn.sample(NAMES, 2)))
            told.outrun += done is None
            if done is not None:
                told.heads.append(done)
            version, _body = await store.membership("web")
            wrote = await store.put_membership("web", version, b"m")
            told.written += wrote
            if janitor and drawn.random() < 0.3:
                for row, place, newest in await store.spent_rows(5, 3):
                    assert place >= 3
                    assert newest > row.generation
                    told.deleted.add((row.name, row.generation.number))
                    await store.delete_row(row.name, row.generation, row.nonce)
        except Unavailable:
            told.unknown += 1


@pytest.mark.parametrize("seed", range(2))
def test_what_was_told_is_so(seed: int, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads told are in the chain, rows are those of the chain, and a reader that followed has the same."""
    aws_environment(monkeypatch, url)
    monkeypatch.setattr(client, "PATIENCE_S", 1.0)
    monkeypatch.setattr(root, "RACE_PAUSE_MOST_S", 0.05)
    drawn, told = random.Random(seed), Told()

    async def go() -> None:
        table = f"weather-{seed}-{next(_tables)}"
        ways, stores = zip(*(opened(table) for _ in range(4)), strict=True)
        blank = await stores[0].head()
        for way in ways[:3]:
            way.spoil = Weather(drawn)
        followed: dict[str, int] = {}
        over = asyncio.Event()

        async def follow() -> None:
            known, last = blank, False
            while True:
                known, rows = await stores[3].newest_rows(known)
                for row in rows:
                    assert row.generation.number > followed.get(row.name, 0), "never backward, never twice"
                    followed[row.name] = row.generation.number
                if last:
                    return
                last = over.is_set()
                await asyncio.sleep(0.005)

        following = asyncio.create_task(follow())
        await asyncio.gather(*(works(store, drawn, told, janitor=at < 2) for at, store in enumerate(stores[:3])))
        assert not following.done()
        over.set()
        await following
        for way in ways:
            way.spoil = None
        fresh = opened(table)[1]
        found = await fresh._roots.read()
        chain = dict(await fresh._plans.chain.at(found))
        assert {head.number: head.nonce for head in told.heads}.items() <= chain.items()
        assert len({head.number for head in told.heads}) == len(told.heads)
        assert len(chain) <= len(told.heads) + told.unknown
        assert told.heads
        version = (await fresh.inputs()).membership["web"][0]
        assert told.written <= version <= told.written + told.unknown
        walked = await fresh._plans.chain.walk(found, (0, ""))
        assert walked is not None
        newest = {row.name: row.generation.number for row in (await fresh.newest_rows(None))[1]}
        assert newest == followed
        for name in NAMES:
            there = {row.generation.number for row in await fresh.rows_of(name)}
            made = {header.number for header in walked if name in header.names}
            gone = {number for of, number in told.deleted if of == name}
            assert made - gone <= there <= made
            assert max(made, default=0) == newest.get(name, 0)
        for store in (*stores, fresh):
            await store.close()

    asyncio.run(asyncio.wait_for(go(), 120))
