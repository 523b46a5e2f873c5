"""``fencepost check``: judge a region.toml. The same code as the start, and it connects to nothing."""

import json as json_text
from pathlib import Path

from fencepost.cli.flags import Config, Json
from fencepost.cli.folder import meant, none_here
from fencepost.cli.regions import gone_error, missing_file, samples, shown
from fencepost.cli.terminal import moment, note, say, styled
from fencepost.ports import PortError
from fencepost.settings import Region, Report, closing
from fencepost.settings import check as judged


def check(file: str | None = None, /, *, config: Config = None, json: Json = False) -> int:
    """Judge a region.toml and say what its numbers come to. Nothing is started and nothing is connected to.

    Parameters
    ----------
    file
        Which file; else the one that other commands would take.
    """
    lost = missing_file(file or config)
    if lost is not None:
        raise gone_error(*lost)
    found = meant(file or config, samples())
    if found is None:
        raise none_here()
    report = judged(shown(found.path))
    loaded = loaded_at(found.path, report.region)
    if json:
        say(json_text.dumps(document(report, shown(found.path))))
    elif report.mistakes:
        for mistake in report.mistakes:
            note(str(mistake))
        note(closing(report.mistakes, loaded))
        if report.denied:
            note("What can't be read may be right: be the user that fencepost runs as, and check again.")
    else:
        tell(report, shown(found.path))
    return 2 if report.mistakes else 0


def tell(report: Report, path: str) -> None:
    """A file without mistakes, in words."""
    for caution in report.cautions:
        note(str(caution))
    region = report.region
    if region is None:
        return
    targets = sum(len(pool.targets) for pool in region.pools)
    say(
        f"{path}: {styled('ok', 'green')} · region {region.name} · {counted(len(region.endpoints), 'endpoint')},"
        f" {counted(len(region.pools), 'pool')}, {counted(targets, 'target')}, {counted(len(region.zones), 'zone')}"
    )
    for line in report.meaning:
        say(line)


def document(report: Report, path: str) -> dict[str, object]:
    """What was found, for programs; mistakes also as ``error``, as everywhere."""
    found: dict[str, object] = {
        "path": path,
        "ok": not report.mistakes,
        "mistakes": [{"file": each.file, "line": each.line, "text": each.text} for each in report.mistakes],
        "warnings": [{"file": each.file, "line": each.line, "text": each.text} for each in report.cautions],
        "meaning": list(report.meaning),
    }
    if report.mistakes:
        found["error"] = {
            "kind": "misconfigured",
            "what": "\n".join(map(str, report.mistakes)),
            "where": path,
            "hint": closing(report.mistakes),
        }
    return found


def loaded_at(path: Path, region: Region | None) -> str:
    """When the region that runs on this file loaded it; "" if none is known to run."""
    from fencepost.cli.regions import running_beside

    running = running_beside(path) if region is None else None
    if running is None:
        return ""
    import asyncio

    from fencepost.cli.loaded import of_store

    try:
        known = asyncio.run(of_store(running))
    except PortError:
        return ""
    return moment(known.loaded_at) if known else ""


def counted(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"
