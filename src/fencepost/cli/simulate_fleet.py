"""``fencepost simulate --scenario fleet-collapse`` and ``--map``: the fleet's recovery, as it was and as it ships."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.cli.explore import refuse_together, words
from fencepost.cli.progress import Progress
from fencepost.cli.terminal import say, styled

if TYPE_CHECKING:  # the simulator is loaded when it is wanted
    from fencepost.core.instant import Duration
    from fencepost.world.fleet_load import Load, Outcome

STOPPED = 130


def collapse(given: dict[str, Any], seeds: range, variants: str | None, json: bool) -> int:
    """Every host at once. Raises ``ValueError`` for an unknown variant or a flag that means nothing here."""
    from fencepost.incident.fleet_queue import collapse as pushed
    from fencepost.simulator.fleet_collapse import scenario

    refuse_together(f"--scenario {scenario.NAME}", given)
    if variants == "list":
        say("\n".join(f"{name:20} {each.meaning}" for name, each in scenario.VARIANTS.items()))
        return 0
    names = tuple(scenario.VARIANTS) if variants == "all" else words(variants, "--variants") or ("base",)
    old = {
        "retry at once": lambda load, seed, lasts: pushed(load, seed, False, lasts),
        "back-off, full jitter": lambda load, seed, lasts: pushed(load, seed, True, lasts),
    }
    progress = Progress()
    found = scenario.figures(seeds, names, old, lambda done: progress.say(lambda: f"{done} is done"))
    say(json_text.dumps(scenario.document(found)) if json else scenario.tell(found))
    return 1 if found.verdict == "violated" else STOPPED if found.stopped else 0


def recovery_map(given: dict[str, Any], seed: int, picture: Path | None, json: bool) -> int:
    """How large a loss at what load. Raises ``ValueError`` for a flag that means nothing here, and ``OSError`` if the
    picture can't be written there: before anything is walked, if that can be seen."""
    from fencepost.incident.fleet_queue import shock
    from fencepost.simulator.command import check_writable
    from fencepost.simulator.fleet_collapse import picture as drawing
    from fencepost.simulator.fleet_collapse import recovery_map as maps

    refuse_together("--map", given)
    if picture is not None:
        check_writable(picture)

    def pushed(load: "Load", seed: int, lost: list[int], most: "Duration") -> "Outcome":
        return shock(load, seed, lost, True, most)

    progress = Progress()
    found = maps.mapped(pushed, lambda done: progress.say(lambda: f"{done} is done"), seed)
    if picture is not None:
        picture.write_text(drawing.svg(found), encoding="utf-8")
    say(json_text.dumps(maps.document(found)) if json else drawing.lines(found, lambda text: styled(text, "red")))
    return 1 if found.stuck else 0
