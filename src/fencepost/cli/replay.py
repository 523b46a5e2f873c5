"""``fencepost replay``: October 2025 in seconds, and what each guard would have bought."""

import json as json_text
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fencepost.cli.flags import Json
from fencepost.cli.layout import table, width
from fencepost.cli.progress import Progress
from fencepost.cli.terminal import coloured, note, say
from fencepost.ports import Misconfigured

if TYPE_CHECKING:  # the replay is loaded when it is wanted
    from fencepost.incident.replay.ablation import Row
    from fencepost.incident.replay.options import Options
    from fencepost.incident.replay.outcome import Outcome
    from fencepost.incident.replay.scenario import Scenario

OCTOBER = "aws-2025-10-19"
HOSTS_MOST = 5_000_000
HOSTS_EACH_MOST = 200_000
"""Where many replays are compared, side by side."""
DRAWS_MOST = 100_000
"""Days of two cores: a hundred took seven minutes of CPU. What a thousand draws uphold isn't made surer by more."""
HOSTS_LONG = 500_000
"""From here on it is said how long it takes, before it is begun."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a scenario besides one replay of it.

    Parameters
    ----------
    ablate
        As it was, each guard alone, each left out, all: in order of worth.
    robust
        So many draws of every calibrated value, within 30 %; which statements still hold in how many.
    trap
        A guard that looks right, and what comes of it: one-stage, or another; "list" names them all.
    map
        How long it takes to recover for good: outages of every length, under more and less load.
    values
        Every value with its source, and nothing else.
    """

    ablate: Annotated[bool, Parameter(negative="")] = False
    robust: int | None = None
    trap: str | None = None
    map: Annotated[bool, Parameter(negative="")] = False
    values: Annotated[bool, Parameter(negative="")] = False


ONE = Asked()


@dataclass(frozen=True)
class Files:
    """Where else it goes.

    Parameters
    ----------
    html
        One page with everything in it.
    png
        The story as a picture.
    """

    html: Path | None = None
    png: Path | None = None


NOWHERE = Files()


def replay(
    scenario: str = OCTOBER,
    /,
    *,
    guards: str = "none",
    without: str | None = None,
    dns_outage: Annotated[str | None, Parameter(name="--dns-outage")] = None,
    hosts: int | None = None,
    seed: int = 1,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative="", show_default=False)] = (),
    asked: Annotated[Asked, Parameter(name="*")] = ONE,
    files: Annotated[Files, Parameter(name="*")] = NOWHERE,
    json: Json = False,
) -> int:
    """Replay an incident on the deciders of the time, or on those that ship.

    Parameters
    ----------
    scenario
        "aws-2025-10-19", "database-away", "bad-probe", or a file of your own.
    guards
        "none", "production", or some, joined by commas: fence, clean-up, lease-clock, admission, network-throttle,
        readiness, velocity.
    without
        "operators": nobody is at the keyboard.
    dns_outage
        An outage of that length comes about whatever the guards: 2h37m.
    hosts
        How many; 100,000, or 10,000 where many replays are compared.
    seed
        Chance; the same seed gives the same bytes.
    set_
        A value of the scenario instead of its own: guards.grace=1h. May be repeated.
    """
    from fencepost.incident.replay.scenario_file import find_scenario, set_values

    _check_modes(asked, files)
    found = set_values(find_scenario(scenario), dict(_pair(each) for each in set_))
    options = _options(guards, without, dns_outage, hosts, seed)
    _check_outage(found, options, asked)
    _check_size(options, asked)
    if asked.values:
        return _values(found, json)
    if asked.robust is not None:
        return _robust(found, options, asked.robust, json)
    if asked.trap is not None:
        from fencepost.cli.replay_traps import trap

        return trap(found, options, asked.trap, json)
    if asked.map:
        from fencepost.cli.replay_map import recovery

        return recovery(found, options, json)
    if asked.ablate:
        return _ablate(found, options, files, json)
    return _one(found, scenario, options, files, json)


