"""The fleet's clock and log: what numbers the commits of fleet rows, and says what each of them changed.

The *clock* is one item with the store's life and the newest snapshot. Each transaction moves it on by one, on condition
that it stands where it was read: so transactions follow each other, and their numbers are their order. Each also adds
an entry to the *log*, under its number: the places it changed, and a nonce by which a writer whose answer was lost
finds out. The entry that is too old goes in the same transaction, so the log has 2,000 entries and needs no cleaning.

DynamoDB's index with strongly consistent reads must be made with the table, and its other index may lag; the log is
read instead. A reader that finds a gap in it is too far behind, and reads everything.
"""

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.client import Client
from fencepost.adapters.store_dynamodb.faults import ConditionError, UnmetError
from fencepost.adapters.store_dynamodb.items import Item, body, key, number, packed, padded, text
from fencepost.adapters.store_dynamodb.root import Roots
from fencepost.core.capacity.rows import Kind
from fencepost.ports import Misconfigured

CLOCK = ("fleet", "clock")
LOG = "fleet#log"
LOG_KEPT = 2000
ROUNDS_MOST = 20
_encode = msgspec.msgpack.encode


class Changed(Struct, frozen=True, gc=False, array_like=True):
    """A place that a transaction changed; ``gone`` if it deleted the row."""

    kind: Kind
    key: str
    gone: bool = False


class Entry(Struct, frozen=True, gc=False, array_like=True):
    """What one transaction changed, and the nonce it was sent under."""

    by: str
    places: tuple[Changed, ...]


_decode = msgspec.msgpack.Decoder(Entry).decode


class Clock(Struct, frozen=True, gc=False):
    """The store's life, the table its rows were written in, and the newest snapshot."""

    life: str
    origin: str
    snapshot: int

    def item(self) -> Item:
        """The item that says it."""
        return {
            **key(*CLOCK),
            "life": {"S": self.life},
            "origin": {"S": self.origin},
            "snapshot": {"N": str(self.snapshot)},
            "body": packed(b"", "the fleet's clock", ""),
        }

    def moves(self, table: str, new: "Clock", entry: Entry, where: str) -> list[Mapping[str, Any]]:
        """The actions that put ``new``, one snapshot on, in its place. The first one fails if this doesn't stand."""
        log = {**key(LOG, padded(new.snapshot)), "body": packed(_encode(entry), "a list of changed rows", where)}
        actions: list[Mapping[str, Any]] = [
            {
                "Put": {
                    "TableName": table,
                    "Item": new.item(),
                    "ConditionExpression": "life = :life AND #snapshot = :snapshot",
                    "ExpressionAttributeNames": {"#snapshot": "snapshot"},
                    "ExpressionAttributeValues": {
                        ":life": {"S": self.life},
                        ":snapshot": {"N": str(self.snapshot)},
                    },
                }
            },
            {"Put": {"TableName": table, "Item": log}},
        ]
        if new.snapshot > LOG_KEPT:
            old = key(LOG, padded(new.snapshot - LOG_KEPT))
            actions.append({"Delete": {"TableName": table, "Key": old}})
        return actions


def read_clock(item: Item, where: str) -> Clock:
    """The clock out of its item. Raises ``Misconfigured``."""
    try:
        return Clock(text(item, "life"), text(item, "origin"), number(item, "snapshot"))
    except ValueError as error:
        raise faults.damaged(where, f"the fleet's clock: {error}") from error


class Clocks:
    """Reads the clock and the log, and sees to it that the clock is of this very table."""

    def __init__(self, client: Client, roots: Roots) -> None:
        self.client = client
        self.roots = roots

    async def read(self) -> Clock:
        """The clock as of now. Made where there is none; under a new life where the table was restored or copied.

        In a restored table the planner has to begin a new store first; until then ``Unavailable``, as for plans.
        """
        for _ in range(ROUNDS_MOST):
            item = await self.client.get(*CLOCK)
            clock = read_clock(item, self.client.where) if item is not None else None
            if clock is not None and await self.stands(clock):
                return clock
            root = await self.roots.read()
            if clock is None:
                new = Clock(root.identity, root.origin, 0)
                with contextlib.suppress(ConditionError):  # another process was first
                    await self.client.put(new.item(), ConditionExpression="attribute_not_exists(pk)")
            else:
                await self.begin_new_life(clock, root.identity, root.origin)
        raise faults.damaged(self.client.where, "the fleet's clock is another table's again and again")

    async def stands(self, clock: Clock) -> bool:
        """Whether a clock is of the table that is there now. ``Misconfigured`` for one that takes no transactions."""
        described = await self.roots.table.described()
        if described.replicas:  # with strong consistency, or the table would have been refused already
            raise Misconfigured(
                "the table is a global one, which takes no transactions; a fleet's rows need them",
                where=self.client.where,
                hint="name a table of one AWS Region under [store], or use the postgresql store",
            )
        return clock.origin == described.origin

    async def begin_new_life(self, clock: Clock, life: str = "", origin: str = "") -> str:
        """Let every lease count as unknown from now on; nothing if the clock has moved. The new life."""
        new = Clock(life or secrets.token_hex(8), origin or clock.origin, clock.snapshot + 1)
        actions = clock.moves(self.client.table, new, Entry(secrets.token_hex(8), ()), self.client.where)
        with contextlib.suppress(UnmetError):
            await self.client.call("transact_write_items", TransactItems=actions)
        return new.life

    async def entry(self, snapshot: int) -> Entry | None:
        """What one transaction changed; None if it never was, or is too old."""
        item = await self.client.get(LOG, padded(snapshot))
        return self._entry(item) if item is not None else None

    async def log(self, after: int, to: int) -> Sequence[Entry] | None:
        """What the transactions after one and up to another changed, in order; None if an entry is missing."""
        found = await self.client.query(LOG, after=padded(after), to=padded(to)) if after < to else []
        if len(found) != to - after:
            return None
        return [self._entry(item) for item in found]

    def _entry(self, item: Item) -> Entry:
        try:
            return _decode(body(item))
        except (ValueError, msgspec.MsgspecError) as error:
            raise faults.damaged(self.client.where, f"the log of fleet rows: {error}") from error
