"""``fencepost reload``: the file as it is now becomes what the region runs on, or nothing changes.

The file is checked whole first. A wrong one is refused, the running settings stay, and ``status`` says since when. What
takes more than half a pool away at once, or leaves less than ``min_in`` in service, asks for ``--yes``.
"""

import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from fencepost.cli.flags import Config, Json, Timeout, Yes, duration
from fencepost.cli.folder import meant, none_here
from fencepost.cli.loaded import loaded_in, pools_in
from fencepost.cli.regions import gone_error, missing_file, refuse_unstarted, running_beside, samples, shown
from fencepost.cli.talk import Talk, answer, talk_about
from fencepost.cli.terminal import moment
from fencepost.core.traffic.membership import SERVING
from fencepost.ports import PortError, Refused
from fencepost.roles import configuration
from fencepost.roles.status.rejected import put_rejected
from fencepost.settings import Region, SettingsError, closing
from fencepost.settings import load as load_file
from fencepost.settings.changes import Changes, changes, summary, too_much


class Outcome(Struct, frozen=True):
    """What a reload did: the revision that runs now, what differs from before, and which orphans are withdrawn."""

    revision: int
    loaded_at: int
    changed: Changes
    withdrawn: frozenset[str] = frozenset()


def reload(*, yes: Yes = False, timeout: Timeout = "10s", config: Config = None, json: Json = False) -> int:
    """Take up region.toml as it is now. With a mistake in it the running settings stay (exit 2)."""
    lost = missing_file(config)
    if lost is not None:
        raise gone_error(*lost)
    found = meant(config, samples())
    if found is None:
        raise none_here()
    patience = duration(timeout, "--timeout")
    try:
        region = load_file(shown(found.path))
    except SettingsError as error:
        running = running_beside(found.path)
        if running is None:
            raise
        mistakes = error
        return talk_about(running, patience, lambda ports: refuse(ports, mistakes))

    refuse_unstarted(region)

    async def work(talk: Talk) -> int:
        outcome = await take_up(talk, region, yes=yes)
        answer("\n".join(words(outcome)), document(outcome), as_json=json)
        return 0

    # What runs knows where its store is; the file may name another.
    return talk_about(running_beside(found.path) or region, patience, work)


async def refuse(talk: Talk, error: SettingsError) -> int:
    """Make known that the file was refused, and raise it with when the running settings were loaded."""
    loaded_at = ""
    try:
        loaded = loaded_in(await talk.within(talk.store.inputs(), "the store"))
        loaded_at = moment(loaded.loaded_at) if loaded else ""
        await talk.within(put_rejected(talk.store, error.what, time.time_ns()), "the store")
    except PortError:
        pass
    error.hint = closing(error.mistakes, loaded_at)
    error.args = (f"{error.what}\n{error.hint}",)
    raise error


async def take_up(talk: Talk, region: Region, *, yes: bool) -> Outcome:
    """Load a checked file. Raises ``Refused`` if the region has never run, or it takes too much without a yes."""
    inputs = await talk.within(talk.store.inputs(), "the store")
    loaded = loaded_in(inputs)
    if loaded is None:
        raise Refused(
            "this region has never run; it loads its file when it starts", where=region.path, hint="fencepost up"
        )
    serving = {
        pool: frozenset(member.key for member in row.members if member.state in SERVING)
        for pool, row in pools_in(inputs).items()
    }
    changed = changes(loaded.region, region)
    await refuse_fixed(talk, region, changed)
    why = too_much(loaded.region, region, serving)
    if why and not yes:
        text = "; ".join(why)
        await talk.within(put_rejected(talk.store, text, time.time_ns()), "the store")
        raise Refused(
            f"{text}. Nothing was changed",
            where=shown(Path(region.path)),
            hint="if you mean it:  fencepost reload --yes",
        )
    put = configuration.put(talk.store, region, confirmed=yes, seen=inputs, by=talk.by)
    now = await talk.within(put, "the store")
    gone = [each.name for each in changed.orphans]
    rows = [rows[0] for name in gone if (rows := await talk.within(talk.store.rows_of(name), "the store"))]
    return Outcome(now.revision, now.loaded_at, changed, frozenset(row.name for row in rows if row.withdrawn))


