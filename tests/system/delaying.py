"""A TCP proxy before a real server that lets its bytes through late: a store that has become slow."""

import asyncio
import contextlib
import threading

CHUNK = 1 << 16


class DelayingProxy:
    """Listens on a free port and leads to another. ``delay_s`` is how late bytes come through, each way, from now on.

    It runs in a thread of its own until it is closed.
    """

    def __init__(self, port: int) -> None:
        self.to = port
        self.delay_s = 0.0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        listening = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listening,), daemon=True)
        self._thread.start()
        assert listening.wait(10)

    def close(self) -> None:
        """Cut everything off."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, listening: threading.Event) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        listening.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, to = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.close()
            return
        for one, other in ((reader, to), (there, writer)):
            task = self._loop.create_task(self._pass_on(one, other))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, one: asyncio.StreamReader, other: asyncio.StreamWriter) -> None:
        """Pass on what comes, each piece so much later than it came, in order."""
        line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sending = self._loop.create_task(self._send(line, other))
        try:
            with contextlib.suppress(OSError):
                while data := await one.read(CHUNK):
                    line.put_nowait((self._loop.time() + self.delay_s, data))
            line.put_nowait((self._loop.time(), b""))
            await sending
        finally:
            sending.cancel()

    async def _send(self, line: "asyncio.Queue[tuple[float, bytes]]", other: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                at, data = await line.get()
                if at > self._loop.time():
                    await asyncio.sleep(at - self._loop.time())
                if not data:
                    break
                other.write(data)
                await other.drain()
        other.close()
