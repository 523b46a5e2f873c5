"""Judges numbers against each other and against the pools they are about. Each relation stands with its reason."""

import ipaddress
import os
from collections.abc import Mapping
from typing import Protocol

from fencepost.settings import units
from fencepost.settings.core_settings import EXIT_PPM
from fencepost.settings.lines import Lines, Path
from fencepost.settings.mistakes import DeniedError, Notes, clean
from fencepost.settings.notify import notify_faults
from fencepost.settings.providers import PROVIDERS
from fencepost.settings.schema import HostPort, Pool, Region, Safety, Secret
from fencepost.settings.secret import is_drawn, is_empty, read_secret, read_tsig_key
from fencepost.settings.services import service_faults
from fencepost.settings.sizes import too_big


class Read(Protocol):
    """What is judged: a region as far as it could be read, and what could not."""

    notes: Notes
    lines: Lines
    bad: set[Path]
    region: Region


def judge_relations(read: Read, environ: Mapping[str, str], *, ipv6: bool) -> None:
    """Note every number that can't hold beside another one, and every secret that isn't where the file says."""
    _Safety(read).judge()
    for pool in read.region.pools:
        _probe(read, pool)
        _families(read, pool, ipv6=ipv6)
    _listeners(read)
    _notify(read)
    _canaries(read)
    _endpoints(read)
    _secrets(read, environ)


class _Safety:
    """Judges the region's safety settings, and each pool's own where it has some."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self.notes = read.notes

    def judge(self) -> None:
        self._limits(self.read.region.safety, ())
        for pool in self.read.region.pools:
            own: Path = ("pool", pool.name)
            if self.read.lines.has((*own, "safety")):
                self._limits(pool.safety, own)
            self._count(pool, own)

    def _limits(self, safety: Safety, own: Path) -> None:
        share = units.share_text
        if self._readable(own, "max_out", "min_in") and safety.max_out_ppm + safety.min_in_ppm > units.WHOLE:
            left = (units.WHOLE - safety.min_in_ppm) / 10_000
            other = self._said(own, "max_out", share(safety.max_out_ppm))
            floor = share(safety.min_in_ppm)
            text = f'min_in "{floor}" leaves {left:g} %, so max_out {other} can\'t be used; lower one of them'
            self.notes.wrong(self._at(own, "min_in", "max_out"), text)
        if self._readable(own, "burst", "max_out") and safety.burst_ppm > safety.max_out_ppm:
            other = self._said(own, "max_out", share(safety.max_out_ppm))
            text = f'burst "{share(safety.burst_ppm)}" is over max_out {other}, so it could never be spent; lower it'
            self.notes.wrong(self._at(own, "burst", "max_out"), text)
        if self._readable(own, "fail_open") and safety.fail_open_ppm <= EXIT_PPM:
            text = (
                f'fail_open "{share(safety.fail_open_ppm)}" must be over {share(EXIT_PPM)}, where it ends again; '
                "the same number for both would flap"
            )
            self.notes.wrong(self._at(own, "fail_open"), text)

    def _count(self, pool: Pool, own: Path) -> None:
        if not self._readable(own, "min_count") or (*own, "targets") in self.read.bad or pool.launch:
            return
        count = len(pool.targets)
        if pool.safety.min_count > count:
            has = "1 target" if count == 1 else f"{count} targets"
            least = pool.safety.min_count
            text = f"min_count {least} is over the {has} of pool {pool.name}, so none could ever go; lower it"
            self.notes.wrong(self._at(own, "min_count"), text)

    def _path(self, own: Path, key: str) -> Path:
        """Give the path where a key that holds for a pool stands: its own table, the region's, or (neither) the
        region's."""
        mine = (*own, "safety", key)
        return mine if own and self.read.lines.has(mine) else ("safety", key)

    def _readable(self, own: Path, *names: str) -> bool:
        return not any(self._path(own, key) in self.read.bad for key in names)

    def _at(self, own: Path, *names: str) -> Path:
        """Give where to say it: the first of the keys that stands in the file, a pool's own before the region's."""
        paths = [self._path(own, key) for key in names]
        paths.sort(key=lambda path: len(path) == 2)
        return next((path for path in paths if self.read.lines.has(path)), paths[0])

    def _said(self, own: Path, key: str, text: str) -> str:
        path = self._path(own, key)
        where = f"line {self.read.lines.of(path)}" if self.read.lines.has(path) else "the default"
        return f'"{text}" ({where})'


def _probe(read: Read, pool: Pool) -> None:
    path: Path = ("pool", pool.name, "probe")
    interval, timeout = (*path, "interval"), (*path, "timeout")
    if not {interval, timeout} & read.bad and pool.probe.timeout_ns >= pool.probe.interval_ns:
        at = timeout if read.lines.has(timeout) else interval
        text = (
            f'timeout "{units.duration_text(pool.probe.timeout_ns)}" must be under interval '
            f'"{units.duration_text(pool.probe.interval_ns)}", or probes of one target overlap'
        )
        read.notes.wrong(at, text)
    ported = all(target.port for target in pool.targets) and (pool.launch is None or pool.launch.port)
    if pool.probe.url.kind == "tcp" and not pool.probe.url.port and not ported:
        read.notes.wrong(path, 'a tcp probe needs a port, like "tcp://:5432", or each target its own')


