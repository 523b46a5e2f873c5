"""Asking the region's API about its fleet, by a plain socket: HTTP libraries take longer to import than answers take.

Every answer that isn't one becomes the error that it says it is. A connection that ends after the request was sent is
an unknown outcome, and a class of its own: a launch is then asked for again under the same key.
"""

import json
import os
import socket
from typing import Any

from fencepost.core.instant import SECOND, Duration
from fencepost.ports import Misconfigured, Refused, Unavailable
from fencepost.settings import Region
from fencepost.settings.secret import read_secret

TRY_AGAIN = ("request limit exceeded", "insufficient capacity", "unavailable")


class Said(Unavailable):
    """What the API can't do now, in its own kind of words; ``retry_after_s`` is 0 where it doesn't say."""

    def __init__(self, kind: str, what: str, *, where: str, hint: str, retry_after_s: int) -> None:
        super().__init__(what, where=where, hint=hint)
        self.kind = kind
        self.retry_after_s = retry_after_s


class Lost(Unavailable):
    """The request was sent, and no whole answer came: it may have been done."""


def post(region: Region, path: str, body: dict[str, Any], timeout: Duration) -> Any:
    """The answer to ``POST path``. Raises ``Unavailable``, ``Said``, ``Lost``, ``Refused`` or ``Misconfigured``."""
    place, data = region.api.listen, json.dumps(body).encode()
    where = f"the API at {place}"
    try:
        link = socket.create_connection((place.host, place.port), timeout=timeout / SECOND)
    except OSError as error:
        hint = "fencepost status    says what runs"
        raise Unavailable(f"doesn't answer ({error.strerror or error})", where=where, hint=hint) from None
    received = b""
    with link:
        head = f"POST {path} HTTP/1.0\r\nHost: {place}\r\nAuthorization: Bearer {token_of(region)}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        try:
            link.sendall(head.encode() + data)
            while part := link.recv(1 << 16):
                received += part
        except OSError as error:
            raise Lost(f"took the request and didn't answer ({error.strerror or error})", where=where) from None
    return answered(received, where)


def token_of(region: Region) -> str:
    """What a change is asked for with. Raises ``Misconfigured``."""
    try:
        return read_secret(region.api.token, os.environ)
    except ValueError as error:
        hint = "be the user that the region's files belong to; the API makes its token when it first starts"
        raise Misconfigured(f"the API's token: {error}", where=region.path, hint=hint) from None


def answered(received: bytes, where: str) -> Any:
    """What an answer says. Raises as :func:`post`."""
    head, _, body = received.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if not head.startswith(b"HTTP/1.") or len(words) < 2 or not words[1].isdigit():
        raise Lost("took the request and didn't answer", where=where)
    status = int(words[1])
    try:
        said = json.loads(body)
    except ValueError:
        raise Lost(f"answered {status}, and something that isn't JSON", where=where) from None
    if 200 <= status < 300:
        return said
    error = said.get("error", {}) if isinstance(said, dict) else {}
    kind, what, hint = (str(error.get(name, "")) for name in ("kind", "what", "hint"))
    if status == 401:
        raise Misconfigured(what or "the token isn't the API's", where=where, hint=hint)
    if kind in TRY_AGAIN or status in (429, 503):
        after = error.get("retry_after_s", 0)
        raise Said(kind, what, where=where, hint=hint, retry_after_s=after if isinstance(after, int) else 0)
    if status == 500:
        raise Misconfigured(what or f"answered {status}", where=where, hint=hint)
    if status == 404 and not what:
        raise Misconfigured("knows no fleet", where=where, hint="start it again: [fleet] came after it was started")
    raise Refused(what or f"answered {status}", where=str(error.get("where", "")), hint=hint)
