"""``fencepost up``: every role of a region under a supervisor, in the foreground."""

import asyncio
import contextlib
import json as json_text
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TextIO

from fencepost import __version__
from fencepost.cli import up_ready, up_said, up_screen
from fencepost.cli.flags import Config, Json, RunFor, Yes, author, duration
from fencepost.cli.folder import make_secrets_folders
from fencepost.cli.regions import shown
from fencepost.cli.terminal import say
from fencepost.cli.up_fleet import UpFleet
from fencepost.cli.up_lines import Steady, Teller, end_quietly
from fencepost.cli.up_reload import Terminal, reload_aside
from fencepost.cli.up_sample import choose, nothing
from fencepost.cli.up_start import Locks, ask_once, hold_all, refuse_clashes
from fencepost.cli.up_state import read
from fencepost.cli.up_tries import Tries
from fencepost.cli.up_versions import be_alone
from fencepost.dev.sample import fresh_words, read_stand_ins
from fencepost.ports import HistoryRow, PortError
from fencepost.roles.history import Following
from fencepost.roles.status.document import Status
from fencepost.roles.status.processes import alive
from fencepost.settings import Region
from fencepost.settings.providers import by_api

SampleProvider = Literal["embedded", "bind", "route53-dev"]
SampleStore = Literal["sqlite", "postgresql"]

LATE_S = 10.0
"""So long after the start it is said what isn't answered yet."""
LOOK_UNSEEN_S = 5.0
"""How often the status is read while no panel shows it: it is what the last line goes by if the API is down then."""


def up(
    *,
    for_: RunFor = None,
    sample: bool = False,
    fresh: bool = False,
    provider: SampleProvider = "embedded",
    store: SampleStore = "sqlite",
    yes: Yes = False,
    config: Config = None,
    json: Json = False,
) -> int:
    """Run every role of the region here, until Ctrl-C. Without a region.toml: the sample region, targets included.

    Exit 1 if a promise was seen broken, or the time of --for is over and it was never ready.

    Parameters
    ----------
    sample
        Run stand-ins for the region's targets too (they must be loopback addresses).
    fresh
        Forget what an earlier run of the sample left.
    provider
        The sample on another DNS provider, started beside it: bind (Debian's bind9) or route53-dev, our stand-in.
    store
        The sample on another store, started beside it: postgresql (Debian's postgresql-15).
    """
    last_ns = duration(for_, "--for") if for_ and for_ != "ever" else None
    region, is_sample, forget = choose(config, fresh=fresh, provider=provider, store=store)
    run = Run(region, with_targets=sample or is_sample, last_ns=last_ns, as_json=json, yes=yes)
    run.forget = forget
    return run.run()


