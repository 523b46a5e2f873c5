"""An agent's way to the API: one POST at a time, by the standard library, since an agent should stay small.

Redirects aren't followed and no proxy is taken from the environment: the token is for this host alone.
"""

import asyncio
import http.client
import urllib.error
import urllib.request
from typing import NamedTuple

from fencepost.ports import Unavailable

ANSWER_S = 10.0
BODY_BYTES = 1 << 20


class Replied(NamedTuple):
    """What the API answered; ``retry_after_s`` is 0 where it didn't say."""

    status: int
    retry_after_s: float
    body: bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class Api:
    """The API at ``url``, http or https, with its token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)

    async def post(self, path: str, body: bytes) -> Replied:
        """Send JSON. Raises ``Unavailable`` if no answer comes."""
        return await asyncio.to_thread(self._post, path, body)

    def _post(self, path: str, body: bytes) -> Replied:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self.url + path, body, headers, method="POST")  # noqa: S310  judged at start
        try:
            with self._opener.open(request, timeout=ANSWER_S) as reply:
                return Replied(reply.status, 0.0, reply.read(BODY_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                return Replied(error.code, seconds(error.headers.get("Retry-After")), error.read(BODY_BYTES))
        except (OSError, http.client.HTTPException) as error:
            what = getattr(error, "reason", None) or error
            raise Unavailable(str(what), where=self.url) from None


def seconds(text: str | None) -> float:
    """``Retry-After`` as seconds; a date, as RFC 9110 section 10.2.3 allows too, counts as not given."""
    return float(text) if text and text.isascii() and text.isdigit() else 0.0
