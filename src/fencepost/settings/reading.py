"""From TOML's tables to a `Region`, going on past each mistake with a default in its place.

The result is used only if no mistake was noted. Until then it lets everything else be judged, so that one run shows
all.
"""

import os
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from fencepost.settings import keys
from fencepost.settings.lines import Lines, Path
from fencepost.settings.mistakes import Notes, advice, clean, nearest, shown
from fencepost.settings.pools import read_endpoints, read_pools
from fencepost.settings.providers import PROVIDERS
from fencepost.settings.schema import Api, Dns, Fleet, Region, Safety, Secret, Store
from fencepost.settings.tables import Fields, as_table, heading, read_table

_TABLES = ("region", "dns", "store", "api", "checkers", "safety", "fleet")
_INNER = {"fleet": ("network",)}


class Reading:
    """One file being read. `bad` are paths whose value could not be read; nothing that depends on one is judged."""

    def __init__(
        self, notes: Notes, raw: dict[str, Any], lines: Lines, path: FilePath, environ: Mapping[str, str]
    ) -> None:
        """Take where to note mistakes, the parsed file, the lines of its keys, its absolute path, the environment."""
        self.notes = notes
        self.raw = raw
        self.lines = lines
        self.path = path
        self.state = (
            FilePath(environ["STATE_DIRECTORY"].split(":")[0]) if environ.get("STATE_DIRECTORY") else path.parent
        )
        self._top_level()
        self.fields = {name: self._table(name) for name in _TABLES}
        self.bad: set[Path] = {(name, key) for name, fields in self.fields.items() for key in fields.bad}
        self.region = self._region()

    def _top_level(self) -> None:
        tables = (*_TABLES, "pool", "endpoint")
        for name, value in self.raw.items():
            if name in tables:
                continue
            if isinstance(value, (dict, list)):
                near = nearest(name, tables)
                hint = f"did you mean [{near}]?" if near else advice(name, tables)
                self.notes.wrong((name,), f"unknown table [{clean(name)}]; {hint}")
            else:
                where = keys.home(name)
                hint = f"it belongs in {where}" if where else "every key stands in a table"
                self.notes.wrong((name,), f'key "{clean(name)}" stands before any table; {hint}')

    def _table(self, name: str) -> Fields:
        raw = self.raw.get(name, {})
        if name not in self.raw and name in ("region", "dns"):
            first = next(key.example for key in keys.TABLES[name] if key.example)
            self.notes.wrong((), f"there is no [{name}]; write it with at least {first}")
            fields = read_table(Notes(), {}, (name,), keys.TABLES[name])
        else:
            fields = self._fields(raw, (name,), _INNER.get(name, ()))
        self._only_its_own(name, fields)
        return fields

    def _fields(self, raw: Any, path: Path, inner: tuple[str, ...]) -> Fields:
        """One table and the tables within it; what is read of those stands beside its own keys."""
        table = as_table(self.notes, raw, path)
        fields = read_table(self.notes, table, path, keys.TABLES[".".join(map(str, path))], also=inner)
        for name in inner:
            below = self._fields(table.get(name, {}), (*path, name), ())
            fields.update(below)
            fields.bad |= below.bad
        return fields

    def _only_its_own(self, table: str, fields: Fields) -> None:
        """Refuse a key that belongs to another provider or store than the one chosen: it would do nothing."""
        chooser = {"dns": "provider", "store": "kind"}.get(table)
        if chooser is None or chooser in fields.bad:
            return
        for key in keys.TABLES[table]:
            if key.only and key.name in fields.given and fields[chooser] not in key.only:
                whose = " or ".join(f'"{name}"' for name in key.only)
                text = f'{key.name} is for {chooser} {whose}, and {chooser} is "{fields[chooser]}"; leave it out'
                self.notes.wrong((table, key.name), text)
        for name, example in keys.MUST.get((table, fields[chooser]), {}).items():
            if name not in fields.given and name not in fields.bad:
                text = f'{heading((table,))} has no {name}; "{fields[chooser]}" needs one: {name} = {example}'
                self.notes.wrong((table,), text)

    def _region(self) -> Region:
        region, dns, checkers = self.fields["region"], self.fields["dns"], self.fields["checkers"]
        store, own = self.fields["store"], PROVIDERS[dns["provider"] or "embedded"]
        safety = safety_of(self.fields["safety"])
        command = self.fields["fleet"]["command"]
        pools, named_zones, pool_bad = read_pools(
            self.notes, self.raw.get("pool", {}), self.lines, safety, region["zones"], command
        )
        self.bad |= pool_bad
        name = region["name"] or "unnamed"
        domains = dns["domain"] or ()
        listed = "pool" in self.raw and isinstance(self.raw["pool"], dict)
        endpoints = read_endpoints(self.notes, self.raw, self.lines, pools, domains, dns["ttl"], pools_known=listed)
        return Region(
            name=name,
            owner=region["owner"] or name,
            zones=region["zones"] or named_zones,
            drills=region["drills"],
            mode=region["mode"],
            dns=Dns(
                provider=dns["provider"] or "embedded",
                domains=domains,
                ttl_s=dns["ttl"],
                gather_ns=dns["gather"],
                listen=dns["listen"] if dns["provider"] == "embedded" else None,
                transfer=dns["transfer"],
                server=dns["server"],
                key=self._placed(dns["key"]),
                notify=dns["notify"],
                options=tuple((key, dns[key]) for key in own.options if dns[key] is not None),
                secrets=tuple((key, placed) for key in own.secrets if (placed := self._placed(dns[key])) is not None),
            ),
            store=Store(
                store["kind"],
                self._in_state(store["path"] or f"{name}.db"),
                self._placed(store["dsn"]),
                store["table"] or (f"fencepost-{name}" if store["kind"] == "dynamodb" else ""),
                store["aws_region"] or "",
            ),
            api=Api(self.fields["api"]["listen"], self._token()),
            canaries=checkers["canary"],
            safety=safety,
            pools=pools,
            endpoints=endpoints,
            path=str(self.path),
            fleet=self._fleet() if "fleet" in self.raw else None,
        )

    def _fleet(self) -> Fleet:
        fleet = self.fields["fleet"]
        key = self._placed(fleet["key"]) or Secret(file=self._in_state("fleet.key"))
        words = (fleet["driver"], fleet["command"], fleet["allow"], fleet["hosts"])
        return Fleet(fleet["shards"], fleet["renew"], key, *words)

    def _token(self) -> Secret:
        given: Secret | None = self._placed(self.fields["api"]["token"])
        return given or Secret(file=self._in_state("api.token"))

    def _placed(self, secret: Secret | None) -> Secret | None:
        """Give a secret's file its absolute path: what is relative is relative to region.toml."""
        if secret is None or not secret.file:
            return secret
        return Secret(file=os.path.normpath(self.path.parent / secret.file))

    def _in_state(self, name: str) -> str:
        if "\0" in name or not name:
            self.notes.wrong(("store", "path"), f"path {shown(name)} is no path of a file")
            return ""
        return os.path.normpath(self.state / name)


def safety_of(fields: Fields, base: Safety | None = None) -> Safety:
    """Make safety settings of a table; what a pool's own table doesn't give holds as in `base`."""

    def pick(key: str, attribute: str) -> Any:
        return fields[key] if base is None or key in fields.given else getattr(base, attribute)

    return Safety(
        max_out_ppm=pick("max_out", "max_out_ppm"),
        min_in_ppm=pick("min_in", "min_in_ppm"),
        min_count=pick("min_count", "min_count"),
        burst_ppm=pick("burst", "burst_ppm"),
        rate=pick("rate", "rate"),
        fail_open_ppm=pick("fail_open", "fail_open_ppm"),
        ready_age_ns=pick("ready_age", "ready_age_ns"),
    )
