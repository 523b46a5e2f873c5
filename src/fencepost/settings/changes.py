"""What differs between two loaded files, and whether that much may change at once.

A target that leaves the file is its owner's act: no limit of automation applies. But a file is also where a slip takes
out half a pool (an empty list rendered by a template, a merge gone wrong), so past a size the owner is asked again.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from fencepost.core.traffic.limits import above_min_in
from fencepost.core.traffic.membership import MICRO
from fencepost.settings import units
from fencepost.settings.core_settings import safety_settings
from fencepost.settings.meaning import Scale
from fencepost.settings.schema import Endpoint, Pool, Region, Target

NEEDS_RESTART = (
    "region.name",
    "region.owner",
    "region.zones",
    "region.drills",
    "dns.provider",
    "dns.domains",
    "dns.listen",
    "dns.server",
    "dns.key",
    "dns.notify",
    "dns.transfer",
    "dns.options",
    "dns.secrets",
    "dns.gather_ns",
    "store",
    "api",
    "checkers.canary",
    "fleet.shards",
    "fleet.renew_ns",
    "fleet.key",
    "fleet.driver",
)
"""Settings that roles take up at their start: what a region holds open, has written its name on, or was given once."""


FIXED = (
    "region.name",
    "region.owner",
    "dns.provider",
    "dns.domains",
    "dns.listen",
    "dns.server",
    "store",
    "api.listen",
    "fleet.shards",
    "fleet.key",
)
"""Settings that no reload changes: half of the region would go on with the old, and its records would be orphans."""


class TargetChange(msgspec.Struct, frozen=True, gc=False):
    """A target that came, left or changed. `before` or `after` is None; the lines are those of its own file."""

    pool: str
    before: Target | None
    after: Target | None


class EndpointChange(msgspec.Struct, frozen=True, gc=False):
    """An endpoint that came, changed, or left the file (an orphan: its records stay until it is withdrawn)."""

    name: str
    before: Endpoint | None
    after: Endpoint | None


class SettingChange(msgspec.Struct, frozen=True):
    """A setting that changed: its path as in ``dns.ttl_s`` or ``pool.web.safety.max_out_ppm``, and both values."""

    path: str
    before: Any
    after: Any
    needs_restart: bool

    @property
    def fixed(self) -> bool:
        """Whether a reload can't change it at all."""
        return _among(self.path, FIXED)

    @property
    def said(self) -> str:
        """Say the change as the file would: ``dns.gather: 30s -> 1m``."""
        table, _, key = self.path.rpartition(".")
        name = {"domains": "domain"}.get(key, key.removesuffix("_ns").removesuffix("_ppm").removesuffix("_s"))
        return f"{table}.{name}: {_text(key, self.before)} -> {_text(key, self.after)}"


class Changes(msgspec.Struct, frozen=True):
    """All that differs, each list in the order of its names."""

    targets: tuple[TargetChange, ...]
    endpoints: tuple[EndpointChange, ...]
    settings: tuple[SettingChange, ...]

    @property
    def nothing(self) -> bool:
        """Say whether the two files mean the same."""
        return not (self.targets or self.endpoints or self.settings)

    @property
    def removed(self) -> tuple[TargetChange, ...]:
        """Give the targets that left."""
        return tuple(change for change in self.targets if change.after is None)

    @property
    def orphans(self) -> tuple[EndpointChange, ...]:
        """Give the endpoints that left."""
        return tuple(change for change in self.endpoints if change.after is None)


def changes(old: Region, new: Region) -> Changes:
    """Compare two regions. Lines and the file's own path are no difference."""
    return Changes(_targets(old, new), _endpoints(old, new), _settings(old, new))


def summary(changed: Changes) -> str:
    """What differs, counted."""
    new = sum(change.before is None for change in changed.targets)
    left = len(changed.removed)
    parts = (
        (new, "target", "new"),
        (left, "target", "gone"),
        (len(changed.targets) - new - left, "target", "changed"),
        (len(changed.endpoints), "endpoint", "changed"),
        (len(changed.settings), "setting", "changed"),
    )
    said = [f"{count} {noun}{'s' if count != 1 else ''} {how}" for count, noun, how in parts if count]
    return ", ".join(said) or "nothing differs"


