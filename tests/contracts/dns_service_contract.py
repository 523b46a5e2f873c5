"""What DNS ports must do with SRV records beside an endpoint (RFC 2782), where their provider can have any.

``test_dns_*.py`` run it after the other contract, each on its own stage.
"""

from collections.abc import Mapping

import pytest
from dns_scene import OWNER, Stage, marker
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.core.fence import Generation, Hold
from fencepost.core.judge import DONE, Judgement, Kind, Pair, judge
from fencepost.core.record_set import NOTHING, Content, content
from fencepost.core.service import Host, Pointer, Service, host_label, hosts_of, service_of
from fencepost.core.store import Row
from fencepost.core.zone import Change, Live, transact
from fencepost.ports import Refused

HTTP, XMPP = "_http._tcp", "_xmpp-client._tcp"
_POOL = ("192.0.2.1", "192.0.2.2", "2001:db8::1")


def offered(
    weights: Mapping[str, int], service: str = HTTP, ports: Mapping[str, int] | int = 8080, ttl: int = 30
) -> Content:
    """A content with SRV records."""
    return content(weights, ttl, service, ports)


def wish(seen: Live, number: int, value: Content) -> Change:
    """The change that puts a content in place of what was seen."""
    families = ("4" if value.a else "") + ("6" if value.aaaa else "")
    return Change(seen.name, seen, marker(number, value), value, families)


def stands(name: str, number: int, value: Content) -> Live:
    """An endpoint of ours with what belongs beside it."""
    found = service_of(name, value)
    services = (found,) if found is not None else ()
    return Live(name, marker(number, value), value.a, value.aaaa, value.ttl, (), services, hosts_of(value))


def cleared(name: str) -> Live:
    """Nothing at a name, nor at any name beside it that these tests write."""
    hosts = tuple(Host(host_label(address)) for address in _POOL)
    return Live(name, services=(Service(HTTP), Service(XMPP)), hosts=hosts)


def judged(live: Live, number: int, value: Content) -> Judgement:
    """What an enactor makes of it, where the newest row asks for this content."""
    families = ("4" if value.a else "") + ("6" if value.aaaa else "")
    row = replace(Row.of(live.name, Generation(0, number), value, families=families), store="ab12")
    return judge(Pair(live, row), OWNER)


BOTH = offered(
    {"192.0.2.1": 2, "192.0.2.2": 1, "2001:db8::1": 3}, ports={"192.0.2.1": 80, "192.0.2.2": 81, "2001:db8::1": 80}
)
FOREIGN = Service(HTTP, 60, (Pointer(0, 5, 389, "dc1.example.test"), Pointer(10, 0, 0, "")))


class DnsServicesRefused:
    """What a port must do whose adapter keeps no SRV records: never half of it."""

    def test_srv_records_are_refused(self, stage: Stage) -> None:
        """A content with a service (from an older plan, say) is refused whole, and nothing is written."""

        async def act() -> None:
            name = "srv.example.test"
            await stage.hand(Live(name))
            port = stage.port()
            await port.read()
            with pytest.raises(Refused, match=r"srv\.example\.test has SRV records"):
                await port.commit((wish(port.live(name), 1, offered({"192.0.2.1": 1})),))
            assert not await port.read()

        stage.run(act)


