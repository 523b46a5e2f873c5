"""The replay as one page that needs nothing else: no network, no font, no script to be read.

Everything is drawn here. A script adds what only a screen can do: zoom, a cross-hair, a time to choose. It looks up
what was said here of each moment and computes nothing of its own. Colours follow the reader's system, light or dark.
"""

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.scenario import Scenario, Tick
from fencepost.incident.replay.show.beliefs import Part, at, beliefs
from fencepost.incident.replay.show.charts import Chart, charts, flat, moving
from fencepost.incident.replay.show.hours import Hours
from fencepost.incident.replay.show.naming import is_told, whose
from fencepost.incident.replay.show.plots import LETTERS, Plots
from fencepost.incident.replay.show.remarks import remarks
from fencepost.incident.replay.show.rows import condition_rows, dependent_rows, phase_rows
from fencepost.incident.replay.show.tables import ablation_table, figures_table, hours_table, values_table

if TYPE_CHECKING:
    from fencepost.incident.replay.ablation import Row as AblationRow

EACH_S = 120
"""The time to be chosen moves by that."""


def page(outcomes: Sequence[tuple[str, Outcome]], ablation: Sequence["AblationRow"] | None = None) -> str:
    """The whole page; the first outcome is the one that is told, the others are laid over it. At most five.

    Raises ``ValueError`` for no outcome, and for outcomes of different scenarios.
    """
    if not outcomes or len({outcome.scenario.name for _, outcome in outcomes}) > 1:
        raise ValueError("give outcomes of one scenario")
    runs = list(outcomes)[:5]
    first = runs[0][1]
    every, parts = charts(runs), beliefs(first)
    drawn = moving(every)
    chosen = _chosen(first)
    style, script = _text("page.css"), _text("page.js")
    policy = f"default-src 'none'; style-src {_hash(style)}; style-src-attr 'unsafe-inline'; script-src {_hash(script)}"
    body = [
        _head(first.scenario, runs),
        figures_table(runs),
        _remarks(runs),
        _stage(Plots(runs), every, parts, chosen),
        ablation_table(ablation) if ablation else "",
        hours_table(first),
        values_table(first.scenario),
        _foot(first),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(first.scenario.title)}: a replay'
        f'</title><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<style>{style}</style></head><body><main>{''.join(body)}</main>"
        f'<script type="application/json" id="data">{_data(runs, drawn, parts, chosen)}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _text(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _hash(text: str) -> str:
    """How a content security policy names an inline script or style (W3C CSP 2, section 4.2.3)."""
    return "'sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode() + "'"


def _chosen(outcome: Outcome) -> Tick:
    """The moment that is shown first: when most calls are in line, else in the middle."""
    queue = outcome.series["lease_queue"]
    tick = int(outcome.times[int(queue.argmax())]) if queue.max() > 0 else outcome.scenario.lasts_s // 2
    return tick - tick % EACH_S


def _head(scenario: Scenario, runs: Sequence[tuple[str, Outcome]]) -> str:
    options, hours = runs[0][1].options, Hours(scenario)
    claim = whose(scenario)
    shown = "What was reported is hollow; what came out here is filled. " if is_told(scenario) else ""
    return (
        f'<header><p class="kicker">fencepost replay</p><h1>{escape(scenario.title)}</h1>'
        f'<p class="lede">{escape(scenario.summary)}</p>'
        f'<p class="honest">{options.hosts:,} hosts in virtual time, seed {options.seed}, {escape(hours.days())}. '
        f"{shown}{claim[:1].upper()}{claim[1:]}. Trust the order of things, and on which side of a threshold they "
        f"fall; don’t trust single minutes.</p></header>"
    )


def _remarks(runs: Sequence[tuple[str, Outcome]]) -> str:
    """What has to be known of the runs, each said once, with the letters of those that it is true of."""
    said: dict[str, str] = {}
    for letter, (_, outcome) in zip(LETTERS, runs, strict=False):
        for each in remarks(outcome):
            said[each] = said.get(each, "") + letter
    lines = (f"<p><b>{', '.join(letters)}</b> {escape(each)}.</p>" for each, letters in said.items())
    return f'<aside class="remarks">{"".join(lines)}</aside>' if said else ""


