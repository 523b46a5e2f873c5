"""Writes a region.toml from what was chosen, with what a person has still to say marked as such.

The records say which names answer which addresses. They don't say which failure zone an address is in, nor how one is
known to be well: so every target goes into zone a and every pool gets one probe, and a comment asks. Guessing zones
from addresses would look right and let one failure pass for two.
"""

import json
from collections import Counter

from msgspec import Struct

from fencepost.core.orders import plain
from fencepost.importing.choosing import Chosen, Endpoint

LISTED_MOST = 200
"""So many names that are left out stand in the file; of more it says how many."""
WIDTH = 100


class Served(Struct, frozen=True, gc=False):
    """Who serves the domain: the lines of [dns] besides its domain and ttl, and where the records were read."""

    lines: tuple[str, ...]
    read_from: str


def write(name: str, domains: tuple[str, ...], chosen: Chosen, served: Served, probe: str) -> str:
    """The file's text; ``name`` is the region's, ``probe`` a URL as region.toml takes it."""
    ttl = usual_ttl(chosen)
    said = [
        f"# Written by  fencepost import  from {plain(served.read_from)}. Nothing was changed there.",
        "# Next: split the targets by failure zone, set each pool's probe; then  fencepost check  and  fencepost plan",
        "[region]",
        f"name = {text(name)}    # written in every marker; no two regions share it",
        '# mode = "observe"    # to begin with: look at the targets, decide and show, take nothing out',
        "",
        "[dns]",
        *served.lines,
        f"domain = {text(domains[0]) if len(domains) == 1 else listed(domains)}",
        f'ttl = "{ttl}s"',
    ]
    shared = Counter(endpoint.pool for endpoint in chosen.endpoints)
    for pool, addresses in chosen.pools.items():
        said += [
            "",
            f"[pool.{pool}]" + (f"    # {shared[pool]} endpoints answer these addresses" if shared[pool] > 1 else ""),
            f"probe = {text(probe)}    # the records don't say how a target is known to be well",
            f"[pool.{pool}.targets]    # one zone for all, as the records don't say: split them, a = [...] b = [...]",
            *target_lines(addresses),
        ]
    for endpoint in chosen.endpoints:
        said += ["", *endpoint_lines(endpoint, ttl)]
    return "\n".join([*said, *left_lines(chosen)]) + "\n"


def usual_ttl(chosen: Chosen) -> int:
    """The TTL that most endpoints have, the shortest of several such."""
    counts = Counter(endpoint.content.ttl for endpoint in chosen.endpoints)
    return max(counts, key=lambda ttl: (counts[ttl], -ttl))


def target_lines(addresses: tuple[str, ...]) -> list[str]:
    """A zone's list, on one line if that is short."""
    short = f"a = {listed(addresses)}"
    if len(short) <= WIDTH:
        return [short]
    return ["a = [", *(f"  {text(address)}," for address in addresses), "]"]


def endpoint_lines(endpoint: Endpoint, usual: int) -> list[str]:
    """An endpoint; its TTL only where it isn't the usual one."""
    lines = [f"# {plain(endpoint.note)}"] if endpoint.note else []
    lines += ["[[endpoint]]", f"name = {text(endpoint.name)}", f"pool = {text(endpoint.pool)}"]
    return lines + ([f'ttl = "{endpoint.content.ttl}s"'] if endpoint.content.ttl != usual else [])


def left_lines(chosen: Chosen) -> list[str]:
    """What isn't here, as comments."""
    if not chosen.left:
        return []
    lines = ["", "# Left out, and as it was:"]
    lines += [f"#   {plain(each.name)}    {plain(each.why)}" for each in chosen.left[:LISTED_MOST]]
    more = len(chosen.left) - LISTED_MOST
    return [*lines, f"#   and {more} more"] if more > 0 else lines


def text(value: str) -> str:
    """A TOML basic string: JSON's escapes are among TOML's, once DEL is written out too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def listed(found: tuple[str, ...]) -> str:
    """A list of strings."""
    return f"[{', '.join(map(text, found))}]"
