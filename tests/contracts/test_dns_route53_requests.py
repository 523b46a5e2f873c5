"""Requests to Route 53: none is sent twice that may have been carried out, all are paced, and pages are shared."""

import asyncio
from pathlib import Path

import pytest
from dns_scene import change, standing
from route53_stage import Route53Stage, server, stage

from fencepost.adapters.dns_route53 import Route53Dns
from fencepost.adapters.dns_route53.host_cache import Shared
from fencepost.core.instant import SECOND
from fencepost.core.zone import Live
from fencepost.dev.route53 import Fault
from fencepost.ports import Misconfigured, Refused, Unavailable

__all__ = ["server", "stage"]
NAME, WRITE, LIST = "api.example.test", "ChangeResourceRecordSets", "ListResourceRecordSets"
THROTTLING = Fault("error", code="Throttling", status=400, message="Rate exceeded", every=6)


class Slept:
    """Time that passes at once, and is counted."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


def patient(stage: Route53Stage) -> tuple[Route53Dns, Slept]:
    """A port whose pauses take no time."""
    slept = Slept()
    port = Route53Dns(stage.settings(), sleep=slept)
    stage._ports.append(port)
    return port, slept


def test_external_dns_1293_octodns_96_rate_exceeded_loses_and_doubles_nothing(stage: Route53Stage) -> None:
    """ "Rate exceeded" on each sixth call: all is done, slower, each write once."""

    async def act() -> None:
        port, slept = patient(stage)
        await port.read()
        stage.server.calls.clear()
        stage.server.faults.add(THROTTLING)
        for number in range(1, 21):
            assert await port.commit((change(port.live(NAME), number, f"192.0.2.{number}"),))
            await port.read()
            assert port.live(NAME) == standing(NAME, number, f"192.0.2.{number}")
        turned_away = len(stage.server.calls) // 6
        assert turned_away >= 5
        assert stage.server.calls.count(WRITE) + stage.server.calls.count(LIST) == 40 + turned_away
        assert len([each for each in slept.seconds if each > 0.2]) == turned_away

    stage.run(act)


def test_a_prior_request_that_is_not_complete_is_waited_for(stage: Route53Stage) -> None:
    """Route 53 takes one batch a zone at a time (PriorRequestNotComplete): surely not applied, so sent again."""

    async def act() -> None:
        port, slept = patient(stage)
        await port.read()
        fault = Fault("error", WRITE, times=3, code="PriorRequestNotComplete", status=400, message="still processing")
        stage.server.faults.add(fault)
        assert await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
        pauses = [each for each in slept.seconds if each > 0.2]
        assert len(pauses) == 3
        assert pauses[2] > pauses[0]

    stage.run(act)


def test_throttled_for_ever_is_unavailable(stage: Route53Stage) -> None:
    """Not an endless loop: the role hears of it, and comes back."""

    async def act() -> None:
        port, slept = patient(stage)
        await port.read()
        stage.server.faults.add(Fault("error", WRITE, code="Throttling", status=400, message="Rate exceeded"))
        with pytest.raises(Unavailable, match="Throttling"):
            await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
        assert 5 < sum(slept.seconds) < 90

    stage.run(act)


@pytest.mark.parametrize("kind", ["lost", "cut", "late", "drop"])
def test_a_lost_answer_is_unknown_and_never_resent(stage: Route53Stage, kind: str) -> None:
    """botocore would send again, and be refused for what it had done itself. Here: once, then the zone is read."""

    async def act() -> None:
        port = stage.port(timeout=SECOND if kind == "late" else 10 * SECOND)
        await port.read()
        stage.server.calls.clear()
        stage.server.faults.add(Fault(kind, WRITE, times=1, delay_s=3.0))
        with pytest.raises(Unavailable) as caught:
            await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
        assert not caught.value.unchanged
        assert stage.server.calls.count(WRITE) == 1
        changed = await port.read()
        assert stage.server.calls.count(WRITE) == 1
        if kind == "drop":
            assert port.live(NAME) == Live(NAME)
        else:
            assert NAME in changed
            assert port.live(NAME) == standing(NAME, 1, "192.0.2.1")

    stage.run(act)


def test_a_write_whose_outcome_is_unknown_is_looked_up_even_when_no_look_is_due(stage: Route53Stage) -> None:
    """A minute between looks is fine for others' hands, not for our own doubt."""

    async def act() -> None:
        port = stage.port(look_each=60 * SECOND)
        await port.read()
        stage.server.faults.add(Fault("lost", WRITE, times=1))
        with pytest.raises(Unavailable):
            await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
        assert list(await port.read()) == [NAME]
        stage.server.calls.clear()
        assert not await port.read()
        assert list(stage.server.calls) == []

    stage.run(act)


