"""What a run of the races found, for programs and as a page to keep."""

from collections.abc import Sequence
from typing import Any

from fencepost.proving.races import Race

SCHEMA = "fencepost.prove/1"


def document(about: dict[str, str], races: Sequence[Race], remains: Sequence[str], *, whole: bool) -> dict[str, Any]:
    """The document: ``about`` says provider, domain, name, version and at; ``held`` is None where a run broke off."""
    broken = [race.name for race in races if not race.held]
    return {
        "schema": SCHEMA,
        **about,
        "held": False if broken else True if whole else None,
        "races": [
            {"name": race.name, "asks": race.asks, "held": race.held, "said": race.said, "found": race.found}
            for race in races
        ],
        "remains": list(remains),
    }


def verdict(races: Sequence[Race], *, whole: bool) -> str:
    """The last line."""
    held = sum(race.held for race in races)
    if held < len(races):
        return f"NOT HELD: {', '.join(race.name for race in races if not race.held)}. Don't run fencepost on it."
    if not whole:
        return f"unfinished: {held} held so far, and the rest wasn't tried"
    return f"held here: {held} of {len(races)}; each write that had to be refused was, and left nothing behind"


def markdown(document: dict[str, Any], last: str) -> str:
    """The page."""
    lines = [
        f"# Races on {document['domain']}",
        "",
        f"{document['provider']}, at {document['at']}, by fencepost {document['version']}; scratch names"
        f" `{document['name']}` and `{document['second']}`, addresses of 192.0.2.0/24 (RFC 5737).",
        "",
        f"**{last}**",
        "",
        "| Race | Situation | | The provider's own words |",
        "| --- | --- | --- | --- |",
    ]
    for race in document["races"]:
        word = "held" if race["held"] else "**not held**"
        said = _cell(" ".join(filter(None, (race["said"], race["found"]))))
        lines.append(f"| {race['name']} | {race['asks']} | {word} | {said} |")
    remains = [f"- {each}" for each in document["remains"]]
    lines += ["", *(["Records remain:", "", *remains] if remains else ["Everything written was removed."]), ""]
    lines += [
        "What this doesn't show: how the provider behaves while it fails, or between its own name servers; and that it"
        " will hold tomorrow. It is one run, at one time, with one set of credentials.",
        "",
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
