"""``fencepost doctor``: what ``check`` can't say offline. It reads and never writes; each finding says what to do.

Four words: ok; note, which is allowed and surprises people; unknown, which can't be seen from here; attention, for
which a person is needed. Only attention changes the exit code.
"""

import json as json_text
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

from fencepost.assembly.doctor import Look, least_policy, store_is_here
from fencepost.cli.doctor import here, there
from fencepost.cli.errors import REFUSED, UNREACHABLE, USAGE
from fencepost.cli.flags import Config, Json, Timeout, duration
from fencepost.cli.talk import Talk, assembly_folder, talk_about
from fencepost.cli.terminal import say, styled
from fencepost.core.store import Row
from fencepost.core.zone import Live
from fencepost.ports import Beat, Enacted, Misconfigured, PortError, Unavailable
from fencepost.roles.status.processes import is_here
from fencepost.settings import Region

SCHEMA = "fencepost.doctor/1"
_STYLES = {"ok": "green", "note": "dim", "unknown": "dim", "attention": "yellow"}


def doctor(*, iam_policy: bool = False, timeout: Timeout = "10s", config: Config = None, json: Json = False) -> int:
    """Look at what a region stands on: provider, rights, store, clock, owner, ports, disk. Writes nothing.

    Parameters
    ----------
    iam_policy
        Print the least IAM policy for this region's names (Route 53), and nothing else.
    """
    from fencepost.cli.regions import region_of

    region = region_of(config, forgiving=True)
    if iam_policy:
        say(json_text.dumps(least_policy(region), indent=2))
        return 0
    return talk_about(region, duration(timeout, "--timeout"), lambda talk: work(talk, as_json=json))


async def work(talk: Talk, *, as_json: bool) -> int:
    """Look, say, and give the exit code: the worst that was found."""
    looking = Looking(talk)
    found = [look async for look in looking.all()]
    if as_json:
        looks = [look._asdict() for look in found]
        needed = any(look.state == "attention" for look in found)
        say(json_text.dumps({"schema": SCHEMA, "region": talk.region.name, "attention": needed, "looks": looks}))
    else:
        for look in found:
            say(f"{styled(f'{look.state:<10}', _STYLES[look.state])} {look.about:<8} {look.text}")
            if look.hint and look.state != "ok":
                say(f"{'':<10} {'':<8} try  {look.hint}")
        count = sum(look.state == "attention" for look in found)
        say(f"{count} need{'s' if count == 1 else ''} a person" if count else "nothing needs a person")
    return looking.code(found)


class Looking:
    """One visit: what was found out that later looks need, and what failed."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.failures: list[PortError] = []
        self.mark = ""
        self.beats: list[Beat] = []
        self.enacted: dict[str, Enacted] = {}

    def code(self, found: Iterable[Look]) -> int:
        """The exit code."""
        if any(isinstance(each, Misconfigured) for each in self.failures):
            return USAGE
        if any(isinstance(each, Unavailable) for each in self.failures):
            return UNREACHABLE
        return REFUSED if any(look.state == "attention" for look in found) else 0

    async def all(self) -> AsyncIterator[Look]:
        """Every look, nearest things first; one that fails is a finding and stops no other."""
        region, now = self.talk.region, here.now_ns()
        for look in here.look_at_file(region):
            yield look
        store = await self._tried("store", self._store)
        for look in here.look_at_versions(self.beats, now):
            yield look
        for look in here.look_at_disk({"state": assembly_folder(region), **store_place(region)}):
            yield look
        for look in here.look_at_clock(self.beats, now, alone=is_alone(region)):
            yield look
        for look in here.look_at_ports(region, self.pids(), api_answers=api_answers(self.talk)):
            yield look
        for look in store:
            yield look
        for look in await self._tried("dns", self._dns):
            yield look

    def pids(self) -> set[int] | None:
        """Those of the region's roles on this machine, by its supervisor and its store; None if neither tells."""
        known = supervised(self.talk.region)
        if known is None and not self.mark:
            return set() if never_ran(self.talk.region) else None
        beating = {each.pid for each in here.fresh(self.beats, here.now_ns()) if is_here(each)}
        return beating | {pid for pid in (known or {}).values() if pid}

    async def _tried(self, about: str, looks: Callable[[], Awaitable[list[Look]]]) -> list[Look]:
        try:
            return await looks()
        except PortError as error:
            self.failures.append(error)
            return [there.trouble(about, error)]

    async def _store(self) -> list[Look]:
        if never_ran(self.talk.region):
            text = f"{self.talk.region.store.path} isn't there: this region never ran on this machine"
            return [Look("unknown", "store", text, "fencepost up    makes it")]
        found = list(await there.look_at_whole_store(self.talk))
        store, within = self.talk.store, self.talk.within
        self.mark = (await within(store.head(), "the store")).mark
        self.beats = list(await within(store.beats(), "the store"))
        self.enacted = dict(await within(store.enacted(), "the store"))
        return found

    async def _dns(self) -> list[Look]:
        region, now = self.talk.region, here.now_ns()
        if region.dns.provider == "embedded" and supervised(region) is None and not here.fresh(self.beats, now):
            text = "the embedded server isn't running, so nothing in DNS was looked at"
            return [Look("unknown", "dns", text, "fencepost up")]
        found = [look async for look in there.look_at_dns(self.talk)]
        dns = self.talk.dns
        names = {*dns.names(), *(endpoint.name for endpoint in region.endpoints)}
        lives: list[Live] = [dns.live(name) for name in sorted(names)]
        rows: dict[str, Row] = {}
        if any(there.written_elsewhere(region, live, self.mark) for live in lives):
            _, newest = await self.talk.within(self.talk.store.newest_rows(None), "the store")
            rows = {row.name: row for row in newest}
        found += there.look_at_owners(region, lives, self.mark, rows)
        found += there.look_at_rights(self.enacted, now)
        found += there.look_at_notify(self.talk, self.beats, now)
        return found


def is_alone(region: Region) -> bool:
    """Whether all that a region works with is on this machine, so that nobody's clock but this one counts."""
    from fencepost.cli.up_start import elsewhere
    from fencepost.dev.sample import read_stand_ins

    stand_in = region.store.kind in read_stand_ins(assembly_folder(region))
    beside = stand_in or store_is_here(region)
    return region.dns.provider == "embedded" or (beside and not elsewhere(region))


def never_ran(region: Region) -> bool:
    """Whether nothing on this machine is left of a region whose store would be a file here."""
    folder = assembly_folder(region)
    left = (Path(region.store.path), folder / "running.json", folder / "supervisor.lock")
    return region.store.kind == "sqlite" and not any(each.exists() for each in left)


def store_place(region: Region) -> dict[str, Path]:
    """Where the store's file is, if it is one."""
    return {"store": Path(region.store.path)} if region.store.kind == "sqlite" else {}


def supervised(region: Region) -> dict[str, int | None] | None:
    """Each process's pid, if a supervisor of this region runs here."""
    from fencepost.cli.up_state import supervised as known

    return known(region)


def api_answers(talk: Talk) -> bool:
    """Whether this region's own API answers at its place."""
    from fencepost.cli.looking import from_api

    try:
        return from_api(talk.region, talk.timeout).region == talk.region.name
    except PortError:
        return False
