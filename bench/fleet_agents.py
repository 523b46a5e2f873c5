"""How much of a core ten thousand hosts cost when they are asked: checks answered a CPU second, in rounds of many.

Starts ``fencepost dev agents`` and asks its hosts over UDP as a manager does: so many questions in flight, each answer
makes the next. First each host is asked under a new token, which it must write down; then under the same again.

    python -m bench.fleet_agents [HOSTS [SECONDS]]
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import tell
from fencepost.assembly.fleet_key import fleet_key
from fencepost.core.capacity.messages import Answer, Check
from fencepost.core.capacity.token import Token
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, Wire
from fencepost.settings.schema import Secret

IN_FLIGHT = 64
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def ask_all(wire: Wire, place: tuple[str, int], names: list[str], token: Token, for_s: float) -> tuple[int, float]:
    """Ask hosts by turns: how many answered (all once, or as many as come in ``for_s``), and the seconds it took."""
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.settimeout(2)
        udp.connect(place)
        packets = [wire.pack("to host", 1, Check(name, token), DATAGRAM_BYTES) for name in names]
        sent = answered = 0
        begun = time.perf_counter()
        end = begun + for_s if for_s else float("inf")
        while answered < len(names) if not for_s else time.perf_counter() < end:
            while sent - answered < IN_FLIGHT and (for_s or sent < len(names)):
                udp.send(packets[sent % len(packets)])
                sent += 1
            found = wire.open_from_host(udp.recv(DATAGRAM_BYTES))
            assert found is not None
            assert isinstance(found[1], Answer)
            answered += 1
        return answered, time.perf_counter() - begun


def main() -> None:
    """Measure, and print the figures."""
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for_s = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "fleet.key"
        with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
        command = [str(Path(sys.executable).parent / "fencepost"), "dev", "agents", "--hosts", str(hosts), "--json"]
        command += ["--listen", "127.0.0.1:0", "--state", folder]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)
        assert process.stdout is not None
        try:
            at = json.loads(process.stdout.readline())["at"]
            host, _, port = at.rpartition(":")
            wire, names = Wire(fleet_key(Secret(file=str(key)))), [f"h{number:05}" for number in range(hosts)]
            tell("many agents: begun", cpu_s(process.pid), "s CPU", f"{hosts:,} hosts")
            for what, token, within in (("new", Token(1, 1, 1), 0.0), ("known", Token(1, 1, 1), for_s)):
                before = cpu_s(process.pid)
                answered, took = ask_all(wire, (host, int(port)), names, token, within)
                used = cpu_s(process.pid) - before
                rate = answered / max(used, 1 / TICKS)
                tell(f"many agents: checks per CPU second, {what} token", rate, "/s", f"{answered:,} in {took:.2f} s")
            status = Path(f"/proc/{process.pid}/status").read_text()
            tell("many agents: memory", int(status.split("VmRSS:")[1].split()[0]) / 1024, "MB")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
