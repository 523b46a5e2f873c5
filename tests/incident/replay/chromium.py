"""Debian's Chromium, started by a test and told what to do by the DevTools protocol, over pipes: no port, no driver.

Messages are JSON, each ended by a NUL byte (``--remote-debugging-pipe``). The browser has a folder of its own and is
ended by its own process group.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium")
PATIENCE_S = 60.0
"""It has to answer within that; nothing is decided by how long it takes."""


class Tab:
    """One page. ``errors``: what went wrong in it, and what it asked of the network."""

    def __init__(self, to: int, answers: Iterator[dict[str, Any]]) -> None:
        """Opened, empty."""
        self._to, self._answers, self._number, self._session = to, answers, 0, ""
        self._loaded = False
        self.errors: list[str] = []
        self.asked: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """One command, and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        for answer in self._answers:
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)
        raise AssertionError(f"{method}: Chromium has gone")

    def _note(self, event: dict[str, Any]) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(given["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(given["args"])[:500])
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.errors.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.asked.append(given["request"]["url"])

    def open(self, path: Path, width: int, *, dark: bool = False, script: bool = True, height: int = 900) -> None:
        """A file, in a window so wide; on a phone where it is narrow."""
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.size(width, height)
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self._loaded = False
        self.call("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._note(next(self._answers))

    def size(self, width: int, height: int) -> None:
        """Of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def run(self, expression: str) -> Any:
        """What a JavaScript expression comes to."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """One key, down and up."""
        text = {"text": key} if len(key) == 1 else {}
        codes = {"Tab": 9, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Home": 36, "End": 35}
        code = codes.get(key, ord(key[0]))
        if key == "Enter":
            text = {"text": "\r"}
        for kind in ("keyDown", "keyUp"):
            more = text if kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, modifiers=8 * shift, **more
            )

    def drag(self, begins: tuple[float, float], ends: tuple[float, float]) -> None:
        """With the left button, from one point of the window to another."""
        for kind, (x, y), buttons in (
            ("mouseMoved", begins, 0), ("mousePressed", begins, 1), ("mouseMoved", ends, 1), ("mouseReleased", ends, 0),
        ):  # fmt: skip
            button = "none" if kind == "mouseMoved" else "left"
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=1)

    def picture(self, path: Path) -> None:
        """The whole page as it looks, for a person."""
        whole = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(whole["data"]))


@contextmanager
def tab(folder: Path) -> Iterator[Tab]:
    """A browser with one tab, its files in a folder."""
    assert PROGRAM is not None
    read_by_it, to = os.pipe()
    answers, written_by_it = os.pipe()
    options = (
        f"--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars "
        f"--disable-background-networking --disable-component-update --user-data-dir={folder} --remote-debugging-pipe"
    )
    process = subprocess.Popen(
        ["bash", "-c", f"exec {PROGRAM} {options} 3<&{read_by_it} 4>&{written_by_it}"],
        pass_fds=(read_by_it, written_by_it), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    os.close(read_by_it)
    os.close(written_by_it)
    try:
        yield Tab(to, _messages(answers))
    finally:
        os.close(to)
        os.close(answers)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _messages(stream: int) -> Iterator[dict[str, Any]]:
    rest = b""
    while part := os.read(stream, 1 << 16):
        *whole, rest = (rest + part).split(b"\0")
        yield from (json.loads(each) for each in whole)
