"""Domains that lie in one another: a name is the business of the longest it lies in (RFC 2136 section 3.4.1.3)."""

# ruff: noqa: ASYNC110  what is waited for here tells nobody that it came
import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

from fencepost.core.fence import Foreign, Generation
from fencepost.core.instant import SECOND, Duration
from fencepost.core.record_set import content
from fencepost.core.store import Plan, Row
from fencepost.core.traffic.dns_enactor import EnactorSettings
from fencepost.core.zone import Batch, Live
from fencepost.ports import DnsPort, Misconfigured
from fencepost.roles.domains import Domains
from fencepost.roles.enactor import run_enactor
from fencepost.roles.loop import Condition
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore

OUTER, INNER = "example.test", "www.example.test"
API, WWW, THEIRS = "api.example.test", "www.example.test", "db.example.test"
WITHIN_S = 20.0


async def pause(length: Duration) -> None:
    await asyncio.sleep(length / SECOND)


class Strict(ReferenceDns):
    """A provider that serves both domains: NOTZONE, and nothing written, where a batch names the other's."""

    def __init__(self, domain: ReferenceDomain, inner: frozenset[str]) -> None:
        super().__init__(domain, pause)
        self.inner = inner

    async def commit(self, batch: Batch) -> bool:
        """As the port says."""
        if any(change.name in self.inner for change in batch):
            raise Misconfigured("NOTZONE")
        return await super().commit(batch)


def new_store() -> ReferenceStore:
    numbers = itertools.count(1)
    return ReferenceStore("beef" * 8, lambda: f"{next(numbers):08x}", pause)


async def enact(
    store: ReferenceStore, ports: dict[str, DnsPort], folder: Path, done: Callable[[], bool], *, rest_s: float = 0.0
) -> None:
    """Publish both endpoints and run one enactor of all domains until something holds."""
    rows = [Row.of(name, Generation(0, 1), content(["192.0.2.1"], 30), families="4") for name in (API, WWW)]
    assert await store.publish(Plan(await store.head(), 1, 0, tuple(rows))) is not None
    settings = EnactorSettings("enactor/a", "demo")
    task = asyncio.ensure_future(run_enactor(settings, ports, store, folder / "known", Condition(), None))
    try:
        async with asyncio.timeout(WITHIN_S):
            while not done() and not task.done():
                await asyncio.sleep(0.01)
        await asyncio.sleep(rest_s)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_each_endpoint_is_written_in_the_longest_domain_that_it_lies_in_and_in_no_other(tmp_path: Path) -> None:
    """One UPDATE that names both domains is refused whole, and so the outer one's endpoints never came."""
    outer, inner = ReferenceDomain(OUTER), ReferenceDomain(INNER)

    async def go() -> None:
        ports: dict[str, DnsPort] = {
            OUTER: Strict(outer, frozenset({WWW})),
            INNER: Strict(inner, frozenset()),
        }
        await enact(new_store(), ports, tmp_path, lambda: API in outer.lives and WWW in inner.lives)

    asyncio.run(go())
    assert set(outer.lives) == {API}
    assert set(inner.lives) == {WWW}


def test_what_the_outer_domain_still_holds_of_the_inner_counts_nowhere(tmp_path: Path) -> None:
    """Records occluded by a delegation (RFC 2136 section 7.18) are nobody's endpoint."""
    outer, inner = ReferenceDomain(OUTER), ReferenceDomain(INNER)
    occluded = Live(WWW, Foreign("other"), ("192.0.2.99",), (), 60)
    outer.set(occluded)

    async def go() -> None:
        ports: dict[str, DnsPort] = {OUTER: ReferenceDns(outer, pause), INNER: ReferenceDns(inner, pause)}
        await enact(new_store(), ports, tmp_path, lambda: API in outer.lives and WWW in inner.lives)
        domains = Domains(ports)
        assert WWW in await domains.read() or WWW in domains.names()
        assert domains.live(WWW).a == ("192.0.2.1",)
        assert sorted(domains.names()) == [API, WWW]

    asyncio.run(go())
    assert outer.lives[WWW] == occluded


def test_the_findings_of_all_domains_stand_together_and_of_others_endpoints_the_history_is_silent(
    tmp_path: Path,
) -> None:
    """A role's findings are one row: the domain that is judged last must not wipe out the others'."""
    outer, inner = ReferenceDomain(OUTER), ReferenceDomain(INNER)
    outer.set(Live(API, Foreign("other"), ("192.0.2.98",), (), 60), Live(THEIRS, Foreign("other"), ("192.0.2.9",)))
    inner.set(Live(WWW, Foreign("other"), ("192.0.2.99",), (), 60))
    store = new_store()
    found: set[str] = set()

    async def go() -> None:
        ports: dict[str, DnsPort] = {OUTER: ReferenceDns(outer, pause), INNER: ReferenceDns(inner, pause)}

        async def told() -> set[str]:
            return {row.on for row in await store.history() if row.kind == "finding"}

        async def watch() -> None:
            while not (found >= {API, WWW, THEIRS} and await told() >= {API, WWW}):
                found.update((await store.findings()).get("enactor/a", {}))
                await asyncio.sleep(0.01)

        watching = asyncio.ensure_future(watch())
        try:
            await enact(store, ports, tmp_path, watching.done, rest_s=0.05)
        finally:
            watching.cancel()
        assert set((await store.findings())["enactor/a"]) == {API, WWW, THEIRS}
        assert await told() == {API, WWW}

    asyncio.run(go())
