"""BIND and Knot as secondaries of our server: each is configured in a directory of its own, as its command says."""

import shutil
from pathlib import Path

from dns_server_running import HERE, SECRET

NAMED, KNOTD = shutil.which("named", path="/usr/sbin"), shutil.which("knotd", path="/usr/sbin")
"""Where the programs are; None where they aren't installed."""


def bind(path: Path, primary: int, port: int) -> list[str]:
    """The command of a BIND that follows ``example.test`` of the primary at a port of loopback."""
    (path / "named.conf").write_text(f'''
key "writer" {{ algorithm hmac-sha256; secret "{SECRET}"; }};
options {{ directory "{path}"; listen-on port {port} {{ {HERE}; }}; listen-on-v6 {{ none; }}; pid-file none;
    session-keyfile "{path}/session.key"; recursion no; notify no; min-refresh-time 1; tcp-clients 10; }};
controls {{ }};
zone "example.test" {{ type secondary; masterfile-format text; file "{path}/copy.zone";
    primaries {{ {HERE} port {primary} key "writer"; }}; }};
''')
    return [str(NAMED), "-g", "-n", "1", "-c", str(path / "named.conf")]


def knot(path: Path, primary: int, port: int) -> list[str]:
    """The command of a Knot that follows ``example.test`` of the primary at a port of loopback."""
    (path / "knot.conf").write_text(f"""
server:
    rundir: {path}
    listen: {HERE}@{port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: {path}
key:
  - id: writer
    algorithm: hmac-sha256
    secret: {SECRET}
remote:
  - id: primary
    address: {HERE}@{primary}
    key: writer
acl:
  - id: told
    address: {HERE}
    action: notify
zone:
  - domain: example.test
    storage: {path}
    file: {path}/copy.zone
    master: primary
    acl: told
""")
    return [str(KNOTD), "-c", str(path / "knot.conf")]
