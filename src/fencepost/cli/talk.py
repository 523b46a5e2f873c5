"""What a command talks to: its region's store and DNS, opened when first used, each call within ``--timeout``."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from fencepost.cli.flags import author
from fencepost.cli.regions import refuse_unstarted, region_of
from fencepost.cli.terminal import interactive, note, say
from fencepost.core.instant import SECOND, Duration
from fencepost.core.names import normalise
from fencepost.ports import HistoryRow, Misconfigured, PortError, Refused, StorePort, Unavailable
from fencepost.roles.domains import Domains
from fencepost.settings import Region
from fencepost.settings.providers import by_api, where

T = TypeVar("T")
LOOK_EVERY_S = 0.1
PENDING_AFTER_S = 1.0
SAY_EVERY_S = 10.0


class Talk:
    """A region's ports for the length of one command."""

    def __init__(self, region: Region, timeout: Duration) -> None:
        self.region = region
        self.timeout = timeout
        self.by = author()
        self._store: StorePort | None = None
        self._told: set[tuple[str, str, str]] = set()
        self._dns: Domains | None = None

    @property
    def store(self) -> StorePort:
        """The store. One that is away raises from its calls."""
        from fencepost import assembly

        if self._store is None:
            self._store = assembly.open_store(self.region)
        return self._store

    @property
    def dns(self) -> Domains:
        """The region's domains. Raises ``Misconfigured`` for a key that can't be read."""
        from fencepost import assembly

        if self._dns is None:
            self._dns = Domains(dict(assembly.open_dns(self.region)))
        return self._dns

    async def within(self, call: Awaitable[T], whom: str) -> T:
        """A call's answer within ``--timeout``. Raises ``Unavailable`` naming who didn't answer."""
        try:
            async with asyncio.timeout(self.timeout / SECOND):
                return await call
        except TimeoutError:
            hint = "a longer --timeout waits longer"
            raise Unavailable(f"no answer within {self.timeout / SECOND:g} s", where=whom, hint=hint) from None

    async def read_dns(self) -> Domains:
        """Every domain, as it stands now."""
        try:
            await self.within(self.dns.read(), self.server)
        except Misconfigured as error:
            raise self.another_server(error) from None
        except Unavailable as error:
            hint = self.how_to_start()
            raise Unavailable(error.what, where=error.where, hint=hint or error.hint) from None
        return self.dns

    def how_to_start(self) -> str:
        """The line that starts our own DNS server; "" where another's server is asked, or a supervisor runs ours."""
        from fencepost.cli.regions import running_supervisor, start_line

        if self.region.dns.provider != "embedded" or running_supervisor(assembly_folder(self.region)) is not None:
            return ""
        return f"{start_line(self.region)}    starts it (under systemd: its dns role)"

    def another_server(self, error: Misconfigured) -> Misconfigured:
        """The error, with who answers there if that is no process that this region's supervisor knows."""
        from fencepost.assembly.ports_in_use import in_words
        from fencepost.cli.up_state import supervised
        from fencepost.roles.status.port_holder import port_holder

        place = self.region.dns.listen
        embedded = self.region.dns.provider == "embedded" and place is not None
        by = port_holder(place.host, place.port) if embedded and place is not None else None
        if by is None or by[0] in (supervised(self.region) or {}).values():
            if self.region.dns.provider != "embedded":
                return error
            hint = "it is our own, and runs on what [dns] said at its start: start it again if that has changed"
            return Misconfigured(error.what, where=error.where, hint=hint)
        what = f"{error.what}; {in_words(by)} answers there, which is none that runs under this region's `fencepost up`"
        hint = "if it is another region's, write another listen in [dns]"
        return Misconfigured(what, where=error.where, hint=hint)

    @property
    def server(self) -> str:
        """The DNS server or the provider, for people."""
        dns = self.region.dns
        return where(dns) if by_api(dns) else f"DNS at {dns.place}"

    async def names(self) -> tuple[str, ...]:
        """Every name with a marker or a planned row, in region.toml or not (only markers while the store is away).

        Raises a ``PortError`` if DNS can't be read.
        """
        found = set((await self.read_dns()).names())
        with suppress(PortError):
            _, rows = await self.within(self.store.newest_rows(None), "the store")
            found.update(row.name for row in rows)
        return tuple(sorted(found))

    async def until(self, look: Callable[[], Coroutine[Any, Any, T | None]], pending: str, hint: str = "") -> T:
        """Look until there is something to see; say meanwhile that it is pending.

        What fails on the way is looked at again. Raises ``Unavailable`` when the time is over.
        """
        began = time.monotonic()
        due, last = began + PENDING_AFTER_S, ""
        while True:
            try:
                async with asyncio.timeout(max(0.1, began + self.timeout / SECOND - time.monotonic())):
                    found = await look()
            except (PortError, TimeoutError) as error:
                found, last = None, str(error)
            if found is not None:
                return found
            now = time.monotonic()
            if now - began >= self.timeout / SECOND:
                why = f" ({last})" if last else ""
                raise Unavailable(
                    f"{pending}; it stands in the store and is carried out as soon as that can be{why}",
                    where=f"still pending after {self.timeout / SECOND:g} s",
                    hint=hint or "fencepost status    says who isn't up",
                )
            if now >= due:
                note(f"pending: {pending}")
                due = float("inf") if interactive() else now + SAY_EVERY_S
            await asyncio.sleep(LOOK_EVERY_S)

    async def tell_history(self, on: str, text: str, reason: str) -> None:
        """Write who did what and why into the history; costs nothing where the store is away.

        Once a command: a word on an address is placed in each pool that has it, and is one thing that a person did.
        """
        if (on, text, reason) in self._told:
            return
        self._told.add((on, text, reason))
        row = HistoryRow("operator", on, self.by, f"{text}; reason: {reason}" if reason else text, time.time_ns())
        with suppress(PortError):
            await self.within(self.store.note([row]), "the store")

    async def close(self) -> None:
        """Let go of everything."""
        if self._store is not None:
            await self._store.close()
        if self._dns is not None:
            for port in self._dns.ports.values():
                await port.close()


