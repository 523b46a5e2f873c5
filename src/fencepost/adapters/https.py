"""Requests to a provider's API over HTTPS, with a token, over connections that are kept: for any that speaks REST."""

import asyncio
import re
from typing import Any, Protocol
from urllib.parse import urlsplit

from fencepost.ports import Misconfigured

PAUSE_MIN_S, PAUSE_MAX_S = 1.0, 5.0


class Send(Protocol):
    """What sends a request."""

    async def __call__(self, method: str, url: str, token: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer. Raises ``OSError`` (``TimeoutError`` is one)."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Pace:
    """Asks a provider less often while it says that it can't answer: a second's pause, doubled up to five."""

    def __init__(self) -> None:
        self._pause_s = 0.0
        self._not_before = 0.0

    async def turn(self) -> None:
        """Wait until the next request may go."""
        await asyncio.sleep(max(0.0, self._not_before - asyncio.get_running_loop().time()))

    def note(self, *, slower: bool) -> None:
        """Whether the last answer was that it can't now."""
        self._pause_s = min(PAUSE_MAX_S, self._pause_s * 2 or PAUSE_MIN_S) if slower else 0.0
        self._not_before = asyncio.get_running_loop().time() + self._pause_s


class Https:
    """A :data:`Send` by aiohttp. ``timeout_s`` is the patience for one answer."""

    def __init__(self, timeout_s: float = 10.0) -> None:
        self._timeout_s = timeout_s
        self._session: Any = None

    async def __call__(self, method: str, url: str, token: str, body: bytes) -> tuple[int, bytes]:
        """As :data:`Send` says. Redirects aren't followed: the token is for this host."""
        import aiohttp  # here: a test's own sender needs none of it

        if not re.fullmatch(r"[!-~]+", token):
            raise Misconfigured("the token isn't one word", hint="it is what  gcloud auth print-access-token  prints")
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._timeout_s))
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        asking = self._session.request(method, url, data=body or None, headers=headers, allow_redirects=False)
        try:
            async with asking as reply:
                return reply.status, await reply.read()
        except TimeoutError:
            raise TimeoutError(f"no answer within {self._timeout_s:g} s") from None
        except aiohttp.ClientError as error:
            # Its text may hold what was sent; the kind of it says enough.
            raise OSError(f"no connection ({type(error).__name__})") from None

    async def close(self) -> None:
        """Let go of connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def safe_url(url: str, where: str) -> str:
    """The address without its final slash. Raises ``Misconfigured`` for one at which a token could be overheard."""
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")):
        return url.rstrip("/")
    raise Misconfigured("must be https, or http on loopback: a token goes along", where=where, hint=f"unset {where}")
