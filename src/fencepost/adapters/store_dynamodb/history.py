"""The history: lines in blocks, whose ids rise in the order in which they can be seen.

`history --follow` asks for what came after the last id it has shown, so an id must never appear below one that was
already seen. A counter and a later write wouldn't do: of two writers the one with the lower number may write last. So a
block is written *at* the id after the last block's, on the condition that nothing is there; who loses looks again.
"""

import asyncio
import random
import time
from collections.abc import Sequence

import msgspec
from msgspec import structs

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.client import PATIENCE_S, PAUSE_LEAST_S, PAUSE_MOST_S, Client
from fencepost.adapters.store_dynamodb.items import Item, body, key, number, packed, padded, text
from fencepost.core.instant import Instant
from fencepost.ports import HistoryRow, Unavailable

PARTITION = "history"
HISTORY_KEPT = 100_000
"""So many lines are kept, and up to a tenth more."""
LINES_A_BLOCK = 100
TIDY_EACH = 10_000
_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(list[HistoryRow]).decode


class History:
    """The queries, on one table."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._next = 0

    async def note(self, rows: Sequence[HistoryRow]) -> None:
        """Append, and forget what is too old."""
        for at in range(0, len(rows), LINES_A_BLOCK):
            await self._append(rows[at : at + LINES_A_BLOCK])

    async def _append(self, rows: Sequence[HistoryRow]) -> None:
        deadline, pause = time.monotonic() + PATIENCE_S, PAUSE_LEAST_S
        lines = packed(_encode([structs.replace(row, id=0) for row in rows]), "a block of history", self._client.where)
        count = {"N": str(len(rows))}
        while True:
            first = self._next or await self._end()
            try:
                item = {**key(PARTITION, padded(first)), "count": count, "body": lines}
                await self._client.put(item, ConditionExpression="attribute_not_exists(pk)")
                break
            except faults.ConditionError as error:
                self._next = 0
                if time.monotonic() >= deadline:
                    hint = "too many write at once; it goes on by itself"
                    raise Unavailable("the history grows too fast", where=self._client.where, hint=hint) from error
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311  nothing secret about it
            pause = min(pause * 2, PAUSE_MOST_S)
        self._next = first + len(rows)
        if first // TIDY_EACH != self._next // TIDY_EACH:
            await self._tidy()

    async def _end(self) -> int:
        """The id that the next line gets."""
        async for page in self._client.pages(PARTITION, down=True, most=1):
            for item in page:
                return int(text(item, "sk")) + number(item, "count")
            break
        return 1

    async def _tidy(self) -> None:
        if self._next > HISTORY_KEPT:
            old = await self._client.query(PARTITION, after="0", to=padded(self._next - HISTORY_KEPT), names="pk, sk")
            await self._client.write(deletes=old[:-1])

    async def history(self, after: int, since: Instant, most: int) -> Sequence[HistoryRow]:
        """The newest ``most`` lines after an id and at or after a time, oldest first."""
        found: list[HistoryRow] = []
        if most <= 0:
            return ()
        # A block may begin below ``after`` and end above it.
        lowest = max(0, after - LINES_A_BLOCK)
        async for page in self._client.pages(PARTITION, after=padded(lowest), down=True, most=_blocks(most)):
            for item in page:
                found += [line for line in reversed(self._read(item)) if line.id > after and line.at >= since]
            if len(found) >= most:
                break
        return tuple(reversed(found[:most]))

    def _read(self, item: Item) -> Sequence[HistoryRow]:
        try:
            first = int(text(item, "sk"))
            return [structs.replace(line, id=first + at) for at, line in enumerate(_decode(body(item)))]
        except (ValueError, msgspec.MsgspecError) as error:
            raise faults.damaged(self._client.where, f"history {item.get('sk', {}).get('S')}: {error}") from error


def _blocks(most: int) -> int:
    """How many blocks to ask for at once: most have one line, and a page ends at 1 MB anyway."""
    return min(max(most, 10), 1000)
