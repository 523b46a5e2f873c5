"""The one line that says how an endpoint stands."""

from collections.abc import Sequence

from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND
from fencepost.core.zone import Live, withdraws
from fencepost.roles.status.answered import foreign, until
from fencepost.roles.status.endpoints import as_planned, who_holds
from fencepost.roles.status.explanation import ASIDE, HELD
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.problems import whose


def endpoint_headline(facts: Facts, name: str, states: Sequence[str]) -> str:
    """Generation, whether it is as planned, whose the marker is and how old that knowledge is, and the counts."""
    live = facts.dns.lives.get(name) if facts.dns else None
    parts = [standing(facts, name, live)]
    if facts.dns is not None and live is not None:
        ago = max(0, facts.now - facts.dns.at) // SECOND
        mark = "marker ours" if isinstance(live.marker, Marker) else "no marker"
        parts.append(f"{'left alone' if foreign(live, facts.region.owner) else mark}, read {ago} s ago")
    if HELD in states:
        parts.append(f"{states.count(HELD)} answered, as the hold says")
    elif ASIDE in states:
        parts.append("nothing answered")
    elif states:
        counts = {state: states.count(state) for state in ("in", "kept", "out", "pending", "drained")}
        parts.append(", ".join(f"{n} {s}" for s, n in counts.items() if n or s == "in"))
    return "; ".join(parts)


def standing(facts: Facts, name: str, live: Live | None) -> str:
    """What is live, beside what is planned."""
    row = facts.store.rows.get(name) if facts.store else None
    planned = f"gen {row.generation} is planned" if row else "nothing is planned"
    if live is None:
        return f"{planned}; DNS was not read"
    if foreign(live, facts.region.owner):
        return whose(live)
    if not isinstance(live.marker, Marker):
        return f"not marked as ours in DNS; {planned}"
    marker = live.marker
    text = f"gen {marker.generation}"
    if marker.hold is not None:
        by, _ = who_holds(facts, name, marker.hold)
        held = "withdrawn" if withdraws(marker) else f"held by a {marker.hold.kind}"
        text += f", {held}{f' by {by}' if by else ''}, {until(marker.hold, facts.now)}"
    if not live.verified():
        return f"{text}, and its records are not those of its marker"
    if row is None:
        return f"{text}, live; what is planned is unknown"
    return f"{text}, live as planned" if as_planned(live, row) else f"{text} is live, {planned}"
