"""The chain of heads: which plans count.

Before a plan's head is set, its rows and its *header* are written: an item under the plan's number and nonce, with the
head it was made on and the names it changes. A planner that dies in between, or loses the race, leaves rows and header
that nobody may count. Which do is told from the root: the plan that it names counts, and the one that its header names,
and so on back. Each 500 plans the root names a body with all plans so far, so that nobody walks further than that, and
old headers can go.

Numbers rise along the chain, and a plan is published only on the very head it was made on. So a plan whose number is
not above the head's and that isn't in the chain will never be in it: its items may be deleted, without any clock.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.blobs import NOTHING, Blobs
from fencepost.adapters.store_dynamodb.client import Client
from fencepost.adapters.store_dynamodb.items import Item, body, key, packed, padded, text
from fencepost.adapters.store_dynamodb.root import Root
from fencepost.core.store import Head

PARTITION = "plan"
NAMES_AN_ITEM = 1000
BODY_EACH = 500
"""So many plans are walked at most; then a body names them all."""
HEADERS_KEPT = 2000
"""A reader that is further behind is given every endpoint's row."""
REMEMBERED = 20_000
"""From so many plans on a process reads the body anew when there is another one."""

_decode_names = msgspec.json.Decoder(list[str]).decode
encode_chain = msgspec.msgpack.encode
decode_chain = msgspec.msgpack.Decoder(dict[int, str]).decode


class Header(Struct, frozen=True, gc=False):
    """A plan's header: its number and nonce, those of the plan before, and the names it changes."""

    number: int
    nonce: str
    before: tuple[int, str]
    names: tuple[str, ...]


def header_items(head: Head, before: Head, names: Sequence[str], where: str) -> list[Item]:
    """A plan's header as items."""
    cuts = [names[at : at + NAMES_AN_ITEM] for at in range(0, len(names), NAMES_AN_ITEM)] or [()]
    return [
        {
            **key(PARTITION, f"{padded(head.number)}#{head.nonce}#{at:05d}"),
            "before": {"S": f"{padded(before.number)}#{before.nonce}"},
            "body": packed(msgspec.json.encode(cut), "a plan's list of names", where),
        }
        for at, cut in enumerate(cuts)
    ]


class Chain:
    """The plans that count, as far as this process has looked."""

    def __init__(self, client: Client, blobs: Blobs) -> None:
        self._client = client
        self._blobs = blobs
        self._plans: dict[int, str] = {}
        self._of = ""
        self._tip = (0, "")
        self._body = NOTHING

    async def at(self, root: Root) -> Mapping[int, str]:
        """The nonce of each plan in the chain, by number, as of a root. Raises :class:`~.blobs.GoneError`."""
        tip = (root.number, root.nonce)
        if (self._of, self._tip) == (root.identity, tip):
            return self._plans
        known = self._plans if self._of == root.identity and self._tip[0] <= root.number else None
        if len(self._plans) > REMEMBERED and self._body != root.chain:
            known = None  # the body may have been shortened since
        walked = None if known is None else await self.walk(root, self._tip)
        if walked is None:
            stored = await self._blobs.read(root.chain)
            known, self._body = decode_chain(stored) if stored else {}, root.chain
            base = max(known.items(), default=(0, ""))
            walked = await self.walk(root, base)
            if walked is None:
                raise faults.damaged(self._client.where, f"the chain of plans is broken below plan {root.number}")
        plans = dict(known or {})
        plans.update((header.number, header.nonce) for header in walked)
        self._plans, self._of, self._tip = plans, root.identity, tip
        return plans

    async def walk(self, root: Root, back_to: tuple[int, str]) -> Sequence[Header] | None:
        """The headers of the plans after one (number, nonce), newest first; None if that isn't in the chain."""
        number, nonce = root.number, root.nonce
        if (number, nonce) == back_to:
            return ()
        if number <= back_to[0]:
            return None
        found = _read(
            await self._client.query(PARTITION, after=f"{padded(back_to[0])}~", to=f"{padded(number)}~"),
            self._client.where,
        )
        walked: list[Header] = []
        while (number, nonce) != back_to:
            header = found.get((number, nonce))
            if header is None:
                return None
            walked.append(header)
            number, nonce = header.before
        return walked

    async def body(self, root: Root, head: Head) -> bytes:
        """The body that names all plans up to a head which is about to follow a root's."""
        return encode_chain({**await self.at(root), head.number: head.nonce})

    async def forget_headers(self, root: Root) -> None:
        """Delete the headers that no reader needs."""
        numbers = sorted(await self.at(root))
        if len(numbers) > HEADERS_KEPT + BODY_EACH:
            old = await self._client.query(PARTITION, after="0", to=padded(numbers[-HEADERS_KEPT]), names="pk, sk")
            await self._client.write(deletes=old)


def _read(items: Sequence[Item], where: str) -> dict[tuple[int, str], Header]:
    """Headers by number and nonce; those of which an item is missing (it is being written, or gone) show when named."""
    found: dict[tuple[int, str], Header] = {}
    try:
        for item in items:
            number, nonce, _ = text(item, "sk").split("#")
            before, _, before_nonce = text(item, "before").partition("#")
            at = (int(number), nonce)
            names = found[at].names if at in found else ()
            names += tuple(_decode_names(body(item)))
            found[at] = Header(*at, (int(before), before_nonce), names)
    except (ValueError, msgspec.MsgspecError) as error:
        raise faults.damaged(where, f"a plan's header: {error}") from error
    return found
