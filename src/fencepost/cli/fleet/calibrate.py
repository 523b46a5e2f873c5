"""``fencepost fleet calibrate``: how many hosts may be asked at once, measured on these hosts, and kept in a row."""

import time
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from fencepost.cli.flags import Config, Json, Timeout, Yes, agree, duration
from fencepost.cli.fleet.reading import fleet_region, with_store
from fencepost.cli.talk import Talk, answer
from fencepost.cli.terminal import note
from fencepost.core.instant import Duration
from fencepost.ports import Misconfigured
from fencepost.ports.fleet import FleetStorePort
from fencepost.settings.units import duration_ns, spoken

MANY = 1000
"""Above so many hosts it asks first."""
SHORTEST, LONGEST = "1s", "10m"


def calibrate(
    *,
    hosts: int | None = None,
    for_: Annotated[str, Parameter(name="--for", help="How long to measure, about.")] = "20s",
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Measure how many hosts may be asked at once: on a quiet day, on the hosts that there are. Managers go by it.

    Parameters
    ----------
    hosts
        Ask so many of those that hold a lease; all unless given.
    """
    length = duration(for_, "--for")
    if not duration_ns(SHORTEST) <= length <= duration_ns(LONGEST):
        raise Misconfigured(f"--for {for_} isn't {SHORTEST} to {LONGEST}", hint="--for 20s")
    if hosts is not None and hosts < 1:
        raise Misconfigured(f"--hosts {hosts} is no number of hosts", hint="leave it out to ask all")
    region = fleet_region(config)

    async def work(talk: Talk, store: FleetStorePort) -> int:
        return await measure(talk, store, hosts, length, yes=yes, as_json=json)

    return with_store(region, duration(timeout, "--timeout"), work)


async def measure(
    talk: Talk, store: FleetStorePort, hosts: int | None, length: Duration, *, yes: bool, as_json: bool
) -> int:
    """Ask, measure, keep; the exit code. Raises a ``PortError``."""
    from fencepost.assembly.fleet_key import fleet_key
    from fencepost.roles.fleet import calibrating
    from fencepost.roles.fleet.calibrated import UNCALIBRATED
    from fencepost.roles.fleet.wire import Wire

    fleet = talk.region.fleet
    if fleet is None:
        raise Misconfigured("this region has no fleet", where=talk.region.path)
    wire = Wire(fleet_key(fleet.key))
    known = await talk.within(calibrating.known(store, fleet.shards), "the store")
    some = known if hosts is None else calibrating.sample(known, hosts)
    count = len(some.hosts)
    if count > MANY:
        question = f"Ask {count:,} hosts, as fast as they answer, for about {spoken(length)}?"
        agree(question, yes=yes)
    if count:
        note(f"asking {count:,} host{'' if count == 1 else 's'} how they are; leases and instances stay as they are")
    found = await calibrating.measured(wire, store, some, length, lambda step: note(line_of(step)))
    row = found.row(time.time_ns(), UNCALIBRATED.limit)
    await talk.within(calibrating.persist(store, row), "the store")
    await talk.tell_history("fleet", f"fleet: calibrated, {row.limit} checks at once, {row.rate:.0f}/s", "")
    document: dict[str, Any] = {"schema": "fencepost.calibration/1", "done": "calibrate"}
    document |= {"limit": row.limit, "knee": found.knee, "hosts": count, "rate_s": found.rate, "binds": found.binds}
    document |= {"checks_s": found.at.rate, "grants_s": found.grants, "steps": msgspec.to_builtins(found.steps)}
    answer("\n".join(lines_of(found, row.limit, len(known.hosts), fleet.shards)), document, as_json=as_json)
    return 0


def line_of(step: Any) -> str:
    """One step, while it goes on."""
    lost = f", {step.lost:.1%} lost" if step.lost else ""
    times = f"mean {spoken_ms(step.mean)}, p99 {spoken_ms(step.p99)}, p99.9 {spoken_ms(step.p999)}"
    return f"{step.in_flight:>6,} at once: {step.rate:>9,.0f} answers/s, {times}{lost}"


def spoken_ms(length: Duration) -> str:
    """A service time: milliseconds to a tenth."""
    return f"{length / 1e6:.1f} ms"


def lines_of(found: Any, limit: int, fleet: int, shards: int) -> list[str]:
    """What came out, and what it means for a fleet that comes back."""
    at = found.at
    head = f"{limit} checks at once: {at.rate:,.0f} answers a second, mean {spoken_ms(at.mean)}"
    if not found.knee:
        head += f" (at {at.in_flight} at once; these hosts are too few to find where it ends, so {limit} stays)"
    slower = "checks are" if found.binds == "checks" else "the store's writes are"
    back = f"a lease comes back with a check and a write ({found.grants:,.0f} writes/s): {slower} what bounds it"
    seconds = fleet / max(found.rate, 1e-9)
    whole = f"all {fleet:,} hosts are back in {spoken(int(seconds * 1e9))}, at best"
    share = f", each of {shards} shards by its share" if shards > 1 else ""
    last = f"managers go by it within seconds{share}; fencepost status    shows its age"
    return [head, f"  {back}", f"  {whole}", f"  {last}"]
