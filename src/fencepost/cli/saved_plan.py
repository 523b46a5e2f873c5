"""A saved plan: what ``fencepost plan`` showed, written down so that exactly this is done or nothing.

The file is the plan's own document (``fencepost.plan/1``), readable by whoever reads that, with what it was made from
beside it: the store's head (identity, number, nonce), the inputs (snapshot, people's words, each pool's targets), the
configuration's revision, the file that was previewed, and each endpoint as it stood. ``fencepost enact`` makes the plan
anew and compares all of it: a plan that somebody has looked at is worth something only as long as the world is the one
that was looked at. octoDNS applies a plan made before another writer's newer one, and puts the older values back.

It holds no secret. The seal is no signature: it tells a file that was edited or cut off from one that wasn't, so that
nobody carries out what was never planned. Who may write the store may publish anything with or without it.
"""

import json
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from fencepost import __version__
from fencepost.cli.plan_document import SCHEMA
from fencepost.cli.preview import Preview, marker_of
from fencepost.core.fence import Generation
from fencepost.core.instant import Instant
from fencepost.core.record_set import record_digest
from fencepost.core.store import Head, Row
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured, Refused
from fencepost.settings import Region, encode

SIZE_MOST = 256 * 1024 * 1024
HINT = "fencepost plan --save FILE    writes one"


class Seen(Struct, frozen=True, forbid_unknown_fields=True):
    """An endpoint as it stood: its marker's generation and digest (None, "": no marker of ours), and its records'."""

    name: str
    generation: Generation | None
    digest: str
    records: str
    ttl: int


class Basis(Struct, frozen=True, forbid_unknown_fields=True):
    """What a plan was made from, and what it is: ``rows`` as they would be published, ``seen`` what they replace.

    ``file`` is the digest of the region.toml that was previewed, ``revision`` that of the one that ran. ``inputs`` is
    the snapshot, ``words`` names what people had placed and ``pools`` each pool's targets, their states and weights:
    a snapshot also moves when a checker is heard again, which is no other world. ``spends`` are the orders that the
    plan carries out.
    """

    region: str
    owner: str
    file: str
    revision: int
    head: Head
    inputs: int
    words: str
    pools: dict[str, str]
    number: int | None
    rows: tuple[Row, ...]
    spends: tuple[str, ...]
    seen: tuple[Seen, ...]
    by: str
    at: Instant
    version: str


def basis_of(found: Preview, *, by: str = "") -> Basis:
    """What a preview was made from. Raises ``Refused`` where there is nothing to come back to: no store yet."""
    if found.head is None or found.inputs is None or found.loaded is None:
        what = "this region has never run, so there is nothing that could have moved, and nothing to go on from"
        raise Refused(what, where=found.region.path, hint="fencepost up")
    rows = tuple(structs.replace(row, made_at=0) for row in (found.plan.rows if found.plan else ()))
    names, before = [row.name for row in rows], sorted(found.before.items())
    return Basis(
        found.region.name,
        found.region.owner,
        file_digest(found.region),
        found.loaded.revision,
        found.head,
        found.inputs.snapshot,
        digest_of(sorted((name, body.decode()) for name, body in found.inputs.overrides.items())),
        {pool: digest_of([(m.key, m.zone, str(m.state), m.weight) for m in row.members]) for pool, row in before},
        found.plan.number if found.plan else None,
        rows,
        found.plan.spends if found.plan else (),
        tuple(seen(found.lives.get(name, Live(name))) for name in names),
        by,
        time.time_ns(),
        __version__,
    )


def seen(live: Live) -> Seen:
    """An endpoint as it stands."""
    marker = marker_of(live)
    generation = marker.generation if marker else None
    owner = f"{marker.owner}:" if marker else ""
    records = record_digest(live.a, live.aaaa)
    return Seen(live.name, generation, f"{owner}{marker.digest}" if marker else "", records, live.ttl)


def digest_of(value: Any) -> str:
    """Names a value, 16 hex digits."""
    return sha256(json.dumps(value).encode()).hexdigest()[:16]


def file_digest(region: Region) -> str:
    """Names a region.toml by what it says and on which lines."""
    return sha256(encode(region)).hexdigest()[:16]


