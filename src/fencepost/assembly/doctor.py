"""What only a provider's or a store's own adapter can say to ``fencepost doctor``."""

import os
import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from fencepost.assembly.stores import open_store
from fencepost.core.instant import SECOND
from fencepost.ports import Misconfigured, PortError
from fencepost.settings import Region
from fencepost.settings.providers import PROVIDERS
from fencepost.settings.secret import read_secret

State: TypeAlias = Literal["ok", "note", "unknown", "attention"]
"""``note``: allowed, and surprises people. ``unknown``: can't be seen from here. ``attention``: a person is needed."""


class Look(NamedTuple):
    """One thing looked at: how it is, about what, in words, and what to do."""

    state: State
    about: str
    text: str
    hint: str = ""


async def look_at_store(region: Region) -> Sequence[Look]:
    """The store's head, and what its kind has to say. Raises a ``PortError`` if it can't be read.

    PostgreSQL is asked at each connection whether it is a primary, may be written and syncs to disk; so an answer says
    that too.
    """
    store = open_store(region)
    kind = region.store.kind
    try:
        began = time.monotonic_ns()
        head = await store.head()
        took = (time.monotonic_ns() - began) / SECOND * 1000
    finally:
        await store.close()
    known = f"store {head.mark or '?'}, newest plan {head.number}, opened and read in {took:.0f} ms"
    if kind == "postgresql":
        known += "; a primary that can be written and syncs to disk"
    looks = [Look("ok", "store", f"{kind}: {known}")]
    if kind == "dynamodb":
        from fencepost.adapters.store_dynamodb import look_at_table

        found = await look_at_table(region.store.table, region.store.aws_region)
        states: dict[str, State] = {"good": "ok", "warning": "note", "refused": "attention"}
        looks += [Look(states[each.verdict], "store", each.what, each.hint) for each in found]
    return looks


def store_is_here(region: Region) -> bool:
    """Whether the store is surely on this machine: a file, or a server that is reached by loopback or a socket."""
    if region.store.kind != "postgresql" or region.store.dsn is None:
        return region.store.kind == "sqlite"
    from fencepost.adapters.store_postgresql.address import Address

    try:
        return Address(read_secret(region.store.dsn, os.environ)).is_here
    except PortError:
        return False


_RIGHTS = {
    "rfc2136": "the key's rights stand at the server: update-policy and allow-transfer (BIND), acl (Knot),\n"
    "           TSIG-ALLOW-DNSUPDATE and TSIG-ALLOW-AXFR (PowerDNS); docs/start/bind-knot-powerdns.md",
    "clouddns": "roles/dns.admin on the managed zone is what Google Cloud DNS takes",
}
"""Where the least right stands, for providers that aren't AWS's."""


def least_policy(region: Region) -> dict[str, Any]:
    """The least that IAM has to allow. Raises ``Misconfigured`` where the provider has nothing to do with IAM."""
    if region.dns.provider != "route53":
        label = PROVIDERS[region.dns.provider].label
        hint = _RIGHTS.get(region.dns.provider, "nothing is needed: its key is made at the first start")
        raise Misconfigured(f"{label} has no IAM policy of AWS", where="--iam-policy", hint=hint)
    from fencepost.adapters.dns_route53 import least_policy as least

    return least(region)
