"""Reads pools, their targets, and the endpoints that publish them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from fencepost.core.names import longest_domain, marker_name, normalise
from fencepost.settings import keys, values
from fencepost.settings.lines import Lines, Path
from fencepost.settings.mistakes import Notes, advice, clean, shown
from fencepost.settings.schema import Endpoint, Launch, Pool, Probe, Safety, Target, Url
from fencepost.settings.tables import Fields, as_table, heading, read_table

_NO_URL = Url("http", "", 80, "/")


def read_pools(
    notes: Notes, raw: Any, lines: Lines, safety: Safety, zones: tuple[str, ...] | None, command: tuple[str, ...]
) -> tuple[tuple[Pool, ...], tuple[str, ...], set[Path]]:
    """Read every pool. Gives the pools, the zones their targets name in sorted order, and the paths that could not be
    read. ``command`` is what instances run where a pool doesn't say."""
    pools: list[Pool] = []
    bad: set[Path] = set()
    if not isinstance(raw, dict):
        notes.wrong(("pool",), "a pool is written [pool.NAME], with its name in the heading")
        return (), (), bad
    for name, value in raw.items():
        reader = _PoolReader(notes, lines, safety, zones, name)
        pools.append(reader.read(value, command))
        bad |= reader.bad
    if not raw:
        notes.wrong((), "there is no pool; write [pool.NAME] with a probe and [pool.NAME.targets]")
    named = sorted({target.zone for pool in pools for target in pool.targets})
    return tuple(pools), tuple(named), bad


class _PoolReader:
    def __init__(self, notes: Notes, lines: Lines, safety: Safety, zones: tuple[str, ...] | None, name: str) -> None:
        self.notes = notes
        self.lines = lines
        self.safety = safety
        self.zones = zones
        self.name = name
        self.path: Path = ("pool", name)
        self.bad: set[Path] = set()
        self.first: dict[str, int] = {}

    def read(self, value: Any, command: tuple[str, ...]) -> Pool:
        path = self.path
        try:
            values.word(self.name)
        except ValueError as error:
            self.notes.wrong(path, f"pool {shown(self.name)} {error}")
        raw = as_table(self.notes, value, path)
        fields = read_table(self.notes, raw, path, keys.TABLES["pool.NAME"], also=self._subtables(raw))
        probe = self._probe(raw, fields)
        return Pool(
            name=self.name,
            probe=probe,
            capacity=fields["capacity"],
            safety=self._safety(raw),
            targets=self._targets(raw),
            line=self.lines.of(path),
            launch=self._launch(raw["launch"], probe, command) if "launch" in raw else None,
        )

    def _launch(self, raw: Any, probe: Probe, command: tuple[str, ...]) -> Launch:
        path = (*self.path, "launch")
        fields = read_table(self.notes, as_table(self.notes, raw, path), path, keys.TABLES["pool.NAME.launch"])
        self.bad |= {(*path, key) for key in fields.bad}
        return Launch(fields["port"] or probe.url.port, fields["command"] or command)

    def _subtables(self, raw: dict[str, Any]) -> tuple[str, ...]:
        long_form = isinstance(raw.get("probe"), dict)
        return keys.SUBTABLES if long_form else keys.SUBTABLES[1:]

    def _probe(self, raw: dict[str, Any], fields: Fields) -> Probe:
        path = (*self.path, "probe")
        long_form = isinstance(raw.get("probe"), dict)
        table = raw["probe"] if long_form else {}
        quiet = self.notes if long_form else Notes()
        probe = read_table(quiet, table, path, keys.TABLES["pool.NAME.probe"])
        if long_form:
            self.bad |= {(*path, key) for key in probe.bad}
        url = (probe["url"] if long_form else fields["probe"]) or _NO_URL
        if probe["status"] and url.kind != "http":
            self.notes.wrong(
                (*path, "status"), f'status is for http probes, and this one is "{url.kind}"; leave it out'
            )
        return Probe(url, probe["status"], probe["interval"], probe["timeout"], probe["fall"], probe["rise"])

    def _safety(self, raw: dict[str, Any]) -> Safety:
        if "safety" not in raw:
            return self.safety
        path = (*self.path, "safety")
        fields = read_table(self.notes, as_table(self.notes, raw["safety"], path), path, keys.SAFETY)
        self.bad |= {(*path, key) for key in fields.bad}
        names = {"min_count": "min_count", "rate": "rate", "ready_age": "ready_age_ns"}
        return msgspec.structs.replace(
            self.safety, **{names.get(key, f"{key}_ppm"): fields[key] for key in fields.given}
        )

    def _targets(self, raw: dict[str, Any]) -> tuple[Target, ...]:
        path = (*self.path, "targets")
        before = len(self.notes.mistakes)
        table = as_table(self.notes, raw.get("targets", {}), path)
        targets: list[Target] = []
        for zone, listed in table.items():
            named = self._zone(zone, (*path, zone))
            if not named:
                continue
            if not isinstance(listed, list):
                text = f'zone "{clean(zone)}": must be a list of addresses, like {clean(zone)} = ["192.0.2.10"]'
                self.notes.wrong((*path, zone), text)
                continue
            for index, one in enumerate(listed):
                target = self._target(zone, one, (*path, zone, index))
                if target is not None:
                    targets.append(target)
        if not targets and ("targets" in raw or "launch" not in raw):
            self.bad.add(path)
            if len(self.notes.mistakes) == before:
                at = path if "targets" in raw else self.path
                self.notes.wrong(
                    at,
                    f'pool {clean(self.name)} has no targets; write {heading(path)} with a = ["192.0.2.10"]',
                )
        return tuple(targets)

    def _zone(self, zone: str, path: Path) -> bool:
        try:
            values.word(zone)
        except ValueError as error:
            self.notes.wrong(path, f"zone {shown(zone)} {error}")
            return False
        if self.zones is not None and zone not in self.zones:
            self.notes.wrong(path, f'zone "{zone}" is not in zones of [region]; {advice(zone, self.zones)}')
        return True

    def _target(self, zone: str, one: Any, path: Path) -> Target | None:
        if isinstance(one, dict):
            fields = read_table(self.notes, one, path, keys.TARGET)
            address, weight, port = fields["addr"], fields["weight"], fields["port"]
        else:
            address, weight, port = self._address(one, path), None, 0
        if address is None:
            return None
        line = self.lines.of(path)
        if address in self.first:
            first = f"first on line {self.first[address]}"
            text = f"{address} is in pool {clean(self.name)} twice ({first}); list it once, with a weight"
            self.notes.wrong(path, text)
            return None
        self.first[address] = line
        return Target(address, zone, weight, port, line)

    def _address(self, one: Any, path: Path) -> str | None:
        try:
            return values.address(one)
        except ValueError as error:
            both = values.with_port(one)
            hint = f'write {{ addr = "{both[0]}", port = {both[1]} }}' if both else ""
            self.notes.wrong(path, f"target {shown(one)} {'has a port; ' + hint if both else error}")
            return None


