"""What is observed and told, and decides nothing by itself: one item each, written without touching the root.

None of it raises the input snapshot or wakes whoever waits for plans.
"""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.client import Client, at_once
from fencepost.adapters.store_dynamodb.items import ALL_SHARDS, Item, body, key, packed, padded, shard, text
from fencepost.ports import Beat, Enacted

T = TypeVar("T")
REPORT, BEAT, FINDING, ENACTED = "report", "beat", "finding", "enacted"
_WHOLE, _SMALL = "report", "beat"
_ASKED_ONE_BY_ONE = 500

_encode = msgspec.json.encode
_decode_beat = msgspec.json.Decoder(Beat).decode
_decode_findings = msgspec.json.Decoder(dict[str, tuple[str, str]]).decode
_decode_enacted = msgspec.json.Decoder(Enacted).decode


class Telemetry:
    """The queries, on one table."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def _read(self, item: Item, decode: Callable[[bytes], T]) -> T:
        try:
            return decode(body(item))
        except (ValueError, msgspec.MsgspecError) as error:
            key_of = f"{item.get('pk', {}).get('S')} {item.get('sk', {}).get('S')}"
            raise faults.damaged(self._client.where, f"item {key_of}: {error}") from error

    async def _put(self, place: dict[str, Any], stored: bytes, what: str) -> None:
        await self._client.put({**place, "body": packed(stored, what, self._client.where)})

    async def put_report(self, zone: str, pool: str, report: bytes) -> None:
        """A checker's report, in place of its last; the heartbeat stays."""
        await self._put(key(f"{REPORT}#{pool}", f"{zone}#{_WHOLE}"), report, f"the report on {pool} from {zone}")

    async def beat_report(self, zone: str, pool: str, beat: bytes) -> None:
        """A checker's heartbeat, in place of its last; the report stays."""
        await self._put(key(f"{REPORT}#{pool}", f"{zone}#{_SMALL}"), beat, f"the heartbeat on {pool} from {zone}")

    async def reports(self, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
        """Each checker's (zone, report, heartbeat), b"" for what it hasn't sent yet."""
        found: dict[str, dict[str, bytes]] = {}
        for item in await self._client.query(f"{REPORT}#{pool}"):
            zone, _, kind = text(item, "sk").rpartition("#")
            found.setdefault(zone, {})[kind] = self._read(item, bytes)
        return tuple((zone, kinds.get(_WHOLE, b""), kinds.get(_SMALL, b"")) for zone, kinds in sorted(found.items()))

    async def note_enacted(self, enacted: Sequence[Enacted]) -> None:
        """Remember who enacted what; a late note about an older generation changes nothing."""
        await at_once(self._note(one) for one in enacted)

    async def _note(self, one: Enacted) -> None:
        order = "#".join(padded(number) for number in (one.generation.epoch, one.generation.number, one.at))
        with contextlib.suppress(faults.ConditionError):
            await self._client.put(
                {
                    **key(f"{ENACTED}#{shard(one.name)}", one.name),
                    "order": {"S": order},
                    "body": packed(_encode(one), "a note", self._client.where),
                },
                ConditionExpression="attribute_not_exists(pk) OR #order <= :order",
                ExpressionAttributeNames={"#order": "order"},
                ExpressionAttributeValues={":order": {"S": order}},
            )

    async def enacted(self, names: Collection[str] | None) -> Mapping[str, Enacted]:
        """The last enactment of each endpoint, or of these."""
        if names is None or len(names) > _ASKED_ONE_BY_ONE:
            parts = await at_once(self._client.query(f"{ENACTED}#{one}") for one in ALL_SHARDS)
            found = [item for items in parts for item in items]
        else:
            found = await self._client.fetch([key(f"{ENACTED}#{shard(name)}", name) for name in sorted(set(names))])
        notes = (self._read(item, _decode_enacted) for item in found)
        wanted = None if names is None else frozenset(names)
        return {one.name: one for one in notes if wanted is None or one.name in wanted}

    async def put_findings(self, by: str, found: Mapping[str, tuple[str, str]]) -> None:
        """A role's findings, in place of its last."""
        if found:
            await self._put(key(FINDING, by), _encode(dict(found)), f"the list of findings of {by}")
        else:
            await self._client.call("delete_item", TableName=self._client.table, Key=key(FINDING, by))

    async def findings(self) -> Mapping[str, Mapping[str, tuple[str, str]]]:
        """Each role's findings; a role that has none isn't named."""
        return {text(item, "sk"): self._read(item, _decode_findings) for item in await self._client.query(FINDING)}

    async def beat(self, one: Beat) -> None:
        """A role's sign of life, in place of its last."""
        await self._put(key(BEAT, one.role), _encode(one), f"the sign of life of {one.role}")

    async def beats(self) -> Sequence[Beat]:
        """Each role's last sign of life."""
        return tuple(self._read(item, _decode_beat) for item in await self._client.query(BEAT))
