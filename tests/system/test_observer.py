"""The observer against the embedded server: it asks as any caller would, and what isn't answered says nothing."""

import asyncio
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import dns.rdataclass
import dns.rdatatype
import pytest
from dns.rdtypes.ANY.TXT import TXT
from dns_server_running import HERE, SECRET, Running, new_update, running, settings_in
from free_ports import free_port
from msgspec import structs
from patience import Patience

from fencepost.adapters.dns_differences import witness_of
from fencepost.adapters.dns_rfc2136 import Rfc2136Settings
from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.record_set import Content, Srv, content
from fencepost.core.service import Pointer, service_of
from fencepost.ports import Unavailable
from fencepost.roles.observer import Observer, ObserverSettings, Witness, run_observer
from fencepost.roles.observer_questions import Asker, Unanswered
from fencepost.roles.status.promise_watch import Broken, Watched

NAME = "api.example.test"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    """A running server with an empty domain."""
    with running(settings_in(tmp_path)) as found:
        yield found


def observer_of(port: int, witness: Witness | None = None, **more: object) -> Observer:
    given = {"host": "127.0.0.1", "port": port, "owner": "demo", "timeout_s": 2.0, **more}
    observer = Observer(ObserverSettings(**given), witness=witness)  # type: ignore[arg-type]
    observer.watches([Watched(NAME, "4")])
    return observer


def put(server: Running, value: Content, marker: Marker | None, name: str = NAME) -> None:
    """What an enactor does, in one update (RFC 2136): the whole set and its marker, or what is left of them."""
    update = new_update()
    for owner, kind in ((name, "A"), (name, "AAAA"), (f"_fencepost.{name}", "TXT")):
        update.delete(f"{owner}.", kind)
    for address in value.a:
        update.add(f"{name}.", value.ttl, "A", address)
    for address in value.aaaa:
        update.add(f"{name}.", value.ttl, "AAAA", address)
    if marker is not None:
        update.add(f"_fencepost.{name}.", 0, TXT(dns.rdataclass.IN, dns.rdatatype.TXT, list(marker.encode())))
    assert server.update(update, tcp=True) == "NOERROR"


def marked(number: int, value: Content, hold: Hold | None = None, writes: int = 1) -> Marker:
    return Marker.of("demo", "beef", Generation(0, number), value, hold, writes)


def look(observer: Observer, times: int = 1) -> bool:
    """Look at the endpoint; whether the last look asks for another soon."""

    async def looking() -> bool:
        again = False
        for _ in range(times):
            again = bool(await observer.look_at(list(observer.endpoints.values())))
        observer._asker.close()
        return again

    return asyncio.run(looking())


def looked(observer: Observer, times: int) -> bool:
    return observer.watch.looks >= times


async def until(what: Callable[[], bool]) -> None:
    """Wait until something holds."""
    patience = Patience(20)
    while not what():
        assert not patience.over(), "not within 20 s"
        await asyncio.sleep(0.01)


def test_a_healthy_endpoint_holds_its_promises(server: Running) -> None:
    """Marker, A, AAAA, marker: four plain questions, and the digest fits what was answered."""
    value = content(["192.0.2.10", "192.0.2.9"], 5)
    put(server, value, marked(3, value))
    observer = observer_of(server.port)
    assert not look(observer, 3)
    assert observer.asked == 12
    assert observer.watch.checked["never_empty"] == observer.watch.checked["never_torn"] == 3
    assert observer.violations == ()
    live = observer.lives()[NAME]
    assert (live.a, live.ttl) == (("192.0.2.9", "192.0.2.10"), 5), "by number, not by text"
    assert live.verified()


def with_service(*addresses: str, ttl: int = 5) -> Content:
    """A content with a service at port 80."""
    return structs.replace(content(addresses, ttl), srv=Srv("_http._tcp", (80,)))


def put_service(server: Running, records: Iterable[Pointer], ttl: int = 5) -> None:
    """The SRV records, in an update of their own."""
    update = new_update()
    update.delete(f"_http._tcp.{NAME}.", "SRV")
    for each in records:
        update.add(f"_http._tcp.{NAME}.", ttl, "SRV", f"{each.priority} {each.weight} {each.port} {each.target}.")
    assert server.update(update, tcp=True) == "NOERROR"