def test_a_failed_page_leaves_the_mirror_as_it_was(stage: Route53Stage) -> None:
    """external-dns #2858, #3997, #2071: half a listing is no listing."""

    async def act() -> None:
        many = [standing(f"n{index:03}.example.test", 1, "192.0.2.1") for index in range(320)]
        await stage.hand(*many)
        port = stage.port()
        stage.server.faults.add(Fault("error", LIST, every=3, times=1))
        with pytest.raises(Unavailable):
            await port.read()
        assert not list(port.names())
        assert len(await port.read()) == 320
        await stage.hand(*(Live(live.name) for live in many[:40]), standing(many[319].name, 2, "192.0.2.2"))
        stage.server.faults.add(Fault("error", LIST, every=2, times=1))
        with pytest.raises(Unavailable):
            await port.read()
        assert len(list(port.names())) == 320
        assert port.live(many[319].name) == many[319]
        assert len(await port.read()) == 41
        assert len(list(port.names())) == 280

    stage.run(act)


def test_a_refused_write_has_only_the_doubted_names_listed_again(stage: Route53Stage) -> None:
    """One page beginning at the name, which holds its marker too: no new listing of the whole zone."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        port = stage.port(look_each=60 * SECOND)
        await port.read()
        held = change(port.live(NAME), 2, "192.0.2.2")
        await stage.hand(standing(NAME, 5, "192.0.2.5"))
        stage.server.calls.clear()
        assert not await port.commit((held,))
        assert list(await port.read()) == [NAME]
        assert list(stage.server.calls) == [WRITE, LIST]
        assert port.live(NAME) == standing(NAME, 5, "192.0.2.5")

    stage.run(act)


def test_a_write_is_seen_by_its_port_without_asking(stage: Route53Stage) -> None:
    """Nothing waits for INSYNC: what Route 53 took is what the next write has to require."""

    async def act() -> None:
        port = stage.port(look_each=60 * SECOND)
        await port.read()
        stage.server.calls.clear()
        for number in (1, 2, 3):
            assert await port.commit((change(port.live(NAME), number, f"192.0.2.{number}"),))
            assert list(await port.read()) == [NAME]
        assert list(stage.server.calls) == [WRITE] * 3

    stage.run(act)


def test_roles_of_one_host_share_pages_and_writes(stage: Route53Stage, tmp_path: Path) -> None:
    """The second port lists nothing, sees the first's write at once, and its own stale one isn't even sent."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        one, two = (stage.shared(tmp_path, look_each=60 * SECOND) for _ in range(2))
        await one.read()
        stage.server.calls.clear()
        assert NAME in await two.read()
        assert LIST not in stage.server.calls
        held = change(two.live(NAME), 2, "192.0.2.2")
        waiting = asyncio.ensure_future(two.wait(60 * SECOND))
        await asyncio.sleep(0)
        assert await one.commit((change(one.live(NAME), 3, "192.0.2.3"),))
        await asyncio.wait_for(waiting, 30)
        stage.server.calls.clear()
        assert not await two.commit((held,))
        assert list(await two.read()) == [NAME]
        assert list(stage.server.calls) == []
        assert two.live(NAME) == standing(NAME, 3, "192.0.2.3")

    stage.run(act)


