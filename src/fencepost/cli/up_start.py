"""Clashes that are looked for before anything is started: a port, region or owner in use, a role of another version."""

import contextlib
import fcntl
import ipaddress
import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from fencepost.assembly.ports_in_use import taken_by
from fencepost.cli.flags import agree
from fencepost.cli.regions import refuse_if_running, shown
from fencepost.cli.up_locks import Place, clear_left, hold_places, let_go
from fencepost.cli.up_versions import refuse_other_versions
from fencepost.ports import Misconfigured
from fencepost.settings import Region
from fencepost.settings.providers import PROVIDERS
from fencepost.settings.values import LOOPBACK


def refuse_clashes(region: Region, folder: Path, *, with_targets: bool) -> None:
    """Raise ``Misconfigured`` (exit 2) for what clashes, naming whose it is and what to do; all taken ports at once."""
    refuse_if_running(folder)
    refuse_other_versions(region)  # before the ports: whoever holds those is likely one of them
    places: dict[tuple[str, int], tuple[str, bool]] = {}
    if region.dns.provider == "embedded" and region.dns.listen is not None:
        places[region.dns.listen.host, region.dns.listen.port] = ("[dns] listen", True)
    places[region.api.listen.host, region.api.listen.port] = ("[api] listen", False)
    for zone, at in region.dns.notify:
        places[at.host, at.port] = (f"[dns] notify of zone {zone}", True)
    if with_targets:
        for pool in region.pools:
            for target in pool.targets:
                place = (target.address, target.port or pool.probe.url.port)
                places.setdefault(place, (f"target of pool {pool.name}", False))
    taken: dict[str, str] = {}
    for (host, port), (what, udp) in places.items():
        why = taken_by(host, port, what, udp=udp)
        if why:
            taken.setdefault(what, why)
    if taken:
        first, *others = taken.items()
        text = "; ".join([first[1], *(f"{what}: {why}" for what, why in others)])
        hint = f"write another port in {shown(Path(region.path))}, or end that process if you know it"
        raise Misconfigured(text, where=first[0], hint=hint)
    let_go(hold_places(region))


class Locks(NamedTuple):
    """The folder's lock and those of the places; held until all of ``fds`` are closed, here and in every child."""

    folder: int = -1
    places: tuple[Place, ...] = ()

    @property
    def fds(self) -> tuple[int, ...]:
        """What is open for them."""
        return (self.folder, *(place.fd for place in self.places))

    def say_holder(self) -> None:
        """Have each say this process, which took them over."""
        for fd in self.fds:
            say_holder(fd)

    def let_go(self) -> None:
        """Let go of all. The folder's file stays: it says that the region was started here."""
        let_go(self.places)
        os.close(self.folder)


def hold_all(region: Region, folder: Path) -> Locks:
    """Hold all of them, and take away what killed regions left. Raises ``Misconfigured``."""
    lock = hold(folder)
    try:
        places = hold_places(region)
    except BaseException:
        os.close(lock)
        raise
    clear_left()
    return Locks(lock, places)


def hold(folder: Path) -> int:
    """Hold the folder's lock for as long as its descriptor is open, here or in a child.

    Raises ``Misconfigured`` if another has it: one that was started in the same moment, too late to be seen before.
    """
    fd = os.open(folder / "supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        refuse_if_running(folder)
        hint = "fencepost status    shows it; start it again if nothing runs"
        raise Misconfigured("this region was being started or ended", where=shown(folder), hint=hint) from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def say_holder(lock: int) -> None:
    """Have a lock that was taken over say this process, where it says another."""
    said = os.pread(lock, 4096, 0).decode(errors="replace")
    mine = re.sub(r"(\(pid )?[0-9]+(\))?\n\Z", lambda found: f"{found[1] or ''}{os.getpid()}{found[2] or ''}\n", said)
    with contextlib.suppress(OSError):  # another user's file, which only its lock is held of
        os.ftruncate(lock, 0)
        os.pwrite(lock, mine.encode(), 0)


def ask_once(region: Region, folder: Path, *, yes: bool) -> None:
    """Before the first write to a provider that isn't on this machine, ask. Raises as :func:`flags.agree` does."""
    agreed, at = folder / "agreed", elsewhere(region)
    if not at or agreed.exists():
        return
    names = ", ".join(endpoint.name for endpoint in region.endpoints[:5])
    agree(f"This writes {names} at {at} (fencepost plan shows what). Start?", yes=yes)
    folder.mkdir(parents=True, exist_ok=True)
    agreed.write_text(f"{at}\n")


def elsewhere(region: Region) -> str:
    """The provider that is written to, in words; "" if it is on this machine."""
    place, url = region.dns.server, urlsplit(region.dns.option("endpoint"))
    if region.dns.provider == "embedded":
        return ""
    if region.dns.provider == "rfc2136":
        return "" if place is None or ipaddress.ip_address(place.host).is_loopback else str(place)
    return "" if url.hostname in LOOPBACK else PROVIDERS[region.dns.provider].label
