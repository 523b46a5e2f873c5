"""The observer where no DNS server is named: it reads what the provider's API lists, and judges the same promises."""

import asyncio
from typing import Any

from fencepost.core.fence import Generation, Marker
from fencepost.core.record_set import content
from fencepost.core.zone import Live
from fencepost.ports import Unavailable
from fencepost.roles.observer import Observer, ObserverSettings, run_observer
from fencepost.roles.status.promise_watch import PromiseWatch, Watched
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain

NAME, DOMAIN = "api.example.test", "example.test"
VALUE = content(["192.0.2.1"], 30)
STANDING = Live(NAME, Marker.of("demo", "beef", Generation(0, 3), VALUE, None, 1), VALUE.a, (), VALUE.ttl)


class Flaky(ReferenceDns):
    """A provider whose API is away three times, then every other time; how many looks there had been by then."""

    calls = 0
    watch: PromiseWatch

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.looked: list[int] = []

    async def read(self) -> list[str]:
        self.calls += 1
        if self.calls <= 3 or self.calls % 2:
            self.looked.append(self.watch.looks)
            raise Unavailable("Rate exceeded", where="Route 53")
        return list(await super().read())


async def observed(port: ReferenceDns, domain: ReferenceDomain, *steps: Live) -> Observer:
    """What an observer has seen after each step has stood for some looks."""
    settings = ObserverSettings("", 0, "demo", (DOMAIN,), every_s=0.005)
    observer = Observer(settings, ports={DOMAIN: port})
    observer.watches([Watched(NAME, "4")])
    if isinstance(port, Flaky):
        port.watch = observer.watch
    running = asyncio.create_task(run_observer(observer))
    try:
        for step in steps:
            domain.set(step)
            seen = observer.watch.looks
            async with asyncio.timeout(20):
                while observer.lives().get(NAME) != step or observer.watch.looks < seen + 5:  # noqa: ASYNC110  no event
                    await asyncio.sleep(0.002)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return observer


def port_of(kind: type[ReferenceDns], domain: ReferenceDomain) -> ReferenceDns:
    return kind(domain, lambda duration: asyncio.sleep(duration / 1e9))


def test_what_stands_is_seen_and_the_promises_are_checked() -> None:
    """October 2025, step 3: whoever watches must not be whoever writes. The API's list is the witness that is left."""
    domain = ReferenceDomain(DOMAIN)
    observer = asyncio.run(observed(port_of(ReferenceDns, domain), domain, STANDING))
    assert observer.lives()[NAME] == STANDING
    assert observer.watch.checked["never_empty"] >= 5
    assert observer.violations == ()


def test_an_api_that_is_away_is_missed_and_nothing_is_taken_for_absent() -> None:
    """external-dns #2858: half a listing, or none, says nothing about what stands."""
    domain = ReferenceDomain(DOMAIN)
    port = Flaky(domain, lambda duration: asyncio.sleep(duration / 1e9))
    observer = asyncio.run(observed(port, domain, STANDING))
    assert observer.unanswered == len(port.looked)
    assert port.looked[:3] == [0, 0, 0], "nothing is looked at before the domain was read once"
    assert observer.watch.looks >= 5, "and then it is, though every other reading fails"
    assert observer.violations == ()


def test_another_writers_emptying_is_told_apart() -> None:
    """Emptied beside a marker that stands: another writer's hand, counted as time and not as a broken promise."""
    domain = ReferenceDomain(DOMAIN)
    emptied = Live(NAME, STANDING.marker)
    observer = asyncio.run(observed(port_of(ReferenceDns, domain), domain, STANDING, emptied, STANDING))
    assert observer.violations == ()
    assert observer.watch.past[NAME].emptied_ns > 0
