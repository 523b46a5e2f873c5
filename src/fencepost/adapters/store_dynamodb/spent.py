"""Spent rows: those that a newer one has followed. What the janitor asks for, each minute.

Moving rows from ``row`` to ``old`` happens here: a row is written there first and deleted here second, so it is never
missing. Only a row that has a newer one in the chain is moved, and that stays true for ever.

So that a pass costs as much as what changed, this process remembers how many old rows each endpoint has, and looks at
those endpoints only that later plans have named. It looks at everything when it begins, and each six hours, since
another host's janitor may have been at work. What a dead planner left is deleted then: rows and headers of plans that
can't be published any more (:mod:`.chain`) and bodies that can't be named any more (:mod:`.blobs`).
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from fencepost.adapters.store_dynamodb.chain import PARTITION as HEADERS
from fencepost.adapters.store_dynamodb.client import at_once
from fencepost.adapters.store_dynamodb.items import Item, key, padded, shard
from fencepost.adapters.store_dynamodb.plans import OLD, ROW, Plans, row_key
from fencepost.adapters.store_dynamodb.root import Root
from fencepost.core.fence import Generation
from fencepost.core.store import Row

LOOK_AT_ALL_EACH_S = 6 * 3600.0


class SpentRows:
    """The queries about spent rows, on one table."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._client = plans.client
        self._old: Counter[str] = Counter()
        self._as_of: tuple[str, tuple[int, str]] | None = None
        self._looked_at_all = 0.0

    async def spent_rows(self, most: int, place: int) -> Sequence[tuple[Row, int, Generation]]:
        """Rows with ``place`` or more newer ones, oldest first, each with that number and the newest's generation."""
        root = await self._plans.roots.read()
        await self._look(root)
        place = max(1, place)
        names = [name for name, count in self._old.items() if count >= place]
        found: list[tuple[int, str, Item, int, Generation]] = []
        for name, items in zip(names, await at_once(self._plans.items_of(name, root) for name in names), strict=True):
            self._old[name] = len(items) - 1
            if len(items) > place:
                newest = self._plans.row(items[0][2]).generation
                found += [(number, name, item, at, newest) for at, (number, _, item) in enumerate(items) if at >= place]
        found.sort(key=lambda one: one[:2])
        return tuple((self._plans.row(item), at, newest) for _, _, item, at, newest in found[: max(0, most)])

    async def _look(self, root: Root) -> None:
        """Move what was spent since the last look, and count."""
        tip = (root.number, root.nonce)
        known = self._as_of
        if (
            known is not None
            and known[0] == root.identity
            and time.monotonic() - self._looked_at_all < LOOK_AT_ALL_EACH_S
        ):
            walked = await self._plans.chain.walk(root, known[1])
            if walked is not None:
                names = sorted({name for header in walked for name in header.names})
                parts = await at_once(self._client.query(f"{ROW}#{shard(name)}", begins=f"{name}#") for name in names)
                await self._move(root, [item for items in parts for item in items])
                self._as_of = (root.identity, tip)
                return
        self._looked_at_all = time.monotonic()
        rows = await self._plans.all_rows(ROW)  # first: another janitor moves from there to the old ones
        old = await self._plans.all_rows(OLD, names="pk, sk")
        places = [self._plans.place(item) for item in old]
        self._old = Counter(name for name, _, _ in places)
        await self._move(root, rows)
        await self._sweep(root)
        with_rows = frozenset(number for _, number, _ in [*places, *map(self._plans.place, rows)])
        await self._plans.shorten_chain(root, with_rows)
        self._as_of = (root.identity, tip)

    async def _move(self, root: Root, items: Iterable[Item]) -> None:
        chain = await self._plans.chain.at(root)
        counted: dict[str, list[tuple[int, Item]]] = {}
        dead: list[Item] = []
        for item in items:
            name, number, nonce = self._plans.place(item)
            if chain.get(number) == nonce:
                counted.setdefault(name, []).append((number, item))
            elif number <= root.number:
                dead.append(item)
        spent = []
        for name, rows in counted.items():
            rows.sort(key=lambda one: one[0])
            spent += [item for _, item in rows[:-1]]
            self._old[name] += len(rows) - 1
        await self._client.write(
            {**item, **key(f"{OLD}#{shard(self._plans.place(item)[0])}", item["sk"]["S"])} for item in spent
        )
        await self._client.write(deletes=[*spent, *dead])

    async def _sweep(self, root: Root) -> None:
        """Delete what can never count: headers of plans that lost, and bodies that nothing names."""
        chain = await self._plans.chain.at(root)
        lost = []
        for item in await self._client.query(HEADERS, after="0", to=padded(root.number) + "~", names="pk, sk"):
            number, nonce, _ = item["sk"]["S"].split("#")
            if chain.get(int(number)) != nonce:
                lost.append(item)
        inputs = self._plans.inputs
        left_over = await inputs.blobs.left_over(await inputs.named(root), root.revision)
        await self._client.write(deletes=[*lost, *left_over])
        await self._plans.chain.forget_headers(root)

    async def delete_row(self, name: str, generation: Generation, nonce: str) -> bool:
        """Delete one row if it has this nonce and isn't its endpoint's newest; whether it did."""
        root = await self._plans.roots.read()
        items = await self._plans.items_of(name, root)
        judged = [
            number
            for number, its_nonce, item in items[1:]
            if its_nonce == nonce and self._plans.row(item).generation == generation
        ]
        if not judged:
            return False
        (number,), done = judged, False
        for kind in (ROW, OLD):
            answer = await self._client.call(
                "delete_item",
                TableName=self._client.table,
                Key=row_key(kind, name, number, nonce),
                ReturnValues="ALL_OLD",
            )
            done = done or bool(answer.get("Attributes"))
        self._old[name] -= 1
        return done