def _stage(plots: Plots, every: Sequence[Chart], parts: Sequence[Part], chosen: Tick) -> str:
    phases = phase_rows(plots.runs[:1])
    conditions, dependents = condition_rows(plots.runs), dependent_rows(plots.runs)
    told = is_told(plots.first.scenario)
    seen = " What was reported begins when somebody saw it." if told else ""
    scripted = "at the published hour" if told else "at an hour that the scenario gives"
    about = " ".join(
        (
            *(["A guard that breaks one loop is seen in the curves below it."] if len(plots.runs) > 1 else []),
            flat(every),
        )
    )
    marked = f"= behind a length: a person ended it {scripted}, so it is {'equal ' if told else ''}by script."

    def group(title: str, about: str, inner: Iterable[str]) -> str:
        return f'<div class="group"><h2>{title}</h2><p class="about">{about}</p>{"".join(inner)}{plots.axis()}</div>'

    rows = [
        group("Phases", f"{marked} The others emerged.", map(plots.row, phases)) if phases else "",
        group("What was wrong, and how long", f"Found in the numbers of each run.{seen}", map(plots.row, conditions)),
        group("How it went", about, map(plots.chart, moving(every))),
        group("Who depends on it", "Down by rules over what the region does; ends by hand (=) aren’t moved by guards.",
              map(plots.row, dependents)) if dependents else "",
    ]  # fmt: skip
    return (
        f'<section id="explore" aria-label="The course of things">{plots.legend()}{_controls(plots, chosen)}'
        f'<div id="stage" tabindex="0" role="group" aria-label="Charts. Arrow keys move the time, plus and minus zoom, '
        f'0 shows all, Page Up and Page Down move what is shown.">{plots.lane()}{"".join(rows)}</div>'
        f"{_beliefs(parts, chosen, plots.hours)}</section>"
    )


def _controls(plots: Plots, chosen: Tick) -> str:
    lasts, shown = plots.lasts_s, f"{plots.hours.at(chosen)} {plots.hours.zone}"
    buttons = "".join(
        f'<button type="button" id="{name}" aria-label="{about}" title="{about}">{sign}</button>'
        for name, sign, about in (
            ("earlier", "←", "show earlier"),
            ("nearer", "+", "zoom in"),
            ("wider", "−", "zoom out"),
            ("later", "→", "show later"),
            ("whole", "all", "show all hours"),
        )
    )
    return (
        f'<div class="controls"><output id="clock" for="time">{escape(shown)}</output><label class="slide">'
        f'<span>time</span><input type="range" id="time" min="0" max="{lasts}" step="{EACH_S}" value="{chosen}" '
        f'aria-valuetext="{escape(shown)}"></label>'
        f'<div class="buttons" role="group" aria-label="zoom">{buttons}</div></div>'
    )


def _beliefs(parts: Sequence[Part], chosen: Tick, hours: Hours) -> str:
    rows = []
    for number, part in enumerate(parts):
        held = at(part, chosen)
        believed, so = ("–", "–") if held is None else (held.believed, held.so)
        rows.append(
            f'<tr data-part="{number}"><th scope="row">{escape(part.name)}</th><td data-label="believed">'
            f'{escape(believed)}</td><td data-label="so it was">{escape(so)}</td></tr>'
        )
    return (
        f'<section class="beliefs"><h2>What each part believed at <span class="at">{hours.at(chosen)}</span></h2>'
        f'<p class="about">Of the first run. Choose another time above. No part was broken; each acted well on what it '
        f'saw.</p><table><thead><tr><th scope="col">part</th><th scope="col">believed or did</th><th scope="col">so it '
        f"was</th></tr></thead><tbody>{''.join(rows)}</tbody></table></section>"
    )


def _foot(outcome: Outcome) -> str:
    sources = "".join(f"<li>{escape(text)}</li>" for text in outcome.scenario.sources.values())
    return (
        f"<footer><h2>Sources</h2><ul>{sources}</ul><p>Made by <code>fencepost replay</code>. Each hour and number on "
        "this page comes from the runs it shows; the same seed gives the same page.</p></footer>"
    )


def _data(runs: Sequence[tuple[str, Outcome]], drawn: Sequence[Chart], parts: Sequence[Part], chosen: Tick) -> str:
    """What the script looks up: readings of each chart and run, each part's beliefs, the clock."""
    first = runs[0][1]
    hours = Hours(first.scenario)
    ticks = range(0, first.scenario.lasts_s + 1, EACH_S)
    places = [min(int(first.times.searchsorted(tick)), len(first.times) - 1) for tick in ticks]

    def told(values: Any, tell: Callable[[float], str]) -> list[str]:
        return [tell(float(values[place])) for place in places]

    document = {
        "lasts": first.scenario.lasts_s,
        "each": EACH_S,
        "chosen": chosen,
        "zone": hours.zone,
        "midnight": hours.midnight,
        "charts": {each.name: [told(values, each.told) for values in each.values] for each in drawn},
        "parts": [msgspec.to_builtins(part.beliefs) for part in parts],
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
