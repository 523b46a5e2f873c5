"""``fencepost incident``: records of what happened, listed, shown, and made from a replay or a region's history."""

import json as json_text
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fencepost.cli.flags import Config, Json, Timeout, duration
from fencepost.cli.folder import meant
from fencepost.cli.layout import table, width
from fencepost.cli.terminal import note, say
from fencepost.core.instant import Instant
from fencepost.ports import Misconfigured, PortError, Refused

if TYPE_CHECKING:  # loaded when it is wanted
    from fencepost.cli.talk import Talk
    from fencepost.incident.record.reading import Found, Library
    from fencepost.incident.record.record import Record

LIST = "fencepost.incidents/1"
MOST = 10_000
"""Lines of history that are read, the newest."""


@dataclass(frozen=True)
class Replaying:
    """What is replayed.

    Parameters
    ----------
    replay
        From a replay of SCENARIO (aws-2025-10-19 if none is named), not from the region's history.
    guards
        As for `fencepost replay`: "none", "production", or some, joined by commas.
    without
        "operators": nobody is at the keyboard.
    dns_outage
        An outage of that length comes about whatever the guards: 2h37m.
    hosts
        How many.
    seed
        Chance; the same seed gives the same record.
    """

    replay: Annotated[bool, Parameter(negative="")] = False
    guards: str = "none"
    without: str | None = None
    dns_outage: Annotated[str | None, Parameter(name="--dns-outage")] = None
    hosts: int = 100_000
    seed: int = 1


AS_IT_WAS = Replaying()