def test_one_look_serves_all_roles_of_a_host(stage: Route53Stage, tmp_path: Path) -> None:
    """Six roles, one rolling scan: another's hand is seen by all of them for the price of a page."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        ports = [stage.shared(tmp_path, look_each=60 * SECOND) for _ in range(6)]
        for port in ports:
            await port.read()
        await stage.hand(standing(NAME, 4, "192.0.2.4"))
        Shared(tmp_path / "route53.db").move_on(stage.by_hand.zone_id, "", 0)  # it is time for a look
        stage.server.calls.clear()
        await ports[0].read()
        for port in ports[1:]:
            await port.read()
            assert port.live(NAME) == standing(NAME, 4, "192.0.2.4")
        assert list(stage.server.calls) == [LIST]

    stage.run(act)


def test_a_cache_that_can_not_be_used_stops_nothing(stage: Route53Stage, tmp_path: Path) -> None:
    """A full disk or a wrong owner: each role paces itself, and says so."""

    async def act() -> None:
        (tmp_path / "route53.db").write_text("not a database " * 100)
        port = stage.shared(tmp_path)
        await port.read()
        assert await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))

    stage.run(act)


def test_the_stand_in_s_own_throttle_is_never_met_at_two_a_second(stage: Route53Stage) -> None:
    """Five a second are an account's: a port at its default pace leaves the others' alone."""

    async def act() -> None:
        slept = Slept()
        port = Route53Dns(stage.settings(requests=2.0), sleep=slept)
        stage._ports.append(port)
        await port.read()

    stage.run(act)
    assert stage.server.calls[-1] == LIST


def test_a_write_refused_for_what_is_listed_just_so_is_said_after_a_while(stage: Route53Stage) -> None:
    """A record set that we misread mustn't be tried for ever, and hold up a batch."""

    async def act() -> None:
        port = stage.port()
        await port.read()
        text = f"[Tried to create resource record set [name='{NAME}.', type='A'] but it already exists]"
        stage.server.faults.add(Fault("error", WRITE, code="InvalidChangeBatch", status=400, message=text))
        outcomes: list[object] = []
        for _ in range(4):
            try:
                outcomes.append(await port.commit((change(port.live(NAME), 1, "192.0.2.1"),)))
            except Refused as error:
                outcomes.append(error.what)
            await port.read()
        assert outcomes[:3] == [False] * 3
        assert "refuses what it lists itself" in str(outcomes[3])

    stage.run(act)


@pytest.mark.parametrize("spelled", ["\\052.example.test.", "*.example.test."])
def test_a_wildcard_is_known_in_a_refusal_however_it_is_spelled(stage: Route53Stage, spelled: str) -> None:
    """Of fifty names only the one that changed is listed again."""

    async def act() -> None:
        port = stage.port(look_each=60 * SECOND)
        await port.read()
        text = f"[Tried to create resource record set [name='{spelled}', type='A'] but it already exists]"
        stage.server.faults.add(Fault("error", WRITE, times=1, code="InvalidChangeBatch", status=400, message=text))
        names = ["*.example.test", *(f"n{index}.example.test" for index in range(49))]
        assert not await port.commit(tuple(change(port.live(name), 1, "192.0.2.1") for name in names))
        assert list(port._doubted) == ["*.example.test"]

    stage.run(act)


def test_a_zone_that_went_away_is_looked_for_again(stage: Route53Stage) -> None:
    """NoSuchHostedZone: a person's business, and found by name again once it is back."""

    async def act() -> None:
        port = stage.port()
        await port.read()
        gone = Fault("error", LIST, times=1, code="NoSuchHostedZone", status=404, message="No hosted zone found")
        stage.server.faults.add(gone)
        with pytest.raises(Misconfigured, match="NoSuchHostedZone"):
            await port.read()
        stage.server.calls.clear()
        await port.read()
        assert "ListHostedZonesByName" in stage.server.calls

    stage.run(act)
