"""How an enactor is doing, as its sign of life says: not worse than it is, and not for ever."""

import asyncio
from pathlib import Path

import pytest

from fencepost.core.fence import Generation
from fencepost.core.record_set import content
from fencepost.core.store import Plan, Row
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.zone import Batch
from fencepost.ports import Misconfigured, PortError, Unavailable
from fencepost.roles.enactor import EnactorHands
from fencepost.roles.local_file import LocalFile
from fencepost.roles.loop import Condition, drive
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore

DOMAIN, NAME = "example.test", "api.example.test"


class Losing(ReferenceDns):
    """A provider that carries out the first write, or doesn't, and says neither."""

    error: PortError | None = None
    applies = True

    async def commit(self, batch: Batch) -> bool:
        if self.error is not None:
            error = self.error
            if self.applies:
                self.error = None
                await super().commit(batch)
            raise error
        return await super().commit(batch)


class Noting(Condition):
    """A condition that remembers that something failed, however soon that is over."""

    failed_once = False

    def failed(self, call: str, error: PortError) -> bool:
        self.failed_once = True
        return super().failed(call, error)


async def sleeping(_: int) -> None:
    """Time passes."""
    await asyncio.sleep(0.002)


async def run(port: Losing, folder: Path, until: str) -> Condition:
    """An enactor with one row to enact, until its state is this for a while."""
    names = iter("abcdef")
    store, condition = ReferenceStore("1111-store", lambda: next(names), sleeping), Noting()
    head = await store.head()
    row = Row.of(NAME, Generation(0, 1), content(["192.0.2.1"], 30), families="4")
    assert await store.publish(Plan(head, 1, 0, (row,))) is not None
    settings = EnactorSettings("enactor/a", "demo")
    file = LocalFile(folder / "known")
    hands = EnactorHands(settings, DOMAIN, port, store, file, condition=condition)
    task = asyncio.create_task(drive(DnsEnactor(settings, settings.batch), hands, condition, None, DOMAIN))
    try:
        async with asyncio.timeout(10):
            while not condition.failed_once or condition.state != until:  # noqa: ASYNC110  no event for both
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return condition


def test_a_write_whose_answer_was_lost_and_that_stands_is_no_trouble_any_more(tmp_path: Path) -> None:
    """Nobody writes again what stands: without a word, `status` would call the role unavailable for ever."""
    domain = ReferenceDomain(DOMAIN)
    port = Losing(domain, sleeping)
    port.error = Unavailable("no answer within 10 s", where="Route 53")
    condition = asyncio.run(run(port, tmp_path, "up"))
    assert (condition.state, condition.error) == ("up", "")
    assert domain.lives[NAME].a == ("192.0.2.1",)


@pytest.mark.parametrize("error", [Unavailable("gone"), Misconfigured("AccessDenied")])
def test_a_write_that_still_waits_is_trouble_for_as_long(tmp_path: Path, error: PortError) -> None:
    """What is put off isn't done."""
    domain = ReferenceDomain(DOMAIN)
    port = Losing(domain, sleeping)
    port.error, port.applies = error, False
    state = "misconfigured" if isinstance(error, Misconfigured) else "unavailable"
    condition = asyncio.run(run(port, tmp_path, state))
    assert condition.state == state
    assert NAME not in domain.lives