def test_srv_records_are_looked_at_too(server: Running) -> None:
    """RFC 2782: a fifth question where the marker names a service; missing and altered ones are counted apart."""
    value = with_service("192.0.2.9", "192.0.2.10")
    service = service_of(NAME, value)
    assert service is not None
    put(server, value, marked(3, value))
    put_service(server, service.records)
    observer = observer_of(server.port)
    assert not look(observer, 2)
    assert observer.asked == 10
    assert observer.watch.checked["never_empty"] == observer.watch.checked["never_torn"] == 4
    put_service(server, [])
    assert look(observer)
    assert observer.watch.past[NAME].empty_since
    put_service(server, [service.records[0]])
    assert look(observer, 2)
    assert observer.watch.altered == 1, "told once"
    assert not observer.watch.past[NAME].empty_since
    put_service(server, service.records, ttl=6)
    assert look(observer)
    assert observer.watch.altered == 2
    put_service(server, service.records)
    assert not look(observer)
    assert observer.violations == ()


def test_a_set_too_large_for_a_datagram_comes_over_tcp(server: Running) -> None:
    """RFC 7766 section 5: an answer cut short is asked for again over TCP; here a hundred addresses a family."""
    value = content([f"192.0.2.{n}" for n in range(100)] + [f"2001:db8::{n:x}" for n in range(1, 101)], 5)
    hold = Hold("repair", 9)
    put(server, value, Marker.of("demo", "beef", Generation(9, 1), value, hold, 1))
    observer = observer_of(server.port)
    observer.watches([Watched(NAME, "46")])
    assert not look(observer)
    assert observer.violations == ()
    assert len(observer.lives()[NAME].aaaa) == 100
    assert observer.watch.altered == 0


def test_weighted_answers_are_parts_of_the_set(server: Running) -> None:
    """The server draws addresses by weight: never a stranger, never none; the status shows the whole set."""
    value = content({"192.0.2.1": 255, "192.0.2.2": 1, "192.0.2.3": 20}, 5)
    put(server, value, marked(1, value))
    observer = observer_of(server.port)
    look(observer, 20)
    assert observer.violations == ()
    assert observer.watch.altered == 0
    assert observer.lives()[NAME].a == ("192.0.2.1", "192.0.2.2", "192.0.2.3")


def test_an_emptied_record_is_timed_and_is_nobodys_broken_promise(server: Running) -> None:
    """A careless hand took the addresses: the marker still names them, and the clock runs until they are back."""
    value = content(["192.0.2.1"], 5)
    put(server, value, marked(1, value))
    now = 0
    observer = Observer(ObserverSettings("127.0.0.1", server.port, "demo", timeout_s=2.0), lambda: now)
    observer.watches([Watched(NAME, "4")])
    now = 10**18
    look(observer)
    put(server, Content(), marked(1, value))
    assert look(observer), "worth another look soon"
    now += 64_000_000
    put(server, value, marked(1, value, writes=2))
    look(observer)
    assert observer.violations == ()
    assert observer.watch.emptied_ns(NAME, now) == 64_000_000


def test_a_change_is_looked_at_when_it_happens(server: Running) -> None:
    """The domain's serial moved: no waiting for the second to end. Here the second is a minute long."""
    value = content(["192.0.2.1"], 5)

    async def watching() -> None:
        observer = observer_of(server.port, every_s=60.0, domains=("example.test",))
        task = asyncio.create_task(observer.run())
        await until(lambda: bool(observer._serials))
        await asyncio.to_thread(put, server, value, marked(1, value))
        await until(lambda: NAME in observer.lives() and observer.lives()[NAME].a == value.a)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(watching())


def test_an_older_plan_over_a_newer_is_found_out(server: Running) -> None:
    """October 2025, step 3, as a caller sees it; the server's difference sequences say that it was one transaction.
    The violation is told once.
    """
    observer, told = two_generations(server, witness=witness(server))
    assert [(each.promise, each.on) for each in told] == [("never_backward", NAME)]
    assert observer.watch.unsure["never_backward"] == 0


def test_a_generation_that_fell_because_a_hand_took_the_marker_is_nobodys_broken_promise(server: Running) -> None:
    """Between two looks: marker and records deleted by a careless hand, and an older row written by us, since nothing
    remembered the newer. The same two looks as above; the server tells them apart.
    """
    observer, told = two_generations(server, wiped=True, witness=witness(server))
    assert (told, observer.watch.unsure["never_backward"]) == ([], 0)
    assert observer.watch.checked["never_backward"] == observer.watch.looks


