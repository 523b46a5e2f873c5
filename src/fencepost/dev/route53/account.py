"""What an account has: hosted zones with their record sets, and the changes made to them. Time is an argument.

Ids and name servers are derived from a counter and the zone's name, so that two runs look the same: nothing here is a
secret, and a test's transcript stays put.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from fencepost.dev.route53 import limits
from fencepost.dev.route53.batch import apply
from fencepost.dev.route53.names import order
from fencepost.dev.route53.record_set import Change, Key, RecordSet
from fencepost.dev.route53.refusals import ApiError, invalid_change_batch, no_such_zone
from fencepost.dev.route53.requests import well_put

NAME_SERVERS = {"com": 0, "net": 512, "org": 1024, "co.uk": 1536}
"""A zone's four name servers: the domain each is in, and the first number there (``ns-2048.awsdns-64.com``)."""
SOA_REST = "awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400"
"""A new zone's SOA after its primary name server (Developer Guide, "SOA and NS records")."""
SOA_TTL_S = 900
CHANGES_MOST = 10_000
"""How many of the latest changes GetChange knows."""
NS_TTL_S = 172_800


class HostedZone(msgspec.Struct):
    """A hosted zone; `sets` is by canonical name."""

    id: str
    name: str
    caller_reference: str
    comment: str | None = None
    vpcs: tuple[tuple[str, str], ...] = ()
    name_servers: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    sets: dict[str, dict[Key, RecordSet]] = {}
    count: int = 0
    busy: bool = False
    ordered: list[RecordSet] | None = None

    @property
    def private(self) -> bool:
        """Whether it belongs to VPCs."""
        return bool(self.vpcs)

    def put(self, names: Mapping[str, Mapping[Key, RecordSet]]) -> None:
        """Take up what a batch left of each name."""
        self.ordered = None
        for name, sets in names.items():
            self.count += len(sets) - len(self.sets.get(name, {}))
            if sets:
                self.sets[name] = dict(sets)
            else:
                self.sets.pop(name, None)

    def listed(self) -> list[RecordSet]:
        """All record sets, in the order of a listing."""
        if self.ordered is None:
            self.ordered = [
                self.sets[name][key] for name in sorted(self.sets, key=order) for key in sorted(self.sets[name])
            ]
        return self.ordered


class Submitted(msgspec.Struct, frozen=True):
    """A change that was made; it is INSYNC from `insync_at` on."""

    id: str
    at: int
    insync_at: int
    comment: str | None = None

    def status(self, now: int) -> str:
        """PENDING or INSYNC."""
        return "INSYNC" if now >= self.insync_at else "PENDING"


class Account(msgspec.Struct):
    """Zones and changes. `insync_ns` is how long a change stays PENDING."""

    zones: dict[str, HostedZone] = {}
    changes: dict[str, Submitted] = {}
    made: int = 0
    insync_ns: int = 0

    def zone(self, given: str) -> HostedZone:
        """A zone by id, with or without ``/hostedzone/``. Raises ApiError."""
        found = self.zones.get(given.removeprefix("/hostedzone/"))
        if found is None:
            raise no_such_zone(given)
        return found

    def create(
        self, name: str, reference: str, *, comment: str | None = None, vpcs: tuple[tuple[str, str], ...] = ()
    ) -> HostedZone:
        """A new zone with its SOA and NS. `name` is canonical. Raises ApiError."""
        if any(each.caller_reference == reference for each in self.zones.values()):
            raise ApiError(
                "HostedZoneAlreadyExists", f"A hosted zone has already been created with the specified caller "
                f"reference: {reference}", 409
            )  # fmt: skip
        if len(self.zones) >= limits.ZONES_MOST:
            raise ApiError("TooManyHostedZones", f"Limits Exceeded: MAX_HOSTED_ZONES_BY_OWNER - {limits.ZONES_MOST}")
        zone = HostedZone(self._id("Z", name), name, reference, comment, vpcs)
        number = int.from_bytes(hashlib.sha256(zone.id.encode()).digest()[:2]) % 512
        zone.name_servers = tuple(
            f"ns-{first + number}.awsdns-{number % 64:02d}.{domain}" for domain, first in NAME_SERVERS.items()
        )
        own = (
            RecordSet(name=name, type="NS", ttl=NS_TTL_S, values=tuple(f"{each}." for each in zone.name_servers)),
            RecordSet(name=name, type="SOA", ttl=SOA_TTL_S, values=(f"{zone.name_servers[0]}. {SOA_REST}",)),
        )
        zone.put({name: {each.key: each for each in own}})
        self.zones[zone.id] = zone
        return zone

    def delete(self, zone: HostedZone) -> None:
        """Take an empty zone away. Raises ApiError."""
        if set(zone.sets) != {zone.name} or {key[0] for key in zone.sets[zone.name]} != {"NS", "SOA"}:
            raise ApiError(
                "HostedZoneNotEmpty", "The specified hosted zone contains non-required resource record sets and so "
                "cannot be deleted."
            )  # fmt: skip
        del self.zones[zone.id]

    def change(self, zone: HostedZone, changes: tuple[Change, ...], now: int, comment: str | None) -> Submitted:
        """A batch, whole or not at all. Raises ApiError."""
        outcome = apply(zone.name, zone.id, zone.sets, zone.count, well_put(changes))
        if outcome.refusals:
            raise invalid_change_batch(outcome.refusals)
        zone.put(outcome.names)
        return self.submitted(now, comment)

    def submitted(self, now: int, comment: str | None = None) -> Submitted:
        """Note a change."""
        change = Submitted(self._id("C", "change"), now, now + self.insync_ns, comment)
        self.changes[change.id] = change
        if len(self.changes) > CHANGES_MOST:
            del self.changes[next(iter(self.changes))]
        return change

    def _id(self, letter: str, about: str) -> str:
        """An id of 20 characters, as Route 53's are: `letter`, then capitals and digits."""
        self.made += 1
        digest = hashlib.sha256(f"{self.made} {about}".encode()).hexdigest().upper()
        return f"{letter}0{digest[:18]}"
