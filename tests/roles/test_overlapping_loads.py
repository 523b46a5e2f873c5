"""Loads of the configuration that overlap: two people at once, or a person and a signal."""

import asyncio
import itertools
from pathlib import Path

import pytest
from msgspec import structs

from fencepost.core.instant import SECOND, Duration
from fencepost.ports import Refused
from fencepost.roles import configuration
from fencepost.settings import Region, load
from fencepost.world.reference_store import ReferenceStore

SAMPLE = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})


def without(*addresses: str) -> Region:
    """The sample without some of its targets."""
    (web,) = SAMPLE.pools
    kept = tuple(target for target in web.targets if target.address not in addresses)
    assert len(kept) == len(web.targets) - len(addresses)
    return structs.replace(SAMPLE, pools=(structs.replace(web, targets=kept),))


async def pause(length: Duration) -> None:
    await asyncio.sleep(length / SECOND)


class Slow(ReferenceStore):
    """A store with time for another's load right before each of ours is written."""

    def __init__(self) -> None:
        numbers = itertools.count(1)
        super().__init__("beef" * 8, lambda: f"{next(numbers):08x}", pause)
        self.between: list[Region] = []

    async def put_config(self, body: bytes, expected: bytes) -> bool:
        """As the port says, after another's load."""
        if self.between:
            await configuration.put(self, self.between.pop(0))
        return await super().put_config(body, expected)


FIRST, SECOND_GONE = (target.address for target in SAMPLE.pools[0].targets[:2])


def test_of_two_reloads_at_once_one_is_refused_and_the_revision_says_which_file_runs() -> None:
    """With one number for both, a target that the later file lacks would stay in DNS with nobody to probe it."""

    async def go() -> None:
        store = Slow()
        await configuration.put(store, SAMPLE)
        seen = await store.inputs()
        store.between = [without(FIRST)]
        with pytest.raises(Refused, match="another load came first: revision 2 runs now"):
            await configuration.put(store, without(SECOND_GONE), seen=seen)
        running = configuration.decode((await store.inputs()).config)
        assert running is not None
        assert (running.revision, running.region) == (2, without(FIRST))
        again = await configuration.put(store, without(SECOND_GONE), seen=await store.inputs())
        assert again.revision == 3

    asyncio.run(go())


def test_two_loads_of_the_same_file_at_once_are_one() -> None:
    """A reload and a SIGHUP for the same edit: nobody is refused, and nothing is loaded twice."""

    async def go() -> None:
        store = Slow()
        await configuration.put(store, SAMPLE)
        seen = await store.inputs()
        store.between = [without(FIRST)]
        assert (await configuration.put(store, without(FIRST), seen=seen)).revision == 2

    asyncio.run(go())


def test_a_start_that_is_overtaken_starts_over() -> None:
    """A start by hand loads its file whatever ran before, so it takes the next number."""

    async def go() -> None:
        store = Slow()
        await configuration.put(store, SAMPLE)
        store.between = [without(FIRST)]
        assert (await configuration.put(store, without(SECOND_GONE))).revision == 3

    asyncio.run(go())


def test_what_keeps_a_configuration_there_never_replaces_one_that_was_just_loaded(tmp_path: Path) -> None:
    """A new store: the planner finds none and puts back its copy, while a person loads a newer file."""

    async def go() -> None:
        store = Slow()
        store.between = [without(FIRST)]
        keeping = asyncio.ensure_future(configuration.keep(store, SAMPLE, tmp_path / "running.json"))
        try:
            async with asyncio.timeout(10):
                while (configuration.read_copy(tmp_path / "running.json")) is None:  # noqa: ASYNC110  a copy tells nobody that it came
                    await asyncio.sleep(0.01)
        finally:
            keeping.cancel()
        running = configuration.decode((await store.inputs()).config)
        assert running is not None
        assert running.region == without(FIRST)

    asyncio.run(go())