def test_without_a_witness_it_can_not_be_told(server: Running) -> None:
    """No incremental transfers, or a witness that doesn't answer: counted apart."""
    for asked in (None, unanswering):
        observer, told = two_generations(server, witness=asked)
        assert (told, observer.watch.unsure["never_backward"]) == ([], 1)


async def unanswering(_domain: str, _since: int, _names: frozenset[str]) -> None:
    """A witness whose server is away."""
    raise Unavailable("gone")


def witness(server: Running) -> Witness:
    """The server itself, asked by incremental transfers."""
    return witness_of(
        [Rfc2136Settings((HERE, server.port), "example.test", key_name="writer", key_secret=SECRET, owner="demo")]
    )


def two_generations(server: Running, *, witness: Witness | None, wiped: bool = False) -> tuple[Observer, list[Broken]]:
    """Generation 2 is looked at, then 1 put over it unseen (after a hand's wipe, if ``wiped``), and looked at."""
    old, new = content(["192.0.2.1"], 5), content(["192.0.2.2"], 5)
    told: list[Broken] = []
    put(server, new, marked(2, new))
    observer = observer_of(server.port, witness=witness, domains=("example.test",), every_s=0.05)

    async def watching() -> None:
        observer._serials["example.test"] = server.serial()
        await observer.look(observer.endpoints[NAME])
        if wiped:
            await asyncio.to_thread(put, server, Content(), None)
        await asyncio.to_thread(put, server, old, marked(1, old))
        task = asyncio.create_task(run_observer(observer, told.append))
        await until(lambda: observer.watch.looks > 3 and not observer.doubts)
        await until(lambda: len(told) == len(observer.violations))
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(watching())
    return observer, told


def test_silence_is_no_empty_answer() -> None:
    """A server that doesn't answer is counted apart; nothing is concluded about any endpoint."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        observer = observer_of(mute.getsockname()[1], timeout_s=0.05)
        look(observer, 2)
    assert (observer.unanswered, observer.watch.looks) == (2, 0)
    assert observer.last_error == "no answer within 0.05 s"
    assert observer.watch.checked["never_empty"] == 0


def test_a_server_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    """Nobody listened; then somebody does, at the same port: the observer goes on by itself."""
    port = free_port()
    value = content(["192.0.2.1"], 5)

    async def over() -> None:
        observer = observer_of(port)
        await observer.look_at(list(observer.endpoints.values()))
        assert observer.unanswered == 1
        with running(settings_in(tmp_path, listen=f"127.0.0.1:{port}")) as server:
            await asyncio.to_thread(put, server, value, marked(1, value))
            await observer.look_at(list(observer.endpoints.values()))
        assert observer.watch.looks == 1
        observer._asker.close()

    asyncio.run(over())


def test_a_refusal_is_no_empty_answer(server: Running) -> None:
    """REFUSED for a domain that isn't the server's: counted, not judged."""

    async def asking() -> None:
        asker = Asker("127.0.0.1", server.port, 2.0)
        with pytest.raises(Unanswered, match="REFUSED"):
            await asker.ask("api.elsewhere.test", dns.rdatatype.A)
        assert await asker.ask(NAME, dns.rdatatype.A) is None, "NXDOMAIN is an answer"
        asker.close()

    asyncio.run(asking())


def test_a_foreign_marker_is_seen_as_foreign(server: Running) -> None:
    """What stands at the marker's name and is no marker of ours: left alone, and nothing is promised about it."""
    update = new_update()
    update.add(f"_fencepost.{NAME}.", 0, "TXT", '"v=1"')
    assert server.update(update) == "NOERROR"
    observer = observer_of(server.port)
    assert not look(observer)
    assert observer.watch.checked["never_empty"] == 0


def test_many_endpoints_take_turns_within_the_bound() -> None:
    """At most so many questions a second: of more endpoints the next ones are taken, and none is left out."""
    observer = Observer(ObserverSettings("127.0.0.1", 1, "demo", queries_a_s=12))
    observer.watches([Watched(f"n{place}.example.test", "4") for place in range(7)])
    turns = []
    for _ in range(5):
        observer._budget = 12
        turns.append([endpoint.name[:2] for endpoint in observer._due()])
    observer._budget = 0
    assert len(observer._due()) == 1, "the bound is used up; one at least"
    assert turns == [
        ["n0", "n1", "n2"],
        ["n3", "n4", "n5"],
        ["n6", "n0", "n1"],
        ["n2", "n3", "n4"],
        ["n5", "n6", "n0"],
    ]
