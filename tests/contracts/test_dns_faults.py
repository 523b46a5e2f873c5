"""Servers that throttle, dawdle, break off and lie: nothing is lost, nothing is done twice, and memory stays bounded.

Whole enactors work through a relay that spoils what a real server says; what can't be had of a real one is made up.
Patience is a fifteenth of the real one, so that 30 seconds of delay take two; on a busy machine it is more of both.
"""

import asyncio
import itertools
import resource
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from pathlib import Path

import dns.opcode
import dns.rcode
import pytest
import uvloop
from dns_scene import DOMAIN, OWNER, change, standing
from enacting import Enacting, changed_by, stands
from patience import patient
from relay import MadeUp
from servers import KEY_NAME, KEY_SECRET, Served, bind, embedded, knot, powerdns

from fencepost.adapters import dns_session, dns_transfer
from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.core.instant import SECOND, Duration
from fencepost.core.zone import Live
from fencepost.ports import Refused, Unavailable

SERVERS = {"bind": bind, "knot": knot, "powerdns": powerdns, "embedded": embedded}
PATIENCE_S = 0.33


@pytest.fixture(scope="module", params=list(SERVERS))
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server of each kind for the module."""
    with SERVERS[request.param](tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(params=[1, 4], ids=["one UPDATE", "four at once"])
def at_once(request: pytest.FixtureRequest) -> int:
    """How many transactions an enactor has under way."""
    return int(request.param)


def rows(test: str, most: int) -> dict[str, list[str]]:
    """So many endpoints of one test."""
    return {f"{test}{index:02}.{DOMAIN}": [f"192.0.2.{index + 1}"] for index in range(most)}


def once_written(
    served: Served,
    tmp_path: Path,
    spoil: Callable[[Enacting], None],
    test: str,
    most: int,
    *,
    patience: Duration = 5 * SECOND,
    at_once: int = 1,
) -> Enacting:
    """Enact through a spoilt relay: in the end each endpoint stands as planned, written exactly once."""
    world = Enacting(served, tmp_path, batch=4 if at_once == 1 else 2 * at_once, at_once=at_once)
    world.timeout = patience
    wanted = rows(test, most)

    async def act() -> None:
        async with world:
            await world.publish(wanted)
            spoil(world)
            hands = world.enactor()

            def done() -> bool:
                # A write count of 1 is part of it: an UPDATE applied twice would have raised it.
                written = all(stands(hands, name, addresses, 1) for name, addresses in wanted.items())
                return written and not set(wanted) & hands.found.keys()

            await world.run(hands, done, within_s=60)

    uvloop.run(act())
    return world


def all_once(written: list[str], wanted: Collection[str], at_once: int) -> None:
    """Each was sent once: what was written is found by reading.

    Of several at once some may still be on their way while that is read. They are sent once more then, and written once
    all the same, as their markers' counts say.
    """
    if at_once == 1:
        assert sorted(written) == sorted(wanted)
    else:
        assert set(written) == set(wanted)


def is_reply(message: bytes) -> bool:
    """Whether an answer is one to an UPDATE."""
    return message[2] >> 3 & 15 == dns.opcode.UPDATE


def test_every_sixth_call_fails(served: Served, tmp_path: Path, at_once: int) -> None:
    """external-dns #1293, octodns #96: "Rate exceeded" on each sixth call, reads and writes alike."""
    calls = itertools.count(1)

    def spoil(world: Enacting) -> None:
        world.door.turn_away = lambda _: int(dns.rcode.SERVFAIL) if next(calls) % 6 == 0 else None

    world = once_written(served, tmp_path, spoil, f"sixth{at_once}-", 40, at_once=at_once)
    assert world.door.turned_away >= 3
    written = [name for message in world.door.updates() for name in changed_by(message)]
    all_once(written, rows(f"sixth{at_once}-", 40), at_once)


def test_replies_lost_after_the_commit(served: Served, tmp_path: Path, at_once: int) -> None:
    """Every other UPDATE is applied and its answer lost: an unknown outcome is read, never sent again from memory."""
    lost = itertools.count()

    def spoil(world: Enacting) -> None:
        world.door.spoil = lambda _, message: None if is_reply(message) and next(lost) % 2 == 0 else message

    world = once_written(served, tmp_path, spoil, f"lost{at_once}-", 24, at_once=at_once)
    assert next(lost) >= 6
    written = [name for message in world.door.updates() for name in changed_by(message)]
    all_once(written, rows(f"lost{at_once}-", 24), at_once)


def test_answers_thirty_seconds_late(served: Served, tmp_path: Path, at_once: int) -> None:
    """Two answers to UPDATEs come six times later than anybody waits: the connection is given up, the outcome read."""
    late = itertools.count()

    patience_s = patient(PATIENCE_S)
    delay_s = 6 * patience_s

    def spoil(world: Enacting) -> None:
        world.door.delay_s = lambda message: delay_s if is_reply(message) and next(late) < 2 else 0.0

    patience = int(patience_s * SECOND)
    world = once_written(served, tmp_path, spoil, f"late{at_once}-", 12, patience=patience, at_once=at_once)
    assert next(late) >= 2
    assert world.door.touched() == set(rows(f"late{at_once}-", 12))


