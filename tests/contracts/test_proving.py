"""``fencepost prove``'s races: held on servers that hold, not held on one that is lax, and nothing is left behind."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest
from cloud_dns_fake import record
from cloud_dns_stage import CloudStage
from dns_scene import DOMAIN, Stage, standing
from dns_stages import ServerStage
from route53_stage import ENVIRONMENT, Route53Stage
from servers import bind, embedded, knot, powerdns

from fencepost import proving
from fencepost.adapters import https
from fencepost.adapters.dns_route53 import Route53Dns
from fencepost.core.instant import SECOND
from fencepost.core.zone import Live
from fencepost.dev.route53 import Route53Settings, running
from fencepost.ports import Refused
from fencepost.proving import cleaning

T = TypeVar("T")
NAMES = proving.scratch_names(f"fencepost-prove-1.{DOMAIN}")
OWN_WORDS = ("NXRRSET", "YXRRSET", "'entity.change.", "Tried to ")
SERVERS = {"embedded": embedded, "bind": bind, "knot": knot, "powerdns": powerdns}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is under way for long here."""
    monkeypatch.setattr(cleaning, "SETTLE_S", 0.05)
    monkeypatch.setattr(https, "PAUSE_MIN_S", 0.001)


@pytest.fixture(params=["embedded", "bind", "knot", "powerdns", "cloud", "route53"])
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    """Each kind of provider that can run here."""
    if request.param == "route53":
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("AWS_PROFILE", raising=False)
        with running(Route53Settings(requests_per_s=None, zones=(DOMAIN,))) as server:
            yield SlowRoute53Stage(server)
        return
    if request.param == "cloud":
        yield CloudStage()
        return
    with SERVERS[request.param](tmp_path_factory.mktemp("prove")) as served:
        yield ServerStage(served)


class SlowRoute53Stage(Route53Stage):
    """Ports that list the zone anew once an hour, as in a large one: races must not rest on what was read long ago."""

    def port(self, **changed: Any) -> Route53Dns:
        """As the contract says."""
        return super().port(**({"look_each": 3600 * SECOND} | changed))


async def within(call: Awaitable[T], /) -> T:
    """Ten seconds' patience."""
    return await asyncio.wait_for(call, 10)


async def run(stage: Stage) -> tuple[list[proving.Race], tuple[str, ...]]:
    """All races, then the cleaning: what was found, and what remains."""
    scene = proving.Scene(stage.port, NAMES, within)
    await scene.refuse_used()
    races = [await race(scene) for race in proving.RACES]
    remains = await proving.clean(scene.reader, NAMES, within)
    return races, remains


def test_held(stage: Stage) -> None:
    """Every race is held, in the provider's own words; both names are gone afterwards, and nothing else."""

    async def act() -> None:
        other = standing("api.example.test", 1, "192.0.2.1")
        await stage.hand(other)
        races, remains = await run(stage)
        assert [race for race in races if not race.held] == []
        assert remains == ()
        port = stage.port()
        await port.read()
        *sent, emptying = races
        assert all(any(words in race.said for words in OWN_WORDS) for race in sent), "refused by the provider itself"
        assert emptying.said.startswith("not sent")
        assert [port.live(name) for name in NAMES] == [Live(name) for name in NAMES]
        assert port.live(other.name) == other

    stage.run(act)


def test_not_held_on_a_lax_provider() -> None:
    """A provider that takes any deletion for good applies stale writes: each race that rests on it says so."""
    stage = CloudStage(direct=True, lax=True)

    async def act() -> None:
        races, remains = await run(stage)
        assert [race.name for race in races if race.held] == ["an emptying write"]
        assert all("answered as applied" in race.found for race in races if not race.held)
        assert remains == ()
        assert {kind for _, kind in stage.fake.sets} == {"SOA", "NS"}
        assert proving.report.verdict(races, whole=True).startswith("NOT HELD: a second creator, a stale writer")

    stage.run(act)