def read_endpoints(
    notes: Notes,
    raw: Mapping[str, Any],
    lines: Lines,
    pools: tuple[Pool, ...],
    domains: tuple[str, ...],
    ttl_s: int,
    *,
    pools_known: bool,
) -> tuple[Endpoint, ...]:
    """Read every endpoint. `pools_known` is false if pools could not be read at all, so that none is called missing."""
    listed = raw.get("endpoint", [])
    if not isinstance(listed, list):
        notes.wrong(("endpoint",), "an endpoint is written [[endpoint]], with two brackets, once for each")
        return ()
    reader = _EndpointReader(notes, lines, {pool.name: pool for pool in pools}, domains, pools_known)
    found = []
    for index, one in enumerate(listed):
        path: Path = ("endpoint", index)
        if not isinstance(one, dict):
            notes.wrong(path, "an endpoint is written [[endpoint]], with its name and pool on the lines below")
            continue
        endpoint = reader.read(one, path, ttl_s)
        if endpoint is not None:
            found.append(endpoint)
    return tuple(found)


class _EndpointReader:
    def __init__(
        self, notes: Notes, lines: Lines, pools: dict[str, Pool], domains: tuple[str, ...], pools_known: bool
    ) -> None:
        self.notes = notes
        self.lines = lines
        self.pools = pools
        self.domains = dict.fromkeys(domains)
        self.pools_known = pools_known
        self.first: dict[str, int] = {}
        self.families = {name: _families(pool) for name, pool in pools.items()}

    def read(self, raw: dict[str, Any], path: Path, ttl_s: int) -> Endpoint | None:
        fields = read_table(self.notes, raw, path, keys.ENDPOINT)
        name = self._name(fields, path)
        pool = self._pool(fields, path)
        records = fields["records"] or (self.families.get(pool, ()) if pool else ())
        if pool and "records" in fields.given:
            self._families(fields["records"], pool, (*path, "records"))
        if name is None or pool is None:
            return None
        domain = longest_domain(name, self.domains) or ""
        if not domain and self.domains:
            self._outside(name, (*path, "name"))
        ttl = fields["ttl"] if "ttl" in fields.given else ttl_s
        return Endpoint(
            name, domain, pool, ttl, records, self.lines.of((*path, "name")), fields["weighted"], fields["srv"] or ""
        )

    def _name(self, fields: Fields, path: Path) -> str | None:
        if "name" not in fields.given:
            return None
        given, path = fields["name"], (*path, "name")
        try:
            name = normalise(given)
            marker_name(name)
        except ValueError as error:
            self.notes.wrong(path, f"endpoint {shown(given)} {error}")
            return None
        line = self.lines.of(path)
        if name in self.first:
            said = f"endpoint {name} is there twice" if given == name else f"{shown(given)} is endpoint {name} again"
            self.notes.wrong(path, f"{said} (first on line {self.first[name]}); leave one out")
            return None
        self.first[name] = line
        return name

    def _pool(self, fields: Fields, path: Path) -> str | None:
        if "pool" not in fields.given:
            return None
        name: str = fields["pool"]
        if name in self.pools:
            return name
        if self.pools_known:
            self.notes.wrong((*path, "pool"), f"there is no pool {shown(name)}; {advice(name, self.pools)}")
        return None

    def _outside(self, name: str, path: Path) -> None:
        at = self.lines.of(("dns", "domain"))
        if len(self.domains) == 1:
            text = f"{name} is not in {next(iter(self.domains))}, the domain of line {at}"
        else:
            text = f"{name} is in none of the domains of line {at}"
        self.notes.wrong(path, text)

    def _families(self, records: tuple[str, ...], pool: str, path: Path) -> None:
        """Refuse a published family without any address: it would be empty, which is what must never be."""
        for family in records:
            if self.pools[pool].targets and family not in self.families[pool] and not self.pools[pool].launch:
                kind = "IPv6" if family == "AAAA" else "IPv4"
                text = f'records names "{family}", and pool {pool} has no {kind} target to answer with; leave it out'
                self.notes.wrong(path, text)


def _families(pool: Pool) -> tuple[str, ...]:
    """The families a pool's endpoints publish where they don't say. What hosts give to instances isn't known here, so
    it is IPv4 alone for a pool of nothing but instances."""
    found = tuple(sorted({target.family for target in pool.targets}))
    return found or (("A",) if pool.launch else ())
