"""Clashes that are looked for before anything is started: a port, region or owner in use, a role of another version."""

import contextlib
import fcntl
import hashlib
import ipaddress
import os
import re
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from fencepost.assembly.ports_in_use import taken_by
from fencepost.assembly.stores import dsn
from fencepost.cli.flags import agree
from fencepost.cli.regions import refuse_if_running, shown
from fencepost.cli.up_versions import refuse_other_versions
from fencepost.ports import Misconfigured
from fencepost.settings import Region
from fencepost.settings.providers import PROVIDERS, where
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
    for fd in hold_places(region):
        os.close(fd)


def hold_places(region: Region) -> tuple[int, ...]:
    """Hold the locks of this owner at this server and each domain, and of the store, as long as these are open.

    The same owner at another server is another's business: their markers never meet. Two regions in one store would
    each take the other's configuration for its own. Raises ``Misconfigured`` if another region on this machine has one.
    """
    place = " ".join([where(region.dns), region.dns.option("zone_id"), region.dns.option("endpoint")]).strip()
    held: list[int] = []
    try:
        for domain in region.dns.domains:
            what = f'owner "{region.owner}" is in use for {domain} at {place} already'
            hint = "no two regions share an owner: write another in [region], or end that one"
            held.append(hold_place(region, f"{region.owner}-{digest(f'{place} {domain}')}", what, hint))
        store = str(Path(region.store.path).resolve()) if region.store.kind == "sqlite" else region.store.place
        exact = dsn(region) if region.store.kind == "postgresql" else store
        what = f"the store {store} is another region's already"
        hint = "no two regions share a store: write another one in [store], or end that one"
        held.append(hold_place(region, f"store-{digest(exact)}", what, hint))
    except BaseException:
        for fd in held:
            os.close(fd)
        raise
    return tuple(held)


def digest(text: str) -> str:
    """A short name for a file."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def hold_place(region: Region, name: str, what: str, hint: str) -> int:
    """Hold one lock. Raises ``Misconfigured`` with those words if another process on this machine has it."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    path = folder / f"fencepost-{name}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags, 0o644)
    except PermissionError:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = os.read(fd, 4096).decode(errors="replace").strip()
        os.close(fd)
        raise Misconfigured(f"{what}, by {other}", where=region.path, hint=hint) from None
    if os.access(path, os.W_OK):
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{region.path} (pid {os.getpid()})\n".encode(), 0)
    return fd


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
