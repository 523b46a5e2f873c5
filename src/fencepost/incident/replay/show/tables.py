"""The page's tables: what each run came to, what each guard is worth, reported hours beside found ones, every value."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.scenario import Kind, Scenario
from fencepost.incident.replay.show.hours import Hours, count, percent, spoken
from fencepost.incident.replay.show.judged import Judged, judged, verdict
from fencepost.incident.replay.show.naming import called, counted, gone, is_told, known, moments
from fencepost.incident.replay.show.phases import emergent
from fencepost.incident.replay.show.plots import LETTERS
from fencepost.incident.replay.show.rows import Runs

if TYPE_CHECKING:
    from fencepost.incident.replay.ablation import Row as AblationRow

MEANS = {
    Kind.PUBLISHED: "said by whom it happened to",
    Kind.ESTIMATE: "an outside guess, often repeated",
    Kind.CALIBRATED: "chosen here; nobody published it",
}


def badge(kind: Kind) -> str:
    """A kind in a word and a shape: full, half, dashed."""
    return f'<span class="kind {kind.value}">{kind.value}</span>'


def cell(label: str, text: str, css: str = "n") -> str:
    """A cell that says what it is where columns have no room."""
    return f'<td class="{css}" data-label="{escape(label)}">{escape(text)}</td>'


def figures_table(runs: Runs) -> str:
    """What each run came to, one line each."""
    labels = (
        gone(runs[0][1].scenario),
        "> 1 % without lease",
        "> 5 % of launches refused",
        "most capacity out",
        "recovery to ideal",
    )
    rows = []
    for at, (name, outcome) in enumerate(runs):
        figures = outcome.figures
        ratio = figures.get("recovery_ratio")
        broken = figures.get("leases_missing_s") or 0.0
        most = count(figures.get("broken_leases_max") or 0.0)
        told = (
            spoken(figures.get("dns_empty_s") or 0.0),
            f"{spoken(broken)}, most {most}" if broken else "never",
            spoken(figures.get("launch_failing_s") or 0.0),
            percent(figures.get("capacity_out_max") or 0.0),
            "–" if ratio is None else f"{ratio:.1f} ×",
        )
        cells = "".join(cell(label, text) for label, text in zip(labels, told, strict=True))
        rows.append(
            f'<tr><th scope="row"><span class="who run{at}"><b>{LETTERS[at]}</b> {escape(name)}</span>'
            f"{_small(name, called(outcome.options))}</th>{cells}</tr>"
        )
    heads = "".join(f'<th scope="col" class="n">{label}</th>' for label in labels)
    return (
        f'<section class="runs"><table><thead><tr><th scope="col">run</th>{heads}</tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table><p class="about">Recovery to ideal: how long all leases took to come '
        "back, to how long they would have taken with no work wasted.</p></section>"
    )


def ablation_table(rows: Sequence["AblationRow"]) -> str:
    """What each guard is worth, in the order given."""
    worst = max((row.forced for row in rows), default=0.0) or 1.0
    labels = ("endpoint", "> 1 % without lease", "> 5 % of launches refused", "capacity out", "recovery to ideal")
    lines = []
    for row in rows:
        told = (
            "emptied" if row.emptied else "never empty",
            spoken(row.leases_missing * 60),
            spoken(row.launches_failing * 60),
            spoken(row.capacity_out * 60),
            "–" if row.recovery_ratio is None else f"{row.recovery_ratio:.1f} ×",
        )
        share = f'<span class="bar" style="width:{100 * row.forced / worst:.1f}%"></span>'
        cells = "".join(cell(label, text) for label, text in zip(labels, told, strict=True))
        lines.append(f'<tr><th scope="row">{escape(row.name)}{share}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col" class="n">{label}</th>' for label in labels)
    return (
        '<section class="ablation"><h2>What each guard is worth</h2><p class="about">The same outage for all, whether '
        "their own DNS writers would have made it or not; least harm first. Bars: all three spans added. Capacity out "
        f'is weighed with its share.</p><table><thead><tr><th scope="col">guards</th>{heads}</tr></thead><tbody>'
        f"{''.join(lines)}</tbody></table></section>"
    )


def hours_table(outcome: Outcome) -> str:
    """What happened: reported, found, how far apart, and whether the script sets it."""
    hours, rows, told = Hours(outcome.scenario), [], is_told(outcome.scenario)
    bounds = {each.name: each for each in judged(outcome)}
    acts = {act.name for act in outcome.scenario.acts}
    far = outcome.scenario.lasts_s
    for each in sorted(moments(outcome.scenario), key=lambda each: outcome.happened.get(each.name, far)):
        found = outcome.happened.get(each.name)
        bound = bounds.get(each.name)
        apart = "" if found is None or each.reported is None else _apart(found - each.reported)
        how = "emerged" if emergent(outcome.scenario, each) else "by script"
        rows.append(
            f'<tr><th scope="row"><i class="{"act" if each.name in acts else "event"}"></i>{escape(each.words)}</th>'
            + (cell("reported", "–" if each.reported is None else hours.at(each.reported)) if told else "")
            + cell("here" if told else "at", "never" if found is None else hours.at(found))
            + (cell("apart", apart) + _bound(bound) if told else "")
            + cell("", how, "how")
            + f"<td>{badge(each.kind)}</td></tr>"
        )
    said = verdict(outcome)
    about = "The kind says who gave the reported hour or, where there is none, the rule." if told else (
        "The kind says who gave the rule.")  # fmt: skip
    heads = ("reported", "here", "apart", "bound") if told else ("at",)
    columns = "".join(f'<th scope="col" class="n">{head}</th>' for head in heads)
    return (
        f'<section class="hours-told"><h2>{"Hours, reported and found" if told else "What happened, and when"}</h2>'
        f'<p class="about">Of the first run. {f"{said}. " if said else ""}{about}</p>'
        f'<table><thead><tr><th scope="col">what</th>{columns}<th scope="col">how</th>'
        f'<th scope="col">kind</th></tr></thead><tbody>{"".join(rows)}</tbody></table></section>'
    )


def _bound(each: Judged | None) -> str:
    """How near it has to be, and whether it isn't."""
    if each is None:
        return cell("bound", "")
    return cell("bound", f"± {spoken(each.within_s)}{'' if each.held else ' missed'}", "n" if each.held else "n missed")


