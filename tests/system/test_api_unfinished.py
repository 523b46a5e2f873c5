"""Callers of the API that never finish: they take no place for good, and lock nobody out."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fencepost.roles.http_server import Limits, serve

QUESTION = b"GET /status HTTP/1.1\r\nhost: x\r\n\r\n"
HALF = QUESTION[:-2]
BIG = "x" * (32 << 20)
"""More than any socket buffers."""


async def small(_: Request) -> Response:
    return PlainTextResponse("ok")


async def big(_: Request) -> Response:
    return PlainTextResponse(BIG)


async def body(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


@contextlib.asynccontextmanager
async def serving(limits: Limits) -> AsyncIterator[int]:
    """The port of a server with these limits."""
    app = Starlette(routes=[Route("/status", small), Route("/big", big), Route("/body", body, methods=["POST"])])
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    task = asyncio.create_task(serve(app, listening, limits))
    try:
        yield listening.getsockname()[1]
    finally:
        task.cancel()
        await asyncio.wait([task])
        listening.close()


async def said(port: int, words: bytes) -> asyncio.StreamReader:
    """A connection on which this was said, and no more comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(words)
    KEPT.append(writer)
    return reader


KEPT: list[asyncio.StreamWriter] = []


async def ended(reader: asyncio.StreamReader, within_s: float = 10.0) -> bool:
    """Whether the server ends the connection, whatever it says before."""
    async with asyncio.timeout(within_s):
        with contextlib.suppress(ConnectionResetError):
            while await reader.read(1 << 16):
                pass
        return True


async def answered(port: int) -> bool:
    """Whether a whole question has its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(QUESTION)
        async with asyncio.timeout(10):
            return (await reader.readline()).startswith(b"HTTP/1.1 200")
    finally:
        writer.close()


def test_a_question_that_is_never_finished_ends_its_connection() -> None:
    """Slowloris. Header, second header and body have their time; each held a file of the process for ever."""

    async def go() -> None:
        limits = Limits(header_s=0.2, exchange_s=0.4, look_s=0.05)
        post = b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\nhalf"
        async with serving(limits) as port:
            for words in (b"", HALF, QUESTION + HALF, post):
                assert await ended(await said(port, words)), words
            assert await answered(port)

    asyncio.run(go())


def test_who_leaves_in_the_midst_of_a_body_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """A client that crashes while it posts is its own affair: a line at most, and others are served."""

    async def go() -> None:
        async with serving(Limits()) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
            await writer.drain()
            assert await answered(port)
            writer.close()
            for _ in range(1000):
                if any("left in the midst of POST /body" in each for each in caplog.messages):
                    break
                await asyncio.sleep(0.01)
            else:
                pytest.fail("it was never noticed")
            assert await answered(port)

    with caplog.at_level(logging.DEBUG, "fencepost.roles.http_server"):
        asyncio.run(go())
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING or each.exc_info]


def test_an_answer_that_is_never_read_ends_its_connection() -> None:
    """Once it was time enough, what the system holds of it comes, and then the end."""

    async def go() -> None:
        async with serving(Limits(exchange_s=0.4, look_s=0.05)) as port:
            with socket.create_connection(("127.0.0.1", port)) as sock:
                sock.sendall(QUESTION.replace(b"status", b"big"))
                sock.settimeout(10)
                await asyncio.to_thread(sock.recv, 1, socket.MSG_PEEK)  # from the answer's beginning its time runs
                await asyncio.sleep(0.8)
                await asyncio.to_thread(read_to_the_end, sock)
            assert await answered(port)

    asyncio.run(go())


def read_to_the_end(sock: socket.socket) -> None:
    got = 0
    with contextlib.suppress(ConnectionResetError):
        while part := sock.recv(1 << 16):
            got += len(part)
    assert got < len(BIG), "it had been kept for us"


def test_many_unfinished_questions_lock_nobody_out() -> None:
    """1,500 halves of a question used up the files of a process that may open 1,024; now the oldest makes room."""

    async def go() -> None:
        async with serving(Limits(connections=8, header_s=60.0)) as port:
            other, away = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
            away.write(HALF)
            halves = [await said(port, HALF) for _ in range(40)]
            assert await answered(port)
            assert await ended(halves[0])
            away.write(b"\r\n")
            assert (await other.readline()).startswith(b"HTTP/1.1 200"), "another address has its share of the places"
            away.close()

    asyncio.run(go())


def test_a_caller_that_goes_on_asking_is_served_all_the_while() -> None:
    """What ends the others must not end a connection that is used."""

    async def go() -> None:
        # Longer than a busy machine lets a process stand still, and shorter than this caller goes on.
        async with serving(Limits(header_s=1.0, exchange_s=1.0, look_s=0.02)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            began = time.monotonic()
            while time.monotonic() < began + 2.5:
                writer.write(QUESTION)
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
                await reader.readuntil(b"ok")
                await asyncio.sleep(0.05)
            writer.close()

    asyncio.run(go())
