"""What plans are made from: configuration, membership, overrides, orders.

The root names an *index*, which names each part: small ones stand in it, big ones in items of their own. A change
writes the new part, then the new index, then sets the root with the counter raised. So the snapshot's number and what
it holds come in one read, and parts that didn't change aren't read again.

Carrying out an order is no change of inputs: it comes with a new head, and the two together name what was read.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from types import MappingProxyType
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.blobs import NOTHING, Blob, Blobs, GoneError
from fencepost.adapters.store_dynamodb.overrides import Words
from fencepost.adapters.store_dynamodb.root import Root, Roots, Work
from fencepost.core.store import Order
from fencepost.ports import Inputs, Overrides, PortError, PutBack, Refused

T = TypeVar("T")
CARRIED_OUT_KEPT = 10_000
"""So many orders that were carried out are remembered, so that one put again by a retry isn't done again."""
INDEX_INLINE_BYTES = 2048
PART_INLINE_BYTES = 384
ROUNDS_MOST = 20


class Index(Struct, frozen=True, gc=False):
    """Where each part of the inputs is. ``pools`` has each pool's (version, membership)."""

    config: Blob = NOTHING
    pools: dict[str, tuple[int, Blob]] = {}
    overrides: Blob = NOTHING
    orders: Blob = NOTHING
    carried_out: Blob = NOTHING

    def blobs(self) -> list[Blob]:
        """Every part."""
        return [self.config, self.overrides, self.orders, self.carried_out, *(blob for _, blob in self.pools.values())]


_encode = msgspec.msgpack.encode
_decode_index = msgspec.msgpack.Decoder(Index).decode
_decode_words = msgspec.msgpack.Decoder(Words).decode
_decode_orders = msgspec.msgpack.Decoder(list[Order]).decode
_decode_ids = msgspec.msgpack.Decoder(list[str]).decode
_NO_IDS: list[str] = []
_NO_ORDERS: list[Order] = []