class DnsServiceContract:
    """The suite. ``stage`` comes from the module that subclasses it."""

    def test_service_is_written_with_its_endpoint(self, stage: Stage) -> None:
        """Made, changed in each of its parts, renamed, given up and withdrawn: each write leaves exactly its records,
        nothing of the one before, and the marker says all of it."""

        async def act() -> None:
            name = "service.example.test"
            await stage.hand(cleared(name))
            port, other = stage.port(), stage.port()
            await port.read()
            await other.read()
            values = (
                offered({"192.0.2.1": 2, "192.0.2.2": 1}),
                offered({"192.0.2.1": 1, "192.0.2.2": 1}),
                offered({"192.0.2.2": 1}, ttl=60),
                BOTH,
                offered({"192.0.2.1": 1, "2001:db8::1": 1}, XMPP, 5222),
                content(["192.0.2.1"], 30),
                offered({"192.0.2.1": 1}),
            )
            for number, value in enumerate(values, 1):
                assert await port.commit((wish(port.live(name), number, value),))
                assert name in await port.read()
                assert name in await other.read()
                assert port.live(name) == other.live(name) == stands(name, number, value)
                assert port.live(name).verified()
                assert judged(other.live(name), number, value) == DONE
            gone = marker(8, NOTHING, hold=Hold("withdraw", 7), epoch=7)
            assert await other.commit((Change(name, other.live(name), gone, NOTHING, "4"),))
            await port.read()
            assert port.live(name) == Live(name, gone)
            await stage.hand(cleared(name))

        stage.run(act)

    @pytest.mark.parametrize(
        ("services", "hosts"),
        [
            ((Service(HTTP),), ()),
            ((Service(HTTP, 30, (Pointer(0, 9, 80, f"{host_label('192.0.2.1')}.drift.example.test"),)),), ()),
            ((FOREIGN,), ()),
            ((Service(HTTP, 31, service_of("drift.example.test", BOTH).records),), ()),  # type: ignore[union-attr]
            ((), (Host(host_label("192.0.2.1")),)),
            ((), (Host(host_label("192.0.2.1"), ("192.0.2.7",), (), 30),)),
            ((), (Host(host_label("192.0.2.1"), ("192.0.2.1",), ("2001:db8::7",), 30),)),
            ((), (Host(host_label("2001:db8::1"), (), ("2001:db8::1",), 31),)),
        ],
        ids=["gone", "altered", "replaced", "ttl", "host-gone", "host-altered", "host-family", "host-ttl"],
    )
    def test_what_stands_beside_is_healed(
        self, stage: Stage, services: tuple[Service, ...], hosts: tuple[Host, ...]
    ) -> None:
        """What a hand alters or deletes beside an endpoint is seen as the endpoint's, and put right in one write: by
        the row, and by the marker alone where no row is known."""

        async def act() -> None:
            name = "drift.example.test"
            await stage.hand(cleared(name))
            port = stage.port()
            await port.read()
            assert await port.commit((wish(port.live(name), 1, BOTH),))
            await port.read()
            for rowless in (False, True):
                await stage.hand(altered(port.live(name), services, hosts))
                assert name in await port.read()
                live = port.live(name)
                assert live.verified()
                assert not live.holds(BOTH)
                found = judge(Pair(live, None), OWNER) if rowless else judged(live, 1, BOTH)
                assert found.kind is Kind.HEAL
                assert found.change is not None
                assert await port.commit((found.change,))
                await port.read()
                assert port.live(name).holds(BOTH)
                assert judged(port.live(name), 1, BOTH) == DONE
            await stage.hand(cleared(name))

        stage.run(act)

    def test_a_strangers_service_is_left_alone(self, stage: Stage) -> None:
        """SRV records that stood before us are shown to the last byte, and nothing is written beside them; ones that
        come between the read and the write refuse it, whole."""

        async def act() -> None:
            name = "theirs.example.test"
            await stage.hand(cleared(name))
            port = stage.port()
            await port.read()
            value = offered({"192.0.2.1": 1})
            held = wish(port.live(name), 1, value)
            await stage.hand(Live(name, services=(FOREIGN, Service(XMPP)), hosts=cleared(name).hosts))
            assert not await port.commit((held,))
            assert name in await port.read()
            assert port.live(name) == Live(name, services=(FOREIGN,))
            verdict = judged(port.live(name), 1, value)
            assert (verdict.kind, verdict.why) == (Kind.FOREIGN, f"another's SRV records stand at {HTTP}.{name}")
            plain = content(["192.0.2.1"], 30)
            assert await port.commit((wish(port.live(name), 1, plain),)), "without a service they are no matter of ours"
            await port.read()
            assert port.live(name).services == (FOREIGN,)
            assert judged(port.live(name), 2, value).kind is Kind.FOREIGN
            await stage.hand(cleared(name))
            await port.read()
            assert port.live(name) == Live(name)

        stage.run(act)

    def test_ours_without_a_marker_is_taken_up_again(self, stage: Stage) -> None:
        """A marker deleted by hand: its SRV set leads only to hosts of this endpoint, so it is no stranger's."""

        async def act() -> None:
            name = "unmarked.example.test"
            await stage.hand(cleared(name))
            port = stage.port()
            await port.read()
            assert await port.commit((wish(port.live(name), 1, BOTH),))
            stood = stands(name, 1, BOTH)
            await stage.hand(Live(name, None, (), (), 0, (), stood.services, stood.hosts))
            await port.read()
            verdict = judged(port.live(name), 2, BOTH)
            assert verdict.kind is Kind.WRITE
            assert verdict.change is not None
            assert await port.commit((verdict.change,))
            await port.read()
            assert judged(port.live(name), 2, BOTH) == DONE
            await stage.hand(cleared(name))

        stage.run(act)

    def test_a_cname_beside_is_told(self, stage: Stage) -> None:
        """Where a CNAME stands at the service or at a host nothing can be added (RFC 1034 section 3.6.2). The endpoint
        itself goes on being written; what can't be is told, and not tried for ever."""

        async def act() -> None:
            name = "alias.example.test"
            await stage.hand(cleared(name))
            port = stage.port()
            await port.read()
            value = offered({"192.0.2.1": 1, "192.0.2.2": 1})
            assert await port.commit((wish(port.live(name), 1, value),))
            await port.read()
            for service, host in (
                (Service(HTTP, other=("CNAME",)), None),
                (None, Host("a-192-0-2-2", other=("CNAME",))),
            ):
                await stage.hand(altered(port.live(name), (service,) if service else (), (host,) if host else ()))
                await port.read()
                verdict = judged(port.live(name), 1, value)
                label = service.label if service else "a-192-0-2-2"
                assert (verdict.kind, verdict.why) == (Kind.FOREIGN, f"a CNAME record stands at {label}.{name}")
                later = offered({"192.0.2.1": 1, "192.0.2.2": 3})
                assert await port.commit((wish(port.live(name), 2, later),))
                await port.read()
                assert port.live(name).content() == later
                assert judged(port.live(name), 2, later).kind is Kind.FOREIGN
                await stage.hand(cleared(name))
                await port.read()
                assert await port.commit((wish(port.live(name), 1, value),))
                await port.read()
            await stage.hand(cleared(name))

        stage.run(act)

    def test_many_at_once(self, stage: Stage) -> None:
        """Sixty endpoints with three addresses each in one transaction, and all of them gone in another: names past
        16 KiB can't be pointed at (RFC 1035 section 4.1.4)."""

        async def act() -> None:
            names = [f"svc{index:02}.example.test" for index in range(60)]
            await stage.hand(*map(Live, names))
            port, other = stage.port(), stage.port()
            await port.read()
            await other.read()
            assert await port.commit(tuple(wish(port.live(name), 1, BOTH) for name in names))
            assert set(names) <= set(await other.read())
            assert [other.live(name) for name in names] == [stands(name, 1, BOTH) for name in names]
            plain = content(["192.0.2.9"], 30)
            assert await other.commit(tuple(wish(other.live(name), 2, plain) for name in names))
            await port.read()
            assert [port.live(name) for name in names] == [stands(name, 2, plain) for name in names]
            await stage.hand(*map(Live, names))

        stage.run(act)

    def test_agrees_with_the_reference_transaction(self, stage: Stage) -> None:
        """Random contents with and without services, fresh and stale: outcome and records are ``transact``'s."""
        name = "random.example.test"
        values = st.builds(
            offered,
            st.dictionaries(st.sampled_from(_POOL), st.integers(1, 3), min_size=1),
            st.sampled_from(("", HTTP, XMPP)),
            st.integers(1, 2).map(lambda port: {_POOL[0]: 80, _POOL[1]: 80 + port, _POOL[2]: 80}),
            st.sampled_from((30, 60)),
        )
        outcomes: set[bool] = set()

        async def act(run: list[tuple[int, Content]]) -> None:
            await stage.hand(cleared(name))
            port = stage.port()
            await port.read()
            domain = {name: Live(name)}
            views = [Live(name)]
            for number, (ago, value) in enumerate(run, 1):
                change = wish(views[max(-len(views), -1 - ago)], number, value)
                replaced = transact(domain, (change,))
                assert await port.commit((change,)) is (replaced is not None)
                outcomes.add(replaced is not None)
                domain |= replaced or {}
                await port.read()
                assert port.live(name) == domain[name]
                views.append(port.live(name))

        @given(st.lists(st.tuples(st.integers(0, 2).map(lambda ago: ago // 2), values), min_size=1, max_size=6))
        @settings(max_examples=25, deadline=None, database=None, suppress_health_check=[HealthCheck.nested_given])
        def agree(run: list[tuple[int, Content]]) -> None:
            stage.run(lambda: act(run))

        agree()
        stage.run(lambda: stage.hand(cleared(name)))
        assert outcomes == {True, False}


def altered(live: Live, services: tuple[Service, ...], hosts: tuple[Host, ...]) -> Live:
    """An endpoint with these parts beside it altered, the others as they are."""
    by_label = {each.label: each for each in live.services} | {each.label: each for each in services}
    by_host = {each.label: each for each in live.hosts} | {each.label: each for each in hosts}
    return Live(
        live.name, live.marker, live.a, live.aaaa, live.ttl, (), tuple(by_label.values()), tuple(by_host.values())
    )