def record(
    scenario: str | None = None,
    /,
    *,
    replaying: Annotated[Replaying, Parameter(name="*")] = AS_IT_WAS,
    last: str = "24h",
    out: Path | None = None,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Make a record: of what a region's history says went wrong, or of a replay. It is printed, or kept by --out.

    Parameters
    ----------
    scenario
        With --replay: which; a shipped one or a file.
    last
        How far back in the history.
    out
        The file to write, whose name ends in .json; any other name is a folder, made if need be, and ID.json is
        written in it. A file that is there is never overwritten.
    """
    if replaying.replay:
        return _kept(_of_replay(scenario, replaying), out, json)
    if scenario is not None or replaying != AS_IT_WAS:
        raise Misconfigured(
            "a scenario, guards and the like are for a record of a replay", where="incident record",
            hint="add --replay, or leave them out for a record of the region's history",
        )  # fmt: skip
    from fencepost.cli.talk import talk

    since = time.time_ns() - duration(last, "--last")
    found: list[Record] = []

    async def work(ports: "Talk") -> int:
        found.append(await _of_region(ports, since))
        return 0

    talk(config, duration(timeout, "--timeout"), work)
    return _kept(found[0], out, json)


def _of_replay(scenario: str | None, asked: Replaying) -> "Record":
    from fencepost.cli.replay import HOSTS_MOST, OCTOBER, spell
    from fencepost.incident.record.from_replay import from_replay
    from fencepost.incident.replay.guards import parse_guards
    from fencepost.incident.replay.options import Options
    from fencepost.incident.replay.run import replay
    from fencepost.incident.replay.scenario_file import find_scenario
    from fencepost.settings.units import NS

    if asked.without not in (None, "operators"):
        raise Misconfigured(f'"{asked.without}" can\'t be left out', where="--without", hint='only "operators" can')
    if not 100 <= asked.hosts <= HOSTS_MOST:
        raise Misconfigured(f"{asked.hosts:,} hosts", where="--hosts", hint=f"100 to {HOSTS_MOST:,}")
    try:
        guards = parse_guards(asked.guards)
    except ValueError as error:
        raise Misconfigured(str(error), where="--guards", hint="fencepost replay --help names them") from None
    outage_s = None if asked.dns_outage is None else spell(asked.dns_outage) // NS["s"]
    options = Options(asked.hosts, asked.seed, guards, asked.without is None, outage_s)
    return from_replay(replay(find_scenario(scenario or OCTOBER), options))


async def _of_region(ports: "Talk", since: Instant) -> "Record":
    from fencepost.incident.record.from_journal import Region, from_journal

    rows = await ports.within(ports.store.history(since=since, most=MOST), "the store")
    pools = {each.name: each.pool for each in ports.region.endpoints}
    region = Region(ports.region.name, ports.region.dns.provider, pools)
    return from_journal(rows, region, time.time_ns(), whole=len(rows) < MOST)


def _kept(made: "Record", out: Path | None, json: bool) -> int:
    from fencepost.incident.record.record import document, text

    if out is not None:
        is_file = out.suffix == ".json" and not out.is_dir()
        path = out if is_file else out / f"{made.id}.json"
        try:
            if not is_file:
                out.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text(made))
        except FileExistsError as error:
            if error.filename == str(out) and not is_file:
                what, hint = "is a file and no folder", "name a folder, or a file that ends in .json"
                raise Refused(what, where=str(out), hint=hint) from None
            hint = "name another: what people wrote into a record isn't overwritten"
            raise Refused("is there already", where=str(path), hint=hint) from None
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or str(error)
            raise Misconfigured(f"can't be written: {said}", where=str(path), hint="name another --out") from None
        note(f"written: {path}")
    if json:
        say(json_text.dumps(document(made)))
    elif out is None:
        say(text(made).rstrip("\n"))
    else:
        say(f"{made.id} · {made.title}")
    return 0


def list_(
    *,
    tag: str | None = None,
    symptom: str | None = None,
    cause: str | None = None,
    folder: Path | None = None,
    config: Config = None,
    json: Json = False,
) -> int:
    """What records there are: those that come with fencepost, and those in incidents/ beside region.toml.

    Parameters
    ----------
    tag
        Only those with this tag.
    symptom
        Only those with this symptom: its name, or words in it.
    cause
        Only those with this kind of cause, root or contributing.
    folder
        Where one's own records lie.
    """
    from fencepost.incident.record.reading import chosen

    records = _library(folder, config)
    found = chosen(records.found, tag, symptom, cause)
    if json:
        say(json_text.dumps({"schema": LIST, "incidents": [_row(each) for each in found], "errors": _errors(records)}))
    else:
        say("\n".join(_table(found)))
        _tell(records)
    return 2 if records.errors else 0


def _table(found: "list[Found]") -> list[str]:
    from fencepost.incident.record.told import day_of, lasted

    rows = [("INCIDENT", "DAY", "LASTED", "CAUSE", "WHAT")]
    for each in found:
        cause = each.record.root_cause
        category = cause.category.value if cause else "?"
        rows.append((each.record.id, day_of(each.record), lasted(each.record), category, each.record.title))
    return table(rows, columns=width(sys.stdout), drop=(2, 3), last=30)


def _row(found: "Found") -> dict[str, Any]:
    from fencepost.incident.record.record import document
    from fencepost.incident.record.told import main_kind

    whole = document(found.record)
    kept = ("id", "title", "start", "end", "root_cause_fixed", "components", "tags")
    cause = whole["root_cause"]
    return {
        **{key: whole[key] for key in kept},
        "kind": main_kind(found.record).value,
        "cause": None if cause is None else cause["category"],
        "contributing": [each["category"] for each in whole["contributing"] if each["category"]],
        "symptoms": [each["name"] for each in whole["symptoms"]],
        "where": found.where,
    }


def show(id_: str, /, *, folder: Path | None = None, config: Config = None, json: Json = False) -> int:
    """One record, and those that are related to it: by name, by a kind of cause, by a component.

    Parameters
    ----------
    id_
        Its id, or a record's file (whatever ends in .json, or has a / in it).
    folder
        Where one's own records lie.
    """
    from fencepost.incident.record.reading import read_file
    from fencepost.incident.record.record import document
    from fencepost.incident.record.related import completed
    from fencepost.incident.record.told import lines

    named = Path(id_) if id_.endswith(".json") or "/" in id_ else None
    given = None if named is None else read_file(named)
    records = _library(folder, config)
    whole = completed(given or records.get(id_).record, records.found)
    if json:
        say(json_text.dumps(document(whole)))
        return 0
    say("\n".join(lines(whole)))
    _tell(records)
    return 0


def _library(folder: Path | None, config: str | None) -> "Library":
    """Every record there is, and what is wrong with the others. Raises ``Misconfigured`` for a folder that isn't."""
    from fencepost.cli.regions import samples
    from fencepost.incident.record.reading import FOLDER, library

    if folder is not None and not folder.is_dir():
        raise Misconfigured(
            "no such folder", where=f"--folder {folder}", hint="name the folder that the records lie in"
        )
    if folder is None:
        found = meant(config, samples())
        folder = None if found is None else found.path.parent / FOLDER
    return library(folder)


def _errors(records: "Library") -> list[dict[str, str]]:
    return [{"what": each.what, "where": each.where, "hint": each.hint} for each in records.errors]


def _tell(records: "Library") -> None:
    """Say on stderr what is wrong with records that can't be read."""
    from fencepost.cli.errors import words_of

    errors: tuple[PortError, ...] = records.errors
    for error in errors:
        note(words_of(error))
