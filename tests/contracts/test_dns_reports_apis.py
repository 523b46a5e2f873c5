"""What broke other tools, by public report, at providers that are asked over HTTP: a whole enactor on each stand-in.

The same troubles as in ``test_dns_reports.py``, which has the servers; docs/cases.md lists them all.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from cloud_dns_fake import error, record
from cloud_dns_stage import CloudStage
from dns_scene import DOMAIN
from enacting import Acting, stands
from msgspec.structs import replace
from route53_stage import Route53Stage, server, simple
from route53_stage import stage as route53_stage

from fencepost.adapters import dns_cloud_dns
from fencepost.adapters.dns_route53 import batches
from fencepost.adapters.dns_route53.names import owner_of
from fencepost.core.fence import Marker
from fencepost.dev.route53 import Fault, limits
from fencepost.settings.providers import PROVIDERS

__all__ = ["route53_stage", "server"]
WRITE = "ChangeResourceRecordSets"
LIST = "ListResourceRecordSets"


class OnRoute53:
    """Route 53's stand-in."""

    room = PROVIDERS["route53"].room

    def __init__(self, stage: Route53Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stage = stage
        self._patch = monkeypatch

    def know_no_limits(self) -> str:
        """Have the adapter send sets of any size; how the provider refuses one of 401 records."""
        self._patch.setattr(batches, "ROOM", replace(batches.ROOM, per_set=1_000))
        return f"Cannot have more than {limits.SET_RECORDS_MOST} records in a RRSet"

    def writes(self) -> int:
        """How many writes were asked for, those that failed too."""
        return list(self.stage.server.calls).count(WRITE)

    def fail_a_write(self) -> None:
        """The next one fails at the provider."""
        self.stage.server.faults.add(Fault("error", WRITE, times=1, code="InternalFailure", status=500))

    def cut_listings(self, times: int) -> None:
        """So many answers to a listing end halfway."""
        self.stage.server.faults.add(Fault("cut", LIST, times=times))

    def put(self, name: str, kind: str, value: str) -> None:
        """Another writer's record."""
        self.stage.by_hand.change([], [simple(f"{name}.", kind, 60, value)])

    def take(self, name: str, kind: str) -> None:
        """Another writer takes a record set away."""
        self.stage.by_hand.change([each for each in self.stage.by_hand.at(owner_of(name)) if each["Type"] == kind], [])

    def values(self, name: str, kind: str) -> list[str]:
        """The records of a type that stand at a name."""
        found = [each for each in self.stage.by_hand.at(owner_of(name)) if each["Type"] == kind]
        return [one["Value"] for each in found for one in each["ResourceRecords"]]


class OnCloudDns:
    """Google Cloud DNS's stand-in."""

    room = PROVIDERS["clouddns"].room

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stage = CloudStage(direct=True)
        self._patch = monkeypatch

    def know_no_limits(self) -> str:
        """Have the adapter send sets of any size; how the provider refuses one of 401 records."""
        self._patch.setattr(dns_cloud_dns, "VALUES_MAX", 1_000)
        return "400 invalid: Invalid value for 'entity.change.additions"

    def writes(self) -> int:
        """How many writes were asked for, those that failed too."""
        return self.stage.fake.asked.count(("POST", "changes"))

    def fail_a_write(self) -> None:
        """The next one fails at the provider."""
        self._fail(lambda method, _path: method == "POST", 1)

    def cut_listings(self, times: int) -> None:
        """So many listings break off."""
        self._fail(lambda _method, path: path.endswith("rrsets"), times)

    def turn_away_each(self, every: int) -> list[str]:
        """From now on each so-many-th call is too many; the methods of those, as they come."""
        calls, turned_away = count(1), list[str]()

        def disturb(method: str, _path: str) -> tuple[int, dict[str, Any]] | None:
            if next(calls) % every:
                return None
            turned_away.append(method)
            return 403, error(403, "rateLimitExceeded", "Rate Limit Exceeded")

        self.stage.fake.disturb = disturb
        return turned_away

    def _fail(self, which: Callable[[str, str], bool], times: int) -> None:
        failed = count()

        def disturb(method: str, path: str) -> tuple[int, dict[str, Any]] | None:
            bad = which(method, path) and next(failed) < times
            return (500, error(500, "backendError", "Backend Error")) if bad else None

        self.stage.fake.disturb = disturb

    def put(self, name: str, kind: str, value: str) -> None:
        """Another writer's record."""
        self.stage.fake.write([], [record(f"{name}.", kind, 60, value)])

    def take(self, name: str, kind: str) -> None:
        """Another writer takes a record set away."""
        self.stage.fake.write([(f"{name}.", kind)], [])

    def values(self, name: str, kind: str) -> list[str]:
        """The records of a type that stand at a name."""
        found = self.stage.fake.sets.get((f"{name}.", kind))
        return list(found["rrdatas"]) if found else []


@pytest.fixture(params=["route53", "clouddns"])
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> OnRoute53 | OnCloudDns:
    """One stand-in, with nothing of ours in it."""
    if request.param == "route53":
        return OnRoute53(request.getfixturevalue("route53_stage"), monkeypatch)
    monkeypatch.setattr(dns_cloud_dns, "POLL_S", 0.02)
    monkeypatch.setattr("fencepost.adapters.https.PAUSE_MIN_S", 0.001)
    return OnCloudDns(monkeypatch)


Api = OnRoute53 | OnCloudDns
NAME = f"api.{DOMAIN}"


@pytest.mark.parametrize("most", [1, 5])
def test_external_dns_1200_a_write_that_failed_at_an_api_is_written_by_the_next_pass(
    api: Api, tmp_path: Path, most: int
) -> None:
    """external-dns #1200: a provider failed one write, and the change came an hour later. Nothing marks it as done."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            names = [f"n{index:02}.{DOMAIN}" for index in range(most)]
            await world.publish({name: ["192.0.2.1"] for name in names})
            api.fail_a_write()
            hands = await world.settle()
            assert all(stands(hands, name, ["192.0.2.1"], 1) for name in names)
            assert api.writes() <= 1 + most

    api.stage.run(act)


def test_external_dns_2071_a_listing_cut_off_is_no_empty_domain(api: Api, tmp_path: Path) -> None:
    """external-dns #2071: what couldn't be read whole was taken for empty, and all was added again."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            rows = {f"n{index:02}.{DOMAIN}": [f"192.0.2.{index + 1}"] for index in range(30)}
            await world.publish(rows)
            await world.settle()
            before = api.writes()
            api.cut_listings(3)
            hands = await world.settle()
            assert api.writes() == before
            assert all(stands(hands, name, addresses, 1) for name, addresses in rows.items())

    api.stage.run(act)


def test_external_dns_414_an_empty_cache_moves_one_set_at_an_api(api: Api, tmp_path: Path) -> None:
    """external-dns #414: a controller restarted while members rolled, deleted and created anew. One set, one write."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            rows = {f"n{index:02}.{DOMAIN}": ["192.0.2.1", "192.0.2.2"] for index in range(30)}
            await world.publish(rows)
            await world.settle()
            before = api.writes()
            rolled = f"n07.{DOMAIN}"
            await world.publish({rolled: ["192.0.2.2", "192.0.2.3"]})
            hands = await world.settle()
            assert stands(hands, rolled, ["192.0.2.2", "192.0.2.3"], 2)
            assert all(stands(hands, name, rows[name], 1) for name in rows if name != rolled)
            assert api.writes() == before + 1, "never gone in between"

    api.stage.run(act)


def test_external_dns_605_a_deletion_asked_for_twice_of_an_api_is_done_once(api: Api, tmp_path: Path) -> None:
    """external-dns #605: what is gone already is no error: not for another enactor, nor in a second plan."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            await world.publish({NAME: ["192.0.2.1"]})
            await world.settle()
            await world.publish({NAME: []})
            await world.settle()
            assert api.values(NAME, "A") == []
            before = api.writes()
            again = await world.settle()
            assert api.writes() == before
            await world.publish({NAME: []})
            await world.settle(again)
            assert api.values(NAME, "A") == []
            assert NAME not in again.found
            assert world.condition.state == "up"

    api.stage.run(act)


def test_external_dns_6683_a_record_refused_by_an_api_leaves_its_marker_as_it_was(api: Api, tmp_path: Path) -> None:
    """external-dns #6683: a record's type changes and the provider refuses the new set; marker and old one stay.

    What we know that it won't take we never send; here it takes less than we know, and says so itself.
    """

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            other, words = f"other.{DOMAIN}", api.know_no_limits()
            await world.publish({NAME: ["192.0.2.1"], other: ["192.0.2.1"]})
            await world.settle()
            before = api.values(f"_fencepost.{NAME}", "TXT")
            await world.publish({NAME: [f"2001:db8::{number:x}" for number in range(1, 402)], other: ["192.0.2.2"]})
            hands = world.enactor()
            await world.run(hands, lambda: NAME in hands.found and stands(hands, other, ["192.0.2.2"], 2))
            assert words in hands.found[NAME][1], "the provider's own"
            assert stands(hands, NAME, ["192.0.2.1"], 1)
            assert (api.values(NAME, "A"), api.values(NAME, "AAAA")) == (["192.0.2.1"], [])
            assert api.values(f"_fencepost.{NAME}", "TXT") == before

    api.stage.run(act)


def test_external_dns_1517_421_a_record_refused_by_an_api_holds_up_no_other(api: Api, tmp_path: Path) -> None:
    """external-dns #1517, #421: one among 50 good ones is refused, by us or by the provider: 50 are written."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            good = {f"n{index:02}.{DOMAIN}": ["192.0.2.1"] for index in range(50)}
            ours, theirs = f"n10-big.{DOMAIN}", f"n30-big.{DOMAIN}"
            hands = world.enactor()
            await world.publish({**good, ours: [f"2001:db8::{number:x}" for number in range(1, 402)]})
            await world.run(hands, lambda: ours in hands.found and all(stands(hands, n, good[n], 1) for n in good))
            assert "too big" in hands.found[ours][1]
            words, moved = api.know_no_limits(), {name: ["192.0.2.2"] for name in good}
            await world.publish({**moved, theirs: [f"2001:db8::{number:x}" for number in range(1, 402)]})
            await world.run(hands, lambda: theirs in hands.found and all(stands(hands, n, moved[n], 2) for n in good))
            assert words in hands.found[theirs][1]
            assert hands.found.keys() == {ours, theirs}
            assert not any(api.values(f"_fencepost.{name}", "TXT") for name in (ours, theirs))

    api.stage.run(act)


@pytest.mark.parametrize("api", ["clouddns"], indirect=True)
def test_external_dns_1293_octodns_96_each_sixth_call_is_turned_away_by_cloud_dns(
    api: OnCloudDns, tmp_path: Path
) -> None:
    """external-dns #1293, octodns #96: "Rate Limit Exceeded" to reads and writes; each endpoint is written, once.

    Route 53's, with its pauses, is in ``test_dns_route53_enacting.py``.
    """

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port, batch=5) as world:
            rows = {f"n{index:02}.{DOMAIN}": [f"192.0.2.{index + 1}"] for index in range(60)}
            await world.publish(rows)
            turned_away = api.turn_away_each(6)
            hands = await world.settle()
            assert all(stands(hands, name, addresses, 1) for name, addresses in rows.items())
            assert "POST" in turned_away
            added = [each for made in api.stage.fake.changes for each in made["additions"]]
            assert sorted(each["name"] for each in added if each["type"] == "A") == [f"{name}." for name in rows]

    api.stage.run(act)


def test_external_dns_515_dnscontrol_908_many_values_are_split_for_an_api(api: Api, tmp_path: Path) -> None:
    """external-dns #515, DNSControl #908: more characters than one request may have are several requests, cut by what
    they hold: none was ever too big, and refused for it."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port, batch=300, room=api.room) as world:
            ends = [":".join(f"{digit}{index:03}" for digit in "bcdef") for index in range(60)]
            rows = {
                f"n{index:02}.{DOMAIN}": [f"2001:db8:{end}:{number:x}" for number in range(4096, 4096 + 90)]
                for index, end in enumerate(ends)
            }
            await world.publish(rows)
            hands = await world.settle()
            assert all(stands(hands, name, addresses, 1) for name, addresses in rows.items())
            assert api.writes() >= 2
            assert sum(map(len, (each for addresses in rows.values() for each in addresses))) > 200_000
            assert world.condition.failures == []

    api.stage.run(act)


def test_external_dns_1502_a_record_gone_from_an_api_is_put_back_in_one_pass(api: Api, tmp_path: Path) -> None:
    """external-dns #1502: the marker stands, so the record was taken to stand, too, and never came back."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            await world.publish({NAME: ["192.0.2.1"]})
            await world.settle()
            api.take(NAME, "A")
            before = api.writes()
            hands = await world.settle()
            live = hands.dns.live(NAME)
            assert (live.a, live.verified()) == (("192.0.2.1",), True)
            assert isinstance(live.marker, Marker)
            assert (live.marker.generation.number, live.marker.writes) == (1, 2)
            assert api.values(NAME, "A") == ["192.0.2.1"]
            assert api.writes() == before + 1

    api.stage.run(act)


def test_external_dns_264_3028_a_wildcard_at_an_api_converges(api: Api, tmp_path: Path) -> None:
    r"""external-dns #264, #3028: ``*.x`` came back as ``\052.x`` and was written anew each cycle."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            name = f"*.star.{DOMAIN}"
            await world.publish({name: ["192.0.2.1"]})
            assert stands(await world.settle(), name, ["192.0.2.1"], 1)
            before = api.writes()
            hands = await world.settle()
            assert stands(hands, name, ["192.0.2.1"], 1)
            assert api.writes() == before
            api.take(name, "A")
            await world.run(hands, lambda: hands.dns.live(name).empty or api.writes() > before)
            await world.run(hands, lambda: api.values(name, "A") == ["192.0.2.1"])

    api.stage.run(act)


def test_lego_1351_cert_manager_4504_other_records_at_an_api_are_kept(api: Api, tmp_path: Path) -> None:
    """lego #1351, cert-manager #4504: a writer of one value dropped another's. TXT, MX and the like aren't ours."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            api.put(NAME, "TXT", '"v=spf1 -all"')
            api.put(NAME, "MX", f"10 mail.{DOMAIN}.")
            for number, address in enumerate(("192.0.2.1", "192.0.2.2"), 1):
                await world.publish({NAME: [address]})
                assert stands(await world.settle(), NAME, [address], number)
            await world.publish({NAME: []})
            await world.settle()
            assert api.values(NAME, "A") == []
            assert api.values(NAME, "TXT") == ['"v=spf1 -all"']
            assert api.values(NAME, "MX") == [f"10 mail.{DOMAIN}."]

    api.stage.run(act)


def test_an_endpoint_beside_a_cname_at_an_api_is_told_and_comes_once_it_goes(api: Api, tmp_path: Path) -> None:
    """BIND, tried: an address beside a CNAME. An API refuses the whole batch for it; the others in it are written."""

    async def act() -> None:
        async with Acting(tmp_path, api.stage.port) as world:
            other = f"other.{DOMAIN}"
            api.put(NAME, "CNAME", f"mail.{DOMAIN}.")
            await world.publish({NAME: ["192.0.2.1"], other: ["192.0.2.1"]})
            hands = world.enactor()
            await world.run(hands, lambda: NAME in hands.found and stands(hands, other, ["192.0.2.1"], 1))
            assert "CNAME" in hands.found[NAME][1]
            api.take(NAME, "CNAME")
            await world.run(hands, lambda: stands(hands, NAME, ["192.0.2.1"], 1))

    api.stage.run(act)
