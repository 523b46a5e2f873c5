"""What broke other tools, by public report: an enactor on real servers must not have that kind of trouble.

docs/cases.md lists every report with the tests that show it; here are those that want a whole enactor.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import dns.asyncquery
import dns.message
import dns.rcode
import dns.rdatatype
import dns.tsigkeyring
import dns.update
import pytest
import uvloop
from dns_scene import DOMAIN, change, marker
from dns_stages import ServerStage
from enacting import Enacting, changed_by, is_update, stands
from servers import KEY_NAME, KEY_SECRET, Served, bind, embedded, knot, powerdns

from fencepost.core.fence import Marker
from fencepost.core.record_set import content
from fencepost.core.traffic.room import Room
from fencepost.core.zone import Live
from fencepost.ports import Refused

SERVERS = {"embedded": embedded, "bind": bind, "knot": knot, "powerdns": powerdns}


@pytest.fixture(scope="module", params=list(SERVERS))
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server of each kind for the module."""
    with SERVERS[request.param](tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One BIND for the module."""
    with bind(tmp_path_factory.mktemp("bind")) as running:
        yield running


def names(test: str, most: int) -> list[str]:
    """So many endpoints of one test."""
    return [f"{test}{index:03}.{DOMAIN}" for index in range(most)]


def each(at: Callable[[int], bool], rcode: dns.rcode.Rcode = dns.rcode.SERVFAIL) -> Callable[[bytes], int | None]:
    """Turn away those UPDATE messages whose number (from 1) ``at`` says."""
    numbers = count(1)
    return lambda message: int(rcode) if is_update(message) and at(next(numbers)) else None


async def ask(served: Served, name: str, kind: str) -> list[str]:
    """The records that a server answers."""
    query = dns.message.make_query(name, kind)
    answer = await dns.asyncquery.udp(query, "127.0.0.1", 5, served.port)
    return sorted(str(rdata) for rrset in answer.answer for rdata in rrset)


async def by_hand(served: Served, fill: Callable[[dns.update.UpdateMessage], object]) -> None:
    """Another writer's UPDATE, without any fence."""
    update = dns.update.UpdateMessage(DOMAIN, keyring=dns.tsigkeyring.from_text({KEY_NAME: KEY_SECRET}))
    fill(update)
    assert (await dns.asyncquery.tcp(update, "127.0.0.1", 10, served.port)).rcode() == dns.rcode.NOERROR


@pytest.mark.parametrize("most", [1, 5])
def test_external_dns_1200_a_write_that_failed_is_written_by_the_next_pass(
    served: Served, tmp_path: Path, most: int
) -> None:
    """external-dns #1200: a provider failed one write, and the change came an hour later. Nothing marks it as done.

    One endpoint that fails alone is put off for a moment; of several the batch is cut, and the next pass goes on.
    """

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            wanted = names(f"fails{most}-", most)
            await world.publish({name: ["192.0.2.1"] for name in wanted})
            world.door.turn_away = each(lambda number: number == 1)
            hands = world.enactor()
            await world.settle(hands)
            assert all(stands(hands, name, ["192.0.2.1"], 1) for name in wanted)
            assert world.door.turned_away == 1
            written = [name for message in world.door.updates() for name in changed_by(message)]
            assert sorted(written) == wanted, "each sent once"

    uvloop.run(act())


def test_external_dns_1293_octodns_96_rate_exceeded_loses_and_doubles_nothing(served: Served, tmp_path: Path) -> None:
    """external-dns #1293, octodns #96: each sixth call is answered "Rate exceeded"; all is done, only slower.

    RFC 2136 has no such code: SERVFAIL stands for it.
    """

    async def act() -> None:
        async with Enacting(served, tmp_path, batch=5) as world:
            wanted = {name: [f"192.0.2.{index + 1}"] for index, name in enumerate(names("rate", 60))}
            await world.publish(wanted)
            world.door.turn_away = each(lambda number: number % 6 == 0)
            hands = await world.settle()
            assert all(stands(hands, name, addresses, 1) for name, addresses in wanted.items())
            assert world.door.turned_away == 2
            written = [name for message in world.door.updates() for name in changed_by(message)]
            assert sorted(written) == sorted(wanted), "each sent once"

    uvloop.run(act())


def test_external_dns_515_dnscontrol_908_many_values_are_split_below_the_limit(served: Served, tmp_path: Path) -> None:
    """external-dns #515, DNSControl #908: more than one request holds (64 KiB here) is several requests."""

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            rows = {name: [f"10.{index}.0.{n}" for n in range(1, 41)] for index, name in enumerate(names("many", 150))}
            await world.publish(rows)
            hands = await world.settle()
            assert all(stands(hands, name, addresses, 1) for name, addresses in rows.items())
            sizes = [len(message) for message in world.door.updates()]
            assert sum(sizes) > 65_535
            assert max(sizes) <= Room().octets, "cut by what they hold, not for having been refused"

    uvloop.run(act())


@pytest.mark.parametrize("count", [1, 10])
def test_external_dns_1517_421_names_the_server_refuses_hold_up_no_other(
    named: Served, tmp_path: Path, count: int
) -> None:
    """external-dns #1517, #421: bad labels among 50 good ones; 50 are written, each bad one is named with its reason.

    BIND refuses a whole UPDATE for an address at a name with an underscore (check-names).
    """

    async def act() -> None:
        async with Enacting(named, tmp_path) as world:
            good = {name: ["192.0.2.1"] for name in names(f"label{count}-", 50)}
            bad = [f"label{count}-{at}_5.{DOMAIN}" for at in range(count)]
            await world.publish(good | {name: ["192.0.2.1"] for name in bad})
            hands = world.enactor()

            def done() -> bool:
                return all(stands(hands, name, ["192.0.2.1"], 1) for name in good) and not set(bad) - hands.found.keys()

            await world.run(hands, done, within_s=60)
            assert all("right to this name" in hands.found[name][1] for name in bad)
            for name in bad:
                assert not await ask(named, f"_fencepost.{name}", "TXT")
            sent = len(world.door.updates())
            assert sent < 40 * (1 + count // 3), "asked again once a minute, not as fast as it can be"
            moved = next(iter(good))
            await world.publish({moved: ["192.0.2.2"]})
            await world.run(hands, lambda: stands(hands, moved, ["192.0.2.2"], 2), within_s=5)
            assert len(world.door.updates()) <= sent + 3, "a change elsewhere doesn't bring the bad ones back"

    uvloop.run(act())


def test_external_dns_1517_421_a_name_that_any_server_refuses_holds_up_no_other(served: Served, tmp_path: Path) -> None:
    """external-dns #1517, #421: one bad name among 50 good ones, at servers that find no fault with names, too.

    Whoever stands before the server, a policy of its own say, answers REFUSED to each UPDATE that has the name in it.
    """

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            good, bad = names("policy", 50), f"policy025-bad.{DOMAIN}"
            await world.publish({name: ["192.0.2.1"] for name in (*good, bad)})
            refused = int(dns.rcode.REFUSED)
            world.door.turn_away = lambda message: (
                refused if is_update(message) and bad in changed_by(message) else None
            )
            hands = world.enactor()
            await world.run(hands, lambda: all(stands(hands, name, ["192.0.2.1"], 1) for name in good))
            await world.run(hands, lambda: bad in hands.found)
            assert not hands.found.keys() & set(good)
            assert "right to this name" in hands.found[bad][1]
            assert world.door.turned_away < 15, "found by halving, and put off then"
            written = [name for message in world.door.updates() for name in changed_by(message)]
            assert sorted(written) == good, "each sent once"
            assert not await ask(served, f"_fencepost.{bad}", "TXT")

    uvloop.run(act())


def test_more_records_than_bind_takes_at_one_name_hold_up_no_other(named: Served, tmp_path: Path) -> None:
    """BIND 9.18 fails at a whole UPDATE (SERVFAIL) for one endpoint with 101 records of a type; 20 others are written,
    and so is a removal at one of them while the big one still can't be."""

    async def act() -> None:
        async with Enacting(named, tmp_path) as world:
            good = {name: ["192.0.2.1"] for name in names("small", 20)}
            big = f"small10-big.{DOMAIN}"
            await world.publish({**good, big: [f"198.51.100.{n}" for n in range(1, 102)]})
            hands = world.enactor()
            await world.run(hands, lambda: all(stands(hands, name, ["192.0.2.1"], 1) for name in good))
            await world.run(hands, lambda: big in hands.found)
            assert "fails at it" in hands.found[big][1]
            moved = next(iter(good))
            await world.publish({moved: ["192.0.2.2"]})
            await world.run(hands, lambda: stands(hands, moved, ["192.0.2.2"], 2))
            await world.publish({big: ["198.51.100.1"]})
            await world.run(hands, lambda: stands(hands, big, ["198.51.100.1"], 3))

    uvloop.run(act())


def test_external_dns_2071_a_transfer_refused_midway_is_no_empty_domain(served: Served, tmp_path: Path) -> None:
    """external-dns #2071: a zone transfer failed halfway and everything was added again. Nothing is written here."""

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            rows = {name: [f"10.{index}.0.{n}" for n in range(1, 61)] for index, name in enumerate(names("half", 40))}
            await world.publish(rows)
            first = await world.settle()
            await first.dns.read()
            serial = await ask(served, DOMAIN, "SOA")
            world.door.asked_tcp.clear()
            cut = count()
            world.door.spoil = lambda at, message: None if at >= 1 and next(cut) < 5 else message
            hands = await world.settle()
            assert next(cut) > 3, "several transfers were cut"
            assert world.door.updates() == []
            assert await ask(served, DOMAIN, "SOA") == serial
            assert all(stands(hands, name, addresses, 1) for name, addresses in rows.items())

    uvloop.run(act())


def test_external_dns_414_an_empty_cache_moves_only_what_changed(served: Served, tmp_path: Path) -> None:
    """external-dns #414: a controller restarted while members rolled, deleted and created anew. One set, one UPDATE."""

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            rows = {name: ["192.0.2.1", "192.0.2.2"] for name in names("cache", 30)}
            await world.publish(rows)
            await world.settle()
            rolled = names("cache", 30)[7]
            await world.publish({rolled: ["192.0.2.2", "192.0.2.3"]})
            world.door.asked_tcp.clear()
            hands = await world.settle()
            assert stands(hands, rolled, ["192.0.2.2", "192.0.2.3"], 2)
            assert world.door.touched() == {rolled}
            assert len(world.door.updates()) == 1, "never gone in between"

    uvloop.run(act())


def test_external_dns_605_a_deletion_asked_for_twice_is_done_once(served: Served, tmp_path: Path) -> None:
    """external-dns #605: what is gone already is no error: not for another enactor, nor in a second plan."""

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            (name,) = names("twice", 1)
            await world.publish({name: ["192.0.2.1"]})
            await world.settle()
            await world.publish({name: []})
            await world.settle()
            assert not await ask(served, name, "A")
            world.door.asked_tcp.clear()
            again = await world.settle()
            assert world.door.updates() == []
            await world.publish({name: []})
            await world.settle(again)
            assert not await ask(served, name, "A")
            assert name not in again.found
            assert world.condition.state == "up"

    uvloop.run(act())


def test_external_dns_1502_a_record_gone_from_a_server_is_put_back_in_one_pass(served: Served, tmp_path: Path) -> None:
    """external-dns #1502: the marker stands, so the record was taken to stand, too, and never came back."""

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            (name,) = names("gone", 1)
            await world.publish({name: ["192.0.2.1"]})
            await world.settle()
            await by_hand(served, lambda update: update.delete(f"{name}.", "A"))
            world.door.asked_tcp.clear()
            live = (await world.settle()).dns.live(name)
            assert isinstance(live.marker, Marker)
            assert (live.marker.generation.number, live.marker.writes) == (1, 2)
            assert live.verified()
            assert await ask(served, name, "A") == ["192.0.2.1"]
            assert len(world.door.updates()) == 1

    uvloop.run(act())


def test_external_dns_264_3028_a_wildcard_converges(served: Served, tmp_path: Path) -> None:
    r"""external-dns #264, #3028: ``*.x`` came back as ``\052.x`` and was written anew each cycle."""

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            name = f"*.star.{DOMAIN}"
            await world.publish({name: ["192.0.2.1"]})
            assert stands(await world.settle(), name, ["192.0.2.1"], 1)
            world.door.asked_tcp.clear()
            assert stands(await world.settle(), name, ["192.0.2.1"], 1)
            assert world.door.updates() == []
            assert await ask(served, f"anything.star.{DOMAIN}", "A") == ["192.0.2.1"]

    uvloop.run(act())


def test_lego_1351_cert_manager_4504_other_records_at_the_name_are_kept(served: Served, tmp_path: Path) -> None:
    """lego #1351, cert-manager #4504: a writer of one value dropped another's. TXT, MX and the like aren't ours."""

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            (name,) = names("beside", 1)

            def fill(update: dns.update.UpdateMessage) -> None:
                update.add(f"{name}.", 60, "TXT", '"v=spf1 -all"')
                update.add(f"{name}.", 60, "MX", f"10 mail.{DOMAIN}.")

            await by_hand(served, fill)
            for number, address in enumerate(("192.0.2.1", "192.0.2.2"), 1):
                await world.publish({name: [address]})
                assert stands(await world.settle(), name, [address], number)
            await world.publish({name: []})
            await world.settle()
            assert await ask(served, name, "TXT") == ['"v=spf1 -all"']
            assert await ask(served, name, "MX") == [f"10 mail.{DOMAIN}."]

    uvloop.run(act())


def test_bind_an_endpoint_beside_a_cname_is_told_and_not_taken_for_done(served: Served, tmp_path: Path) -> None:
    """BIND, tried: a record added beside a CNAME is answered NOERROR and left out (RFC 2136 section 3.4.2.2)."""

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            name, other = names("alias", 2)
            await by_hand(served, lambda update: update.add(f"{name}.", 60, "CNAME", f"mail.{DOMAIN}."))
            await world.publish({name: ["192.0.2.1"], other: ["192.0.2.1"]})
            hands = world.enactor()
            await world.run(hands, lambda: name in hands.found and stands(hands, other, ["192.0.2.1"], 1))
            assert "CNAME" in hands.found[name][1]
            assert hands.dns.live(name) == Live(name, other=("CNAME",))
            await by_hand(served, lambda update: update.delete(f"{name}.", "CNAME"))
            await world.run(hands, lambda: stands(hands, name, ["192.0.2.1"], 1))

    uvloop.run(act())


def test_external_dns_6683_a_refused_record_leaves_its_marker_as_it_was(named: Served) -> None:
    """external-dns #6683: a record's type changed, the provider refused it, and the marker said that it was done.

    Another writer's marker stands at a name at which BIND takes no address (check-names): it refuses the whole UPDATE.
    """
    stage = ServerStage(named)

    async def act() -> None:
        name = f"type_change.{DOMAIN}"
        before = Live(name, marker(1, content(["192.0.2.1"], 30)))
        await stage.hand(before)
        port = stage.port()
        await port.read()
        good = Live(f"type-change.{DOMAIN}")
        with pytest.raises(Refused):
            await port.commit((change(port.live(name), 2, "2001:db8::1"), change(good, 2, "2001:db8::1")))
        assert not await port.read()
        assert (port.live(name), port.live(good.name)) == (before, good)

    stage.run(act)
