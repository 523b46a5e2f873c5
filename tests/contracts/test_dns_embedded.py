"""The DNS contract on our own embedded server, by the RFC 2136 adapter. It runs in a thread, with a loop of its own."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from dns_contract import DOMAIN, DnsContract
from dns_stages import ServerStage
from servers import KEY_NAME, KEY_SECRET, Served

from fencepost.roles.dns_server import DnsServer, DnsServerSettings


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the module."""
    directory = tmp_path_factory.mktemp("embedded")
    settings = DnsServerSettings(
        (DOMAIN,), str(directory / "domain.db"), "127.0.0.1:0", {KEY_NAME: ("hmac-sha256", KEY_SECRET)}
    )
    server, ready, loop = DnsServer(settings), threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        await server.start()
        ready.set()
        await stop.wait()
        await server.stop()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(20), "the embedded server didn't start"
    yield Served("embedded", server.port, 0, str(directory))
    loop.call_soon_threadsafe(stop.set)
    thread.join(20)
    loop.close()


@pytest.fixture
def stage(served: Served) -> ServerStage:
    """Ports on that server."""
    return ServerStage(served)


class TestEmbedded(DnsContract):
    """The suite, on :mod:`fencepost.roles.dns_server`."""
