"""What the API is told, judged before it is stored: orders about endpoints, and words about targets.

The store takes anything, and planner and load balancer live by what it holds. So what can't be right is refused here,
with what stands, to the one who can still correct it. The command line keeps to the same rules by how it asks.

Awkward truth: a release is judged by what was last read. A hold placed a moment ago may not be known yet; then the
release is refused, and can be sent again.
"""

import ipaddress

from msgspec import structs

from fencepost.core import orders
from fencepost.core.fence import Hold, Marker
from fencepost.core.instant import SECOND, Instant
from fencepost.core.names import normalise
from fencepost.core.store import Order
from fencepost.core.traffic.membership import OverrideKind
from fencepost.core.zone import lacks_family
from fencepost.ports import Refused
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.facts import Facts
from fencepost.settings import Region

UNTIL_MOST: Instant = 2**62
"""Below this a word may end, nanoseconds since 1970: the year 2116. It fits a store's 64 bits."""


class Word(StoredOverride, frozen=True):
    """An override as it is told; ``confirmed`` says again the name of what is spoken of whole."""

    confirmed: str = ""


def judged_order(order: Order, names: set[str], facts: Facts | None, now: Instant) -> Order:
    """The order in its one form. ``names`` are the endpoints there are. Raises ``Refused``."""
    try:
        name = normalise(order.name)
    except ValueError as error:
        raise Refused(f"the name {error}", where="name", hint="see fencepost status for the names") from None
    if name not in names:
        raise Refused(f"{name} is no endpoint here", where="name", hint="see fencepost status for the names")
    signed(order.id, order.by, order.reason)
    order = structs.replace(order, name=name, content=orders.canonical(order.content))
    refuse(orders.faults(order), "docs/operating/status.md describes an order; fencepost rollback, withdraw make them")
    if order.kind == "adopt" and not order.adopt:
        hint = "name the digest of the records seen (status: needs-adopt)"
        raise Refused("an adoption names the exact records seen", where="adopt", hint=hint)
    if order.until_s and order.until_s * SECOND <= now:
        hint = "until_s is seconds since 1970, 0 for no end"
        raise Refused("it would have ended already", where="until_s", hint=hint)
    row = facts.store.rows.get(name) if facts is not None and facts.store is not None else None
    if order.kind == "rollback" and row is not None and lacks_family(order.content, row.families):
        hint = f"to take it away: fencepost withdraw {name}"
        raise Refused(f"{name} would have no address in a family it publishes now", where="content", hint=hint)
    if order.kind == "release":
        released(order, facts)
    return order


def released(order: Order, facts: Facts | None) -> None:
    """Raise ``Refused`` for the release of a hold that can't have been placed yet: it would end those to come."""
    live = facts.dns.lives.get(order.name) if facts is not None and facts.dns is not None else None
    row = facts.store.rows.get(order.name) if facts is not None and facts.store is not None else None
    marker = live.marker if live is not None and isinstance(live.marker, Marker) else None
    standing = [each for each in (marker, row) if each is not None]
    highest = max((each.generation.epoch for each in standing), default=0)
    if order.hold <= highest:
        return
    holds: list[Hold] = [each.hold for each in standing if each.hold is not None]
    newest = max(holds, key=lambda hold: hold.id, default=None)
    stands = f"what stands is the {newest.kind} {newest.id}" if newest is not None else "no hold stands"
    what = f"{order.name} is at epoch {highest}; {stands}, and {orders.shown(order.hold)} is still to come"
    raise Refused(what, where="hold", hint=f"fencepost resume {order.name}    releases what stands")


def judged_word(word: Word, region: Region, now: Instant) -> StoredOverride:
    """The override as it is to be stored, placed ``now``. Raises ``Refused``."""
    signed(word.id, word.by, word.reason)
    refuse(
        [fault for name in ("id", "by", "reason") for fault in orders.text_faults(name, getattr(word, name))],
        "plain text, in one line",
    )
    known = [pool for pool in region.pools if word.pool in ("", pool.name)]
    if not known:
        hint = f"pools are {', '.join(sorted(pool.name for pool in region.pools))}"
        raise Refused(f"there is no pool {orders.shown(word.pool)}", where="pool", hint=hint)
    if word.zone and word.zone not in region.zones:
        hint = f"zones are {', '.join(region.zones)}"
        raise Refused(f"there is no zone {orders.shown(word.zone)}", where="zone", hint=hint)
    if word.target and word.zone:
        raise Refused("a target and a zone: which of them?", where="target", hint="name one of them")
    target = address(word.target)
    if target and not any(each.address == target for pool in known for each in pool.targets):
        at = f"pool {word.pool}" if word.pool else "any pool"
        raise Refused(
            f"{orders.shown(target)} is no target of {at}", where="target", hint="see fencepost status for the names"
        )
    if word.until and not now < word.until < UNTIL_MOST:
        what = "it would have ended already" if word.until <= now else f"{orders.shown(word.until)} is too far away"
        raise Refused(what, where="until", hint="until is nanoseconds since 1970, 0 for no end")
    confirmed(word, region)
    return StoredOverride(word.id, word.what, word.pool, target, word.zone, word.by, word.reason, word.until, now)


def confirmed(word: Word, region: Region) -> None:
    """Raise ``Refused`` for a word about a whole region, or a drain of a whole pool, that doesn't name it again."""
    if word.target or word.zone:
        return
    if word.pool and word.what not in (OverrideKind.DRAIN, OverrideKind.KEEP):
        return
    name = word.pool or region.name
    if word.confirmed != name:
        whole = f"the whole pool {name}" if word.pool else f"the whole region {name}"
        hint = f'name a target or a zone, or add "confirmed": "{name}"'
        raise Refused(f"a {word.what} of {whole} takes its name, said again", where="confirmed", hint=hint)


def address(text: str) -> str:
    """An address as targets are written; what is none stays as it is, and no pool has it."""
    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError:
        return text


def signed(ident: str, by: str, reason: str) -> None:
    """Every change has an id, an author and a reason. Raises ``Refused``."""
    for what, text in (("id", ident), ("by", by), ("reason", reason)):
        if not text.strip():
            raise Refused(f"{what} must be 1 to 500 characters", where=what, hint="every change is signed")


def refuse(faults: list[str] | tuple[str, ...], hint: str) -> None:
    """Raise ``Refused`` if there are faults, each "where: what"; the first says where."""
    if faults:
        where, _, what = faults[0].partition(": ")
        raise Refused("; ".join([what, *faults[1:4]]), where=where, hint=hint)