def test_half_applied_is_not_held() -> None:
    """A provider that answers an error and applies the write all the same doesn't hold either."""
    stage = CloudStage(direct=True)

    async def act() -> None:
        scene = proving.Scene(stage.port, NAMES, within)

        def half() -> None:
            if armed:
                stage.fake.write([(f"{NAMES[0]}.", "A")], [record(f"{NAMES[0]}.", "A", 30, "192.0.2.99")])

        armed: list[bool] = []
        assert (await proving.RACES[0](scene)).held
        scene.must = _then(scene.must, lambda: armed.append(True))  # type: ignore[method-assign,assignment]
        stage.fake.before_write = half
        race = await proving.RACES[1](scene)
        assert not race.held
        assert race.found.startswith("refused, yet records changed")

    stage.run(act)


def _then(first: Callable[..., Awaitable[None]], after: Callable[[], object]) -> Callable[..., Awaitable[None]]:
    async def both(*words: object) -> None:
        await first(*words)
        after()

    return both


def test_used_name_is_refused_and_others_records_stay() -> None:
    """Nothing is written where anything stands; and what isn't a race's is never removed."""
    stage = CloudStage(direct=True)

    async def act() -> None:
        await stage.hand(standing(NAMES[1], 1, "192.0.2.1"))
        scene = proving.Scene(stage.port, NAMES, within)
        with pytest.raises(Refused, match="records stand"):
            await scene.refuse_used()
        (line,) = await proving.clean(scene.reader, NAMES, within)
        assert line == f"{NAMES[1]}: A 192.0.2.1, TXT at _fencepost.{NAMES[1]} (not what a race wrote)"
        assert len(stage.fake.sets) == 4
        await stage.hand(Live(NAMES[1]), Live(NAMES[0], None, ("198.51.100.1",), (), 30))
        assert await proving.clean(scene.reader, NAMES, within) == (
            f"{NAMES[0]}: A 198.51.100.1 (not what a race wrote)",
        )

    stage.run(act)


def test_what_cannot_be_removed_is_named() -> None:
    """The provider is away while the names are to be removed: what remains is said, and why."""
    stage = CloudStage(direct=True)

    async def act() -> None:
        scene = proving.Scene(stage.port, NAMES, within)
        assert (await proving.RACES[0](scene)).held
        stage.fake.disturb = lambda method, _path: (503, {}) if method == "POST" else None
        (line,) = await proving.clean(scene.reader, NAMES, within)
        assert f"{NAMES[0]}: A 192.0.2.1, TXT at _fencepost.{NAMES[0]}" in line
        assert "503" in line
        stage.fake.disturb = lambda _method, _path: (503, {})
        (line,) = await proving.clean(scene.reader, NAMES, within)
        assert "192.0.2.1" in line
        (line,) = await proving.clean(stage.port(), NAMES, within)
        assert "couldn't be read" in line
        stage.fake.disturb = lambda _method, _path: None
        assert await proving.clean(scene.reader, NAMES, within) == ()

    stage.run(act)


@pytest.mark.parametrize(
    "name", ["api.example.test", "fencepost-prove-.example.test", "fencepost-prove-1", f"fencepost-prove-{'x' * 45}.a"]
)
def test_scratch_names_are_nobody_elses(name: str) -> None:
    """Only a name that begins as no other does, with room for a second and for both markers (RFC 1035, 2.3.4)."""
    with pytest.raises(ValueError, match=r"begin with|over 60"):
        proving.scratch_names(name)


def test_report_is_a_page() -> None:
    """The Markdown says provider, date, each race with the provider's words, what remains, and what isn't shown."""
    races = [proving.Race("a stale writer", "asks", True, "412 a|b"), proving.Race("x", "y", False, "", "applied")]
    about = dict.fromkeys(("provider", "domain", "name", "second", "version", "at"), "word")
    document = proving.document(about, races, ["api: A 192.0.2.1"], whole=True)
    assert document["held"] is False
    page = proving.markdown(document, proving.report.verdict(races, whole=True))
    assert r"| a stale writer | asks | held | 412 a\|b |" in page
    assert "| x | y | **not held** | applied |" in page
    assert "- api: A 192.0.2.1" in page
    assert proving.document(about, races[:1], [], whole=False)["held"] is None
