"""Agents make themselves known to the API, and again when nobody asks them any more: a lost store forgets hosts.

A whole fleet may find itself forgotten at one moment. So each host waits two renewals and a part of a third of its own
(a hash of its name), and whoever is told to come later does: the API says when, and knows how many wait.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct, ValidationError, json

from fencepost.core.instant import SECOND, Duration
from fencepost.core.jitter import jitter
from fencepost.ports import Unavailable

log = logging.getLogger(__name__)

PATH = "/v1/fleet/hosts"
AT_ONCE = 500
"""So many hosts a request, 75 kB or so."""
LOOK_S = 0.5
WAIT_FIRST_S, WAIT_MOST_S = 0.1, 30.0
REFUSED_S = 60.0


class Hosted(Struct, frozen=True, gc=False):
    """A host as the API is told of it; ``at`` is where its agent answers, "address:port".

    ``incarnation`` is that of its memory, 0 if there is none yet: by it a host that moved is told from another one.
    """

    host: str
    zone: str
    at: str
    room: int = 1
    addresses: tuple[str, ...] = ()
    incarnation: int = 0


class Joined(Struct, frozen=True):
    """What the API answers: how often hosts are asked."""

    renew_s: float


class Reply(Protocol):
    """An answer of the API."""

    @property
    def status(self) -> int:
        """HTTP's number."""
        ...

    @property
    def retry_after_s(self) -> float:
        """How long to wait, as it says; 0 if it doesn't."""
        ...

    @property
    def body(self) -> bytes:
        """JSON."""
        ...


class Post(Protocol):
    """What sends a request to the API."""

    async def __call__(self, path: str, body: bytes) -> Reply:
        """Raises ``Unavailable`` if no answer comes."""
        ...


def due_after(renew: Duration, name: str, times: int) -> Duration:
    """How long after it was last asked, or registered, a host registers again: from 2R to 3R, another each time."""
    return 2 * renew + jitter(renew, name, times)


def refused(body: bytes) -> str:
    """What a refusal says, and what to do about it."""
    try:
        error = json.decode(body, type=_Refusal).error
    except (ValidationError, ValueError):
        return body[:200].decode(errors="replace")
    return error.what + (f"; {error.hint}" if error.hint else "")


class _Said(Struct, frozen=True):
    what: str
    hint: str = ""


class _Refusal(Struct, frozen=True):
    error: _Said


class Registrar:
    """Registers those who are due. ``times`` is how often anybody was registered; ``renewed`` is told the API's R.

    ``rest`` says for how many seconds nobody can become due.
    """

    def __init__(
        self,
        name: str,
        post: Post,
        due: Callable[[], Sequence[Hosted]],
        renewed: Callable[[Duration], None],
        rest: Callable[[], float] = lambda: LOOK_S,
    ) -> None:
        self.name = name
        self.post = post
        self.due = due
        self.renewed = renewed
        self.rest = rest
        self.times = 0
        self._tries = 0
        self._said = ""

    async def run(self, registered: Callable[[Sequence[Hosted]], None]) -> None:
        """Until cancelled; ``registered`` is told of those that the API took."""
        while True:
            hosts = self.due()[:AT_ONCE]
            if not hosts:
                await asyncio.sleep(max(LOOK_S, self.rest()))
                continue
            wait_s = await self.ask(hosts)
            if wait_s is None:
                registered(hosts)
                self.times += len(hosts)
                continue
            await asyncio.sleep(wait_s)

    async def ask(self, hosts: Sequence[Hosted]) -> float | None:
        """Register these; None if that is done, else how long to wait, seconds."""
        try:
            reply = await self.post(PATH, json.encode({"hosts": hosts}))
            if reply.status == 200:
                renew = round(json.decode(reply.body, type=Joined).renew_s * SECOND)
                if renew > 0:
                    self.renewed(renew)
                self._tries = 0
                self.say("")
                return None
            if reply.status not in (429, 500, 502, 503, 504):
                self.say(f"the API refuses it ({reply.status}): {refused(reply.body)}")
                return self.spread(min(REFUSED_S, 2 * reply.retry_after_s) if reply.retry_after_s else REFUSED_S)
            self._tries += 1
            if reply.retry_after_s:
                return reply.retry_after_s + jitter(SECOND, self.name, self._tries) / SECOND
            self.say(f"the API can't now ({reply.status})")
        except Unavailable as error:
            self._tries += 1
            self.say(error.in_full)
        except (ValidationError, ValueError) as error:
            self._tries += 1
            self.say(f"the API's answer makes no sense: {error}")
        return self.spread(min(WAIT_FIRST_S * 2 ** min(self._tries, 10), WAIT_MOST_S))

    def spread(self, most_s: float) -> float:
        """Half of it, and a part of the other half."""
        half = most_s / 2
        return half + jitter(round(half * SECOND), self.name, self._tries) / SECOND

    def say(self, text: str) -> None:
        """What hinders it, once; and when that is over."""
        if text and text != self._said:
            log.warning("%s isn't registered yet: %s", self.name, text)
        elif self._said and not text:
            log.info("%s is registered", self.name)
        self._said = text
