"""Real agents: the command line's own process, a stand-in for the API that it registers at, and a manager's words."""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from free_ports import free_port
from msgspec import json
from patience import Patience

from fencepost.assembly.fleet_key import fleet_key
from fencepost.core.capacity.messages import (
    Answer,
    Check,
    FromHost,
    Instance,
    InstanceSet,
    NetworkAnswer,
    NetworkOrder,
    NetworkState,
    Order,
    ToHost,
)
from fencepost.core.capacity.token import Token
from fencepost.roles.fleet.asking import ask
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, Wire
from fencepost.settings.schema import Secret

WAIT_S = 20.0
SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")


def until(what: Callable[[], Any], within_s: float = WAIT_S) -> Any:
    """What comes to be true."""
    patience = Patience(within_s)
    while not (found := what()):
        assert not patience.over(), "it doesn't come to be"
        time.sleep(0.02)
    return found


class StandInApi:
    """Takes registrations; ``refusals`` are answered first, each (status, Retry-After); while not ``answers``, none."""

    def __init__(self, renew_s: float = 10) -> None:
        self.renew_s = renew_s
        self.refusals: list[tuple[int, str]] = []
        self.bodies: list[Any] = []
        self.times: list[float] = []
        self.tokens: list[str] = []
        self.answers = threading.Event()
        self.answers.set()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                api.answers.wait(60)
                api.times.append(time.monotonic())
                api.tokens.append(self.headers["Authorization"])
                body = json.decode(self.rfile.read(int(self.headers["Content-Length"])))
                api.bodies.append((self.path, body))
                status, after = api.refusals.pop(0) if api.refusals else (200, "")
                answer = json.encode({"renew_s": api.renew_s})
                self.send_response(status)
                if after:
                    self.send_header("Retry-After", after)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self.server.shutdown()
        self.server.server_close()


class AgentProcess:
    """``fencepost run agent`` in a folder, and a manager that speaks to it."""

    def __init__(self, folder: Path, api: StandInApi, host: str = "h1") -> None:
        self.folder, self.api, self.host = folder, api, host
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("fleet.key", "api.token"):
            with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(32))
        self.wire = Wire(fleet_key(Secret(file=str(folder / "fleet.key"))))
        self.port = free_port()
        self.token = Token(1, 1, 7)
        self.log = folder.parent / f"{folder.name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it listens, or has ended, when this returns."""
        command = [str(Path(sys.executable).parent / "fencepost"), "run", "agent", "--host", self.host, "--zone", "a"]
        command += ["--listen", f"127.0.0.1:{self.port}", "--join", self.api.url, "--state", str(self.folder)]
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=out)
        until(lambda: self.process is None or self.process.poll() is not None or self.listens())

    def listens(self) -> bool:
        """Whether its TCP port is open."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self, number: int = signal.SIGKILL) -> None:
        """End the agent, not what it runs."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def ask(self, message: ToHost, within_s: float = WAIT_S) -> FromHost:
        """One question over a connection."""
        return asyncio.run(ask(self.wire, ("127.0.0.1", self.port), message, within_s))

    def check(self, *, whole: bool = False) -> Answer:
        """A check over a connection."""
        found = self.ask(Check(self.host, self.token, whole))
        assert isinstance(found, Answer)
        return found

    def datagram(self, message: ToHost, within_s: float = WAIT_S) -> FromHost | None:
        """One question by datagram; None if nothing comes."""
        with socket.socket(type=socket.SOCK_DGRAM) as udp:
            udp.settimeout(within_s)
            udp.sendto(self.wire.pack("to host", 5, message, DATAGRAM_BYTES), ("127.0.0.1", self.port))
            try:
                found = self.wire.open_from_host(udp.recv(DATAGRAM_BYTES))
            except TimeoutError:
                return None
        assert found is not None
        assert found[0] == 5
        return found[1]

    def order(self, version: int, *ids: str, command: tuple[str, ...] = SLEEPER) -> Answer:
        """A check, and an order with its stamp."""
        seen = self.check()
        wanted = InstanceSet(version, tuple(Instance(each, "web", "127.0.9.1", 80, command) for each in ids))
        found = self.ask(Order(self.host, self.token, seen.boot, seen.stamp, wanted))
        assert isinstance(found, Answer)
        return found

    def network(self, *states: tuple[str, int, str, bytes]) -> NetworkAnswer:
        """Network states."""
        found = self.ask(NetworkOrder(self.host, self.token, tuple(NetworkState(*each) for each in states)))
        assert isinstance(found, NetworkAnswer)
        return found

    def pid(self, id_: str) -> int:
        """The pid that an attempt's folder names."""
        path = self.folder / "instances" / id_ / "process.json"
        return int(until(lambda: path.exists() and json.decode(path.read_bytes())["pid"]))


def alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
