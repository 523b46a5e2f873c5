"""What region.toml says, as one frozen value: names normalised, numbers in integers, defaults filled in.

The same value is written as a row into the region's store and planned from there, so it goes to JSON and back unchanged
and holds no secret: a `Secret` says where one is to be found, never what it is. Every target and endpoint keeps the
line it came from, for a plan that says "new, region.toml:31"; lines never count as a difference.
"""

import msgspec

from fencepost.settings.units import Rate


class HostPort(msgspec.Struct, frozen=True, gc=False):
    """Where something listens: an address (v6 without brackets), or for the API alone a host name; and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Write it as in the file: ``192.0.2.53:53``, ``[2001:db8::1]:53``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Secret(msgspec.Struct, frozen=True, gc=False):
    """Where a secret is: the absolute path of a file, or the name of an environment variable; one of them is empty."""

    file: str = ""
    env: str = ""


class Url(msgspec.Struct, frozen=True, gc=False):
    """What to ask of a target. `host` is sent as its Host header if not empty; the connection goes to the target's
    address."""

    kind: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        """Write it as in the file: ``http://:8080/healthz``. Port 0 is each target's own."""
        return f"{self.kind}://{self.host}{f':{self.port}' if self.port else ''}{self.path}"


class Probe(msgspec.Struct, frozen=True, gc=False):
    """How a pool's targets are judged. `status` lists the good answers; empty means 200 to 299."""

    url: Url
    status: tuple[int, ...]
    interval_ns: int
    timeout_ns: int
    fall: int
    rise: int


class Safety(msgspec.Struct, frozen=True, gc=False):
    """How fast and how far automation may take capacity out. Shares are millionths of the pool's weight.

    ready_age_ns: how old a new target is before it serves.
    """

    max_out_ppm: int
    min_in_ppm: int
    min_count: int
    burst_ppm: int
    rate: Rate
    fail_open_ppm: int
    ready_age_ns: int = 30_000_000_000


class Target(msgspec.Struct, frozen=True, gc=False):
    """One address that can serve. `weight` is None if the file gives none; `port` 0 is the probe's own."""

    address: str
    zone: str
    weight: int | None
    port: int
    line: int

    @property
    def family(self) -> str:
        """Give the record type its address is published as: ``A`` or ``AAAA``."""
        return "AAAA" if ":" in self.address else "A"

    @property
    def counts(self) -> int:
        """Give the weight it counts with while nothing else is known: its own, or one."""
        return self.weight or 1


class Launch(msgspec.Struct, frozen=True, gc=False):
    """How a pool's instances are run on the fleet. `port` is the probe's where the file gives none, `command` that of
    [fleet]: words, with ``{address}`` and the like still in them."""

    port: int
    command: tuple[str, ...] = ()


class Pool(msgspec.Struct, frozen=True):
    """Targets that are interchangeable, judged and limited together. `safety` is what holds for this pool, defaults
    in. With `launch` its targets are instances on the fleet too, and `targets` may be empty."""

    name: str
    probe: Probe
    capacity: Url | None
    safety: Safety
    targets: tuple[Target, ...]
    line: int
    launch: Launch | None = None


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """A name whose address records we keep. `domain` is the DNS zone it is written in, `records` its families.

    `weighted` asks for Route 53's weighted record sets, which answer one address a question, in place of plain ones.
    `srv` is the service that SRV records are kept for beside it, ``_http._tcp``, or "".
    """

    name: str
    domain: str
    pool: str
    ttl_s: int
    records: tuple[str, ...]
    line: int
    weighted: bool = False
    srv: str = ""


class Dns(msgspec.Struct, frozen=True):
    """Where records are written. `listen` and `transfer` are the embedded server's; `server` and `key` those of
    rfc2136; `options` and `secrets` a provider's own keys and what they say. `notify` is where each zone's enactor
    takes NOTIFY from a primary of rfc2136."""

    provider: str
    domains: tuple[str, ...]
    ttl_s: int
    gather_ns: int
    listen: HostPort | None
    transfer: tuple[str, ...]
    server: HostPort | None
    key: Secret | None
    options: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, Secret], ...] = ()
    notify: tuple[tuple[str, HostPort], ...] = ()

    @property
    def place(self) -> HostPort | None:
        """Give the address of the primary that speaks DNS; None for a provider that is reached by an API."""
        return self.listen if self.provider == "embedded" else self.server

    def option(self, key: str) -> str:
        """Give what the file says for one of the provider's own keys; "" if nothing."""
        return dict(self.options).get(key, "")

    def notify_at(self, zone: str) -> HostPort | None:
        """Give the fixed place at which a zone's enactor takes NOTIFY; None where any free port will do."""
        return dict(self.notify).get(zone)


class Store(msgspec.Struct, frozen=True, gc=False):
    """Where rows are kept. `path` is absolute, and sqlite's; `dsn` is postgresql's; the others are dynamodb's."""

    kind: str
    path: str
    dsn: Secret | None = None
    table: str = ""
    aws_region: str = ""

    @property
    def place(self) -> str:
        """Where it is, for people: the file, the table, or its kind (the rest of a dsn is a secret)."""
        return {"sqlite": self.path, "dynamodb": f"dynamodb {self.table}"}.get(self.kind, self.kind)


class Api(msgspec.Struct, frozen=True, gc=False):
    """Where the API listens, and where the token is that changes ask for."""

    listen: HostPort
    token: Secret


class Allowed(msgspec.Struct, frozen=True, gc=False):
    """One thing that instances accept: ``tcp`` or ``udp``, to this port, from this network."""

    protocol: str
    port: int
    source: str

    def __str__(self) -> str:
        """Write it as in the file: ``tcp/5302 from 127.0.0.0/8``."""
        return f"{self.protocol}/{self.port} from {self.source}"


class Fleet(msgspec.Struct, frozen=True):
    """Hosts that instances are launched on. `renew_ns` is R; `driver` is ``process`` or ``none``; `key` seals what
    managers and agents say to each other, and its file is made on first start. `hosts`, if there are any, are all that
    there may be."""

    shards: int
    renew_ns: int
    key: Secret
    driver: str
    command: tuple[str, ...] = ()
    allow: tuple[Allowed, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def lease_ns(self) -> int:
        """How long a lease holds without an answer: three renewals."""
        return 3 * self.renew_ns

    @property
    def margin_ns(self) -> int:
        """What is waited beyond a lease, for clocks that run apart by up to 1 % each."""
        return self.lease_ns // 50


class Region(msgspec.Struct, frozen=True):
    """A whole region.toml. `path` is the absolute path of the file it was read from."""

    name: str
    owner: str
    zones: tuple[str, ...]
    drills: bool
    mode: str
    dns: Dns
    store: Store
    api: Api
    canaries: tuple[Url, ...]
    safety: Safety
    pools: tuple[Pool, ...]
    endpoints: tuple[Endpoint, ...]
    path: str
    fleet: Fleet | None = None

    def pool(self, name: str) -> Pool:
        """Give a pool by its name. Raises KeyError if there is none."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise KeyError(name)


def encode(region: Region) -> bytes:
    """Write a region as JSON, for its row in the store."""
    return msgspec.json.encode(region)


def decode(data: bytes) -> Region:
    """Read what `encode` wrote. Raises msgspec.ValidationError for anything else."""
    return msgspec.json.decode(data, type=Region)
