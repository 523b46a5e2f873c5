"""Which region a command is about, and the sample's place on disk."""

import os
import secrets
from pathlib import Path

from fencepost.cli.folder import GONE, gone, here, meant, none_here
from fencepost.cli.terminal import note
from fencepost.dev import sample
from fencepost.ports import Misconfigured, Unavailable
from fencepost.settings import Region, SettingsError, load
from fencepost.settings.lookup import SAMPLE, start_words

SAMPLE_FOLDER = SAMPLE.parent


def pointer() -> Path | None:
    """Where the place of a running sample is noted for this user, if the system has such a folder."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "fencepost-sample" if runtime and Path(runtime).is_dir() else None


def samples() -> list[Path]:
    """The files of samples that may run here, likeliest first: those that do run before what an earlier run left."""
    found = []
    noted = pointer()
    if noted is not None and noted.is_file():
        found.append(Path(noted.read_text().strip()))
    found.append(here() / SAMPLE_FOLDER / "region.toml")
    found += sorted(here().glob(f"{SAMPLE_FOLDER}-*/region.toml"))
    return sorted(found, key=lambda each: running_supervisor(each.parent) is None)


def region_of(config: str | None, *, forgiving: bool = False) -> Region:
    """The region that a command means. Raises ``Misconfigured`` if there is none, ``SettingsError`` if it is wrong.

    ``forgiving`` is for commands that one needs in an outage: a file that was spoilt or deleted since the region loaded
    it doesn't stop them, and they go by what it loaded.
    """
    lost = missing_file(config)
    if lost is not None:
        if not forgiving:
            raise gone_error(*lost)
        note(f"{shown(lost[0])} is gone; going by what its region loaded last")
        return lost[1]
    found = meant(config, samples())
    if found is None:
        raise none_here("fencepost init  writes one;  fencepost up  runs a sample")
    try:
        return load(shown(found.path))
    except SettingsError as error:
        running = running_beside(found.path, alive=False) if forgiving else None
        if running is None:
            raise
        count = len(error.mistakes)
        has = f"{count} mistake{'s' if count > 1 else ''}"
        note(f"{shown(found.path)} has {has} (fencepost check); going by what the region ran on last")
        return running


def missing_file(config: str | None) -> tuple[Path, Region, bool] | None:
    """A file that is meant and was deleted since its region loaded it: its path, that region, whether it runs now.

    A deleted ./region.toml still stands for its own region: what is placed must not land on a sample that runs
    elsewhere.
    """
    found = meant(config)
    path = found.path if found is not None and found.by != "/etc" else here() / "region.toml"
    if path.exists() or path.is_symlink():
        return None
    for alive in (True, False):
        region = running_beside(path, alive=alive)
        if region is not None:
            return path, region, alive
    return None


def gone_error(path: Path, region: Region, runs: bool) -> Misconfigured:
    """What to say where a deleted file is needed."""
    kept = f"; region {region.name} keeps running on what it loaded" if runs else "; nothing was changed"
    return Misconfigured(f"the file is gone{kept}", where=shown(path), hint="put it back, then  fencepost reload")


def running_beside(path: Path, *, alive: bool = True) -> Region | None:
    """The region that was loaded from this file and runs here now (or last did, if not ``alive``); None if none did.

    Its planner keeps a local copy of the newest configuration in the region's folder.
    """
    from fencepost.roles.configuration import read_copy

    folder = path.absolute().parent
    given = os.environ.get("STATE_DIRECTORY")
    places = [Path(given) / "running.json"] if given else []
    for known in [*places, folder / "running.json", *sorted(folder.glob(".fencepost/*/running.json"))]:
        if not os.access(known, os.R_OK) or (alive and running_supervisor(known.parent) is None):
            continue
        loaded = read_copy(known)
        if loaded is not None and Path(loaded.region.path) == path.absolute():
            return loaded.region
    return None


def refuse_unstarted(region: Region) -> None:
    """Raise ``Unavailable`` for a region with our own DNS server that never ran here: nothing of it can be read yet.

    One with a server of somebody else's may run on another machine, and its records can be read from here.
    """
    from fencepost import assembly

    folder = assembly.state_folder(region)
    left = (Path(region.store.path), folder / "running.json", folder / "tsig.key", folder / "supervisor.lock")
    if region.dns.provider != "embedded" or any(each.exists() for each in left):
        return
    hint = f"{start_line(region)}    starts it"
    hidden = [each for each in samples() if each.exists() and each.absolute() != Path(region.path)]
    runs = next((each for each in hidden if running_supervisor(each.parent) is not None), None)
    if runs is not None:
        hint += f"\n           a sample runs here too:  fencepost status --config {shown(runs)}"
    raise Unavailable("this region was never started here", where=shown(Path(region.path)), hint=hint)


def start_line(region: Region) -> str:
    """The line that starts a region here; the sample's with its stand-ins for targets."""
    return "fencepost " + " ".join(start_words(Path(shown(Path(region.path)))))


def shown(path: Path) -> str:
    """A path as a person would write it: relative if it is below the current folder."""
    try:
        return str(path.relative_to(here()))
    except ValueError:
        return str(path)


def place_sample(*, provider: str = "embedded", store: str = "sqlite") -> Path:
    """The sample's region.toml in this folder, written on first use, as is what it needs beside it."""
    if here() == GONE:
        raise gone()
    from fencepost.assembly.places import draw_tsig_key, write_secret
    from fencepost.roles.whole_file import is_blank, make_whole

    folder = here() / SAMPLE_FOLDER.with_name(sample.sample_name(provider, store))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "region.toml"
    if not path.exists() or is_blank(path):
        sample.write_stand_ins(folder, provider, store)
        if store == "postgresql":
            password = secrets.token_urlsafe(24)
            dsn = f"postgresql://fencepost:{password}@127.0.0.1:5304/postgres\n"
            write_secret(folder / "postgresql.dsn", dsn, over_empty=True)
        # Last, as it tells that the others are there.
        make_whole(path, sample.sample_text(provider, store).encode(), mode=0o666, over_empty=True)
    if provider == "bind":
        draw_tsig_key(folder / "tsig.key", "fencepost-demo")
    noted = pointer()
    if noted is not None:
        noted.write_text(f"{path}\n")
    return path


def refuse_if_running(folder: Path) -> None:
    """Raise ``Misconfigured`` if a supervisor of this folder lives."""
    pid = running_supervisor(folder)
    if pid is not None:
        raise Misconfigured(
            f"this region runs already (supervisor pid {pid})",
            where=shown(folder),
            hint="fencepost status    shows it; to end it, Ctrl-C in its terminal",
        )


def supervisor_that_lives(folder: Path) -> int | None:
    """The supervisor as its list of processes has it, for who may not look at its lock."""
    from fencepost.roles.status.processes import alive, load_processes

    pid = load_processes(folder).get("supervisor")
    return pid if isinstance(pid, int) and pid > 0 and alive(pid) else None


def running_supervisor(folder: Path) -> int | None:
    """The pid of the supervisor that holds this folder, or None."""
    import fcntl

    try:
        with (folder / "supervisor.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        return supervisor_that_lives(folder)
    except BlockingIOError:
        text = (folder / "supervisor.lock").read_text().strip()
        return int(text) if text.isdigit() else 0
    return None
