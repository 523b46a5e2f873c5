"""Reading on while UPDATEs are answered: when, and what becomes of readings that fail or last."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fencepost.adapters.dns_along import EACH, read_along
from fencepost.adapters.dns_session import NotOffered
from fencepost.ports import Unavailable

COUNT = 3 * EACH


async def turns() -> None:
    """Everybody has had a turn."""
    for _ in range(5):
        await asyncio.sleep(0)


def at_which(read: Callable[[], Awaitable[object]] | None = None) -> list[int]:
    """After how many answers each reading began, where ``read`` is what a reading does."""
    heard, began = 0, list[int]()

    async def send(hear: Callable[[], None]) -> str:
        nonlocal heard
        for _ in range(COUNT):
            heard += 1
            hear()
            await turns()
        return "answers"

    async def reading() -> None:
        began.append(heard)
        if read is not None:
            await read()

    assert asyncio.run(read_along(send, COUNT, reading)) == "answers"
    return began


def test_a_reading_each_few_answers_but_none_after_the_last() -> None:
    """The reading back follows that one."""
    assert at_which() == [EACH, 2 * EACH]


def test_one_that_lasts_is_waited_for_and_holds_up_no_answer() -> None:
    """Two at once would be in each other's way; a mirror must not change under who uses it next."""
    over = []

    async def slow() -> None:
        for _ in range(EACH + 1):
            await turns()
        over.append(True)

    began = at_which(slow)
    assert began[0] == EACH
    assert len(over) == len(began)


@pytest.mark.parametrize("error", [Unavailable("no answer", where="here"), NotOffered()])
def test_one_that_fails_is_the_last_and_isn_t_told(error: Exception) -> None:
    """What was written is read back afterwards in any case, and that says what is wrong."""

    async def failing() -> None:
        raise error

    assert at_which(failing) == [EACH]


def test_none_goes_on_where_sending_fails() -> None:
    """Its connection would be left in the middle of a transfer, and its mirror be changed later."""
    ended = []

    async def send(hear: Callable[[], None]) -> None:
        for _ in range(EACH):
            hear()
        await turns()
        raise Unavailable("no answer", where="here")

    async def forever() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    with pytest.raises(Unavailable):
        asyncio.run(read_along(send, COUNT, forever))
    assert ended == [True]