def values_table(scenario: Scenario) -> str:
    """Every value with who says it; on a screen kinds can be left out."""
    numbers = counted(scenario)
    named = {each.name for each in moments(scenario)} | {each.name for each in scenario.dependents}
    rows = "".join(
        f'<tr class="{each.kind.value}"><th scope="row"><code>{escape(each.name)}</code></th>'
        f"{cell('value', each.shown)}<td>{badge(each.kind)}</td>{cell('source', each.source, 'source')}</tr>"
        for each in known(scenario)
        if each.name not in named
    )
    keys = "".join(
        f'<label class="key"><input type="checkbox" checked data-kind="{kind.value}"> {badge(kind)} '
        f"<span>{numbers[kind]}, {MEANS[kind]}</span></label>"
        for kind in Kind
    )
    return (
        '<section class="values"><h2>Every value, and who says so</h2><p class="about">Numbers of values and hours '
        f'together. Change any with <code>--set</code> and see what depends on it.</p><div class="kinds">{keys}</div>'
        '<table><thead><tr><th scope="col">value</th><th scope="col" class="n">is</th><th scope="col">kind</th>'
        f'<th scope="col">source</th></tr></thead><tbody>{rows}</tbody></table></section>'
    )


def _small(name: str, options: str) -> str:
    return "" if options == name else f"<small>{escape(options)}</small>"


def _apart(seconds: int) -> str:
    if abs(seconds) < 30:
        return "0"
    return f"{'+' if seconds > 0 else '−'}{spoken(abs(seconds))}"
