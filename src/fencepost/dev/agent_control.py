"""How many hosts in one process are made to misbehave while they run: a small JSON file, read again when it changes.

    {"deaf": ["h00007", "zone:b"],      these don't answer ("*": none does)
     "slow": "40ms", "servers": 64,     how long an answer takes on average, and how many are served at once
     "ended": ["web-7.1"],              attempts that ended by themselves
     "restarted": ["h00003"],           agents that start again, once for each time a name comes into the list
     "lost": ["h00004"]}                the same, on an empty disk

The file is the whole wish: a name that is taken out of ``deaf`` hears again. One that can't be read changes nothing.

Beside it, in a file of the same name and ``.counts``, stands how often they were asked and answered since the start, as
of now: {"asked": 812, "answers": 809, "strangers": 0}. Whoever is deaf is asked, and doesn't answer.
"""

import asyncio
import logging
from pathlib import Path

from msgspec import MsgspecError, Struct, json

from fencepost.core.instant import SECOND
from fencepost.dev.agents import ManyHosts
from fencepost.dev.crowded import Crowded
from fencepost.settings.units import duration_ns

log = logging.getLogger(__name__)

LOOK_S = 0.1
SERVERS = 64


class Wish(Struct, frozen=True, forbid_unknown_fields=True):
    """What is wished for; see the module."""

    deaf: tuple[str, ...] = ()
    slow: str = ""
    servers: int = SERVERS
    ended: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


NOTHING = Wish()


class Counts(Struct, frozen=True):
    """How often hosts were asked and answered; see the module."""

    asked: int = 0
    answers: int = 0
    strangers: int = 0


class Control:
    """Carries wishes out. ``first`` is what the process was started with."""

    def __init__(self, hosts: ManyHosts, first: Wish = NOTHING) -> None:
        """Raises ``ValueError`` for a time that is none."""
        self.hosts = hosts
        self.wish = NOTHING
        self._seen: tuple[int, int] | None = None
        self._counted = Counts()
        self.take(first)

    def take(self, wish: Wish) -> None:
        """Make it so. Raises ``ValueError`` for a time that is none; nothing is changed then."""
        before, hosts = self.wish, self.hosts
        if (wish.slow, wish.servers) != (before.slow, before.servers):
            hosts.crowded = crowded(wish)
        if wish.deaf != before.deaf:
            for member in hosts.members.values():
                member.deaf = False
            for member in hosts.chosen(wish.deaf):
                member.deaf = True
        hosts.end(tuple(each for each in wish.ended if each not in before.ended))
        hosts.restart(tuple(each for each in wish.restarted if each not in before.restarted))
        hosts.restart(tuple(each for each in wish.lost if each not in before.lost), lost=True)
        self.wish = wish

    async def watch(self, path: Path) -> None:
        """Take up the file whenever it changes, and tell how often they were asked, until cancelled."""
        while True:
            self.look(path)
            self.tell(path.with_name(f"{path.name}.counts"))
            await asyncio.sleep(LOOK_S)

    def tell(self, path: Path) -> None:
        """Write the counts, if they have changed."""
        counts = Counts(self.hosts.asked, self.hosts.answers, self.hosts.strangers)
        if counts == self._counted:
            return
        try:
            new = path.with_name(f"{path.name}.new")
            new.write_bytes(json.encode(counts))
            new.replace(path)
        except OSError as error:
            log.debug("%s can't be written: %s", path, error.strerror)
        else:
            self._counted = counts

    def look(self, path: Path) -> None:
        """Take up the file if it changed."""
        try:
            found = path.stat()
            if (found.st_mtime_ns, found.st_ino) != self._seen:
                self._seen = found.st_mtime_ns, found.st_ino
                self.take(json.decode(path.read_bytes(), type=Wish))
                log.info("%s is taken up", path)
        except FileNotFoundError:
            pass
        except (OSError, MsgspecError, ValueError) as error:
            log.warning("%s changes nothing: %s", path, error)


def crowded(wish: Wish) -> Crowded | None:
    """How slow. Raises ``ValueError``."""
    if not wish.slow:
        return None
    if wish.servers < 1:
        raise ValueError(f"{wish.servers} servers serve nobody")
    return Crowded(duration_ns(wish.slow) / SECOND, wish.servers)
