"""Just enough HTTP/1.1 for the SDKs: requests with a length, connections that are kept."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from fencepost.dev.route53 import limits

REASONS = {200: "OK", 201: "Created", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 409: "Conflict"}
REASONS |= {
    413: "Content Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Request(msgspec.Struct, frozen=True):
    """A request; header names in lower case, the path unquoted and without a slash at its end."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Reply(msgspec.Struct, frozen=True):
    """An answer; `ending` is "" (whole), "lost" (the connection closes instead) or "cut" (halfway through)."""

    status: int = 200
    body: bytes = b""
    location: str | None = None
    request_id: str = ""
    ending: str = ""

    def encoded(self) -> bytes:
        """The answer as bytes."""
        head = [
            f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Error')}",
            f"x-amzn-RequestId: {self.request_id}",
            "Content-Type: text/xml",
            f"Content-Length: {len(self.body)}",
        ]
        if self.location is not None:
            head.append(f"Location: {self.location}")
        return "\r\n".join([*head, "", ""]).encode() + self.body


Handler: TypeAlias = Callable[[Request], Awaitable[Reply]]


async def serve(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection, until either side closes it."""
    try:
        while True:
            request = await _request(reader, writer)
            if request is None:
                break
            reply = await handler(request)
            if reply.ending == "lost":
                break
            encoded = reply.encoded()
            writer.write(encoded[: len(encoded) - len(reply.body) // 2 - 1] if reply.ending == "cut" else encoded)
            await writer.drain()
            if reply.ending or request.headers.get("connection", "").lower() == "close":
                break
    except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        pass  # the client left, or speaks something else: nothing to tell it
    finally:
        writer.close()


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """The next request, or None at the end. Raises ValueError for what isn't HTTP."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
    length = int(headers.get("content-length", "0"))
    if length > limits.BODY_BYTES_MOST or "transfer-encoding" in headers:
        writer.write(Reply(413).encoded())
        return None
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await reader.readexactly(length)
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Request(method, unquote(parts.path).rstrip("/"), query, headers, body)
