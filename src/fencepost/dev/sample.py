"""The sample region's text: as it is shown everywhere, or on another provider or store that is run beside it.

What is run beside it (BIND, PostgreSQL …) stands, a word each, in a file ``stand-ins`` in the region's folder.
"""

from collections.abc import Collection
from importlib import resources
from pathlib import Path

PROVIDERS = {
    "bind": (
        'provider = "rfc2136"',
        'server   = "127.0.0.1:5300"      # BIND, started beside the roles',
        'key      = { file = "tsig.key" }',
    ),
    "route53-dev": (
        'provider = "route53"',
        'endpoint = "http://127.0.0.1:5303"   # the stand-in, started beside the roles; without it AWS itself',
        'server   = "127.0.0.1:5300"      # what it answers over DNS: the observer asks there',
        'requests = "50/s"                # default "2/s", of the 5 that AWS allows an account',
    ),
}
"""The lines in [dns] that stand for the embedded server's."""

STORES = {
    "postgresql": (
        'kind = "postgresql"',
        'dsn  = { file = "postgresql.dsn" }   # PostgreSQL, started beside the roles',
    )
}
"""The lines in [store] that stand for SQLite's."""

FILE = "stand-ins"
OWN = {"dns": ("provider", "listen", "transfer", "# rfc2136", "# route53"), "store": ("kind", "path", "# postgresql")}


def sample_text(provider: str = "embedded", store: str = "sqlite") -> str:
    """The sample's region.toml. Raises ``KeyError`` for one that can't be run beside it."""
    lines = resources.files("fencepost.dev").joinpath("sample.toml").read_text().splitlines()
    name = sample_name(provider, store)
    lines = [line.replace('name   = "demo" ', f'name   = "{name}" ') for line in lines]
    if provider != "embedded":
        lines = replaced(lines, "dns", PROVIDERS[provider])
    if store != "sqlite":
        lines = replaced(lines, "store", STORES[store])
    return "\n".join(lines) + "\n"


def sample_name(provider: str, store: str) -> str:
    """The sample's name: each kind has a folder of its own, so that none takes another's files for its own."""
    return "-".join(["demo", *stand_ins(provider, store)])


def stand_ins(provider: str, store: str) -> Collection[str]:
    """What is run beside the roles."""
    return [*([provider] if provider != "embedded" else []), *([store] if store != "sqlite" else [])]


def fresh_words(words: Collection[str]) -> str:
    """What starts the sample with these stand-ins anew, forgetting what an earlier run left."""
    kinds = [f"--{'provider' if word in PROVIDERS else 'store'} {word}" for word in words]
    return " ".join(("up --fresh", *kinds))


def write_stand_ins(folder: Path, provider: str, store: str) -> None:
    """Note what is run beside the roles."""
    (folder / FILE).write_text("".join(f"{word}\n" for word in stand_ins(provider, store)))


def read_stand_ins(folder: Path) -> list[str]:
    """What is run beside the roles; nothing for a region of somebody's own."""
    try:
        return (folder / FILE).read_text().split()
    except OSError:
        return []


def replaced(lines: list[str], table: str, new: tuple[str, ...]) -> list[str]:
    """The lines with a table's own ones replaced, comments of keys that stay left alone."""
    at = lines.index(next(line for line in lines if line.startswith(f"[{table}]")))
    end = next((each for each in range(at + 1, len(lines)) if lines[each].startswith("[")), len(lines))
    kept = [line for line in lines[at + 1 : end] if not line.startswith(OWN[table])]
    return [*lines[: at + 1], *new, *kept, *lines[end:]]