def test_connections_cut_in_the_middle(served: Served, tmp_path: Path, at_once: int) -> None:
    """At each ninth answer the connection is cut: a transfer's, an UPDATE's, or its reading back. (A whole transfer by
    PowerDNS takes six.)"""
    answers = itertools.count()

    def spoil(world: Enacting) -> None:
        world.door.spoil = lambda _, message: None if next(answers) % 9 == 8 else message

    most = 12 if served.kind == "powerdns" else 48
    world = once_written(served, tmp_path, spoil, f"cut{at_once}-", most, at_once=at_once)
    assert next(answers) >= 18
    written = [name for message in world.door.updates() for name in changed_by(message)]
    all_once(written, rows(f"cut{at_once}-", most), at_once)


def test_half_dead(served: Served, tmp_path: Path, at_once: int) -> None:
    """It takes connections and answers none for a while (UDP too), then recovers: nothing was written, then all is."""
    asked = itertools.count()

    def spoil(world: Enacting) -> None:
        world.door.delay_s = lambda _: 3600.0 if next(asked) < 3 else 0.0
        world.door.spoil_udp = lambda _, message: None if next(asked) < 6 else message

    patience = int(patient(PATIENCE_S) * SECOND)
    once_written(served, tmp_path, spoil, f"dead{at_once}-", 8, patience=patience, at_once=at_once)


def on_made_up(act: Callable[[MadeUp, Rfc2136Dns], Awaitable[None]]) -> None:
    """Run a test with a made-up primary, which has our key and may say anything."""

    async def whole() -> None:
        primary = await MadeUp().start()
        settings = Rfc2136Settings(("127.0.0.1", primary.port), DOMAIN, KEY_NAME, KEY_SECRET, OWNER, timeout=SECOND)
        port = Rfc2136Dns(settings)
        try:
            await act(primary, port)
        finally:
            await port.close()
            await primary.stop()

    asyncio.run(whole())


def test_a_lie_about_a_write_is_found_out() -> None:
    """Signed NOERROR to an UPDATE, and nothing written: read back, so it is told and not taken for done."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        await port.read()
        primary.update_rcode = int(dns.rcode.NOERROR)
        with pytest.raises(Refused, match="wrote nothing"):
            await port.commit((change(Live(f"api.{DOMAIN}"), 1, "192.0.2.1"),))
        assert port.live(f"api.{DOMAIN}") == Live(f"api.{DOMAIN}")

    on_made_up(act)


def test_a_serial_that_never_rests_costs_questions_only() -> None:
    """A serial that rises at each question, with nothing changed: reads name nothing, and go on."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.records = [f"api.{DOMAIN}. 30 IN A 192.0.2.1"]
        await port.read()
        for _ in range(5):
            primary.serial += 1
            assert not await port.read()

    on_made_up(act)


@pytest.mark.parametrize("kind", ["records", "messages"])
def test_a_transfer_without_an_end_is_ended(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Records for ever, or a message now and then for ever: given up, the mirror as before, memory too."""
    monkeypatch.setattr(dns_transfer, "RECORDS_MAX", 4_000)
    monkeypatch.setattr(dns_session, "PATIENCE", 60 if kind == "records" else 1)

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        name = f"api.{DOMAIN}"
        primary.records = [f"{name}. 30 IN A 192.0.2.1"]
        await port.read()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        primary.serial += 1
        primary.endless = (500, 0.0) if kind == "records" else (1, 0.05)
        with pytest.raises(Unavailable, match="more than 4,000 records" if kind == "records" else "goes on and on"):
            await port.read()
        assert port.live(name).a == ("192.0.2.1",)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "kB"
        primary.endless = None
        primary.records = [f"{name}. 30 IN A 192.0.2.2"]
        assert list(await port.read()) == [name]

    on_made_up(act)


def test_rolls_through_a_bad_server(served: Served, tmp_path: Path, at_once: int) -> None:
    """Through a throttled, cutting relay a roll of all endpoints, twice over, ends with each written once a plan."""
    calls, cut = itertools.count(1), itertools.count(1)
    world = Enacting(served, tmp_path, batch=4, at_once=at_once)

    async def act() -> None:
        async with world:
            names = list(rows(f"roll{at_once}-", 8))
            hands = world.enactor()
            world.door.turn_away = lambda _: int(dns.rcode.SERVFAIL) if next(calls) % 6 == 0 else None
            world.door.spoil = lambda _, message: None if is_reply(message) and next(cut) % 4 == 0 else message
            for number in (1, 2, 3):
                await world.publish({name: [f"192.0.2.{number}"] for name in names})
                done = lambda number=number: all(  # noqa: E731
                    stands(hands, name, [f"192.0.2.{number}"], number) for name in names
                )
                await world.run(hands, done, within_s=60)
            sent = Counter(name for message in world.door.updates() for name in changed_by(message))
            assert sent.keys() == set(names)
            # More than one at once, on their way while DNS was read: sent again, and written once, as markers say.
            assert set(sent.values()) == {3} if at_once == 1 else min(sent.values()) >= 3
            assert all(hands.dns.live(name).a == standing(name, 3, "192.0.2.3").a for name in names)

    uvloop.run(act())
