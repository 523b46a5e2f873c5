"""The root: the one item that everything hangs on, and the one compare-and-set.

All that must change together stands in this item: the head, the counter of input snapshots, and the names of the bodies
that hold configuration, membership, overrides and orders. What is big stands in items of its own that never change
(:mod:`.blobs`) and was written before. So a change is one conditional write of one item, and a snapshot is one read of
it: no transaction is needed, no re-reading, and it costs half as much.

*The compare-and-set* is on ``token``, drawn anew for each change. A change that was outrun is made anew on what stands
there now (which the refusal itself says), with growing random pauses, for five seconds.

*Unknown outcome.* When no answer comes, the same item is sent again under the same condition. It can be applied once at
most, since its token can be expected only once; and the root carries the tokens of its last 32 changes, so a refusal
says whether the first sending had been applied. Only if nothing can be learned in time is it ``Unavailable``.
"""

import asyncio
import contextlib
import logging
import random
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.blobs import NOTHING, Blob
from fencepost.adapters.store_dynamodb.client import PATIENCE_S, PAUSE_LEAST_S, Client
from fencepost.adapters.store_dynamodb.faults import ConditionError, LostError, TableMissingError
from fencepost.adapters.store_dynamodb.items import Item, body, is_ours, key, number, packed, text
from fencepost.adapters.store_dynamodb.table import Described, Table
from fencepost.core.store import Head
from fencepost.ports import Misconfigured, PortError, Unavailable

log = logging.getLogger(__name__)
T = TypeVar("T")
FORMAT = 1
ROOT = ("root", "root")
TOKENS_KEPT = 32
RACE_PAUSE_MOST_S = 0.3
_decode = msgspec.msgpack.Decoder(type=tuple[str, str, tuple[str, ...], Blob, Blob, int]).decode


class Root(Struct, frozen=True, gc=False):
    """What the root item says. ``number``, ``nonce`` and ``inputs`` are the head's, ``snapshot`` the inputs' now.

    ``revision`` counts the changes; ``token`` is the last one's, ``tokens`` the last 32 changes'; ``index`` names the
    inputs (:mod:`.inputs`), ``chain`` the plans before the last ``since_chain`` ones (:mod:`.chain`). ``origin`` is the
    table it was made in.
    """

    identity: str
    origin: str
    number: int = 0
    nonce: str = ""
    inputs: int = 0
    snapshot: int = 0
    revision: int = 0
    tokens: tuple[str, ...] = ()
    index: Blob = NOTHING
    chain: Blob = NOTHING
    since_chain: int = 0

    @property
    def token(self) -> str:
        """What a compare-and-set is on."""
        return self.tokens[-1]

    @property
    def head(self) -> Head:
        """The newest plan."""
        return Head(self.identity, self.number, self.nonce, self.inputs)

    def item(self) -> Item:
        """The item that says it."""
        kept = (self.identity, self.origin, self.tokens, self.index, self.chain, self.since_chain)
        return {
            **key(*ROOT),
            "format": {"N": str(FORMAT)},
            "number": {"N": str(self.number)},
            "nonce": {"S": self.nonce},
            "inputs": {"N": str(self.inputs)},
            "snapshot": {"N": str(self.snapshot)},
            "revision": {"N": str(self.revision)},
            "token": {"S": self.token},
            "body": packed(msgspec.msgpack.encode(kept), "the root", ""),
        }


def read_root(item: Item, where: str) -> Root:
    """The root out of its item. Raises ``Misconfigured``."""
    try:
        version = number(item, "format")
        if version > FORMAT:
            raise Misconfigured(
                f"the store has format {version}; this fencepost knows formats up to {FORMAT}",
                where=where,
                hint="run the newer fencepost that wrote it; nothing was changed",
            )
        identity, origin, tokens, index, chain, since_chain = _decode(body(item))
        counts = (number(item, "inputs"), number(item, "snapshot"), number(item, "revision"))
        root = Root(
            identity,
            origin,
            number(item, "number"),
            text(item, "nonce"),
            *counts,
            tokens,
            index,
            chain,
            since_chain,
        )
        token = text(item, "token")
    except (ValueError, msgspec.MsgspecError) as error:
        raise faults.damaged(where, f"root item: {error}") from error
    if token not in tokens[-1:]:
        raise faults.damaged(where, "root item: its token is another one")
    return root


Work = Callable[[Root], Awaitable[tuple[Root | None, T]]]
"""Makes of a root the one to put in its place (None: no change), and what the caller is told. May be called again."""


