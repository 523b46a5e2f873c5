"""The store's contract, kept by the reference."""

import asyncio
import itertools

import pytest
from put_back import PutBackContract
from store import Make, StoreContract
from swaps import SwapsContract

from fencepost.core.instant import SECOND, Duration
from fencepost.world.reference_store import ReferenceStore


class TestReference(StoreContract, PutBackContract, SwapsContract):
    """The store in memory."""

    @pytest.fixture
    def make(self) -> Make:
        """A new one; its nonces are counted."""

        async def sleep(most: Duration) -> None:
            await asyncio.sleep(most / SECOND)

        numbers = itertools.count(1)
        return lambda: ReferenceStore("5eed" * 4, lambda: f"{next(numbers):016x}", sleep)
