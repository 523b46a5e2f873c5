"""``fencepost fleet launch``: more instances of a pool, once for each key."""

import secrets
import shlex
import time
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from fencepost.cli.check import counted
from fencepost.cli.flags import Config, Json, Note, Timeout, author, duration
from fencepost.cli.fleet.asking import Lost, Said, post
from fencepost.cli.fleet.reading import fleet_region, look
from fencepost.cli.fleet.tables import place
from fencepost.cli.looking import from_api
from fencepost.cli.talk import answer
from fencepost.cli.terminal import note
from fencepost.core.capacity.attempts import LOOPING
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import Refused, Unavailable
from fencepost.roles.fleet.view import InstanceSeen
from fencepost.settings import Region
from fencepost.settings.core_settings import safety_settings
from fencepost.settings.units import spoken

LOOK_EVERY_S = 0.25
AGAIN_S = 0.5
NAMED = 5
"""So many instances are named in the line that ends them."""


def launch(
    pool: str,
    /,
    *,
    count: Annotated[int, Parameter(name=["--count", "-n"])] = 1,
    key: str | None = None,
    wait: bool = False,
    reason: Note = None,
    timeout: Timeout = "3m",
    config: Config = None,
    json: Json = False,
) -> int:
    """Launch instances of a pool. They serve once their host runs them and their network is acknowledged.

    Parameters
    ----------
    pool
        A pool with [pool.NAME.launch].
    count
        How many, up to 1000.
    key
        The launch's own key: asked again with it, the same instances are the answer. One is drawn unless given.
    wait
        Until all of them are ready and answered in DNS; also until the fleet has time for the launch.
    """
    region = fleet_region(config)
    key = key or f"{pool}-{secrets.token_hex(6)}"
    deadline = time.monotonic() + duration(timeout, "--timeout") / SECOND
    body = {"pool": pool, "count": count, "key": key, "by": author(), "reason": reason or ""}
    said = asked(region, body, deadline, wait=wait)
    names = tuple(map(str, said["instances"]))
    began = time.monotonic()
    seen = until_ready(region, pool, names, deadline) if wait else ()
    if seen:
        until_answered(region, pool, seen, deadline)
    document = {"schema": "fencepost.launch/1", "done": "launch", "pool": pool, "key": key, "instances": list(names)}
    answer("\n".join(lines_of(region, pool, key, names, seen, time.monotonic() - began)), document, as_json=json)
    return 0


def asked(region: Region, body: dict[str, Any], deadline: float, *, wait: bool) -> Any:
    """What the API answers. A lost answer is asked for again under the same key, a limit waited for if that was wanted.

    Raises a ``PortError``, whose hint is the line that asks again.
    """
    words = ["fencepost", "fleet", "launch", body["pool"], "--count", str(body["count"]), "--key", body["key"]]
    again = shlex.join(words)
    while True:
        left = deadline - time.monotonic()
        try:
            return post(region, "/v1/fleet/launch", body, max(SECOND, int(left * SECOND)))
        except Lost as error:
            if left < AGAIN_S:
                what = f"{error.what}: it may be launched"
                raise Lost(what, where=error.where, hint=f"{again}    gives the same instances") from None
            time.sleep(AGAIN_S)
        except Said as error:
            after = error.retry_after_s
            if wait and error.kind == "request limit exceeded" and after < left:
                note(f"{error.what}; trying again in {spoken(after * SECOND)}")
                time.sleep(after)
                continue
            hint = f"in {spoken(after * SECOND)}:  {again}" if after else error.hint
            raise Said(error.kind, error.what, where=error.where, hint=hint, retry_after_s=after) from None


