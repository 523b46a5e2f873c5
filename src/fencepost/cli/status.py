"""``fencepost status``: what is in DNS, what is out, and whether a person is needed (exit 1)."""

import asyncio
import os
import sys
import time
from typing import Annotated

from cyclopts import Parameter

from fencepost.cli.flags import Config, Json, Timeout, duration
from fencepost.cli.layout import table, width
from fencepost.cli.looking import from_api, source_line, without_api
from fencepost.cli.regions import region_of, shown
from fencepost.cli.talk import Talk, talk_about
from fencepost.cli.terminal import CLEAR, interactive, note, say, styled
from fencepost.core.instant import Duration
from fencepost.ports import PortError, Unavailable
from fencepost.roles.status.document import Status, encode, status_schema
from fencepost.settings import Region

EVERY_S = 1.0


def status(
    *,
    watch: Annotated[bool, Parameter(name=["--watch", "-w"])] = False,
    schema: bool = False,
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"])] = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Show the region as it is. Exit 1 only if a person is needed.

    Parameters
    ----------
    watch
        Go on, each second.
    schema
        Print the JSON Schema of --json, and nothing else.
    verbose
        Also where each setting came from, how old each input is, and each role's process.
    """
    if schema:
        import json as json_text

        say(json_text.dumps(status_schema(), indent=1))
        return 0
    region, patience = region_of(config, forgiving=True), duration(timeout, "--timeout")
    if watch:
        return watching(region, patience, as_json=json)
    found = look(region, patience)
    tell(found, as_json=json)
    if verbose and not json:
        explain_settings(region, config, found)
        say("\n".join(role_lines(found)))
    return 1 if found.verdict == "attention" else 0


def look(region: Region, patience: Duration) -> Status:
    """The document, from as near as it can be had. Raises ``Unavailable``."""
    try:
        return from_api(region, patience)
    except Unavailable:
        found: list[Status] = []

        async def work(talk: Talk) -> int:
            found.append(await without_api(talk))
            return 0

        talk_about(region, patience, work)
        return found[0]


def tell(found: Status, *, as_json: bool) -> None:
    """Print a document."""
    if as_json:
        say(encode(found).decode())
        return
    from fencepost.cli.screen import status_lines

    if line := source_line(found):
        say(styled(line, "yellow"))
    say("\n".join(status_lines(found, time.time_ns(), width(sys.stdout))))


def watching(region: Region, patience: Duration, *, as_json: bool) -> int:
    """The same each second, until Ctrl-C: in place on a terminal, else one after the other."""
    last = 0
    try:
        while True:
            try:
                found = look(region, patience)
            except PortError as error:
                note(str(error))
                last = 3
            else:
                if interactive() and not as_json:
                    print(CLEAR, end="")
                tell(found, as_json=as_json)
                last = 1 if found.verdict == "attention" else 0
            time.sleep(EVERY_S)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return last


def role_lines(found: Status) -> list[str]:
    """Every role: its process, when it was last heard of, how often it was started again."""
    rows: list[tuple[str, ...]] = [("ROLE", "PID", "STATE", "SEEN", "RESTARTS", "VERSION")]
    rows += [
        (
            role.name,
            f"{role.pid or '-'}{f' on {role.host}' if role.host else ''}",
            role.state,
            "-" if role.seen_s is None else f"{role.seen_s:.1f} s ago",
            "-" if role.restarts is None else str(role.restarts),
            role.version or "-",
        )
        for role in found.roles
    ]
    lines = table(rows, columns=width(sys.stdout), drop=(5, 4, 3))
    return [styled(lines[0], "bold"), *lines[1:]] if found.roles else []


def explain_settings(region: Region, flag: str | None, found: Status) -> None:
    """Where each setting came from."""
    from pathlib import Path

    from fencepost import assembly
    from fencepost.cli.folder import meant
    from fencepost.cli.regions import samples
    from fencepost.settings.lookup import VARIABLE

    named = flag if flag != os.environ.get(VARIABLE) else None
    place = meant(named, samples())
    by = place.by if place and place.path == Path(region.path) and place.path.exists() else "what runs here"
    say(f" file      {shown(Path(region.path))} (by {by})")
    if found.config.loaded_at:
        say(f" loaded    {found.config.loaded_at}")
    if found.config.rejected_at:
        say(f" refused   {found.config.rejected_at}: {found.config.rejected_for}")
    at = shown(Path(region.store.path)) if region.store.kind == "sqlite" else region.store.table
    say(f" store     {', '.join(each for each in (region.store.kind, at) if each)}")
    by = "by $STATE_DIRECTORY" if os.environ.get("STATE_DIRECTORY") else "beside the file"
    say(f" state     {shown(assembly.state_folder(region))} ({by})")
    say(f" API       http://{region.api.listen}")
    for name in sorted(os.environ):
        if name.startswith("FENCEPOST_") and name != VARIABLE:
            say(f" ${name} is set and stands for --{name.removeprefix('FENCEPOST_').lower().replace('_', '-')}")
    for what, age in (("store", found.ages.store_s), ("DNS", found.ages.dns_s), ("observer", found.ages.observer_s)):
        say(f" {what:<9} {'not read' if age is None else f'read {age:.1f} s before'}")