class Run:
    """One run: the supervisor in a process of its own, and this one, which shows what happens."""

    def __init__(self, region: Region, *, with_targets: bool, last_ns: int | None, as_json: bool, yes: bool) -> None:
        from fencepost import assembly

        self.assembly = assembly
        self.region = region
        self.with_targets = with_targets
        self.last_ns = last_ns
        self.as_json = as_json
        self.yes = yes
        self.folder = assembly.state_folder(region)
        self.began, self.began_s = time.monotonic(), time.time()
        self.stop = asyncio.Event()
        self.news = asyncio.Event()
        self.status: Status | None = None
        self.ready = False
        self.missed = "nothing of it was looked for yet"
        self.ended = self.has_api = False
        self.supervisor = 0
        self.locks = Locks()
        self.fleet = UpFleet(region, with_targets=with_targets)
        self.screen = Steady(up_screen.Plain(self.stream))
        self.terminal = Terminal()
        self.forget = nothing

    def run(self) -> int:
        """Start, show, stop. 1 if a promise was seen broken, it was never ready, or the supervisor ended by itself."""
        refuse_clashes(self.region, self.folder, with_targets=self.with_targets)
        ask_once(self.region, self.folder, yes=self.yes)
        self.folder.mkdir(parents=True, exist_ok=True)
        make_secrets_folders(self.region)
        # Held from here on, so that of two that start at once the second is told so, here where it can be said.
        self.locks = hold_all(self.region, self.folder)
        try:
            self.forget()
            if self.region.dns.provider == "embedded":
                self.assembly.make_tsig_key(self.region)
            if not by_api(self.region.dns):
                self.assembly.tsig_key(self.region)
            if not self.store_comes_later():
                self.load()
        except BaseException:
            self.locks.let_go()
            raise
        with self.screen.losing("a line"):
            say(self.opening(), self.stream)
        lines, alive = self.fork_supervisor()
        screen = self.screen
        with screen.losing("the screen"):
            screen.to = up_screen.screen(as_json=self.as_json)
        try:
            asyncio.run(self.show(lines, screen))
        finally:
            screen.close()
            stopping = time.monotonic()
            self.stop_supervisor(alive)
            with screen.losing("a line"):
                say(self.closing(time.monotonic() - stopping), self.stream)
        if self.as_json:
            up_said.print_document(self.status)
        end_quietly()
        broken = self.status is not None and any(each.held is False for each in self.status.promises.values())
        return 1 if broken or self.ended or self.unready() else 0

    def unready(self) -> str:
        """What was still missing when the time of --for was over; "" without such a time, or for a region that only
        looks on."""
        waited = self.last_ns is not None and self.region.mode == "enabled"
        return self.missed if waited and not self.ready else ""

    def store_comes_later(self) -> bool:
        """Whether the store's server is started with the roles, as the sample's may be."""
        return self.region.store.kind in self.assembly.stand_ins_of(self.region)

    async def load_late(self) -> None:
        """Make the file the running configuration, once the store's server answers."""
        while self.store_comes_later():
            with contextlib.suppress(PortError):
                await asyncio.to_thread(self.assembly.load_configuration, self.region, author())
                return
            await asyncio.sleep(0.2)

    def load(self) -> None:
        """Make the file the running configuration; a start goes on without a store, and the planner will do it."""
        try:
            self.assembly.load_configuration(self.region, author())
        except PortError as error:
            say(f"starting without the store: {error}" + (f"; {error.hint}" if error.hint else ""), self.stream)

    @property
    def stream(self) -> TextIO:
        """Where lines for people go: stdout, or stderr when stdout is for JSON."""
        return sys.stderr if self.as_json else sys.stdout

    def opening(self) -> str:
        """The first line."""
        sample = ""
        if self.with_targets:
            sample = ", the sample (your own: fencepost init)" if self.is_sample() else ", stand-ins for its targets"
        return f"fencepost {__version__} · region {self.region.name}{sample} · files in {shown(self.folder)}"

    def is_sample(self) -> bool:
        """Whether it is ours to forget: the sample's file lies beside what its runs leave."""
        return Path(self.region.path).absolute().is_relative_to(self.folder.absolute())

    def closing(self, took_s: float) -> str:
        """The last line."""
        resets = fresh_words(read_stand_ins(self.folder)) if self.is_sample() else ""
        return up_said.closing(took_s, self.status, self.unready(), resets)

    def fork_supervisor(self) -> tuple[int, int]:
        """Fork the supervisor; (where its lines come from, what to close to end it)."""
        mains = self.assembly.stand_ins_of(self.region) | self.fleet.roles()
        self.has_api = "api" in mains
        if self.with_targets:
            mains |= self.assembly.targets_of(self.region) | self.fleet.agents()
        self.assembly.import_shared(self.region)
        from fencepost.roles.process import end_with_parent, entitle, flush, fork, leave
        from fencepost.roles.supervisor import Spec, Supervisor

        (lines_in, lines_out), (gone_in, gone_out) = os.pipe(), os.pipe()
        parent = os.getpid()
        be_alone()  # a fork copies this thread alone, and the locks of all
        flush()
        self.supervisor = os.fork()
        if self.supervisor:
            for held in (lines_out, gone_in, *self.locks.fds):  # a lock is the child's as well, and lives as long
                os.close(held)
            return lines_in, gone_out
        code = 1
        try:
            os.setpgid(0, 0)
            end_with_parent(parent)
            entitle("supervisor")
            os.close(lines_in)
            os.close(gone_out)
            locks = self.locks
            locks.say_holder()
            tell = Teller(lines_out)
            specs = [
                Spec(
                    name,
                    lambda name=name, main=main: fork(name, main, self.folder),  # type: ignore[misc]
                    60.0 if name.startswith("target/") else None,
                    name in self.fleet.on_call,
                    self.fleet.wait_s(name),
                    self.fleet.needs_store(name),
                )
                for name, main in mains.items()
            ]
            supervisor = Supervisor(
                specs,
                self.folder,
                tell,
                stuck=self.assembly.stuck_writer(self.region),
                reload=lambda: reload_aside(self.region, tell),
                calls=self.fleet.calls,
                answers=self.fleet.store_answers,
            )
            supervisor.run(gone_in)
            locks.let_go()
            code = 0
        finally:
            leave(code)

    def stop_supervisor(self, alive: int) -> None:
        """End the supervisor and wait for it; a second Ctrl-C ends it at once."""

        def at_once(*_: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.supervisor, signal.SIGKILL)

        signal.signal(signal.SIGINT, at_once)
        os.close(alive)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.supervisor, 0)

    async def show(self, lines: int, screen: Steady) -> None:
        """Tell what happens until the time is over, a signal, or the supervisor's end; nothing else ends it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.hang_up)
        for number in (signal.SIGWINCH, signal.SIGCONT):
            loop.add_signal_handler(number, self.resize, screen)
        if self.last_ns is not None:
            loop.call_later(max(0.0, self.began + self.last_ns / 1e9 - time.monotonic()), self.stop.set)
        tasks = [
            loop.create_task(self.supervise(lines, screen)),
            loop.create_task(self.follow_history(screen)),
            loop.create_task(self.become_ready(screen)),
            loop.create_task(self.load_late()),
            loop.create_task(self.keep_panel(screen)),
        ]
        await self.stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not self.ended:
            with screen.losing("the last status"):
                await self.look()

    def resize(self, screen: Steady) -> None:
        """The terminal has another size, or we are in its foreground again: what it shows is drawn anew."""
        screen.resized()
        self.news.set()

    def hang_up(self) -> None:
        """SIGHUP: a closed terminal ends the run; sent to one without a terminal it means reload."""
        if self.terminal.shown or self.terminal.gone():
            self.stop.set()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.supervisor, signal.SIGHUP)

    async def supervise(self, lines: int, screen: Steady) -> None:
        """Print what the supervisor says; its silence for ever is its end."""
        reader = asyncio.StreamReader()
        pipe = os.fdopen(lines, "rb")
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        while line := await reader.readline():
            with screen.losing("a line of the supervisor's"):
                said = json_text.loads(line)
                if said["name"] in self.fleet.on_call:  # what was terminated a moment ago isn't started again
                    await asyncio.to_thread(self.fleet.refresh, 0.0)
                screen.line(up_screen.told(said["at"], said["name"], said["text"], self.fleet.gone(), said["ended"]))
            self.fleet.looked = 0.0
            self.news.set()
        self.ended = True
        screen.line(up_screen.event(time.time_ns(), "supervisor", "ended by itself; its roles end with it"))
        self.stop.set()

    async def follow_history(self, screen: Steady) -> None:
        """Print new history, a few times a second; a row that makes no line is passed over."""
        following: Following | None = None
        began = time.time_ns()
        try:
            while True:
                with screen.losing("the history"), contextlib.suppress(PortError):
                    following = following or Following(self.assembly.open_store(self.region), began)
                    for text in self.history_lines(await following.new(200), screen):
                        screen.line(text)
                await asyncio.sleep(0.4)
        finally:
            if following is not None:  # a store's server waits for its clients before it ends
                await following.store.close()

    def history_lines(self, rows: Sequence[HistoryRow], screen: Steady) -> list[str]:
        """The lines of rows; where one of them makes none, those of the others, each by itself."""
        with contextlib.suppress(Exception):
            return up_screen.history_lines(rows)
        found: list[str] = []
        for row in rows:
            with screen.losing("a row of the history"):
                found += up_screen.history_lines([row])
        return found

    async def become_ready(self, screen: Steady) -> None:
        """Say when every endpoint is answered and the API answers; and after a while, what isn't yet."""
        late = False
        while True:
            missing = "what is ready can't be told"
            with screen.losing("what is ready"):
                missing = await asyncio.to_thread(self.missing)
            if not missing:
                break
            self.missed = missing
            if not late and time.monotonic() - self.began > LATE_S:
                late = True
                screen.line(f"not ready yet: {missing}; the roles' logs are in {shown(self.folder)}")
            await asyncio.sleep(0.05)
        self.ready = True
        with screen.losing("what is ready"):
            took = f"ready in {time.monotonic() - self.began:.1f} s"
            screen.line(f"{took}: {up_ready.parts(self.region, api=self.has_api)}{self.fleet.part()}")

    def missing(self) -> str:
        """What isn't answered yet; "" if nothing is missing. Blocks for a moment."""
        known = self.status.endpoints if self.status is not None else ()
        settled = {each.name for each in known if each.state in ("withdrawn", "foreign")}
        return (
            up_ready.missing(self.region, settled, api=self.has_api)
            or (up_ready.cannot_enact(self.region, self.status, self.began_s) if self.has_api else "")
            or self.fleet.missing(read(self.folder))
        )

    async def keep_panel(self, screen: Steady) -> None:
        """Draw the panel each second, and whenever a process ends or the terminal gets another size."""
        offered = Tries(self.region, gone=self.fleet.gone)
        while True:
            news = self.news.is_set()
            self.news.clear()
            with screen.losing("the status"):
                if news:  # at once, with the processes as they are; the status may take a moment
                    self.draw_panel(screen, offered)
                await self.look()
                self.draw_panel(screen, offered)
            with contextlib.suppress(TimeoutError):
                pause = LOOK_UNSEEN_S if self.ready and not screen.drawn else 1.0 if self.ready else 0.3
                async with asyncio.timeout(pause):  # 3.11's wait_for can lose a cancellation
                    await self.news.wait()

    def draw_panel(self, screen: Steady, offered: Tries) -> None:
        """Draw it from the status as it was last read, and the processes as they are now."""
        if self.status is not None:
            known = {name: each["pid"] for name, each in read(self.folder).items()}
            pids = {name: pid if pid and alive(pid) else None for name, pid in known.items()}
            tries = offered if self.ready else None
            size, more = screen.size(), (self.fleet.line(), self.fleet.launched(pids))
            screen.panel(up_screen.panel(self.region, self.status, pids, self.began, size, tries, *more))

    async def look(self) -> None:
        """Read the status document from the API."""
        from fencepost.cli.looking import from_api

        with contextlib.suppress(PortError):
            self.status = await asyncio.to_thread(from_api, self.region, 2_000_000_000)
        await asyncio.to_thread(self.fleet.refresh)


__all__ = ["Run", "up"]
