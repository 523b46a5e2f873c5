"""Plans and their rows: publishing, and reading what is newest.

*Rows first.* A plan's rows are items under name, plan number and nonce; they count once the chain names the plan
(:mod:`.chain`). Nothing is ever overwritten, so a reader needs no lock: what the root names is whole.

*Newest and old.* Rows are written into the partition ``row``; those that a newer one has followed are moved to ``old``
by whoever looks for spent rows (:mod:`.spent`). So reading every endpoint's newest row costs about one row each,
however many are kept. Both are read in this order, and moved in it: what isn't in ``row`` any more is in ``old``.

*After a head* only the headers since are read, and exactly the rows they name.
"""

import contextlib
import secrets
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import structs

from fencepost.adapters.store_bodies import decode_row, shared
from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.blobs import GoneError
from fencepost.adapters.store_dynamodb.chain import BODY_EACH, Chain, Header, encode_chain, header_items
from fencepost.adapters.store_dynamodb.client import Client, at_once
from fencepost.adapters.store_dynamodb.inputs import InputTables
from fencepost.adapters.store_dynamodb.items import ALL_SHARDS, Item, body, key, packed, padded, shard, text
from fencepost.adapters.store_dynamodb.root import Root, Roots
from fencepost.core.store import Head, Plan, Row, stamped
from fencepost.ports import PortError, Unavailable

NONCE_BYTES = 8
ROUNDS_MOST = 20
PLANS_KEPT = 10_000
"""Plans of which no row is left are remembered so far back."""
ROW, OLD = "row", "old"

encode = msgspec.json.encode


def row_key(kind: str, name: str, number: int, nonce: str) -> dict[str, Item]:
    """Where a plan's row of an endpoint is: ``kind`` is ROW or OLD."""
    return key(f"{kind}#{shard(name)}", f"{name}#{padded(number)}#{nonce}")


def place_of(item: Item) -> tuple[str, int, str]:
    """A row item's name, plan number and nonce. Raises ``ValueError``."""
    name, number, nonce = text(item, "sk").rsplit("#", 2)
    return name, int(number), nonce


