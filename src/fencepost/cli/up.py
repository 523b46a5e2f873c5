"""``fencepost up``: every role of a region under a supervisor, in the foreground."""

import asyncio
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

from fencepost import __version__
from fencepost.cli.regions import place_sample, refuse_if_running, region_of, samples, shown
from fencepost.ports import PortError, StorePort
from fencepost.settings import Region, load
from fencepost.settings.lookup import find_config
from fencepost.settings.units import duration_ns


def up(
    *,
    for_: str | None = None,
    sample: bool = False,
    fresh: bool = False,
    config: str | None = None,
    json: bool = False,
) -> int:
    """Run every role of the region here, until Ctrl-C. Without a region.toml: the sample region, targets included.

    Parameters
    ----------
    for_
        Stop by itself after so long, such as 30s.
    sample
        Run stand-ins for the region's targets too (they must be loopback addresses).
    fresh
        Forget what an earlier run of the sample left.
    config
        Which region.toml.
    json
        End with the status document on stdout.
    """
    last_ns = duration_ns(for_) if for_ else None
    found = find_config(config, os.environ, Path.cwd())
    if found is None or (fresh and found.by == "sample"):
        region = load(shown(place_sample(fresh=fresh)))
        sample = True
    else:
        region = region_of(config)
    return Run(region, with_targets=sample, last_ns=last_ns, as_json=json).run()


class Run:
    """One run: the supervisor in a process of its own, and this one, which shows what happens."""

    def __init__(self, region: Region, *, with_targets: bool, last_ns: int | None, as_json: bool) -> None:
        from fencepost import assembly  # noqa: PLC0415

        self.assembly = assembly
        self.region = region
        self.with_targets = with_targets
        self.last_ns = last_ns
        self.as_json = as_json
        self.folder = assembly.state_folder(region)
        self.began = time.monotonic()

    def run(self) -> int:
        """Start, show, stop."""
        self.folder.mkdir(parents=True, exist_ok=True)
        refuse_if_running(self.folder)
        if self.region.dns.provider == "embedded":
            self.assembly.make_tsig_key(self.region)
        try:
            self.assembly.load_configuration(self.region)
        except PortError as error:
            self.say(f"starting without the store: {error}" + (f"; {error.hint}" if error.hint else ""))
        self.say(
            f"fencepost {__version__} · region {self.region.name}"
            + (", the sample (your own: fencepost init)" if self.with_targets else "")
            + f" · files in {shown(self.folder)}"
        )
        lines, pid, alive = self.fork_supervisor()
        try:
            asyncio.run(self.show(lines))
        except KeyboardInterrupt:
            pass
        finally:
            stopping = time.monotonic()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.close(alive)
            os.waitpid(pid, 0)
            self.say(f"stopped in {time.monotonic() - stopping:.1f} s")
        return 0

    def say(self, text: str) -> None:
        """A line for people: on stdout, or on stderr when stdout is for JSON."""
        print(text, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def fork_supervisor(self) -> tuple[int, int, int]:
        """Fork the supervisor; (where its lines come from, its pid, what to close to end it)."""
        from fencepost.roles.process import end_with_parent, fork, leave  # noqa: PLC0415
        from fencepost.roles.supervisor import Spec, Supervisor  # noqa: PLC0415

        mains = self.assembly.roles_of(self.region)
        if self.with_targets:
            mains |= self.assembly.targets_of(self.region)
        self.assembly.import_shared(self.region)
        lines_in, lines_out = os.pipe()
        gone_in, gone_out = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            os.close(lines_out)
            os.close(gone_in)
            return lines_in, pid, gone_out
        code = 1
        try:
            end_with_parent(parent)
            os.setpgid(0, 0)
            os.close(lines_in)
            os.close(gone_out)
            lock = hold(self.folder)

            def tell(name: str, text: str) -> None:
                line = json.dumps({"name": name, "text": text, "at": time.time_ns()})
                try:
                    os.write(lines_out, line.encode() + b"\n")
                except OSError:
                    pass

            specs = [
                Spec(name, lambda name=name, main=main: fork(name, main, self.folder), 60.0 if name.startswith("target/") else None)  # type: ignore[misc]
                for name, main in mains.items()
            ]
            Supervisor(specs, self.folder, tell, stuck=self.assembly.stuck_writer(self.region)).run(gone_in)
            os.close(lock)
            code = 0
        finally:
            leave(code)

    async def show(self, lines: int) -> None:
        """Tell what happens until the time is over or Ctrl-C."""
        store: StorePort | None = None
        seen = 0
        limit = self.began + self.last_ns / 1e9 if self.last_ns is not None else None
        os.set_blocking(lines, False)
        left = b""
        while limit is None or time.monotonic() < limit:
            try:
                left += os.read(lines, 65536)
            except BlockingIOError:
                pass
            *whole, left = left.split(b"\n")
            for line in whole:
                told = json.loads(line)
                self.say(f"{clock(told['at'])}  {told['name']:<10} {told['text']}")
            try:
                if store is None:
                    store = self.assembly.open_store(self.region)
                for row in await store.history(after=seen, most=200):
                    seen = row.id
                    self.say(f"{clock(row.at)}  {row.by:<10} {row.on} {row.text}")
            except PortError:
                pass
            await asyncio.sleep(0.1)


def hold(folder: Path) -> int:
    """Hold the folder's lock for as long as this process lives; the descriptor."""
    fd = os.open(folder / "supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.ftruncate(fd, 0)
    os.write(fd, f"{os.getpid()}\n".encode())
    return fd


def clock(at_ns: int) -> str:
    """A time of day, UTC, to the millisecond."""
    seconds, nanoseconds = divmod(at_ns, 1_000_000_000)
    return time.strftime("%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 1_000_000:03d}"


__all__ = ["Run", "samples", "up"]
