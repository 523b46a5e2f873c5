"""Knot as a secondary of the embedded server: how long after a change is written it is answered there.

    python -m bench.secondary [changes]

Knot takes the domain by AXFR, then each change by NOTIFY and IXFR, all signed. The time runs from the moment before an
UPDATE is sent to our server until Knot answers the new address over UDP, asked every 2 ms.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "system"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "cli"))

import dns.exception
import dns.message
import dns.query
from dns_server_running import DOMAIN, HERE, new_update, running, settings_in
from free_ports import free_port
from secondaries import knot

from bench.figures import tell

PAUSE_S = 0.3


def asked(port: int) -> str:
    """The endpoint's address at Knot, "" if it gives none."""
    try:
        answer = dns.query.udp(dns.message.make_query(f"api.{DOMAIN}", "A"), HERE, timeout=1, port=port)
    except (dns.exception.DNSException, OSError):
        return ""
    return next((str(rdata) for found in answer.answer for rdata in found), "")


def shown(port: int, address: str, within_s: float) -> float:
    """Seconds until Knot answers an address."""
    began = time.monotonic()
    while asked(port) != address:
        assert time.monotonic() - began < within_s, f"Knot doesn't show {address}"
        time.sleep(0.002)
    return time.monotonic() - began


def main() -> None:
    """Measure and print."""
    changes = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        (folder / "knot").mkdir()
        with running(settings_in(folder, notify=(f"{HERE}:{port}",))) as server:

            def put(address: str) -> None:
                update = new_update()
                update.replace(f"api.{DOMAIN}", 5, "A", address)
                assert server.update(update) == "NOERROR"

            put("192.0.2.1")
            command = knot(folder / "knot", server.port, port)
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                shown(port, "192.0.2.1", 20)
                took = []
                for index in range(changes):
                    began = time.monotonic()
                    put(f"192.0.2.{2 + index % 200}")
                    shown(port, f"192.0.2.{2 + index % 200}", 10)
                    took.append(time.monotonic() - began)
                    time.sleep(PAUSE_S)
            finally:
                os.kill(process.pid, signal.SIGTERM)
                process.wait(20)
    tell(
        "a change at Knot as our secondary, median",
        statistics.median(took),
        "s",
        f"{changes} changes, {PAUSE_S} s apart",
    )
    tell("a change at Knot as our secondary, longest", max(took), "s")


if __name__ == "__main__":
    main()
