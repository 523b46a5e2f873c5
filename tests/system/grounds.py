"""What a region of the tests stands on: its file, a DNS provider, a store; and what its folder holds before a start."""

import atexit
import contextlib
import functools
from pathlib import Path

from postgresql import Server, postgresql

from fencepost.assembly.places import draw_tsig_key, write_secret

TEMPLATE = """
[region]
name = "{name}"
owner = "{owner}"
drills = true
[dns]
{provider}
domain = "example.test"
ttl = "5s"
gather = "1s"
[store]
{store}
[api]
listen = "127.0.0.1:{api}"
token = {{ file = "api.token" }}
[pool.web.probe]
url = "http://:{target}/healthz"
interval = "200ms"
timeout = "100ms"
[pool.web.targets]
a = ["127.0.1.1", "127.0.1.2"]
b = ["127.0.2.1", "127.0.2.2"]
c = ["127.0.3.1", "127.0.3.2"]
[[endpoint]]
name = "api.example.test"
pool = "web"
[[endpoint]]
name = "www.example.test"
pool = "web"
"""

PROVIDERS = {
    "embedded": 'provider = "embedded"\nlisten = "127.0.0.1:{dns}"\ntransfer = ["127.0.0.1"]',
    "bind": 'provider = "rfc2136"\nserver = "127.0.0.1:{dns}"\nkey = {{ file = ".fencepost/{name}/tsig.key" }}',
    "route53-dev": (
        'provider = "route53"\nendpoint = "http://127.0.0.1:{more}"\nserver = "127.0.0.1:{dns}"\nrequests = "200/s"'
    ),
}
STORES = {"sqlite": 'path = "{name}.db"', "postgresql": 'kind = "postgresql"\ndsn = {{ file = "postgresql.dsn" }}'}
EVERYWHERE = ("embedded+sqlite", "bind+postgresql", "route53-dev+postgresql")
"""What a promise must hold on, whatever it is built on: a DNS provider and a store."""


@functools.cache
def postgresql_server() -> Server:
    """One PostgreSQL for all regions of this process, ended with it."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(postgresql())


def fresh_dsn() -> str:
    """The dsn of a new, empty database."""
    server = postgresql_server()
    return server.dsn(server.database())


def place_secrets(folder: Path, state: Path, provider: str, store: str) -> None:
    """What a region's folder holds before its first start: what runs beside it, and the keys of both sides."""
    state.mkdir(parents=True, exist_ok=True)
    if provider != "embedded":
        (state / "stand-ins").write_text(f"{provider}\n")
    if provider == "bind":
        draw_tsig_key(state / "tsig.key", "fencepost-test")
    if store == "postgresql":
        write_secret(folder / "postgresql.dsn", fresh_dsn())
