"""docs/incident.md tells the incident in the replay's own words and numbers, so neither can drift from the other.

After a change of the replay: ``FENCEPOST_REWRITE=1 pytest tests/incident/replay/test_incident_page.py`` writes the
blocks anew, and the text around them is to be read again.
"""

import os
import re
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs

from fencepost.incident.replay.ablation import ablation
from fencepost.incident.replay.guards import PRODUCTION
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario_file import find_scenario
from fencepost.incident.replay.show.hours import Hours
from fencepost.incident.replay.show.naming import moments, outage_s
from fencepost.incident.replay.show.terminal import terminal_text

PAGE = Path(__file__).parents[3] / "docs" / "incident.md"
BLOCK = "<!-- replay: {0} -->\n```text\n(.*?)```\n"
OCTOBER = find_scenario("aws-2025-10-19")
CPU = re.compile(r" · [0-9.]+ s CPU *")


@cache
def outcome(guarded: bool) -> Outcome:
    """A hundred thousand hosts, seed 1: as it was, or production in the same outage."""
    forced = Options(guards=PRODUCTION, outage_s=outage_s(OCTOBER))
    return replay(OCTOBER, forced if guarded else Options())


def shown(guarded: bool) -> str:
    """What the command prints, but for the CPU time."""
    text = terminal_text(outcome(guarded), width=100, unicode=True, colour=False)
    first, _, rest = text.partition("\n")
    return f"{CPU.sub('   ', first).rstrip()}\n{rest}".rstrip() + "\n"


def hours() -> str:
    """Every event and act with a reported hour, beside the simulated one."""
    clock, found = Hours(OCTOBER), outcome(False).happened
    rows = [("", "REPORTED", "SIMULATED")]
    known = [each for each in moments(OCTOBER) if each.reported is not None]
    for each in sorted(known, key=lambda each: each.reported or 0):
        at = found.get(each.name)
        rows.append((each.words, clock.at(each.reported or 0), "-" if at is None else clock.at(at)))
    wide = max(len(row[0]) for row in rows)
    return "".join(f"{words:{wide}}  {reported:>8}  {simulated:>9}\n" for words, reported, simulated in rows)


def guards() -> str:
    """What each guard alone, and all of them, make of the same outage; minutes."""
    rows = ablation(OCTOBER, structs.replace(Options(), hosts=5_000), outage_s(OCTOBER) or 0)
    text = f"{'':26}{'endpoint':>9}{'leases missing':>16}{'launches failing':>18}{'capacity out':>14}\n"
    for row in rows:
        emptied = "emptied" if row.emptied else "kept"
        text += f"{row.name:26}{emptied:>9}{row.leases_missing:>16.0f}"
        text += f"{row.launches_failing:>18.0f}{row.capacity_out:>14.0f}\n"
    return text


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("as it was", lambda: shown(False)),
        ("hours", hours),
        ("production", lambda: shown(True)),
        ("guards", guards),
    ],
    ids=["as-it-was", "hours", "production", "guards"],
)
def test_the_page_shows_what_the_replay_says(name: str, made: object) -> None:
    """Text and numbers are one."""
    assert callable(made)
    text = PAGE.read_text()
    pattern = re.compile(BLOCK.format(name), re.DOTALL)
    assert pattern.search(text), f"no block {name} in {PAGE.name}"
    wanted = made()
    if os.environ.get("FENCEPOST_REWRITE"):
        block = BLOCK.format(name).replace("(.*?)", wanted)
        PAGE.write_text(pattern.sub(lambda _: block, text))
        return
    found = pattern.search(text)
    assert found
    assert found[1] == wanted