def _check_modes(asked: Asked, files: Files) -> None:
    """One thing at a time: what would be left out without a word is refused."""
    given = {"--values": asked.values, "--robust": asked.robust is not None, "--trap": asked.trap is not None}
    given |= {"--map": asked.map, "--ablate": asked.ablate}
    modes = [flag for flag, is_given in given.items() if is_given]
    if len(modes) > 1:
        raise Misconfigured(f"{modes[0]} and {modes[1]} are two answers", where=modes[1], hint="ask one at a time")
    drawn = files.html or files.png
    if drawn is not None and modes not in ([], ["--ablate"]):
        raise Misconfigured(f"{modes[0]} makes no page and no picture", where=str(drawn), hint="leave it out")
    if files.html is not None and files.html == files.png:
        raise Misconfigured("page and picture would be one file", where=str(files.html), hint="name two")


def _check_outage(scenario: "Scenario", options: "Options", asked: Asked) -> None:
    """No outage is longer than what is replayed; and in some scenarios the store is never away."""
    from fencepost.incident.replay.scenario import Cause
    from fencepost.settings.units import NS, spoken

    if options.outage_s is not None and options.outage_s > scenario.lasts_s:
        lasts = spoken(scenario.lasts_s * NS["s"])
        said = f"{spoken(options.outage_s * NS['s'])} is longer than what is replayed, which is {lasts}"
        raise Misconfigured(said, where="--dns-outage", hint=f"at most {lasts}")
    if scenario.cause is not Cause.BAD_PROBE:
        return
    flags = {
        "--dns-outage": options.outage_s is not None,
        "--ablate": asked.ablate,
        "--robust": asked.robust is not None,
        "--map": asked.map,
        "--trap": asked.trap not in (None, "list"),
    }
    for flag in (flag for flag, given in flags.items() if given):
        raise Misconfigured("the store is never away in this scenario", where=flag, hint="name one in which it is")


def _check_size(options: "Options", asked: Asked) -> None:
    """Nothing is silent for minutes, and nothing eats a machine's memory unasked."""
    flags = {"--ablate": asked.ablate, "--robust": asked.robust is not None, "--map": asked.map}
    flags["--trap"] = asked.trap not in (None, "list")
    many = next((flag for flag, is_given in flags.items() if is_given), None)
    if many is not None and options.hosts > HOSTS_EACH_MOST:
        said = f"{options.hosts:,} hosts in each of many replays"
        hint = f"at most {HOSTS_EACH_MOST:,} with {many}: all rates scale with them"
        raise Misconfigured(said, where="--hosts", hint=hint)
    if many is None and not asked.values and options.hosts >= HOSTS_LONG:
        seconds, megabytes = cost(options)
        same = "100,000 hosts show the same, since all rates scale with them"
        note(f"about {seconds:.0f} s and {megabytes:,.0f} MB; {same}")


def cost(options: "Options") -> tuple[float, float]:
    """Seconds of CPU and megabytes of memory that a replay of many hosts takes; measured up to 1,000,000."""
    each_us, bytes_ = (14, 300) if options.guards else (7, 90)
    return 1 + options.hosts * each_us / 1e6, 60 + options.hosts * bytes_ / 1e6


def _pair(text: str) -> tuple[str, str]:
    key, given, value = text.partition("=")
    if not given:
        raise Misconfigured(f'"{text}" is no value', where="--set", hint="write it like guards.grace=1h")
    return key, value


