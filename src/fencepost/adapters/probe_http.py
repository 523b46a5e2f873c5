"""HTTP/1.1: a target is well when it answers GET with a good status (RFC 9110, 9112).

Judged by the status of the final answer alone. A redirect is a status like any other and is never followed: following
it judged another host (Traefik #5147). Interim answers (1xx) are skipped. The body is not read and the head is
limited, so a target can't fill the checker's memory. A head must arrive whole: a server that stalls after its first
line isn't serving.

The Host field is the address probed, or the name that the pool's url gives, with the port unless that is 80 (RFC 9110
section 7.2).

A capacity is the body of a 200 answer: an integer, 0 to 255. Anything else, or silence, is no statement (None), never
zero.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial

from fencepost.adapters.probe import Attempt, Check, ProbeSettings, ProbeTarget

HEAD_MAX_BYTES = 16 * 1024
BODY_MAX_BYTES = 1024
INTERIM_MAX = 8
"""Interim answers taken before a target is called odd."""
STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] ([1-9][0-9][0-9])(?: .*)?", re.DOTALL)


def request(host: str, port: int, path: str) -> bytes:
    """A whole GET request. Raises ValueError for a path that would break its first line."""
    if not path.startswith("/") or any(not "!" <= sign <= "~" for sign in path):
        raise ValueError(f"path {path!r} must start with / and hold printable ASCII without blanks")
    host = f"[{host}]" if ":" in host else host
    authority = host if port == 80 else f"{host}:{port}"
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {authority}",
        "User-Agent: fencepost-probe",
        "Accept: */*",
        "Connection: close",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def split_head(data: bytes) -> tuple[bytes, bytes] | None:
    """(head, rest) once the empty line has come, else None. Bare line feeds end lines too (RFC 9112 section 2.2)."""
    for end in (b"\r\n\r\n", b"\n\n"):
        head, found, rest = data.partition(end)
        if found:
            return head, rest
    return None


def status_of(head: bytes) -> int | None:
    """The status code of a response head, or None if it isn't HTTP/1.x."""
    line = head.split(b"\n", 1)[0].rstrip(b"\r")
    match = STATUS_LINE.fullmatch(line)
    return int(match[1]) if match else None


class HttpAttempt(Attempt):
    """Sends one request and judges the head of the answer."""

    def __init__(self, asked: bytes, good: frozenset[int]) -> None:
        self.asked = asked
        self.good = good
        self.got = b""
        self.interim = 0

    def connected(self, transport: asyncio.Transport) -> None:
        """Send the request."""
        transport.write(self.asked)

    def data_received(self, data: bytes) -> None:
        """Gather the head; judge when it is whole."""
        if self.done:
            return
        self.got += data
        while True:
            parts = split_head(self.got[: HEAD_MAX_BYTES + 4])
            if parts is None:
                self.unfinished()
                return
            status = status_of(parts[0])
            if status is None:
                self.finish(False, "not an HTTP/1.x answer")
                return
            if not 100 <= status < 200 or status == 101 or self.interim == INTERIM_MAX:
                self.answered(status, parts[0])
                return
            self.interim += 1
            self.got = self.got[min(len(self.got), HEAD_MAX_BYTES + 4) - len(parts[1]) :]

    def unfinished(self) -> None:
        """No whole head yet: wait for more, unless no head can come of this."""
        if len(self.got) > HEAD_MAX_BYTES:
            self.finish(False, f"response head over {HEAD_MAX_BYTES // 1024} KiB")
        elif self.got[:7] != b"HTTP/1."[: len(self.got)]:
            self.finish(False, "not an HTTP/1.x answer")

    def answered(self, status: int, head: bytes) -> None:
        """Judge the final status."""
        del head
        good = status in self.good if self.good else 200 <= status < 300
        self.finish(good, "" if good else f"status {status}")


class CapacityAttempt(HttpAttempt):
    """Reads a small body as a number; `finish` is called with the number kept in `capacity`."""

    for_capacity = True
    head: bytes | None = None

    def answered(self, status: int, head: bytes) -> None:
        """Go on reading after a 200."""
        if status != 200:
            self.finish(False, f"status {status}")
            return
        self.head = head
        self._body()

    def data_received(self, data: bytes) -> None:
        """Head first, then the body."""
        if self.head is None:
            super().data_received(data)
        else:
            self.got += data
            self._body()

    def eof_received(self) -> None:
        """A body without a length ends with the connection."""
        if self.head is not None and not self.done:
            self._body(ended=True)

    def _body(self, *, ended: bool = False) -> None:
        parts = split_head(self.got)
        body = parts[1] if parts else b""
        whole = whole_body(self.head or b"", body, ended=ended)
        if whole is not None:
            self.capacity = capacity_of(whole)
            self.finish(True)
        elif ended or len(body) > BODY_MAX_BYTES:
            self.finish(False, "odd capacity")


def whole_body(head: bytes, body: bytes, *, ended: bool) -> bytes | None:
    """The body once it is whole, by chunks, by length, or by the connection's end (RFC 9112 section 6.3); None before
    that.
    """
    fields = {}
    for line in head.split(b"\n")[1:]:
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip().lower()
    if fields.get(b"transfer-encoding") == b"chunked":
        return unchunk(body)
    length = fields.get(b"content-length", b"")
    if length.isdigit():  # Python takes thousands of digits for no number, and no body that is read is that long
        return body[: int(length)] if len(length) < 20 and len(body) >= int(length) else None
    return body if ended else None


def unchunk(body: bytes) -> bytes | None:
    """The content of a chunked body (RFC 9112 section 7.1), or None while it isn't whole or is odd."""
    content = b""
    while True:
        line, found, rest = body.partition(b"\r\n")
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            return None
        if not found or size < 0 or len(rest) < size:
            return None
        if size == 0:
            return content
        content, body = content + rest[:size], rest[size + 2 :]


def capacity_of(body: bytes) -> int | None:
    """0 to 255, or None for anything else."""
    text = body.strip()
    return int(text) if text.isdigit() and len(text) <= 3 and int(text) <= 255 else None


def http_check(settings: ProbeSettings) -> Callable[[ProbeTarget], Check]:
    """What to do to each target of an HTTP pool."""
    good = frozenset(settings.good_statuses)

    def check(target: ProbeTarget) -> Check:
        port = target.port or settings.port
        asked = request(settings.host or target.address, port, target.path or settings.path)
        return Check(target.address, port, partial(HttpAttempt, asked, good))

    return check


def capacity_check(settings: ProbeSettings) -> Callable[[ProbeTarget], Check] | None:
    """How to ask each target for its capacity, or None if the pool doesn't."""
    path = settings.capacity_path
    if path is None:
        return None

    def check(target: ProbeTarget) -> Check:
        port = settings.capacity_port or target.port or settings.port
        asked = request(settings.host or target.address, port, path)
        return Check(target.address, port, partial(CapacityAttempt, asked, frozenset()))

    return check
