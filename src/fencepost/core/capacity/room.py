"""Where there is room: hosts by zone and by how much is free, so that choosing one of a million takes no scan.

Each zone keeps a heap for each number of free places. A heap's order is a hash of the host's name and a salt; managers
of different shards have different salts, so that they don't all choose the same host and overwrite one another's rows.
Entries that are no longer true are dropped when they come to the top.
"""

from collections import defaultdict
from collections.abc import MutableMapping
from hashlib import blake2b
from heapq import heappop, heappush

from fencepost.core.capacity.attempts import free_addresses, free_places, free_room, shut_places
from fencepost.core.capacity.rows import HostRow

_SLACK = 64


def hashed(text: str) -> int:
    """64 bits of a text, the same everywhere."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


class _Zone:
    """One zone's hosts that have room."""

    def __init__(self) -> None:
        self.at: dict[str, int] = {}
        self.live: dict[int, int] = {}
        self.heaps: dict[int, list[tuple[int, str]]] = defaultdict(list)

    def put(self, host: str, key: int, free: int) -> None:
        was = self.at.get(host, 0)
        if was == free:
            return
        if was:
            self._count(was, -1)
        self.at[host] = free
        if not free:
            del self.at[host]
            return
        self._count(free, 1)
        heap = self.heaps[free]
        heappush(heap, (key, host))
        if len(heap) > 2 * self.live[free] + _SLACK:
            heap[:] = sorted({entry for entry in heap if self.at.get(entry[1]) == free})

    def _count(self, free: int, by: int) -> None:
        self.live[free] = self.live.get(free, 0) + by
        if not self.live[free]:
            del self.live[free]

    def best(self, skip: set[str]) -> str:
        """The host with most room that isn't to be skipped; "" if there is none."""
        for free in sorted(self.live, reverse=True):
            heap, aside = self.heaps[free], []
            chosen = ""
            while heap and not chosen:
                if self.at.get(heap[0][1]) != free:
                    heappop(heap)
                elif heap[0][1] in skip:
                    aside.append(heappop(heap))
                else:
                    chosen = heap[0][1]
            for entry in aside:
                heappush(heap, entry)
            if chosen:
                return chosen
        return ""


class Room:
    """All hosts as the rows say, or as they would be after what is about to be written."""

    def __init__(self, life: str, salt: str = "", rows: MutableMapping[str, HostRow] | None = None) -> None:
        """``rows`` is where they are kept, a dict unless given.

        ``free`` is how many more can be placed, ``places`` how many could be if all hosts had addresses enough;
        ``shut`` are places that nothing but a person's word keeps free.
        """
        self.life = life
        self.salt = salt
        self.rows: MutableMapping[str, HostRow] = rows if rows is not None else {}
        self.free = 0
        self.places = 0
        self.shut = 0
        self._zones: dict[str, _Zone] = {}
        self._pools: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._given: dict[str, int] = defaultdict(int)
        self._leaving: dict[str, str] = {}

    def put(self, row: HostRow) -> None:
        """A host as it is now."""
        was = self.rows.get(row.host)
        if was is not None:
            self._count(was, -1)
        self.rows[row.host] = row
        self._count(row, 1)
        free = free_room(row, self.life)
        if was is not None and was.zone != row.zone:
            self._zones[was.zone].put(row.host, 0, 0)
        self._zones.setdefault(row.zone, _Zone()).put(row.host, hashed(f"{self.salt}/{row.host}"), free)

    def _count(self, row: HostRow, by: int) -> None:
        places = free_places(row, self.life)
        if places:
            self.places += by * places
            self.free += by * free_room(row, self.life)
        elif row.word:
            self.shut += by * shut_places(row, self.life)
        counts = row.word not in ("drain", "gone") and not (row.lease == "lapsed" and row.life == self.life)
        for each in row.set.instances:
            if counts:
                self._pools[each.pool][row.zone] += by
            if each.address:
                self._given[each.address] += by

    def leaving(self, instance: str, address: str) -> None:
        """An instance is ending and may still have its address: its host's set says nothing of that any more."""
        if self._leaving.get(instance) != address:
            self.leaves(instance)
            self._leaving[instance] = address
            self._given[address] += 1

    def leaves(self, instance: str) -> None:
        """An instance isn't ending, or has ended."""
        address = self._leaving.pop(instance, "")
        if address:
            self._given[address] -= 1

    def of_pool(self, pool: str, zone: str) -> int:
        """How many of a pool run in a zone, on hosts that are neither lapsed nor being drained."""
        return self._pools[pool][zone] if pool in self._pools else 0

    def choose(self, pool: str, avoid: str = "") -> tuple[HostRow, str] | None:
        """The host for one more of a pool, and its address there: the zone with fewest of the pool, then most room.

        A host to be avoided is chosen where there is no other. None if there is no room anywhere. Two hosts that say
        they can give the same address never both do.
        """
        return self._choose(pool, {avoid}) or self._choose(pool, set()) if avoid else self._choose(pool, set())

    def at(self, host: str) -> tuple[HostRow, str] | None:
        """A place at one host, and its address there; None if it has no room."""
        row = self.rows.get(host)
        if row is None or not free_room(row, self.life):
            return None
        address = next((each for each in free_addresses(row) if not self._given.get(each)), "")
        return (row, address) if address or not row.addresses else None

    def _choose(self, pool: str, skip: set[str]) -> tuple[HostRow, str] | None:
        def order(name: str) -> tuple[int, int, int]:
            return self.of_pool(pool, name), -max(self._zones[name].live), hashed(f"{self.salt}/{pool}/{name}")

        for name in sorted((name for name, zone in self._zones.items() if zone.live), key=order):
            skipped = set(skip)
            while host := self._zones[name].best(skipped):
                row = self.rows[host]
                address = next((each for each in free_addresses(row) if not self._given.get(each)), "")
                if address:
                    return row, address
                skipped.add(host)
        return None