def _families(read: Read, pool: Pool, *, ipv6: bool) -> None:
    """Refuse targets that no endpoint would ever publish, or no checker could ever reach."""
    endpoints = [endpoint for endpoint in read.region.endpoints if endpoint.pool == pool.name]
    published = {family for endpoint in endpoints for family in endpoint.records}
    present = {target.family for target in pool.targets}
    for target in pool.targets:
        if published and published <= present and target.family not in published:
            said = "A" if target.family == "AAAA" else "AAAA"
            text = (
                f'target {target.address} is never answered: all endpoints of pool {pool.name} say records = ["{said}"]'
            )
            read.notes.wrong(target.line, f'{text}; add "{target.family}" there, or leave it out')
        elif target.family == "AAAA" and not ipv6:
            read.notes.wrong(target.line, f"target {target.address} can't be probed: this machine has no IPv6")


def _listeners(read: Read) -> None:
    """Refuse two things that would listen on one port of one address: whichever starts second never does.

    What listens for NOTIFY takes a free port, unless the file says otherwise (:mod:`.notify`).
    """
    dns, api = read.region.dns, read.region.api.listen
    server = dns.place
    key = "listen" if dns.provider == "embedded" else "server"
    if server is None or {("dns", key), ("api", "listen")} & read.bad or not _same_place(server, api):
        return
    given: Path = ("dns", key)
    at: Path = ("api", "listen") if read.lines.has(("api", "listen")) else given
    other = given if at != given else ("api", "listen")
    where = f"line {read.lines.of(other)}" if read.lines.has(other) else "the default"
    text = f'[api] listen "{api}" is also [dns] {key} "{server}" ({where}): one port, two that listen; write another'
    read.notes.wrong(at, text)


def _same_place(one: HostPort, other: HostPort) -> bool:
    """Whether two places can't both be listened on: one port, and one address or all of them."""
    hosts = {"127.0.0.1" if each.host == "localhost" else each.host for each in (one, other)}
    return one.port == other.port and (len(hosts) == 1 or any(_everywhere(host) for host in hosts))


def _everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False  # a name


def _notify(read: Read) -> None:
    """Refuse places for NOTIFY that no enactor would listen at, or two would."""
    if not {("dns", "notify"), ("dns", "provider"), ("region", "zones"), ("api", "listen")} & read.bad:
        for text in notify_faults(read.region):
            read.notes.wrong(("dns", "notify"), f"notify: {text}")


def _canaries(read: Read) -> None:
    mine = {target.address: pool.name for pool in read.region.pools for target in pool.targets}
    for canary in read.region.canaries:
        if canary.host in mine:
            text = (
                f"canary {canary.host} is a target of pool {mine[canary.host]}: "
                "when it dies every checker would doubt itself instead; name something else"
            )
            read.notes.wrong(("checkers", "canary"), text)


def _endpoints(read: Read) -> None:
    """Refuse what the provider can't write of an endpoint: a form it doesn't have, or more than one transaction."""
    provider = PROVIDERS[read.region.dns.provider]
    for endpoint in read.region.endpoints:
        if endpoint.weighted and not provider.weighted and ("dns", "provider") not in read.bad:
            text = (
                f"endpoint {endpoint.name} is weighted, and {provider.label} has no weighted record sets; leave it out"
            )
            read.notes.wrong(endpoint.line, text)
        if endpoint.srv and not provider.srv:
            continue
        text = too_big(endpoint, read.region.pool(endpoint.pool), provider.room)
        if text:
            read.notes.wrong(endpoint.line, text)
    if ("dns", "provider") not in read.bad:
        for endpoint, fault in service_faults(read.region):
            read.notes.wrong(endpoint.line, fault)


def _secrets(read: Read, environ: Mapping[str, str]) -> None:
    """Look at each secret that must be there. The API's token may be missing: it is made on first start."""
    key = read.region.dns.key
    if key is not None and read.region.dns.provider == "rfc2136":
        try:
            read_tsig_key(key, environ)
        except ValueError as error:
            read.notes.wrong(("dns", "key"), f"key: {error}", denied=isinstance(error, DeniedError))
    for name, secret in read.region.dns.secrets:
        _look(read, secret, environ, ("dns", name))
    if read.region.store.dsn is not None:
        _look(read, read.region.store.dsn, environ, ("store", "dsn"))
    _look_drawn(read, read.region.api.token, environ, ("api", "token"))
    seal = read.region.fleet.key if read.region.fleet is not None else None
    if seal is not None:
        _look_drawn(read, seal, environ, ("fleet", "key"))


def _look_drawn(read: Read, secret: Secret, environ: Mapping[str, str], at: tuple[str, str]) -> None:
    """Look at a secret that is made on first start: it may be missing, and where we draw it ourselves also empty."""
    if secret.file and is_empty(secret):
        if not is_drawn(secret, read.region.path, environ):
            advice = "put the secret into it, or remove it: a start draws one"
            read.notes.wrong(at, f"{at[1]}: {clean(secret.file, 1024)} is empty; {advice}")
    elif secret.env or os.path.lexists(secret.file):
        _look(read, secret, environ, at)


def _look(read: Read, secret: Secret, environ: Mapping[str, str], at: tuple[str, str]) -> None:
    try:
        read_secret(secret, environ)
    except ValueError as error:
        read.notes.wrong(at, f"{at[1]}: {error}", denied=isinstance(error, DeniedError))