def too_much(old: Region, new: Region, in_service: Mapping[str, frozenset[str]] | None = None) -> tuple[str, ...]:
    """Say why a reload from `old` to `new` must be asked for with ``--yes``; empty if it need not.

    It must if it takes a pool's last target, more than half of a pool at once (by number or by weight), or leaves
    less in service than its min_in. `in_service` gives each pool's addresses that are answered now; without it, all
    of them are.
    """
    wanted = {pool.name: pool for pool in new.pools}
    found: list[str] = []
    for pool in old.pools:
        after = wanted.get(pool.name)
        stays = {target.address for target in after.targets} if after else set()
        gone = [target for target in pool.targets if target.address not in stays]
        if gone:
            serving = in_service.get(pool.name) if in_service else None
            found += _too_much_of(pool, gone, after or pool, serving)
    return tuple(found)


def _too_much_of(pool: Pool, gone: list[Target], after: Pool, serving: frozenset[str] | None) -> list[str]:
    count, lost = len(pool.targets), len(gone)
    weight, lost_weight = sum(t.counts for t in pool.targets), sum(t.counts for t in gone)
    has = "1 target" if count == 1 else f"{count} targets"
    if lost == count:
        return [
            f"pool {pool.name}: all its {has} leave the file"
            if count > 1
            else f"pool {pool.name}: its last target leaves the file"
        ]
    if 2 * lost > count or 2 * lost_weight > weight:
        return [f"pool {pool.name}: {lost} of {has} leave the file at once, more than half"]
    leaving = {target.address for target in gone}
    live = [t for t in pool.targets if serving is None or t.address in serving]
    left = [t for t in live if t.address not in leaving]
    if len(left) == len(live):
        return []  # what leaves was out already
    left_weight = sum(t.counts for t in left)
    if not above_min_in(len(left), left_weight * MICRO, weight * MICRO, safety_settings(after.safety)):
        least = Scale(msgspec.structs.replace(pool, safety=after.safety)).least_in()
        return [f"pool {pool.name}: {len(left)} of {has} would stay in service, and min_in is {least}"]
    return []


def _targets(old: Region, new: Region) -> tuple[TargetChange, ...]:
    before = {(pool.name, target.address): target for pool in old.pools for target in pool.targets}
    after = {(pool.name, target.address): target for pool in new.pools for target in pool.targets}
    found = []
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        if was is None or now is None or _unlined(was) != _unlined(now):
            found.append(TargetChange(key[0], was, now))
    return tuple(found)


def _endpoints(old: Region, new: Region) -> tuple[EndpointChange, ...]:
    before = {endpoint.name: endpoint for endpoint in old.endpoints}
    after = {endpoint.name: endpoint for endpoint in new.endpoints}
    found = []
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was is None or now is None or _unlined(was) != _unlined(now):
            found.append(EndpointChange(name, was, now))
    return tuple(found)


def _unlined(value: Target | Endpoint) -> Target | Endpoint:
    return msgspec.structs.replace(value, line=0)


def _settings(old: Region, new: Region) -> tuple[SettingChange, ...]:
    before, after = _flat(old), _flat(new)
    found = []
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path), after.get(path)
        if was != now:
            found.append(SettingChange(path, was, now, _among(path, NEEDS_RESTART)))
    return tuple(found)


def _among(path: str, names: tuple[str, ...]) -> bool:
    return any(path == one or path.startswith(one + ".") for one in names)


def _text(key: str, value: Any) -> str:
    """A value as the file would have it, without quotes."""
    if value is None or value in ("", (), []):
        return "none"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if key.endswith("_ns"):
        return units.duration_text(value)
    if key.endswith("_ppm"):
        return units.share_text(value)
    return units.duration_text(value * units.NS["s"]) if key.endswith("_s") else str(value)


def _flat(region: Region) -> dict[str, Any]:
    """Give every setting by its dotted path. Pools go by name; their targets, and endpoints, are compared elsewhere."""
    found: dict[str, Any] = {}
    tree = msgspec.to_builtins(region)
    for name in ("name", "owner", "zones", "drills", "mode"):
        found[f"region.{name}"] = tree[name]
    parts: list[tuple[str, Any]] = [(name, tree[name]) for name in ("dns", "store", "api", "safety", "fleet")]
    parts.append(("checkers.canary", [str(canary) for canary in region.canaries]))
    for pool in tree["pools"]:
        parts += [(f"pool.{pool['name']}.{name}", pool[name]) for name in ("probe", "capacity", "safety", "launch")]
    while parts:
        path, value = parts.pop()
        if isinstance(value, dict):
            parts += [(f"{path}.{name}", inner) for name, inner in value.items()]
        else:
            found[path] = value
    return found
