"""The network manager's hands on the store: passes over what changed, proofs and acknowledgements many hosts a call."""

import time
from collections.abc import Awaitable, Callable, Sequence

from fencepost.core.capacity.drain import NETWORK
from fencepost.core.capacity.fleet_store import Change, Claim, Group, Versioned
from fencepost.core.capacity.network_manager import Look, Publish, Record, claim_of
from fencepost.core.capacity.rows import DrainRow, HostRow, Kind, NetworkRow, ShardRow
from fencepost.core.capacity.shards import shard_of
from fencepost.ports import Unavailable
from fencepost.ports.fleet import FleetStorePort, Page, Written
from fencepost.roles.fleet.gathering import Gathering
from fencepost.roles.fleet.network_table import NetworkTable

PROOFS_MOST = 200
RECORDS_MOST = 500
Place = tuple[Kind, str]
Accept = Callable[[], Awaitable[tuple[str, ...] | None]]
"""Reads what the configuration lets reach instances; None if nothing is known for certain now."""


class NetworkHands:
    """Carries out what the network manager asks of the store, and keeps ``table`` true to it.

    ``acknowledged`` counts the acknowledgements seen so far, whoever wrote them.
    """

    def __init__(self, store: FleetStorePort, accept: Accept) -> None:
        self.store = store
        self.table = NetworkTable()
        self.acknowledged = 0
        self.proofs: Gathering[str, Look] = Gathering(self._prove, PROOFS_MOST)
        self.records: Gathering[Record, None] = Gathering(self._record, RECORDS_MOST)
        self._accept = accept
        self._drain: tuple[str, int] = ("", 0)

    # Passes

    async def read_states(self) -> None:
        """Network rows, first; another store than before begins again."""
        page = await self.store.rows("network", None, self.table.since["network"])
        if page.life != self.table.life:
            self.table.begin(page.life)
            page = await self.store.rows("network", None, 0)
        self._same(page)
        self.acknowledged += self.table.take_states(page)

    async def read_places(self) -> None:
        """Configuration, shards and hosts, once the network rows are read: so they are never older than those."""
        table = self.table
        accept = await self._accept()
        shards = self._same(await self.store.rows("shard", None, table.since["shard"]))
        hosts = self._same(await self.store.rows("host", None, table.since["host"]))
        table.take_shards(shards)
        table.take_hosts(hosts)
        if accept is not None:
            table.take_accept(accept)

    def _same(self, page: Page) -> Page:
        if page.life != self.table.life:
            raise Unavailable("another store stands there than a moment ago", hint="it is read anew")
        return page

    async def publish(self, effect: Publish) -> None:
        """Commit rows, each a group of its own; what had changed is read again."""
        await self._commit(effect.claim, effect.changes)

    async def delete(self, spent: Sequence[Versioned]) -> None:
        """Delete rows of attempts that nobody minds any more."""
        by_claim: dict[Claim, list[Change]] = {}
        for each in spent:
            row = each.row
            shard = self.table.shard(row.host) if isinstance(row, NetworkRow) else None
            if shard is not None:
                change = Change(None, each.revision, ("network", row.key))
                by_claim.setdefault(claim_of(shard, self.table.life), []).append(change)
        for claim, changes in by_claim.items():
            await self._commit(claim, changes)

    async def _commit(self, claim: Claim, changes: Sequence[Change]) -> None:
        groups: list[Group] = [(change,) for change in changes]
        written = await self.store.commit(claim, groups)
        await self._took(changes, written, claim)

    async def _took(self, changes: Sequence[Change], written: Written | None, claim: Claim) -> None:
        """Keep what was written, and read again what was not."""
        refused = []
        applied = written.applied if written is not None else (False,) * len(changes)
        for change, ok in zip(changes, applied, strict=True):
            if not ok or written is None:
                refused.append(change.place)
            elif change.row is None:
                self.table.lose_state(change.place[1])
            else:
                self.acknowledged += self.table.put_state(Versioned(change.row, written.snapshot))
        if refused:
            await self._reread(claim.shard, refused)

    async def _reread(self, shard: int, places: Sequence[Place]) -> None:
        proof = await self.store.prove(shard, places)
        if proof.life != self.table.life:
            raise Unavailable("another store stands there than a moment ago", hint="it is read anew")
        for (_, key), found in zip(places, proof.rows, strict=True):
            if found is None:
                self.table.lose_state(key)
            else:
                self.acknowledged += self.table.put_state(found)
            self.table.compare[key] = None
        if proof.shard is not None:
            self.table.shards[shard] = proof.shard

    # Chains

    async def _prove(self, hosts: Sequence[str]) -> list[Look]:
        """Looks at many hosts, one call a shard."""
        table, looks = self.table, {}
        by_shard: dict[int, list[str]] = {}
        for host in hosts:
            by_shard.setdefault(shard_of(host, max(1, table.of)), []).append(host)
        for shard, names in by_shard.items():
            asked = [(name, list(table.ids(name))) for name in names]
            places: list[Place] = []
            for name, ids in asked:
                places += [("host", name), *(("network", id_) for id_ in ids)]
            proof = await self.store.prove(shard, list(dict.fromkeys(places)))
            rows = dict(zip(dict.fromkeys(places), proof.rows, strict=True))
            for name, ids in asked:
                looks[name] = self._look(proof.life, proof.shard, name, [rows["network", id_] for id_ in ids], rows)
        return [looks[host] for host in hosts]

    def _look(
        self,
        life: str,
        shard: ShardRow | None,
        name: str,
        states: Sequence[Versioned | None],
        rows: dict[Place, Versioned | None],
    ) -> Look:
        found = rows["host", name]
        host = found.row if found is not None and isinstance(found.row, HostRow) else None
        return Look(life, shard, host, tuple(each for each in states if each is not None))

    async def _record(self, records: Sequence[Record]) -> list[None]:
        """Acknowledgements of many hosts, one commit a claim. Two chains never have one row."""
        by_claim: dict[Claim, dict[Place, Change]] = {}
        for record in records:
            for change in record.changes:
                by_claim.setdefault(record.claim, {})[change.place] = change
        for claim, changes in by_claim.items():
            await self._commit(claim, tuple(changes.values()))
        return [None] * len(records)

    # What others go by

    async def drain_row(self) -> DrainRow | None:
        """The stage's row as it stands."""
        proof = await self.store.prove(1, [("drain", NETWORK)])
        found = proof.rows[0]
        self._drain = (proof.life, found.revision if found is not None else 0)
        return found.row if found is not None and isinstance(found.row, DrainRow) else None

    async def put_drain(self, row: DrainRow) -> bool:
        """Replace the stage's row; False if another manager was first, whose word is as good."""
        life, revision = self._drain
        if life != self.table.life:
            await self.drain_row()
            revision = self._drain[1]
        written = await self.store.commit(None, [(Change(stamped(row), revision),)])
        if written is None or not written.applied[0]:
            await self.drain_row()
            return False
        self._drain = (self.table.life, written.snapshot)
        return True


def stamped(row: DrainRow) -> DrainRow:
    """The row with the time at which it is written, for people."""
    return DrainRow(row.stage, row.depth, row.bound, row.rate, row.oldest, time.time_ns())