class Plans:
    """The queries, on one table."""

    def __init__(self, client: Client, roots: Roots, chain: Chain, inputs: InputTables) -> None:
        self.client = client
        self.roots = roots
        self.chain = chain
        self.inputs = inputs

    async def publish(self, plan: Plan) -> Head | None:
        """Rows, header, then the head by compare-and-set; None if another plan came first."""
        root = await self.roots.read()
        if root.head != plan.expected:
            return None
        head, rows = stamped(plan, secrets.token_hex(NONCE_BYTES))
        where = self.client.where
        items: list[Item] = [
            {
                **row_key(ROW, row.name, head.number, head.nonce),
                "body": packed(encode(row), f"the row of {row.name}", where),
            }
            for row in rows
        ]
        items += header_items(head, plan.expected, [row.name for row in rows], where)
        await self.client.write(items)

        async def work(root: Root) -> tuple[Root | None, Head | None]:
            if root.head != plan.expected:
                return None, None
            new = structs.replace(root, number=head.number, nonce=head.nonce, inputs=head.inputs)
            new = structs.replace(new, since_chain=root.since_chain + 1)
            if plan.spends:
                new = await self.inputs.spent(root, new, plan.spends)
            if new.since_chain >= BODY_EACH:
                kept = await self.chain.body(root, head)
                new = structs.replace(new, since_chain=0, chain=await self.inputs.blob(root, kept, "the chain"))
            return new, head

        published = await self.inputs.change(work, root)
        if published is None:
            await self._clear(head, items)
        return published

    async def _clear(self, head: Head, items: Sequence[Item]) -> None:
        """Delete what an outrun plan has written, once the chain says that it can't count; else the janitor will."""
        with contextlib.suppress(PortError, faults.TableMissingError, GoneError):
            root = await self.roots.read()
            if root.number >= head.number and (await self.chain.at(root)).get(head.number) != head.nonce:
                await self.client.write(deletes=items)

    async def newest_rows(self, since: Head | None) -> tuple[Head, Sequence[Row]]:
        """The head, and the newest row of each endpoint that a plan after ``since`` changed (of all if unknown)."""
        rows: dict[str, Item] = {}
        known: tuple[int, str] | None = None
        root = await self.roots.read()
        if since is not None and since.store == root.identity:
            known = (since.number, since.nonce)
        for _ in range(ROUNDS_MOST):
            walked = None if known is None else await self.chain.walk(root, known)
            if walked is None:
                rows = await self._every_newest(root)
            else:
                changed = await self._named(walked)
                if changed is None:  # a row was moved, since still newer ones have come; or a backup had it not yet
                    again = await self.roots.read()
                    if again.head == root.head:
                        known = None
                    root = again
                    continue
                rows |= changed
                if since is not None:
                    return root.head, self._read(rows.values())
            # While all rows were read some may have been moved away: a newer plan tells which.
            known, since = (root.number, root.nonce), root.head
            again = await self.roots.read()
            if again.head == root.head:
                return root.head, self._read(rows.values())
            if again.identity != root.identity:
                known = None
            root = again
        raise Unavailable("plans follow each other too fast to be read", where=self.client.where)

    async def _named(self, walked: Sequence[Header]) -> dict[str, Item] | None:
        """The newest row of each endpoint that these headers, newest first, name; None if one isn't there."""
        keys: dict[str, Item] = {}
        for header in walked:
            for name in header.names:
                keys.setdefault(name, row_key(ROW, name, header.number, header.nonce))
        found = {place_of(item)[0]: item for item in await self.client.fetch(list(keys.values()))}
        return found if len(found) == len(keys) else None

    async def _every_newest(self, root: Root) -> dict[str, Item]:
        chain = await self.chain.at(root)
        newest: dict[str, tuple[int, Item]] = {}
        for item in await self.all_rows(ROW):
            name, number, nonce = self.place(item)
            if chain.get(number) == nonce and number >= newest.get(name, (0, item))[0]:
                newest[name] = (number, item)
        return {name: item for name, (_, item) in newest.items()}

    async def all_rows(self, kind: str, names: str = "") -> list[Item]:
        """Every row item of a kind, counted or not."""
        found = await at_once(self.client.query(f"{kind}#{one}", names=names) for one in ALL_SHARDS)
        return [item for items in found for item in items]

    async def items_of(self, name: str, root: Root) -> list[tuple[int, str, Item]]:
        """The row items of an endpoint that count, newest first: (plan number, nonce, item)."""
        chain = await self.chain.at(root)
        found: dict[int, tuple[str, Item]] = {}
        for kind in (ROW, OLD):
            for item in await self.client.query(f"{kind}#{shard(name)}", begins=f"{name}#"):
                _, number, nonce = self.place(item)
                if chain.get(number) == nonce:
                    found[number] = (nonce, item)
        return [(number, *found[number]) for number in sorted(found, reverse=True)]

    async def rows_of(self, name: str) -> Sequence[Row]:
        """Every kept row of an endpoint, newest first."""
        root = await self.roots.read()
        return self._read([item for _, _, item in await self.items_of(name, root)])

    async def shorten_chain(self, seen: Root, with_rows: frozenset[int]) -> None:
        """Forget plans of which no row is left, once there are many.

        ``with_rows`` are the plans that had rows after ``seen`` was read. Rows come before their plan's head, so a plan
        up to ``seen`` that isn't among them will have none.
        """

        async def work(root: Root) -> tuple[Root | None, None]:
            chain = await self.chain.at(root)
            recent = sorted(chain)[-PLANS_KEPT:][0] if chain else 0
            kept = {
                number: nonce
                for number, nonce in chain.items()
                if number >= recent or number > seen.number or number in with_rows
            }
            if len(kept) + PLANS_KEPT // 2 > len(chain) or root.identity != seen.identity:
                return None, None
            blob = await self.inputs.blob(root, encode_chain(kept), "the chain")
            return structs.replace(root, since_chain=0, chain=blob), None

        await self.inputs.change(work)

    def place(self, item: Item) -> tuple[str, int, str]:
        """A row item's name, plan number and nonce. Raises ``Misconfigured``."""
        try:
            return place_of(item)
        except ValueError as error:
            raise faults.damaged(self.client.where, f"a row's key: {error}") from error

    def row(self, item: Item) -> Row:
        """A row out of its item. Raises ``Misconfigured``, naming it."""
        try:
            return decode_row(body(item))
        except (ValueError, msgspec.MsgspecError) as error:
            raise faults.damaged(self.client.where, f"row {item['sk']['S']}: {error}") from error

    def _read(self, items: Iterable[Item]) -> Sequence[Row]:
        """The rows."""
        return shared(self.row(item) for item in items)