class Roots:
    """Reads and changes the root.

    ``told`` is called with each root that this process has set; ``lost`` with the old and the new store's mark when one
    was begun anew in a restored table.
    """

    def __init__(self, client: Client, table: Table) -> None:
        self.client = client
        self.table = table
        self.told: Callable[[Root], None] = lambda _: None
        self.lost: Callable[[str, str], Awaitable[None]] = _unheard

    async def read(self) -> Root:
        """The root as of now; made, with a new identity, if we may and there is none."""
        for _ in range(4):  # seen missing, made, filled, read
            described = await self.table.described()
            try:
                item = await self.client.get(*ROOT)
                if item is None:
                    await self._make(described)
                    continue
            except TableMissingError:
                self.table.forget()
                continue
            root = read_root(item, self.client.where)
            if root.origin == described.origin:
                return root
            await self._begin_anew(root, described)
        raise faults.missing(self.client.where)

    async def _make(self, described: Described) -> None:
        where = self.client.where
        if not self.table.create:
            raise Unavailable("the store's table is empty", where=where, hint=faults.MAKE_HINT)
        # A role that still knew an older table may have been first with a sign of life: such items are no others'.
        found = await self.client.call("scan", TableName=self.client.table, ConsistentRead=True, Limit=1)
        if not all(is_ours(item) for item in found.get("Items", ())):
            raise Misconfigured(
                "the table holds another program's items",
                where=where,
                hint="name another table under [store]; nothing was changed",
            )
        new = Root(_draw(), described.origin, tokens=(_draw(),))
        with contextlib.suppress(ConditionError):  # another planner was first
            await self.client.put(new.item(), ConditionExpression="attribute_not_exists(pk)")

    async def _begin_anew(self, copy: Root, described: Described) -> None:
        """A new store in a table that holds another table's items. What it held is never named again."""
        where = self.client.where
        if described.replicates(copy.origin):
            raise Misconfigured(
                f"the store was made in another AWS Region's replica ({copy.origin.split(':')[3]})",
                where=where,
                hint="let every role of this region use that aws_region",
            )
        if not self.table.create:
            what = "the table was restored or copied, so its store counts as lost"
            hint = "the planner begins a new one in it; start it (`fencepost up`). Nothing is taken from the copy"
            raise Unavailable(what, where=where, hint=hint)
        identity = _draw()
        while identity[:4] == copy.identity[:4]:  # markers carry these four digits
            identity = _draw()
        new = Root(identity, described.origin, revision=copy.revision + 1, tokens=(_draw(),))
        if await self._set(copy, new) is None:
            log.warning("%s: restored or copied; store %s counts as lost", where, copy.identity[:4])
            await self.lost(copy.identity[:4], identity[:4])

    async def change(self, work: Work[T], seen: Root | None = None) -> T:
        """Do ``work`` on the root (on ``seen`` first, if given) until it stands; what it tells."""
        root = seen if seen is not None else await self.read()
        deadline, pause = time.monotonic() + PATIENCE_S, PAUSE_LEAST_S
        while True:
            wanted, outcome = await work(root)
            if wanted is None:
                return outcome
            tokens = (*root.tokens, _draw())[-TOKENS_KEPT:]
            new = structs.replace(wanted, revision=root.revision + 1, tokens=tokens)
            stands = await self._set(root, new)
            if stands is None:
                self.told(new)
                return outcome
            if time.monotonic() >= deadline:
                hint = "too many write at once; it goes on by itself"
                raise Unavailable("the store's root changes too fast", where=self.client.where, hint=hint)
            root = stands
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311  nothing secret about it
            pause = min(pause * 2, RACE_PAUSE_MOST_S)

    async def _set(self, old: Root, new: Root) -> Root | None:
        """The compare-and-set: None if ``new`` was applied, or else the root that stands instead."""
        deadline, lost = time.monotonic() + PATIENCE_S, None
        while True:
            try:
                await self.client.put(
                    new.item(),
                    once=True,
                    ConditionExpression="#token = :token",
                    ExpressionAttributeNames={"#token": "token"},
                    ExpressionAttributeValues={":token": {"S": old.token}},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except LostError as error:
                lost = error.problem
                if time.monotonic() >= deadline:
                    raise lost from error
                await asyncio.sleep(random.uniform(0, RACE_PAUSE_MOST_S))  # noqa: S311  nothing secret about it
            except PortError as error:
                raise lost or error from error  # a sending whose answer was lost leaves the outcome unknown
            except ConditionError as error:
                stands = await self._instead(error)
                return None if lost is not None and self._applied(old, new, stands, lost) else stands
            except TableMissingError:
                self.table.forget()
                raise lost or faults.missing(self.client.where) from None
            else:
                return None

    async def _instead(self, error: ConditionError) -> Root:
        if error.item is None:
            return await self.read()
        return read_root(error.item, self.client.where)

    def _applied(self, old: Root, new: Root, stands: Root, lost: PortError) -> bool:
        """Whether ``new`` was applied though its answer was lost, as what stands now tells."""
        if new.token in stands.tokens:
            return True
        if stands.identity != old.identity or stands.revision - old.revision > len(stands.tokens):
            raise lost
        return False


async def _unheard(_old: str, _new: str) -> None:
    """Nobody wants to be told."""


def _draw() -> str:
    return secrets.token_hex(8)
