"""The operator's word: which override holds for which member. Checked before every rule.

The nearest scope wins (target, then zone, then pool); of two at the same scope the later in the list. Drain and keep
force a state; pause and observe freeze it. The two kinds stand beside each other: a drained target in a paused zone is
drained, since a person named it.
"""

from collections.abc import Iterable

import msgspec

from fencepost.core.instant import Instant
from fencepost.core.traffic.membership import Member, Mode, Override, OverrideKind

FREEZING = (OverrideKind.PAUSE, OverrideKind.OBSERVE)


class Words(msgspec.Struct, frozen=True):
    """The overrides in force, by scope: ("target", key), ("zone", zone) or ("pool", "")."""

    forcing: dict[tuple[str, str], OverrideKind]
    freezing: dict[tuple[str, str], OverrideKind]

    def force(self, member: Member) -> OverrideKind | None:
        """Drain or keep, if either is in force on it."""
        return _nearest(self.forcing, member) if self.forcing else None

    def freeze(self, member: Member) -> OverrideKind | None:
        """Pause or observe on it or its zone; on the whole pool it is a mode instead."""
        return _nearest(self.freezing, member) if self.freezing else None

    def paused_zones(self) -> tuple[str, ...]:
        """Zones that an override froze, sorted."""
        return tuple(sorted(name for scope, name in self.freezing if scope == "zone"))


def _nearest(words: dict[tuple[str, str], OverrideKind], member: Member) -> OverrideKind | None:
    return words.get(("target", member.key)) or words.get(("zone", member.zone)) or words.get(("pool", ""))


def heard(overrides: Iterable[Override], mode: Mode, now: Instant) -> tuple[Words, Mode]:
    """The overrides that haven't ended, and the mode they and the file give together (the stricter)."""
    words = Words({}, {})
    for each in overrides:
        if each.until and now >= each.until:
            continue
        scope = ("target", each.target) if each.target else ("zone", each.zone) if each.zone else ("pool", "")
        if each.kind not in FREEZING:
            words.forcing[scope] = each.kind
        elif scope[0] != "pool":
            words.freezing[scope] = each.kind
        elif each.kind is OverrideKind.PAUSE:
            mode = Mode.DISABLED
        elif mode is Mode.ENABLED:
            mode = Mode.OBSERVE
    return words, mode
