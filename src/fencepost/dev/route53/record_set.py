"""A resource record set: what the API creates, deletes and lists.

The values are kept as they were given, in their order: Route 53 returns what it was sent.
"""

from typing import TypeAlias

import msgspec

TYPES: frozenset[str] = frozenset(
    {"A", "AAAA", "CAA", "CNAME", "DS", "HTTPS", "MX", "NAPTR", "NS", "PTR", "SOA", "SPF", "SRV", "SSHFP", "SVCB"}
    | {"TLSA", "TXT"}
)
"""Record types of API version 2013-04-01."""

Key: TypeAlias = tuple[str, str]
"""What tells apart the sets of one name: type and set identifier ("" for a simple one)."""


class Alias(msgspec.Struct, frozen=True, gc=False):
    """An alias target; `zone` is the hosted zone's id (or the service's)."""

    zone: str
    name: str
    evaluate_health: bool


class RecordSet(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One record set; `ttl` in seconds. Either `ttl` and `values`, or `alias`."""

    name: str
    type: str
    ttl: int | None = None
    values: tuple[str, ...] = ()
    alias: Alias | None = None
    set_identifier: str | None = None
    weight: int | None = None
    region: str | None = None
    failover: str | None = None
    geo: tuple[tuple[str, str], ...] | None = None
    multi_value: bool | None = None
    health_check: str | None = None

    @property
    def key(self) -> Key:
        """Type and set identifier."""
        return self.type, self.set_identifier or ""

    def routing(self) -> tuple[str, ...]:
        """The routing policies it names: a simple set has none, any other exactly one."""
        named = {
            "Weight": self.weight,
            "Region": self.region,
            "Failover": self.failover,
            "GeoLocation": self.geo,
            "MultiValueAnswer": self.multi_value,
        }
        return tuple(name for name, value in named.items() if value is not None)

    def matches(self, live: "RecordSet") -> bool:
        """Whether a DELETE that says this names exactly what stands: TTL, values in any order, target and routing.

        API reference, ChangeResourceRecordSets: "you must specify all the same values". Terraform leaves out
        ``MultiValueAnswer`` and a health check and is let through (moto #7153), so what isn't given isn't compared
        for those two.
        """
        return (
            self.ttl == live.ttl
            and sorted(self.values) == sorted(live.values)
            and self.alias == live.alias
            and (self.weight, self.region, self.failover, self.geo)
            == (live.weight, live.region, live.failover, live.geo)
            and self.multi_value in (None, live.multi_value)
            and self.health_check in (None, live.health_check)
        )

    def described(self) -> str:
        """The set as refusals name it (cli53 #317 shows one with an identifier)."""
        identifier = f", set-identifier='{self.set_identifier}'" if self.set_identifier is not None else ""
        return f"[name='{self.name}', type='{self.type}'{identifier}]"


class Change(msgspec.Struct, frozen=True, gc=False):
    """One change of a batch; `action` is CREATE, DELETE or UPSERT."""

    action: str
    record_set: RecordSet
