"""The API's desk: how often a status document is gathered."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from fencepost.roles import api
from fencepost.roles.status.gather import Gatherer


class Gathering:
    """Counts gatherings."""

    def __init__(self) -> None:
        self.composing_s = 0.0
        self.gathered = 0

    async def gather(self, _processes: object) -> object:
        self.gathered += 1
        return SimpleNamespace()


class Stepped(asyncio.SelectorEventLoop):
    """A loop whose time is told to it, so that no machine is too slow for a test."""

    told = 100.0

    def time(self) -> float:
        return self.told


def desk(gathering: Gathering, folder: Path) -> api.Desk:
    return api.Desk(cast("Gatherer", gathering), folder)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_document_that_a_caller_had_gathered_counts(tmp_path: Path) -> None:
    """The screen of `up` asks each second too: one gathering a second serves both, whoever comes first."""
    loop = Stepped()

    async def go() -> None:
        gathering = Gathering()
        mine = desk(gathering, tmp_path)
        running = loop.create_task(mine.run())
        await settle()
        assert gathering.gathered == 1
        loop.told += 0.6
        await mine.current()
        assert gathering.gathered == 2
        loop.told += 0.5  # the first timer is over, and the newest document half a second old
        await settle()
        assert gathering.gathered == 2
        loop.told += 0.5
        await settle()
        assert gathering.gathered == 3, "nobody asks: no document gets older than a second"
        running.cancel()

    loop.run_until_complete(go())
    loop.close()
