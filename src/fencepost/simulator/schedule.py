"""What goes wrong, as explicit data: a list of upsets, drawn before the walk and apart from how long calls take.

Swarm style (Groce, Zhang, Eide, Chen, Regehr, "Swarm Testing", ISSTA 2012): each seed draws which kinds of upset it has
at all, and how often each comes. A walk with everything in it hides what one fault alone does for long.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from fencepost.core.instant import HOUR, MINUTE, SECOND, Duration, Instant
from fencepost.simulator.chance import stream

PICKS = 1 << 20
APART = 11 * MINUTE
"""Between two losses of one endpoint's marker. A write that is late for longer than that is never drawn, so that the
documented limit (a marker deleted twice by hand around a change there and back) isn't reached."""
TOGETHER = 30 * SECOND
"""So long after its moment comes the last of what comes together; most comes at once."""
LATE_MOST = 10 * MINUTE


class Upset(Struct, frozen=True, gc=False):
    """One thing that goes wrong, or that a person does.

    ``at`` is counted from the start of the walk, ``lasts`` how long it holds (0: a moment), both in nanoseconds.
    ``where`` and ``pick`` are large numbers; each kind takes from them what it needs (which part, which endpoint, how).
    """

    at: Instant
    kind: str
    where: int = 0
    lasts: Duration = 0
    pick: int = 0


class Kind(Struct, frozen=True, gc=False):
    """A kind of upset: what it means, how often an hour at most on the average, and how long one lasts."""

    meaning: str
    hourly: int
    shortest: Duration = 0
    longest: Duration = 0


KINDS: dict[str, Kind] = {
    "crash": Kind("a process dies and is started anew; a write that it had sent may still arrive", 40, 0, LATE_MOST),
    "pause": Kind("a process stands still (SIGSTOP) and then goes on where it was", 20, SECOND, LATE_MOST),
    "stopped-before-write": Kind(
        "a process stands still between reading and writing (October 2025, step 3)", 20, SECOND, LATE_MOST
    ),
    "clocks": Kind("a process's clock jumps, and is set right again", 6, MINUTE, 20 * MINUTE),
    "local-file-lost": Kind("an enactor's local file is gone", 10),
    "answer-lost": Kind("a write takes effect, and its answer is lost", 60),
    "write-lost": Kind("a write is lost", 60),
    "write-late": Kind("a write is given up, and takes effect later", 30, SECOND, LATE_MOST),
    "delivered-twice": Kind("a transaction is delivered a second time, later", 30, SECOND, LATE_MOST),
    "store-away": Kind("the store doesn't answer", 6, SECOND, 8 * MINUTE),
    "store-wiped": Kind("the store is lost; a new one has the configuration and nothing else", 2),
    "store-restored": Kind("the store is set back to an old copy of itself", 2, MINUTE, 15 * MINUTE),
    "dns-away": Kind("the DNS provider doesn't answer", 6, SECOND, 5 * MINUTE),
    "marker-deleted": Kind("a hand deletes a marker and leaves the addresses", 6, MINUTE, 5 * MINUTE),
    "record-emptied": Kind("a hand deletes addresses and leaves the marker", 20),
    "marker-and-record-deleted": Kind("a hand deletes marker and addresses", 6),
    "record-altered": Kind("a hand changes addresses and leaves the marker", 20),
    "marker-deleted-and-record-altered": Kind(
        "a hand puts addresses of its own in place; later a person lets us take over", 4, MINUTE, 5 * MINUTE
    ),
    "foreign-marker": Kind("another region's marker stands in place of ours for a while", 4, MINUTE, 10 * MINUTE),
    "repair": Kind("a person repairs an endpoint by hand, and releases it later", 6, MINUTE, 15 * MINUTE),
    "repair-with-an-end": Kind("a person repairs an endpoint, until a time", 4),
    "rollback": Kind("a person orders an old content back, and releases it later", 6, MINUTE, 15 * MINUTE),
    "withdraw": Kind("the owner takes an endpoint away, and gives it back later", 4, MINUTE, 15 * MINUTE),
    "drain": Kind("a person takes a target out, for a while", 8, MINUTE, 15 * MINUTE),
    "keep": Kind("a person keeps a target in, however sick, for a while", 6, MINUTE, 15 * MINUTE),
    "pause-automation": Kind("a person pauses a pool or a zone, for a while", 4, MINUTE, 15 * MINUTE),
    "reload": Kind(
        "a configuration with another TTL, or with a target more or less, is loaded", 6, MINUTE, 15 * MINUTE
    ),
    "endpoint-unlisted": Kind(
        "a configuration without one endpoint is loaded; later it is back", 3, MINUTE, 9 * MINUTE
    ),
    "listing-empty": Kind("the source of targets says nothing, for a while", 4, SECOND, 9 * MINUTE),
    "target-dies": Kind("a target dies, and comes back", 12, 10 * SECOND, 20 * MINUTE),
    "target-flaps": Kind("a target is well and sick in turn", 6, MINUTE, 15 * MINUTE),
    "target-lies": Kind("a target claims a capacity that it doesn't have", 4, MINUTE, 15 * MINUTE),
    "zone-lost": Kind("every target of a zone dies", 2, 10 * SECOND, 10 * MINUTE),
    "checker-cut-off": Kind("a checker reaches no target; mostly not its canary either", 5, 10 * SECOND, 10 * MINUTE),
    "probes-lost": Kind("a third of all probes is lost", 3, MINUTE, 10 * MINUTE),
    "cut-off-from-store": Kind("one process can't reach the store", 8, SECOND, 10 * MINUTE),
    "cut-off-from-dns": Kind("one process can't reach the DNS provider", 6, SECOND, 10 * MINUTE),
}
"""Every kind of upset there is."""