def _options(guards: str, without: str | None, outage: str | None, hosts: int | None, seed: int) -> "Options":
    from fencepost.incident.replay.guards import parse_guards
    from fencepost.incident.replay.options import Options
    from fencepost.settings.units import NS

    if without not in (None, "operators"):
        raise Misconfigured(f'"{without}" can\'t be left out', where="--without", hint='only "operators" can')
    if hosts is not None and not 100 <= hosts <= HOSTS_MOST:
        raise Misconfigured(f"{hosts:,} hosts", where="--hosts", hint=f"100 to {HOSTS_MOST:,}")
    try:
        chosen = parse_guards(guards)
    except ValueError as error:
        raise Misconfigured(str(error), where="--guards", hint="fencepost replay --help names them") from None
    if seed < 0:
        raise Misconfigured(f"{seed} is below 0", where="--seed", hint="0 or more")
    outage_s = None if outage is None else spell(outage) // NS["s"]
    if outage_s == 0:
        raise Misconfigured(f'"{outage}" is no time at all', where="--dns-outage", hint="leave it out")
    return Options(hosts or 0, seed, chosen, without is None, outage_s)


def spell(text: str) -> int:
    """A duration in nanoseconds, of one part or several: "2h37m". Raises Misconfigured."""
    import re

    from fencepost.settings.units import duration_ns

    parts = re.findall(r"[0-9.]+ ?(?:ms|[smhd])", text)
    if not parts or "".join(parts) != text.strip():
        raise Misconfigured(f'"{text}" is no duration', where="--dns-outage", hint='write it like "2h37m" or "90m"')
    return sum(duration_ns(part) for part in parts)


def _one(scenario: "Scenario", named: str, options: "Options", files: Files, json: bool) -> int:
    from msgspec import structs

    from fencepost.incident.replay.run import replay as run
    from fencepost.incident.replay.show.document import document
    from fencepost.incident.replay.show.terminal import terminal_text

    options = structs.replace(options, hosts=options.hosts or 100_000)
    outcome = run(scenario, options)
    _write(outcome, files)
    if json:
        say(json_text.dumps(document(outcome)))
        return 0
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    wide, colour = width(sys.stdout), coloured(sys.stdout)
    say(terminal_text(outcome, width=wide, unicode=unicode, colour=colour, named=named))
    return 0


def _write(outcome: "Outcome", files: Files, ablation: "Sequence[Row] | None" = None) -> None:
    """The page and the picture, where they are asked for. Raises Misconfigured."""
    from fencepost.incident.replay.show.png import picture

    if files == NOWHERE:
        return
    runs = _beside(outcome)
    for path, made in ((files.html, partial(_page, runs, ablation)), (files.png, partial(picture, runs))):
        if path is None:
            continue
        try:
            path.write_bytes(made())
        except OSError as error:
            raise Misconfigured(f"can't be written: {error.strerror}", where=str(path), hint="name another") from None
        note(f"written: {path}")


def _page(runs: "list[tuple[str, Outcome]]", ablation: "Sequence[Row] | None") -> bytes:
    from fencepost.incident.replay.show.page import page

    return page(runs, ablation).encode()


def _beside(outcome: "Outcome") -> list[tuple[str, "Outcome"]]:
    """The replay, and beside it as it was what guards would have made of the same trouble."""
    from msgspec import structs

    from fencepost.incident.replay.guards import NONE, PRODUCTION, Guard
    from fencepost.incident.replay.run import replay as run
    from fencepost.incident.replay.show.naming import called, outage_s

    found = [(called(outcome.options), outcome)]
    length = outage_s(outcome.scenario)
    if outcome.options.guards != NONE or not outcome.options.operators:
        return found
    if length is None:
        options = structs.replace(outcome.options, guards=PRODUCTION)
        return [*found, (called(options), run(outcome.scenario, options))]
    pulled = frozenset({Guard.ADMISSION, Guard.NETWORK_THROTTLE})
    for guards, operators in ((pulled, False), (PRODUCTION - {Guard.FENCE}, True)):
        options = structs.replace(outcome.options, guards=guards, operators=operators, outage_s=length)
        found.append((called(options), run(outcome.scenario, options)))
    return found


