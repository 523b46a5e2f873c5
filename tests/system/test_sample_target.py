"""The sample region's target as a process of its own, probed while it is made sick and well."""

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path

import uvloop
from prober_running import (
    SOON,
    Results,
    probing,
    quick,
)

from fencepost.adapters.probe import ProbeTarget
from fencepost.adapters.probe_http import request


def seen_last(cause: str, results: Results) -> bool:
    """Whether the newest result is a failure for that cause."""
    return results[-1][1:3] == (False, cause)


def test_the_sample_target_can_be_made_sick(tmp_path: Path) -> None:
    """The sample's target is well, then sick as told (by query, by file), then well again; its capacity is a number."""
    fail_file = tmp_path / "sick"
    arguments = [sys.executable, "-m", "fencepost.dev.target", "127.0.0.1", "0", "200", str(fail_file)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())

        async def ask(path: str) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request("127.0.0.1", port, path))
            try:
                return await reader.read()
            finally:
                writer.close()

        async def main() -> None:
            settings = quick(port, capacity_path="/capacity", capacity_every=1)
            async with probing([ProbeTarget(SOON, "127.0.0.1")], settings) as (_, results):
                await results.until(lambda r: any(x[1] and x[4] == 200 for x in r))
                causes = {"status": "status 503", "redirect": "status 302", "reset": "connection reset"}
                for how, cause in causes.items():
                    await ask(f"/fail?for=60s&how={how}")
                    await results.until(partial(seen_last, cause))
                await ask("/fail?for=60s&how=silent")
                await results.until(lambda r: r[-1][2].startswith("timeout"))
                await ask("/fail?for=0s")
                await results.until(lambda r: r[-1][1] is True)
                fail_file.write_text("redirect")
                await results.until(lambda r: r[-1][1:3] == (False, "status 302"))
                fail_file.unlink()
                await results.until(lambda r: r[-1][1] is True)
                assert b"400 Bad Request" in await ask("/fail?for=soon")
                assert b"400 Bad Request" in await ask("/fail?how=odd")

        uvloop.run(main())
    finally:
        process.terminate()
        process.wait()