def assembly_folder(region: Region) -> Path:
    """Where a region keeps what it writes."""
    from fencepost import assembly

    return assembly.state_folder(region)


def talk(config: str | None, timeout: Duration, work: Callable[[Talk], Coroutine[Any, Any, int]]) -> int:
    """Do a command's work with its region's ports; its exit code."""
    region = region_of(config, forgiving=True)
    refuse_unstarted(region)
    return talk_about(region, timeout, work)


def talk_about(region: Region, timeout: Duration, work: Callable[[Talk], Coroutine[Any, Any, int]]) -> int:
    """Do a command's work about a region that is known already; its exit code."""

    async def whole() -> int:
        ports = Talk(region, timeout)
        try:
            return await work(ports)
        finally:
            await ports.close()

    return asyncio.run(whole())


def answer(text: str, document: dict[str, Any], *, as_json: bool) -> None:
    """The answer on stdout: words, or the one document."""
    say(json.dumps(document) if as_json else text)


def endpoint_name(region: Region, text: str, also: tuple[str, ...] = ()) -> str:
    """The endpoint that a word means: in the file, or among ``also``.

    Raises ``Refused``. It suggests no other name: who asks takes an endpoint away or writes one, and a wrong suggestion
    is pasted in a hurry.
    """
    names = sorted({endpoint.name for endpoint in region.endpoints} | set(also))
    try:
        name = normalise(text)
    except ValueError as error:
        raise Refused(f"{text!r} is no name: {error}") from None
    if name in names:
        return name
    short = [each for each in names if each.partition(".")[0] == name]
    if len(short) == 1:
        return short[0]
    raise Refused(f"no endpoint is called {text}", hint="fencepost status    lists them")