class InputTables:
    """The queries, on one table. Each raises the port's errors."""

    def __init__(self, roots: Roots, blobs: Blobs) -> None:
        self.roots = roots
        self.blobs = blobs
        self._known: tuple[str, int, Blob, Inputs] | None = None
        self._tidying: set[asyncio.Task[None]] = set()

    async def index(self, root: Root) -> Index:
        """Where each part is. Raises :class:`GoneError`."""
        return await self._part(root.index, _decode_index, Index())

    async def _part(self, blob: Blob, decode: Callable[[bytes], T], empty: T) -> T:
        try:
            stored = await self.blobs.read(blob)
            return decode(stored) if stored else empty
        except (ValueError, msgspec.MsgspecError) as error:
            raise faults.damaged(self.roots.client.where, f"{blob.name or 'a part of the inputs'}: {error}") from error

    async def blob(self, root: Root, body: bytes, what: str) -> Blob:
        """A part's body, written so that it can be named by what follows ``root``."""
        return await self.blobs.keep(body, inline_most=PART_INLINE_BYTES, revision=root.revision, what=what)

    async def reading(self, work: Callable[[Root], Awaitable[T]]) -> T:
        """Do ``work`` on the root as of now; on a newer one if what it names was replaced meanwhile."""
        for _ in range(ROUNDS_MOST):
            try:
                return await work(await self.roots.read())
            except GoneError as gone:
                last = gone
        raise faults.damaged(self.roots.client.where, f"{last} is missing")

    async def change(self, work: Work[T], seen: Root | None = None) -> T:
        """:meth:`Roots.change`, tidying up after it."""
        before: list[tuple[Root, Root]] = []

        async def noted(root: Root) -> tuple[Root | None, T]:
            before.clear()
            wanted, outcome = await work(root)
            if wanted is not None:
                before.append((root, wanted))
            return wanted, outcome

        for _ in range(ROUNDS_MOST):
            try:
                outcome = await self.roots.change(noted, seen)
            except GoneError as gone:
                seen, last = None, gone
                continue
            for old, new in before:
                self._tidy(old, new)
            return outcome
        raise faults.damaged(self.roots.client.where, f"{last} is missing")

    def _tidy(self, old: Root, new: Root) -> None:
        if (old.index, old.chain) != (new.index, new.chain):
            task = asyncio.create_task(self._delete_replaced(old, new))
            self._tidying.add(task)
            task.add_done_callback(self._tidying.discard)

    async def _delete_replaced(self, old: Root, new: Root) -> None:
        with contextlib.suppress(PortError, faults.TableMissingError, GoneError):
            named = await self.named(new)
            gone = [blob for blob in await self._blobs_of(old) if blob.name and blob.name not in named]
            self.blobs.remember_only(named)
            await self.blobs.delete(gone)

    async def _blobs_of(self, root: Root) -> list[Blob]:
        return [root.index, root.chain, *(await self.index(root)).blobs()]

    async def named(self, root: Root) -> frozenset[str]:
        """The names of all bodies that a root names. Raises :class:`GoneError`."""
        return frozenset(blob.name for blob in await self._blobs_of(root))

    async def tidied(self) -> None:
        """Wait until what was replaced is deleted."""
        while self._tidying:
            await asyncio.wait(self._tidying)

    async def _with(self, root: Root, index: Index) -> Root:
        """The root with another index, and one more change of inputs."""
        blob = await self.blobs.keep(
            _encode(index), inline_most=INDEX_INLINE_BYTES, revision=root.revision, what="the index of the inputs"
        )
        return structs.replace(root, index=blob, snapshot=root.snapshot + 1)

    async def read(self) -> Inputs:
        """One snapshot of the inputs; the same object as long as nothing changes."""
        return await self.reading(self._read)

    async def _read(self, root: Root) -> Inputs:
        index = await self.index(root)
        known = self._known
        if known is not None and known[:2] == (root.identity, root.snapshot):
            if known[2] == index.orders:
                return known[3]
            inputs = structs.replace(known[3], orders=tuple(await self._orders(index)))
        else:
            await self.blobs.load(index.blobs())
            pools = {pool: (version, await self.blobs.read(blob)) for pool, (version, blob) in index.pools.items()}
            inputs = Inputs(
                root.snapshot,
                await self.blobs.read(index.config),
                MappingProxyType(pools),
                MappingProxyType((await self._words(index)).words),
                tuple(await self._orders(index)),
            )
            self.blobs.remember_only(await self.named(root))
        self._known = (root.identity, root.snapshot, index.orders, inputs)
        return inputs

    async def _words(self, index: Index) -> Words:
        return await self._part(index.overrides, _decode_words, Words())

    async def _orders(self, index: Index) -> list[Order]:
        return await self._part(index.orders, _decode_orders, _NO_ORDERS)

    async def put_order(self, order: Order) -> None:
        """Queue an order; nothing if it waits already or was carried out. ``Refused`` if that id is another order's."""

        async def work(root: Root) -> tuple[Root | None, None]:
            index = await self.index(root)
            waiting = await self._orders(index)
            same = next((one for one in waiting if one.id == order.id), None)
            if same is not None and same != order:
                raise Refused(f"order {order.id} is another one already", hint="give each order an id of its own")
            if same is not None or order.id in await self._part(index.carried_out, _decode_ids, _NO_IDS):
                return None, None
            orders = await self.blob(root, _encode([*waiting, order]), "the list of waiting orders")
            return await self._with(root, structs.replace(index, orders=orders)), None

        await self.change(work)

    async def spent(self, root: Root, new: Root, spends: Sequence[str]) -> Root:
        """``new``, which is to follow ``root``, with these orders carried out."""
        index = await self.index(root)
        done = await self._part(index.carried_out, _decode_ids, _NO_IDS)
        done = [*done, *(order for order in dict.fromkeys(spends) if order not in frozenset(done))][-CARRIED_OUT_KEPT:]
        waiting = [order for order in await self._orders(index) if order.id not in spends]
        index = structs.replace(
            index,
            orders=await self.blob(root, _encode(waiting), "the list of waiting orders") if waiting else NOTHING,
            carried_out=await self.blob(root, _encode(done), "the list of orders carried out"),
        )
        return structs.replace(new, index=(await self._with(root, index)).index)

    async def put_config(self, body: bytes, expected: bytes) -> bool:
        """Compare-and-set on the loaded configuration; whether it was the expected one (b"": none)."""

        async def work(root: Root) -> tuple[Root | None, bool]:
            index = await self.index(root)
            if await self.blobs.read(index.config) != expected:
                return None, False
            if body == expected:
                return None, True
            config = await self.blob(root, body, "the configuration")
            return await self._with(root, structs.replace(index, config=config)), True

        return await self.change(work)

    async def membership(self, pool: str) -> tuple[int, bytes]:
        """A pool's (version, JSON); (0, b"") before the first."""

        async def work(root: Root) -> tuple[int, bytes]:
            version, blob = (await self.index(root)).pools.get(pool, (0, NOTHING))
            return version, await self.blobs.read(blob)

        return await self.reading(work)

    async def put_membership(self, pool: str, expected: int, body: bytes) -> bool:
        """Compare-and-set on the pool's version; whether it was the expected one."""

        async def work(root: Root) -> tuple[Root | None, bool]:
            index = await self.index(root)
            if index.pools.get(pool, (0, NOTHING))[0] != expected:
                return None, False
            blob = await self.blob(root, body, f"the membership of {pool}")
            pools = {**index.pools, pool: (expected + 1, blob)}
            return await self._with(root, structs.replace(index, pools=pools)), True

        return await self.change(work)

    async def overrides(self, known: Overrides | None) -> Overrides:
        """The overrides alone; ``known`` itself if no input changed since."""

        async def work(root: Root) -> Overrides:
            if known is not None and (known.store, known.snapshot) == (root.identity, root.snapshot):
                return known
            words = await self._words(await self.index(root))
            return Overrides(root.identity, root.snapshot, MappingProxyType(words.words))

        return await self.reading(work)

    async def put_override(self, name: str, body: bytes) -> None:
        """Place or replace an override."""

        async def work(root: Root) -> tuple[Root | None, None]:
            index = await self.index(root)
            return await self._worded(root, index, (await self._words(index)).placed(name, body)), None

        await self.change(work)

    async def drop_override(self, name: str) -> bool:
        """End an override; whether there was one."""

        async def work(root: Root) -> tuple[Root | None, bool]:
            index = await self.index(root)
            words = await self._words(index)
            if name not in words.words:
                return None, False
            return await self._worded(root, index, words.ended(name)), True

        return await self.change(work)

    async def put_back(self, back: PutBack) -> Sequence[str] | None:
        """Place what a lost store held; the ids that changed, or None if the inputs aren't those seen any more."""

        async def work(root: Root) -> tuple[Root | None, Sequence[str] | None]:
            if (root.identity, root.snapshot) != (back.into, back.seen):
                return None, None
            index = await self.index(root)
            words = await self._words(index)
            if words.put_back.get(back.lost, -1) >= back.snapshot:
                return None, ()
            after, changed = words.restored(back)
            new = await self._worded(root, index, after)
            return (new if changed else structs.replace(new, snapshot=root.snapshot)), changed

        return await self.change(work)

    async def _worded(self, root: Root, index: Index, words: Words) -> Root:
        blob = await self.blob(root, _encode(words), "the list of overrides")
        return await self._with(root, structs.replace(index, overrides=blob))
