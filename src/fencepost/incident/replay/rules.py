"""When things happen: acts, events and the dependents' intervals are rules over what can be seen of the region.

People act by an hour on the clock, or on what they see. An act at a fixed hour makes a guard look worse than it is: it
comes when nothing is left to do, or hours after the region was ready for it. So each rule says which it is.
"""

from collections.abc import Mapping

from fencepost.incident.replay.scenario import Rule, Tick, Watched


def holds(watched: Watched | None, quantities: Mapping[str, float]) -> bool:
    """Whether it is seen now; true for nothing in particular."""
    if watched is None:
        return True
    value = quantities[watched.quantity]
    return value > watched.amount if watched.above else value < watched.amount


class Waiting:
    """One rule that hasn't come true yet."""

    __slots__ = ("_due", "_seen_from", "rule")

    def __init__(self, rule: Rule) -> None:
        """Nothing seen so far."""
        self.rule = rule
        self._seen_from: Tick | None = None
        self._due: Tick | None = None

    def look(self, now: Tick, quantities: Mapping[str, float], happened: Mapping[str, Tick]) -> Tick | None:
        """When it came true, if it has; looked at in each step, in order of time."""
        rule = self.rule
        if self._due is None:
            self._due = self._found(now, quantities, happened)
            if self._due is None:
                return None
        if now < self._due + rule.after_s or not holds(rule.only_if, quantities):
            return None
        if rule.only_if is not None:
            return now
        return self._due + rule.after_s

    def _found(self, now: Tick, quantities: Mapping[str, float], happened: Mapping[str, Tick]) -> Tick | None:
        rule = self.rule
        if rule.since and rule.since not in happened:
            return None
        if rule.seen is None:
            began = rule.at if rule.at is not None else happened.get(rule.follows)
            return None if began is None or now < began else max(began, happened.get(rule.since, began))
        if not holds(rule.seen, quantities):
            self._seen_from = None
            return None
        if self._seen_from is None:
            self._seen_from = now
        if now - self._seen_from < rule.lasting_s:
            return None
        return self._seen_from if rule.backdated else now