TAKES_MARKER = frozenset(
    ("marker-deleted", "marker-and-record-deleted", "marker-deleted-and-record-altered", "foreign-marker")
)


def swarm(
    seed: int,
    kinds: Iterable[str],
    length: Duration,
    endpoints: int,
    *,
    every: bool = False,
    known: Mapping[str, Kind] = KINDS,
) -> tuple[Upset, ...]:
    """The upsets of one walk of this length, drawn from these kinds: half of them each time, or all.

    Many seeds also draw moments at which much comes together, and a few places that it hits again and again: most races
    take two or three things within seconds at one endpoint.
    """
    random = stream(seed, "upsets")
    moments = [random.randrange(10 * SECOND, length) for _ in range(random.choice((0, 4, 12)))]
    hot = [random.randrange(PICKS) for _ in range(random.choice((0, 2, 5)))]
    drawn: list[Upset] = []
    for name in kinds:
        kind = known[name]
        takes_part, share = random.random() < 0.5 or every, random.random()
        if not takes_part:
            continue
        mean = kind.hourly * length / HOUR * share * share
        for _ in range(int(mean) + (random.random() < mean - int(mean)) or 1):
            at = random.randrange(10 * SECOND, length)
            if moments and random.random() < 0.7:
                at = min(random.choice(moments) + int(TOGETHER * random.random() ** 3), length - 1)
            where = random.choice(hot) if hot and random.random() < 0.7 else random.randrange(PICKS)
            lasts = 0
            if kind.longest:
                span = kind.longest - kind.shortest
                lasts = min(kind.shortest + int(span * random.random() ** 3), max(SECOND, length - at))
            drawn.append(Upset(at, name, where, lasts, random.randrange(PICKS)))
    return spaced(sorted(drawn, key=lambda each: (each.at, each.kind, each.where)), endpoints)


def spaced(upsets: Iterable[Upset], endpoints: int) -> tuple[Upset, ...]:
    """The same without what would take one endpoint's marker twice within ``APART``."""
    last: dict[int, Instant] = {}
    kept = []
    for upset in upsets:
        if upset.kind in TAKES_MARKER:
            place = upset.where % endpoints
            if upset.at - last.get(place, -APART) < APART:
                continue
            last[place] = upset.at + (upset.lasts if upset.kind == "foreign-marker" else 0)
        kept.append(upset)
    return tuple(kept)
