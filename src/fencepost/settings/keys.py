"""Every key of region.toml: how it is read, what holds without it, and why. The reference page is tested against
this."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fencepost.settings import fleet, values
from fencepost.settings.notify import places_by_zone
from fencepost.settings.providers import BY_UPDATE, PROVIDERS
from fencepost.settings.services import service
from fencepost.settings.values import Reader


class Key(NamedTuple):
    """One key. `default` is as in the file; `example` is there where it must be given; `only` names the providers or
    kinds of store that it belongs to, none of them meaning all."""

    name: str
    read: Reader
    default: Any = None
    example: str = ""
    only: tuple[str, ...] = ()
    secret: bool = False


SIGNED = dict.fromkeys(("bind", "bind9", "named", "knot", "powerdns", "pdns", "nsupdate", "tsig"), "rfc2136")
"""Servers by whose name people call the protocol that they take."""

BY_API = tuple(name for name in PROVIDERS if name not in BY_UPDATE)
"""Providers that are written by an API of their own; what they answer is asked of a DNS server all the same."""

SAFETY = (
    Key("max_out", values.share(), "20%"),
    Key("min_in", values.share(), "50%"),
    Key("min_count", values.whole(1, 1_000_000), 1),
    Key("burst", values.share(), "10%"),
    Key("rate", values.rate, "5%/min"),
    Key("fail_open", values.share("1%"), "50%"),
    Key("ready_age", values.duration("1s", "1h"), "30s"),
)

PROBE = (
    Key("url", values.target_url, example='url = "http://:8080/healthz"'),
    Key("status", values.statuses, ()),
    Key("interval", values.duration("100ms", "1h"), "10s"),
    Key("timeout", values.duration("10ms", "10m"), "2s"),
    Key("fall", values.whole(1, 100), 3),
    Key("rise", values.whole(1, 100), 5),
)

TARGET = (
    Key("addr", values.address, example='addr = "192.0.2.10"'),
    Key("weight", values.weight),
    Key("port", values.whole(1, 65535), 0),
)

ENDPOINT = (
    Key("name", values.string, example='name = "api.example.com"'),
    Key("pool", values.string, example='pool = "api"'),
    Key("ttl", values.ttl, None),
    Key("records", values.records, None),
    Key("weighted", values.boolean, False),
    Key("srv", service, None),
)

TABLES: dict[str, tuple[Key, ...]] = {
    "region": (
        Key("name", values.word, example='name = "eu-1"'),
        Key("owner", values.word, None),
        Key("zones", values.words, None),
        Key("drills", values.boolean, False),
        Key("mode", values.choice("enabled", "observe", "disabled"), "enabled"),
    ),
    "dns": (
        Key(
            "provider",
            values.choice(*PROVIDERS, meant=SIGNED),
            example='provider = "embedded", "rfc2136" or "route53"',
        ),
        Key("domain", values.domains, example='domain = "example.com"'),
        Key("ttl", values.ttl, "30s"),
        Key("gather", values.duration("0s", "1h"), "30s"),
        Key("listen", values.place(), "127.0.0.1:5300", only=("embedded",)),
        Key("transfer", values.addresses, (), only=("embedded",)),
        Key("server", values.place(53), None, only=("rfc2136", *BY_API)),
        Key("key", values.secret, None, only=("rfc2136",), secret=True),
        Key("notify", places_by_zone, (), only=("rfc2136",)),
        *(
            Key(key, read, None, only=(name,))
            for name, provider in PROVIDERS.items()
            for key, read in provider.options.items()
        ),
        *(
            Key(key, values.secret, None, only=(name,), secret=True)
            for name, provider in PROVIDERS.items()
            for key in provider.secrets
        ),
    ),
    "store": (
        Key("kind", values.choice("sqlite", "postgresql", "dynamodb"), "sqlite"),
        Key("path", values.string, None, only=("sqlite",)),
        Key("dsn", values.secret, None, only=("postgresql",), secret=True),
        Key("table", values.dynamodb_table, None, only=("dynamodb",)),
        Key("aws_region", values.aws_region, None, only=("dynamodb",)),
    ),
    "api": (
        Key("listen", values.place(names=True), "127.0.0.1:5301"),
        Key("token", values.secret, None, secret=True),
    ),
    "checkers": (Key("canary", values.canaries, ()),),
    "safety": SAFETY,
    "fleet": (
        Key("shards", values.whole(1, 1024), 1),
        Key("renew", fleet.renew, "10s"),
        Key("key", values.secret, None, secret=True),
        Key("driver", values.choice("process", "none"), "process"),
        Key("command", fleet.command, ()),
        Key("hosts", fleet.hosts, ()),
    ),
    "fleet.network": (Key("allow", fleet.allowed, ()),),
    "pool.NAME": (
        Key("probe", values.target_url, example='probe = "http://:8080/healthz"'),
        Key("capacity", values.http_url, None),
    ),
    "pool.NAME.probe": PROBE,
    "pool.NAME.safety": SAFETY,
    "pool.NAME.launch": (
        Key("port", values.whole(1, 65535), None),
        Key("command", fleet.command, None),
    ),
    "target": TARGET,
    "endpoint": ENDPOINT,
}
"""By heading. In `[pool.NAME.targets]` the keys are zones, and `target` is what stands in their lists where an
address alone won't do."""

MUST: dict[tuple[str, str], Mapping[str, str]] = {
    ("dns", "rfc2136"): {"server": '"192.0.2.53:53"', "key": '{ file = "tsig.key" }'},
    ("store", "postgresql"): {"dsn": '{ env = "FENCEPOST_DSN" }'},
    **{("dns", name): provider.must for name, provider in PROVIDERS.items() if provider.must},
}
"""What a provider or a kind of store has to be given: the key, and an example of what to write."""

SUBTABLES = ("probe", "safety", "targets", "launch")
"""What a pool holds besides its own keys; `probe` may be either."""


def home(name: str) -> str:
    """Give the heading, in brackets, of the one table that has a key of this name; or an empty string."""
    homes = {"pool.NAME.safety": "safety", "target": "pool.NAME.targets"}
    found = {homes.get(table, table) for table, keys in TABLES.items() if any(key.name == name for key in keys)}
    if len(found) != 1:
        return ""
    (table,) = found
    return "[[endpoint]]" if table == "endpoint" else f"[{table}]"
