"""Callers: a process that asks the region's DNS 200 times a second and judges what it gets, as a client would see it.

Timeouts are counted apart from empty answers: a name server that is being started again is slow; one that says "no such
address" is the incident.
"""

import json
import multiprocessing
import re
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from multiprocessing.connection import Connection
from typing import Any, Self

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype

from fencepost.core.fence import NEVER, Generation, Marker
from fencepost.core.zone import Live


class Callers:
    """Asks from ``start`` to ``stop``, in a process of its own; then ``seen`` has the counts and each violation."""

    def __init__(self, port: int, names: list[str], rate: int = 200) -> None:
        self.port = port
        self.names = names
        self.rate = rate
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process = context.Process(target=ask_on, args=(theirs, port, names, rate), daemon=True)
        self.seen: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.process.start()
        assert self.ours.recv() == "asking"
        return self

    def __exit__(self, *_: object) -> None:
        self.ours.send("stop")
        self.seen = json.loads(self.ours.recv())
        self.process.join(10)

    def fine(self) -> None:
        """Fail unless callers were answered, never emptily, never backward, never torn."""
        assert self.seen["answers"] > 10, self.seen
        assert self.seen["checked"] > 5, self.seen
        assert self.seen["violations"] == [], self.seen


def ask_on(pipe: Connection, port: int, names: list[str], rate: int) -> None:
    """The process: addresses between two readings of the marker, for each name in turn."""
    link = socket.socket(type=socket.SOCK_DGRAM)
    link.connect(("127.0.0.1", port))
    link.settimeout(1.0)
    counts: Counter[str] = Counter()
    violations: list[str] = []
    highest: dict[str, Generation] = dict.fromkeys(names, NEVER)
    over = threading.Event()
    digging = threading.Thread(target=dig_on, args=(over, port, names[0], counts, violations), daemon=True)
    digging.start()
    pipe.send("asking")
    pause = 3 / rate
    due = time.monotonic()
    while not pipe.poll():
        for name in names:
            judge_name(link, name, counts, violations, highest)
            due += pause
            time.sleep(max(0.0, due - time.monotonic()))
            due = max(due, time.monotonic() - pause)
    pipe.recv()
    over.set()
    digging.join(5)
    pipe.send(json.dumps({**counts, "violations": violations[:20], "empty": counts["empty"]}))


def dig_on(over: threading.Event, port: int, name: str, counts: Counter[str], violations: list[str]) -> None:
    """A real `dig` each second, where there is one: nobody's parser but its own."""
    if shutil.which("dig") is None:
        return
    command = ["dig", "@127.0.0.1", "-p", str(port), "+tries=1", "+time=1", name, "A"]
    while not over.wait(1.0):
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        if "status: NOERROR" not in said:
            counts["dig timeouts"] += 1
            continue
        counts["dug"] += 1
        if not re.search(rf"^{re.escape(name)}\.\s+\d+\s+IN\s+A\s", said, re.MULTILINE):
            violations.append(f"never_empty: dig {name} at {time.time():.3f}:\n{said}")


def judge_name(
    link: socket.socket, name: str, counts: Counter[str], violations: list[str], highest: dict[str, Generation]
) -> None:
    """Ask for one name's marker, addresses and marker again."""
    first, answer, second = (ask(link, name, kind) for kind in ("TXT", "A", "TXT"))
    if answer is None:
        counts["timeouts"] += 1
        return
    counts["answers"] += 1
    addresses = sorted(str(rdata) for rrset in answer.answer if rrset.rdtype == dns.rdatatype.A for rdata in rrset)
    ttl = next((rrset.ttl for rrset in answer.answer), 0)
    marker = marker_in(first)
    withdrawn = marker is not None and marker.hold is not None and marker.hold.kind == "withdraw"
    if not addresses and not withdrawn and marker_in(second) == marker:
        counts["empty"] += 1
        violations.append(
            f"never_empty: {name} at {time.time():.3f}: {dns.rcode.to_text(answer.rcode())}, marker {marker}"
        )
    if marker is None or marker_in(second) != marker:
        return
    counts["checked"] += 1
    if marker.generation < highest[name]:
        violations.append(f"never_backward: {name} {marker.generation} after {highest[name]}")
    highest[name] = max(highest[name], marker.generation)
    live = Live(name, marker, tuple(sorted(addresses, key=socket.inet_aton)), (), ttl)
    if addresses and marker.content is None and not live.verified():
        violations.append(f"never_torn: {name} gen {marker.generation}: {addresses} ttl {ttl}")
    if marker.content is not None and not set(addresses) <= set(marker.content.a):
        violations.append(f"never_torn: {name} gen {marker.generation}: {addresses}")


def ask(link: socket.socket, name: str, kind: str) -> dns.message.Message | None:
    """One question; None if nobody answered within a second."""
    query = dns.message.make_query(name if kind == "A" else f"_fencepost.{name}", kind, use_edns=0, payload=4096)
    try:
        link.send(query.to_wire())
        limit = time.monotonic() + 1.0
        while time.monotonic() < limit:
            answer = dns.message.from_wire(link.recv(65535))
            if answer.id == query.id:
                return answer
    except (OSError, dns.exception.DNSException):
        time.sleep(0.01)
    return None


def marker_in(answer: dns.message.Message | None) -> Marker | None:
    """The marker in an answer."""
    for rrset in answer.answer if answer is not None else ():
        for rdata in rrset:
            return Marker.parse(tuple(rdata.strings))
    return None
