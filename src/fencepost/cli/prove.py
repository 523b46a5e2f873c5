"""``fencepost prove``: race a stale writer, and seven more, on a scratch name of one's own domain.

It writes to the real provider, so it asks before, writes only at two names that are nobody's, and takes them away
again whatever happens: also on Ctrl-C, on SIGTERM, where its terminal goes away and where a race goes wrong. What
it couldn't take away is named, with the line that does it.
"""

import asyncio
import json as json_text
import secrets
import signal
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from fencepost import __version__, proving
from fencepost.cli.errors import INTERRUPTED, REFUSED, UNWRITTEN, code_of, error_word, words_of
from fencepost.cli.flags import Config, Json, Timeout, Yes, agree, duration
from fencepost.cli.prove_folder import RunFolder, clear_dead
from fencepost.cli.terminal import note, say, styled
from fencepost.core.instant import SECOND
from fencepost.core.names import longest_domain, normalise
from fencepost.ports import DnsPort, Misconfigured, PortError, Unavailable
from fencepost.proving.report import verdict
from fencepost.proving.scene import LABEL, Scene
from fencepost.settings import Region

T = TypeVar("T")


def prove(
    *,
    name: str | None = None,
    report: str | None = None,
    clean: bool = False,
    yes: Yes = False,
    timeout: Timeout = "15s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Race writers on a scratch name of your own domain: does your provider refuse what it must?

    Parameters
    ----------
    name
        The scratch name, fencepost-prove-….DOMAIN; drawn if left out. Nothing may stand there.
    report
        Write what was found as Markdown into this file.
    clean
        Run no race; remove what an earlier run left at --name.
    """
    from fencepost.cli.regions import refuse_unstarted, region_of

    region = region_of(config, forgiving=True)
    refuse_unstarted(region)
    if clean and name is None:
        raise Misconfigured("--clean needs the name that was left", hint="fencepost prove --clean --name …")
    if report is not None and not Path(report).parent.is_dir():
        raise Misconfigured("its folder is not there", where=f"--report {report}", hint="make the folder first")
    if report is not None and Path(report).is_dir():
        raise Misconfigured("is a folder", where=f"--report {report}", hint="name a file in it")
    name_killed(region.dns.domains)
    run = Run(region, *scratch(region, name), patience_s=duration(timeout, "--timeout") / SECOND)
    if not clean:
        for line in run.intent():
            note(line)
        agree("Write there?", yes=yes)
    return run.told(clean=clean, report=report, as_json=json)


def name_killed(domains: Sequence[str]) -> None:
    """Clear what killed runs left on this machine, and name the records that they may have left in these domains."""
    for pid, names in clear_dead(lambda name: longest_domain(name, domains) is not None):
        note(f"an earlier run (pid {pid}) was killed: records may still stand at {' and '.join(names)}")
        note(f"  remove   fencepost prove --clean --name {names[0]}")


def scratch(region: Region, name: str | None) -> tuple[str, tuple[str, str]]:
    """The domain and the two scratch names. Raises ``Misconfigured``."""
    asked = name or f"{LABEL}{secrets.token_hex(3)}.{region.dns.domains[0]}"
    hint = f"{LABEL}1.{region.dns.domains[0]}, or no --name"
    try:
        full = normalise(asked)
        names = proving.scratch_names(full)
    except ValueError as error:
        raise Misconfigured(str(error), where=asked, hint=hint) from None
    domain = longest_domain(full, region.dns.domains)
    if domain is None:
        raise Misconfigured(f"is in no domain of this region ({', '.join(region.dns.domains)})", where=asked, hint=hint)
    if taken := {each.name for each in region.endpoints} & set(names):
        raise Misconfigured("is an endpoint of this region", where=sorted(taken)[0], hint="take another --name")
    return domain, names


def written(report: str, text: str) -> bool:
    """Write the report; whether that worked, and if not a note of why."""
    try:
        Path(report).write_text(text, encoding="utf-8")
    except OSError as error:
        said = (error.strerror or type(error).__name__).lower()
        note(f"{error_word()} --report {report} can't be written: {said}; what was found stands above")
        return False
    return True


def race_lines(race: proving.Race) -> list[str]:
    """A race, its outcome and the provider's words: they may name every record of a batch, and wrap under themselves.

    Line breaks within them are the provider's own (a page of HTML, a list), and none of ours.
    """
    word = styled("held    ", "green") if race.held else styled("NOT HELD", "red")
    said = [" ".join(line.split()) for line in (race.said, race.found) if line]
    return [f" {word}  {race.name}: {race.asks}", *(f"           {line}" for line in said)]


class Run:
    """One run: what it is about, what it found, and what is left."""

    def __init__(self, region: Region, domain: str, names: tuple[str, str], *, patience_s: float) -> None:
        from fencepost.settings.providers import PROVIDERS

        self.region, self.domain, self.names, self._patience_s = region, domain, names, patience_s
        place = region.dns.place
        self.provider = PROVIDERS[region.dns.provider].label + (f" at {place}" if place else "")
        self.races: list[proving.Race] = []
        self.remains: tuple[str, ...] = ()
        self.touched = False
        self.error: PortError | None = None
        self._folder: RunFolder | None = None
        self._opened = 0
        self.interrupted = False

    def intent(self) -> list[str]:
        """What it is about to do, before it asks."""
        return [
            f"{self.provider} · {self.domain}: {len(proving.RACES)} races at {self.names[0]}",
            f"and {self.names[1].partition('.')[0]}: at most {proving.WRITES} requests to write, half of them to be"
            " refused;",
            "addresses of 192.0.2.0/24, which is nobody's; both names are removed afterwards, markers included.",
        ]

    def told(self, *, clean: bool, report: str | None, as_json: bool) -> int:
        """Run it and say what came of it; the exit code."""
        try:
            asyncio.run(self._work(clean=clean))
        except KeyboardInterrupt:
            self.interrupted = True
            if not self.remains and self.touched:
                self.remains = (f"{' and '.join(self.names)}: perhaps, for removing was interrupted too",)
        whole = len(self.races) == len(proving.RACES)
        last = verdict(self.races, whole=whole)
        about = {
            "provider": self.provider,
            "domain": self.domain,
            "name": self.names[0],
            "second": self.names[1],
            "version": __version__,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        document = proving.document(about, self.races, self.remains, whole=whole)
        if as_json:
            say(json_text.dumps(document | self._trouble()))
        elif not clean and (self.races or self.error is None):
            say(styled(last, "green" if document["held"] else "red"))
        self._say_rest(clean=clean, as_json=as_json)
        # Last of all: a disk that is full must not keep from anybody what was found, and what remains.
        unwritten = report is not None and not clean and not written(report, proving.markdown(document, last))
        if self.interrupted:
            return INTERRUPTED
        if self.error is not None and all(race.held for race in self.races):
            return code_of(self.error)
        if self.remains or not all(race.held for race in self.races):
            return REFUSED
        return UNWRITTEN if unwritten else 0

    def _trouble(self) -> dict[str, object]:
        error = self.error
        if error is None:
            return {}
        kind = type(error).__name__.lower()
        return {"error": {"kind": kind, "what": error.what, "where": error.where, "hint": error.hint}}

    def _say_rest(self, *, clean: bool, as_json: bool) -> None:
        """What remains, and what went wrong."""
        for line in self.remains:
            note(f"remains: {line}")
        if self.remains:
            note(f"  remove   fencepost prove --clean --name {self.names[0]}    or by your provider's own means")
        elif (self.touched or clean) and not as_json and self.error is None:
            say(f"nothing stands at {self.names[0]} and {self.names[1].partition('.')[0]}")
        if self.error is not None and not as_json:
            note(words_of(self.error))
            if isinstance(self.error, Misconfigured) and self.touched:
                note("  or       give it, for this run, credentials that may write in the whole domain")
                note("           (a least policy for the endpoints alone doesn't allow scratch names)")

    async def _work(self, *, clean: bool) -> None:
        self._folder = folder = RunFolder()
        try:
            await self._work_in(folder, clean=clean)
        except asyncio.CancelledError:  # interrupted while it removed: the next run names what may still stand
            raise
        except BaseException:
            folder.cleanup()
            raise
        folder.cleanup()

    async def _work_in(self, folder: RunFolder, *, clean: bool) -> None:
        scene = Scene(self._open, self.names, self._within)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  it runs in one
        with suppress(NotImplementedError):
            for ending in (signal.SIGTERM, signal.SIGHUP):  # the latter comes when a terminal or its line goes
                asyncio.get_running_loop().add_signal_handler(ending, task.cancel)
        try:
            if not clean:
                await scene.refuse_used()
                folder.writes_at(self.names)
                self.touched = True
                await self._race(scene)
            else:
                folder.writes_at(self.names)
        except PortError as error:
            self.error = error
        except asyncio.CancelledError:
            self.interrupted = True
            note("interrupted: removing what was written (again ends it at once)")
        finally:
            if self.touched or clean:
                doubtful = self.interrupted or isinstance(self.error, Unavailable)
                self.remains = await proving.clean(scene.reader, self.names, self._within, settle=doubtful)
            await scene.close()

    async def _race(self, scene: Scene) -> None:
        for play in proving.RACES:
            race = await play(scene)
            self.races.append(race)
            for line in race_lines(race):
                note(line)

    def _open(self) -> DnsPort:
        """A port that shares nothing with any other: roles of one host tell each other of writes, and so would refuse
        a stale one themselves, before it got to the provider."""
        from fencepost.assembly.providers import import_provider

        assert self._folder is not None  # noqa: S101  it is made before anything is opened
        folder = self._folder.path / str(self._opened)
        folder.mkdir()
        self._opened += 1
        port: DnsPort = import_provider(self.region).open_domains(self.region, folder)[self.domain]
        return port

    async def _within(self, call: Awaitable[T], /) -> T:
        try:
            async with asyncio.timeout(self._patience_s):
                return await call
        except TimeoutError:
            hint = "a longer --timeout waits longer"
            raise Unavailable(f"no answer within {self._patience_s:g} s", where=self.provider, hint=hint) from None
