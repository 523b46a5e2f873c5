"""Calls to a store gathered: many tasks ask for one thing each, and one call a round answers all of them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")


class Gathering(Generic[A, B]):
    """``work`` is called with at most ``most`` questions, one call at a time, and gives as many answers.

    What it raises is raised to everyone who asked in that call.
    """

    def __init__(self, work: Callable[[Sequence[A]], Awaitable[Sequence[B]]], most: int) -> None:
        self._work = work
        self._most = most
        self._line: deque[tuple[A, asyncio.Future[B]]] = deque()
        self._wanted = asyncio.Event()

    async def ask(self, question: A) -> B:
        """The answer to one question, in its turn."""
        answer: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._line.append((question, answer))
        self._wanted.set()
        return await answer

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            while not self._line:
                self._wanted.clear()
                await self._wanted.wait()
            asked = [self._line.popleft() for _ in range(min(self._most, len(self._line)))]
            try:
                answers = await self._work([question for question, _ in asked])
            except Exception as error:
                for _, waiting in asked:
                    if not waiting.done():
                        waiting.set_exception(error)
                continue
            for (_, waiting), answer in zip(asked, answers, strict=True):
                if not waiting.done():
                    waiting.set_result(answer)