def until_ready(region: Region, pool: str, names: Sequence[str], deadline: float) -> tuple[InstanceSeen, ...]:
    """Those instances, all ready. Raises ``Refused`` if one has ended, ``Unavailable`` when the time is over."""
    said = 0.0
    while True:
        left = deadline - time.monotonic()
        known = {each.instance: each for each in look(region, "instances", max(SECOND, int(left * SECOND))).instances}
        found = [known[name] for name in names if name in known]
        over = [each for each in found if each.state in ("ending", "ended")]
        if over:
            raise Refused(f"{over[0].instance} is {over[0].state}: {over[0].why}", where=f"pool {pool}")
        loops = next((each for each in found if each.ends >= LOOPING), None)
        if loops is not None:
            hint = f"mend its command or what that needs, launch anew, and  fencepost fleet terminate {loops.instance}"
            what = f"{loops.instance} ended by itself {loops.ends} times in a row; the last: {loops.why}"
            raise Refused(what, where=f"pool {pool}", hint=hint)
        ready = sum(each.state == "ready" for each in found)
        if ready == len(names):
            return tuple(found)
        if left <= 0:
            first = next((each for each in found if each.state != "ready"), None)
            why = f"; {first.instance} is {first.state}{f': {first.why}' if first.why else ''}" if first else ""
            hint = f"fencepost fleet instances --pool {pool}    shows how they get on; they are not given up"
            raise Unavailable(f"{ready} of {len(names)} ready{why}", where=f"pool {pool}", hint=hint)
        if time.monotonic() - said >= 10:
            if said:
                note(f"{ready} of {len(names)} ready")
            said = time.monotonic()
        time.sleep(LOOK_EVERY_S)


def until_answered(region: Region, pool: str, seen: Sequence[InstanceSeen], deadline: float) -> None:
    """Return once DNS answers all of them at each name that is published. Raises ``Unavailable`` when time is over."""
    names, said = [each.name for each in region.endpoints if each.pool == pool], time.monotonic()
    while names:
        left = deadline - time.monotonic()
        missing = unanswered(region, names, [each.address for each in seen], max(SECOND, int(left * SECOND)))
        if not missing:
            return
        if left <= 0:
            what = f"{len(seen)} of {len(seen)} ready, not yet in DNS: {', '.join(missing[:3])}"
            hint = f"fencepost explain {missing[0]}    says what it waits for; it isn't given up"
            raise Unavailable(what, where=f"pool {pool}", hint=hint)
        if time.monotonic() - said >= 10:
            note(f"all ready; {len(missing)} not yet in DNS")
            said = time.monotonic()
        time.sleep(4 * LOOK_EVERY_S)


def unanswered(region: Region, names: Sequence[str], addresses: Sequence[str], timeout: Duration) -> list[str]:
    """Those of these addresses that some published name lacks, in DNS; all where that can't be read."""
    try:
        status = from_api(region, timeout)
    except Unavailable:
        return list(addresses)
    found = [each for each in status.endpoints if each.name in names and each.state in ("published", None)]
    return [each for each in addresses if any(each not in (endpoint.addresses or ()) for endpoint in found)]


def lines_of(
    region: Region, pool: str, key: str, names: Sequence[str], seen: Sequence[InstanceSeen], took_s: float
) -> list[str]:
    """The answer in words: which instances, what they still wait for, and how they are watched and ended."""
    ends = f"  end      fencepost fleet terminate {' '.join(names) if len(names) <= NAMED else 'NAME …'}"
    if seen:
        head = f"{counted(len(names), 'instance')} of {pool} ready and in DNS after {spoken(int(took_s * SECOND))}"
        return [head, *(f"  {each.instance}  {place(each)}  at {each.host} (zone {each.zone})" for each in seen), ends]
    alone = len(names) == 1
    again = f"fencepost fleet launch {pool} --count {len(names)} --key {shlex.quote(key)} --wait"
    return [
        f"{counted(len(names), 'instance')} of {pool} launched, key {key}",
        *(f"  {name}" for name in names),
        f"  now      waiting for a host; in DNS once {'it' if alone else 'each'} runs there, passes its checks"
        f" and is {ready_age(region, pool)} old",
        f"  watch    fencepost fleet instances --pool {pool}",
        f"  wait     {again}    {'this one' if alone else 'these'}; returns once DNS answers",
        ends,
    ]


def ready_age(region: Region, pool: str) -> str:
    """How old an instance is before it serves at an address that the file doesn't list."""
    return spoken(safety_settings(region.pool(pool).safety).ready_age_ns)
