"""What goes wrong in the leases' world: messages, hosts, stores and people's words."""

from collections.abc import Iterator

from msgspec import structs

from fencepost.core.capacity.host import Started
from fencepost.core.capacity.token import NO_TOKEN
from fencepost.world.lease_hosts import midway, unwritten
from fencepost.world.lease_minds import NOW
from fencepost.world.leases import Fault, Rows, Shared, attempt, with_host
from fencepost.world.model import Move


def adversary(shared: Shared) -> Iterator[Move]:
    """Everything that may happen without any part."""
    for at, flying in enumerate(shared.flight):
        rest = shared.flying(*shared.flight[:at], *shared.flight[at + 1 :])
        yield Move(f"{type(flying.message).__name__} is lost", None, rest, calm=False, event="lost")
    if shared.alive:
        yield from host_faults(shared)
    yield from store_faults(shared)
    row = shared.rows.host
    if shared.budgeted(Fault.CORDON) and row is not None:
        word = "" if row.word else "cordon"
        rows = structs.replace(shared.rows, host=structs.replace(row, word=word))
        after = structs.replace(shared.spent(Fault.CORDON), rows=rows)
        yield Move(f"a person says {word or 'resume'}", None, after, calm=False, event="cordoned")


def host_faults(shared: Shared) -> Iterator[Move]:
    """The agent starts anew, with what it started or without; its memory is gone; it dies."""
    running = tuple(sorted(shared.running))
    for fault, memory, runs in (
        (Fault.RESTART, shared.memory, running),
        (Fault.REBOOT, shared.memory, ()),
        (Fault.FORGET, None, ()),
    ):
        if shared.budgeted(fault):
            after = started(shared.spent(fault), memory is not None, runs)
            yield Move(f"host: {fault.value}", None, after, calm=False, event=fault.value)
    if shared.budgeted(Fault.MIDWAY):
        for at, flying in enumerate(shared.flight):
            rest = [*shared.flight[:at], *shared.flight[at + 1 :]]
            lefts = midway(shared.spent(Fault.MIDWAY), flying, rest) if flying.to_host else ()
            for left, broken in lefts:
                after = started(left, True, tuple(sorted(left.running)))
                yield Move("host: crash-midway", None, after, broken, calm=False, event="crash-midway")
    if shared.budgeted(Fault.FULL):
        for at, flying in enumerate(shared.flight):
            rest = [*shared.flight[:at], *shared.flight[at + 1 :]]
            refusing = unwritten(shared.spent(Fault.FULL), flying, rest) if flying.to_host else None
            if refusing is not None:
                yield Move("host: disk-full", None, refusing, calm=False, event="disk-full")
    if shared.budgeted(Fault.DIE):
        after = structs.replace(shared.spent(Fault.DIE), alive=False, running=frozenset())
        yield Move("host: dies", None, after, calm=False, event="died")


def started(shared: Shared, remembers: bool, running: tuple[str, ...]) -> Shared:
    """The host with its agent started anew."""
    host = shared.host_decider()
    memory = shared.memory if remembers else None
    host.on(Started(memory, shared.memory.incarnation + 1, shared.boot + 1, running), NOW)
    acked = shared.acked if remembers else (NO_TOKEN, "")
    return structs.replace(with_host(shared, host), acked=acked)


def store_faults(shared: Shared) -> Iterator[Move]:
    """The store is wiped, copied or put back."""
    life = shared.rows.life + 1
    if shared.budgeted(Fault.WIPE):
        # A new store counts a name's attempts anew: an id that was never started may be given once more.
        over = shared.over & shared.started
        after = structs.replace(shared.spent(Fault.WIPE), rows=Rows(life), over=over)
        yield Move("the store is wiped", None, after, calm=False, event="wiped")
    if shared.budgeted(Fault.RESTORE):
        if shared.copied is None:
            copied = structs.replace(shared, copied=shared.rows)
            yield Move("the store is copied", None, copied, calm=False, event="copied")
        elif shared.copied != shared.rows:
            rows = structs.replace(shared.copied, life=life)
            # Nor does a copy know what was made after it.
            known = {attempt(number).id for number in range(1, rows.attempts + 1)}
            over = shared.over & (shared.started | known)
            after = structs.replace(shared.spent(Fault.RESTORE), copied=None, rows=rows, over=over)
            yield Move("the copy is put back", None, after, calm=False, event="put back")