async def refuse_fixed(talk: Talk, region: Region, changed: Changes) -> None:
    """Raise ``Refused`` for what no reload changes while a role runs, and make that known.

    Where none runs, a reload is how the file is loaded before the roles are started one by one (systemd).
    """
    fixed = [each.said for each in changed.settings if each.fixed]
    if not fixed or not await runs(talk):
        return
    text = f"a reload can't change {'; '.join(fixed)}"
    await talk.within(put_rejected(talk.store, text, time.time_ns()), "the store")
    hint = "put it back; or withdraw what it leaves, end the region, and start it again with the file as it is"
    raise Refused(f"{text}. Nothing was changed", where=shown(Path(region.path)), hint=hint)


async def runs(talk: Talk) -> bool:
    """Whether any role of the region lives on this machine."""
    from fencepost.cli.up_state import supervised
    from fencepost.roles.status.processes import alive
    from fencepost.roles.status.running import SILENT_AFTER

    if supervised(talk.region) is not None:
        return True
    beats = await talk.within(talk.store.beats(), "the store")
    return any(time.time_ns() - beat.at < SILENT_AFTER and alive(beat.pid) for beat in beats)


def by_signal(region: Region) -> str:
    """Reload at SIGHUP, without anybody to ask; what came of it, in a line. ``region`` says which file."""
    text: list[str] = []
    patience = 10_000_000_000

    async def work(talk: Talk) -> int:
        text.append("; ".join(line.strip() for line in words(await take_up(talk, fresh, yes=False))))
        return 0

    try:
        fresh = load_file(shown(Path(region.path)))
        talk_about(region, patience, work)
    except SettingsError as error:
        mistakes = error
        with suppress(SettingsError):
            talk_about(region, patience, lambda ports: refuse(ports, mistakes))
        text.append(f"refused: {'; '.join(map(str, mistakes.mistakes[:3]))}. {mistakes.hint}")
    except PortError as error:
        text.append(f"refused: {error}{f'; {error.hint}' if error.hint else ''}")
    return " ".join(text)


def words(outcome: Outcome) -> list[str]:
    """What happened, in lines."""
    changed = outcome.changed
    if changed.nothing:
        return [f"nothing differs from what was loaded at {moment(outcome.loaded_at)}"]
    lines = [f"loaded as revision {outcome.revision}: {summary(changed)}"]
    for target in changed.targets:
        if target.before is None and target.after is not None:
            lines.append(f"  + {target.after.address}  pool {target.pool}, zone {target.after.zone}")
        elif target.after is None and target.before is not None:
            lines.append(f"  - {target.before.address}  pool {target.pool}: your act, not counted against limits")
    for endpoint in changed.endpoints:
        if endpoint.after is None and endpoint.name in outcome.withdrawn:
            lines.append(f"  ! {endpoint.name} left the file; it is withdrawn already")
        elif endpoint.after is None:
            lines.append(f"  ! {endpoint.name} left the file; its records stay: fencepost withdraw {endpoint.name}")
        elif endpoint.before is None:
            lines.append(f"  + {endpoint.name}")
    for setting in changed.settings:
        restart = "  (needs a restart)" if setting.needs_restart else ""
        lines.append(f"  {setting.said}{restart}")
    return lines


def document(outcome: Outcome) -> dict[str, object]:
    """What happened, for programs."""
    changed = outcome.changed
    return {
        "done": "reload",
        "revision": outcome.revision,
        "new_targets": [each.after.address for each in changed.targets if each.before is None and each.after],
        "gone_targets": [each.before.address for each in changed.removed if each.before],
        "endpoints": [each.name for each in changed.endpoints],
        "orphans": [each.name for each in changed.orphans],
        "settings": [each.path for each in changed.settings],
        "needs_restart": [each.path for each in changed.settings if each.needs_restart],
    }
