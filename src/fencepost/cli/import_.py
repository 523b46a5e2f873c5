"""``fencepost import``: a region.toml from what serves today. It touches nothing: what it reads, it only reads.

The file goes to stdout and everything else to stderr, so that ``fencepost import ... > region.toml`` is the whole use.
What it writes is judged by the very code of ``fencepost check`` before it is shown.
"""

import json as json_text
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fencepost.cli.check import counted
from fencepost.cli.flags import Config, Json, Timeout, blamed, duration
from fencepost.cli.terminal import note, writable
from fencepost.ports import Misconfigured, Refused

if TYPE_CHECKING:
    from fencepost.importing import Book, Chosen, Served

Kind = Literal["live", "octodns", "zonefile", "route53-json"]
PROBE = "tcp://:443"
"""What the file has until a person says better: whatever serves callers mostly takes connections."""
SHOWN_MOST = 8
SIZE_MOST = 256 * 1024 * 1024
"""Bytes of a file: Route 53's largest hosted zone is below a tenth of it."""
UNKNOWN = (
    'provider = "embedded"    # a server on this machine, to try things out; the source doesn\'t say who serves it:',
    '# provider = "rfc2136"',
    '# server = "192.0.2.53:53"',
    '# key = { file = "tsig.key" }',
    '# provider = "route53"',
)


def import_(
    kind: Kind,
    /,
    *source: str,
    only: list[str] | None = None,
    name: list[str] | None = None,
    domain: str | None = None,
    key: str | None = None,
    region_name: Annotated[str | None, Parameter(name="--region-name")] = None,
    probe: str = PROBE,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Print a region.toml made from records that exist. Nothing is changed, there or here.

    Parameters
    ----------
    kind
        live, octodns, zonefile or route53-json.
    source
        Files; a folder of octoDNS; for live a domain and its server, as example.com@192.0.2.53 (by AXFR), or nothing
        to read the domains of --config as its region does.
    only
        An endpoint to take, once for each, and no others.
    name
        A pattern of endpoints to take, such as "api*.example.com".
    domain
        The domain that a file is about, if it doesn't say.
    key
        live: a file with the TSIG key that may transfer, as tsig-keygen prints it.
    region_name
        The new region's name. Default: the domain's first label.
    probe
        How to look at targets, such as http://:8080/healthz.
    """
    from fencepost.importing import Book, choose, write

    book = Book()
    patience = duration(timeout, "--timeout")
    if kind != "live" and not source:
        raise Misconfigured(f"{kind} takes a file", hint=f"fencepost import {kind} FILE")
    refuse_misplaced(kind, config=config, key=key, source=source)
    if kind == "live":
        from fencepost.cli import import_live

        served = import_live.read(book, source, key=key, config=config, timeout=patience)
    else:
        served = from_files(book, kind, source, domain or "")
    found = book.source()
    chosen = choose(found, only or (), name or ())
    if not chosen.endpoints:
        raise nothing(chosen)
    text = write(region_word(region_name, found.domains), found.domains, chosen, served, probe)
    warn(text, chosen)
    if json:
        print(json_text.dumps(document(text, chosen)), flush=True)
    else:
        print(writable(text.removesuffix("\n"), sys.stdout), flush=True)  # a file: never wrapped, as say() would
    return 0


def refuse_misplaced(kind: Kind, *, config: str | None, key: str | None, source: tuple[str, ...]) -> None:
    """Raise ``Misconfigured`` for flags that mean nothing here. A variable of the environment is no word of theirs."""
    if kind != "live" and key is not None:
        raise Misconfigured(f"{blamed('--key', key)} goes with live", hint=f"fencepost import {kind} FILE")
    if kind == "live" and source and key is None and config is not None and blamed("--config", config) == "--config":
        hint = "fencepost import live example.com@192.0.2.53 --key FILE    or    fencepost import live --config FILE"
        raise Misconfigured("a source and --config: which of them?", hint=hint)


def from_files(book: "Book", kind: Kind, files: tuple[str, ...], domain: str) -> "Served":
    """Read files into the book. Raises ``Misconfigured`` with file and line."""
    from fencepost.importing import Served

    for file in files:
        path = Path(file)
        try:
            read_one(book, kind, path, domain)
        except OSError as error:
            said = (error.strerror or type(error).__name__).lower()
            raise Misconfigured(f"can't be read: {said}", where=str(error.filename or path)) from None
    lines = ('provider = "route53"',) if kind == "route53-json" else UNKNOWN
    return Served(lines, f"{kind}, {', '.join(files)}")


def read_one(book: "Book", kind: Kind, path: Path, domain: str) -> None:
    """Read one file, or a folder."""
    from fencepost.importing.endless import refuse_endless

    if kind == "octodns":
        from fencepost.importing import octodns

        for said in octodns.read(book, path, domain):
            note(said)
        return
    if path.is_dir():
        raise Misconfigured("is a folder", where=str(path), hint=f"fencepost import {kind} FILE")
    refuse_endless(path, SIZE_MOST)
    if kind == "zonefile":
        from fencepost.importing import zonefile

        zonefile.read(book, path, domain)
        return
    from fencepost.importing import route53_json

    try:
        body = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misconfigured(f"is not UTF-8 (byte {error.start})", where=str(path)) from None
    route53_json.read(book, body, str(path), domain)


def region_word(given: str | None, domains: tuple[str, ...]) -> str:
    """The region's name."""
    from fencepost.importing.choosing import pool_name

    return given if given is not None else pool_name(domains[0], ())


def nothing(chosen: "Chosen") -> Refused:
    """Nothing was taken: the first names, and why not."""
    some = "; ".join(f"{each.name}: {each.why}" for each in chosen.left[:SHOWN_MOST])
    more = f"; and {len(chosen.left) - SHOWN_MOST} more" if len(chosen.left) > SHOWN_MOST else ""
    what = f"no name there is taken for an endpoint ({some}{more})" if some else "no name there has an address"
    return Refused(what, hint="--only NAME takes a name all the same" if some else "")


def warn(text: str, chosen: "Chosen") -> None:
    """What a person should know, on stderr: what was taken, and what ``fencepost check`` will say."""
    from fencepost.settings import judge
    from fencepost.settings.loading import machine_has_ipv6

    taken = f"{counted(len(chosen.endpoints), 'endpoint')} in {counted(len(chosen.pools), 'pool')}"
    left = f"; {counted(len(chosen.left), 'name')} left out, listed at the file's end" if chosen.left else ""
    note(f"{taken}{left}.")
    note("Every target is in zone a, as the records don't say where it is: split them before you start.")
    for mistake in judge(text, "region.toml", os.environ, ipv6=machine_has_ipv6()).mistakes:
        note(f"fencepost check will say: {mistake}")
    note("  next     save it as region.toml, then  fencepost check  and  fencepost plan")


def document(text: str, chosen: "Chosen") -> dict[str, object]:
    """The same for programs."""
    return {
        "schema": "fencepost.import/1",
        "region_toml": text,
        "endpoints": [
            {
                "name": each.name,
                "pool": each.pool,
                "addresses": list(each.content.addresses),
                "ttl_s": each.content.ttl,
                "note": each.note,
            }
            for each in chosen.endpoints
        ],
        "left_out": [{"name": each.name, "why": each.why} for each in chosen.left],
    }