def write(path: Path, found: Preview, document: dict[str, Any], *, by: str) -> None:
    """Write a plan down. Raises ``Refused`` for a region that never ran, and for a file that is something else."""
    body = document | {"basis": msgspec.to_builtins(basis_of(found, by=by))}
    text = json.dumps(body | {"seal": seal(body)}, indent=1)
    try:
        if path.exists() and path.stat().st_size and not is_plan(path):
            raise Refused("is there already, and is no saved plan; it is left alone", where=str(path))
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise Misconfigured(f"can't be written: {error.strerror}", where=str(path)) from None


def is_plan(path: Path) -> bool:
    """Whether a file begins as saved plans do, of whatever version."""
    with path.open("rb") as file:
        return b'"schema": "fencepost.plan/' in file.read(200)


def seal(body: dict[str, Any]) -> str:
    """Names the whole document, however it is laid out."""
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def load(path: Path) -> Basis:
    """A saved plan. Raises ``Misconfigured`` for what is none, ``Refused`` for one that was changed since."""
    try:
        with path.open("rb") as file:  # by reading: a pipe and a device have no size
            text = file.read(SIZE_MOST + 1)
        if len(text) > SIZE_MOST:
            raise Misconfigured("is too large for a saved plan", where=str(path), hint=HINT)
        body = json.loads(text)
        sealed = isinstance(body, dict) and body.pop("seal", None) == seal(body)
    except OSError as error:
        said = (error.strerror or type(error).__name__).lower()
        raise Misconfigured(f"can't be read: {said}", where=str(path), hint=HINT) from None
    except (ValueError, RecursionError):
        raise Misconfigured("is no saved plan, or was cut off", where=str(path), hint=HINT) from None
    schema = body.get("schema") if isinstance(body, dict) else None
    if not isinstance(schema, str) or not schema.startswith("fencepost.plan/"):
        raise Misconfigured("is no saved plan", where=str(path), hint=HINT)
    if schema != SCHEMA:
        what = f"was saved by another version of fencepost ({schema[:40]}; this one knows {SCHEMA})"
        raise Misconfigured(what, where=str(path), hint=HINT)
    if "basis" not in body:
        raise Misconfigured("is what `plan --format json` prints, which can't be enacted", where=str(path), hint=HINT)
    if not sealed:
        raise Refused("was changed since it was saved; nothing was done", where=str(path), hint=HINT)
    try:
        return msgspec.convert(body["basis"], Basis)
    except msgspec.ValidationError as error:
        raise Misconfigured(
            f"was saved by another version of fencepost ({error})", where=str(path), hint=HINT
        ) from None


def moved(saved: Basis, now: Basis) -> list[str]:
    """What isn't as it was when the plan was saved, each in a few words; [] if the plan would be the very same."""
    found = []
    if now.file != saved.file:
        found.append("region.toml has changed since")
    if now.revision != saved.revision:
        found.append(f"another configuration was loaded: revision {now.revision}, it was {saved.revision}")
    if now.head.store != saved.head.store:
        found.append("the store is another one")
    elif now.head != saved.head:
        found.append(f"plan {now.head.number} was published since, the newest was {saved.head.number}")
    if now.inputs != saved.inputs:
        if now.words != saved.words:
            found.append("a person placed or ended a drain, keep or pause")
        both = sorted(now.pools.keys() | saved.pools.keys())
        moved = [pool for pool in both if now.pools.get(pool) != saved.pools.get(pool)]
        found += [f"targets of pool {pool} went out, came in or changed their weight" for pool in moved]
    stood = {each.name: each for each in saved.seen}
    stands = {each.name: each for each in now.seen}
    found += [text for name in sorted(stood) if name in stands and (text := drifted(stood[name], stands[name]))]
    if not found and (now.number, now.rows, now.spends) != (saved.number, saved.rows, saved.spends):
        found.append("time has passed: the plan would be another one now")
    return found


def drifted(was: Seen, now: Seen) -> str:
    """What changed at an endpoint, in a few words."""
    if (was.generation, was.digest) != (now.generation, now.digest):
        return f"{now.name} is at {standing(now)}, it was at {standing(was)}"
    return f"{now.name}: its records were changed by hand" if (was.records, was.ttl) != (now.records, now.ttl) else ""


def standing(each: Seen) -> str:
    """Its marker, for people."""
    return f"gen {each.generation}" if each.generation is not None else "no marker"
