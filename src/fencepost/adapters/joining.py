"""An agent's way to the API: one POST at a time, by the standard library, since an agent should stay small.

On loopback it is a plain connection: a thread and an HTTP library would be a third of an agent's memory. Redirects
aren't followed and no proxy is taken from the environment: the token is for this host alone.
"""

import asyncio
from typing import NamedTuple
from urllib.parse import urlsplit

from fencepost.ports import Unavailable

ANSWER_S = 10.0
BODY_BYTES = 1 << 20


class Replied(NamedTuple):
    """What the API answered; ``retry_after_s`` is 0 where it didn't say."""

    status: int
    retry_after_s: float
    body: bytes


class Api:
    """The API at ``url``, http or https, with its token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._token = token

    async def post(self, path: str, body: bytes) -> Replied:
        """Send JSON. Raises ``Unavailable`` if no answer comes."""
        if not self.url.startswith("http://"):
            return await asyncio.to_thread(self._post, path, body)
        try:
            async with asyncio.timeout(ANSWER_S):
                return parsed(await self._exchange(path, body))
        except TimeoutError:
            raise Unavailable(f"no answer in {ANSWER_S:g} s", where=self.url) from None
        except (OSError, ValueError) as error:
            raise Unavailable(str(error), where=self.url) from None

    def _headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}

    async def _exchange(self, path: str, body: bytes) -> bytes:
        """One request and all of its answer, over a connection of its own."""
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port or 80
        reader, writer = await asyncio.open_connection(host, port)
        try:
            fields = {"Host": parts.netloc, "Content-Length": str(len(body))} | self._headers()
            head = f"POST {parts.path}{path} HTTP/1.0\r\n" + "".join(
                f"{key}: {text}\r\n" for key, text in fields.items()
            )
            writer.write(f"{head}\r\n".encode("latin-1") + body)
            received = b""
            while len(received) <= BODY_BYTES and (part := await reader.read(1 << 16)):
                received += part
            return received
        finally:
            writer.close()

    def _post(self, path: str, body: bytes) -> Replied:
        import http.client
        import urllib.error
        import urllib.request

        class NoRedirect(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_: object) -> None:
                return None

        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect)
        request = urllib.request.Request(self.url + path, body, self._headers(), method="POST")  # noqa: S310  judged before
        try:
            with opener.open(request, timeout=ANSWER_S) as reply:
                return Replied(reply.status, 0.0, reply.read(BODY_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                return Replied(error.code, seconds(error.headers.get("Retry-After")), error.read(BODY_BYTES))
        except (OSError, http.client.HTTPException) as error:
            what = getattr(error, "reason", None) or error
            raise Unavailable(str(what), where=self.url) from None


def parsed(received: bytes) -> Replied:
    """An answer's parts. Raises ``ValueError`` for what is none."""
    head, found, body = received.partition(b"\r\n\r\n")
    first, *fields = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if not found or not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
        raise ValueError("closed the connection without an answer")
    known = {name.strip().lower(): text.strip() for name, _, text in (each.partition(":") for each in fields)}
    return Replied(int(words[1]), seconds(known.get("retry-after")), body)


def seconds(text: str | None) -> float:
    """``Retry-After`` as seconds; a date, as RFC 9110 section 10.2.3 allows too, counts as not given."""
    return float(text) if text and text.isascii() and text.isdigit() else 0.0