def _values(scenario: "Scenario", json: bool) -> int:
    import msgspec

    from fencepost.incident.replay.scenario import Kind
    from fencepost.incident.replay.show.naming import known

    rows = known(scenario)
    if json:
        told = {"values": msgspec.to_builtins(rows), "sources": dict(sorted(scenario.sources.items()))}
        say(json_text.dumps({"schema": "fencepost.replay-values/1", **told}))
        return 0
    kinds = list(Kind)
    rows = tuple(sorted(rows, key=lambda each: kinds.index(each.kind)))
    cells = [("VALUE", "", "KIND", "SOURCE")]
    cells += [(each.name, each.shown, each.kind.value, each.source_key) for each in rows]
    say("\n".join(table(cells, "", columns=width(sys.stdout))))
    cited = {each.source_key: each.source for each in rows}
    say("\n" + "\n".join(table([("SOURCE", ""), *cited.items()], "", columns=width(sys.stdout), last=24)))
    return 0


def _ablate(scenario: "Scenario", options: "Options", files: Files, json: bool) -> int:
    import msgspec
    from msgspec import structs

    from fencepost.incident.replay.ablation import HOSTS, ablation, rows_to_try
    from fencepost.incident.replay.run import replay as run
    from fencepost.incident.replay.show.naming import outage_s

    options = structs.replace(options, hosts=options.hosts or HOSTS)
    length = options.outage_s or outage_s(scenario)
    if length is None:
        raise Misconfigured("this scenario says of no outage how long it was", where=scenario.name, hint="--dns-outage")
    told, tries = Progress(), len(rows_to_try())
    rows = ablation(scenario, options, length, lambda done: told.say(lambda: f"{done} of {tries} runs"))
    if files != NOWHERE:
        _write(run(scenario, options), files, rows)
    if json:
        say(json_text.dumps({"schema": "fencepost.ablation/1", "rows": msgspec.to_builtins(rows)}))
        return 0
    cells: list[tuple[str, ...]] = [("GUARDS", "ENDPOINT", "LEASES MISSING", "LAUNCHES FAILING", "CAPACITY OUT")]
    for row in rows:
        counted = (f"{amount:.0f}" for amount in (row.leases_missing, row.launches_failing, row.capacity_out))
        cells.append((row.name, "emptied" if row.emptied else "kept", *counted))
    enough = " (enough: rates scale with them)" if options.hosts == HOSTS else ""
    outage = f"{length // 3600}h{length % 3600 // 60:02d}m"
    say(f"The same outage of {outage} for all · {options.hosts:,} hosts{enough} · minutes")
    say("\n".join(table(cells, "", right=(2, 3, 4))))
    say("ENDPOINT: what these guards' own DNS writers make of it; where it is kept there would have been no outage.")
    return 0


def _robust(scenario: "Scenario", options: "Options", draws: int, json: bool) -> int:
    import msgspec
    from msgspec import structs

    from fencepost.incident.replay.robustness import HOSTS, SPREAD, robustness
    from fencepost.incident.replay.show.naming import outage_s

    if draws < 1:
        raise Misconfigured(f"{draws} draws", where="--robust", hint="at least one")
    if draws > DRAWS_MOST:
        raise Misconfigured(f"{draws:,} draws", where="--robust", hint=f"1 to {DRAWS_MOST:,}; a hundred tell much")
    options = structs.replace(options, hosts=options.hosts or HOSTS)
    length = options.outage_s or outage_s(scenario) or 0
    told = Progress()
    counted = robustness(
        scenario, options, length, draws, lambda done: told.say(lambda: f"{done} of {draws} draws are done")
    )
    if json:
        document = {"schema": "fencepost.robustness/1", "draws": draws, "statements": msgspec.to_builtins(counted)}
        say(json_text.dumps(document))
        return 0
    say(f"{draws} draws of every calibrated value, each within {SPREAD:.0%} · {options.hosts:,} hosts")
    say("\n".join(f"{each.held:4} of {each.of:4}  {each.words}" for each in counted))
    return 0
