"""Secrets come from files or the environment and are seen nowhere else: no log, status, history, error or process."""

import base64
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from damage import database_of
from grounds import EVERYWHERE, postgresql_server
from regions import RunningRegion

from fencepost import assembly

OWN = ("tsig.key", "postgresql.dsn", "api.token", "named.conf")
"""Files that hold one, each readable by its user only."""


def secrets_of(region: RunningRegion) -> set[str]:
    """Every secret of a region, as it could be seen: the text, and the bytes behind it."""
    found = {(region.folder / "api.token").read_text().strip()}
    if region.provider in ("embedded", "bind"):
        key = assembly.tsig_key(region.region).secret
        found |= {base64.b64encode(key).decode(), key.hex()}
    if region.store == "postgresql":
        match = re.search(r"password='([^']*)'", (region.folder / "postgresql.dsn").read_text())
        assert match is not None
        found.add(match[1])
    assert all(len(secret) >= 16 for secret in found)
    return found


def written(region: RunningRegion) -> Iterator[tuple[str, str]]:
    """All that the region has written, and the command line and environment of all that runs for it."""
    for path in sorted(region.folder.rglob("*")):
        if path.is_file() and path.name not in OWN:
            with contextlib.suppress(FileNotFoundError):  # a draft that has taken its file's place meanwhile
                yield str(path.relative_to(region.folder)), path.read_bytes().decode("latin-1")
    for name, process in region.processes().items():
        if process["pid"]:
            yield f"{name}'s command line", Path(f"/proc/{process['pid']}/cmdline").read_text()
            yield f"{name}'s environment", Path(f"/proc/{process['pid']}/environ").read_text()
    if region.store == "postgresql":
        server, name = postgresql_server(), database_of(region)
        for (table,) in server.sql(name, "SELECT tablename FROM pg_tables WHERE schemaname = 'fencepost'"):
            rows = server.sql(name, f"SELECT t::text FROM fencepost.{table} t")
            plain = "\n".join(str(row[0]) for row in rows)
            yield f"table {table}", plain
            hexes = "".join(re.findall(r"\\\\?x([0-9a-f]+)", plain))
            yield f"table {table}, unpacked", bytes.fromhex(hexes[: len(hexes) // 2 * 2]).decode("latin-1")


@pytest.mark.parametrize("on", EVERYWHERE)
def test_no_secret_is_seen_anywhere(tmp_path: Path, on: str) -> None:
    """Not even in what is said when a secret is wrong: then somebody is sure to paste it into a ticket."""
    with RunningRegion(tmp_path, on=on) as region:
        region.newer_plan(31)
        region.until(region.converged, 10, "converged")
        region.until((region.folder / "api.token").exists, 20, "the API has its token")
        secrets = secrets_of(region)
        said = {
            " ".join(words): region.fencepost(*words, ok=(0, 1))
            for words in (
                ("status", "--json"), ("status",), ("history", "--json"), ("explain", "api.example.test"),
                ("check",), ("plan",), ("plan", "--format", "json"), ("reload", "--yes"),
            )
        }  # fmt: skip
        for where, text in [*said.items(), *written(region)]:
            for secret in secrets:
                assert secret not in text, f"a secret is in {where}"


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        ("tsig.key", lambda text: text.replace('secret "', 'secret "AAAA')),
        ("postgresql.dsn", lambda text: text.replace("password='", "password='not ")),
        ("postgresql.dsn", lambda text: text.replace("host=", "hots=")),
        ("postgresql.dsn", lambda text: text.replace("host=127.0.0.1", "host=192.0.2.999")),
    ],
)
def test_a_wrong_secret_is_said_without_being_shown(tmp_path: Path, file: str, edit) -> None:  # type: ignore[no-untyped-def]
    """The provider's and the database's own words are passed on, and those may hold what was sent."""
    region = RunningRegion(tmp_path, on="bind+postgresql")
    with region.provider_alone():
        region.until(lambda: region.ask("example.test", "SOA").answer, 10, "the provider answers")
        path = next(region.folder.rglob(file))
        path.write_text(edit(path.read_text()))
        given = re.findall(r"secret \"([^\"]*)\"|password='([^']*)'", path.read_text())[0]
        secret = next(each for each in given if each)
        said = []
        for words in (("plan",), ("status",), ("status", "--json"), ("history",), ("plan", "--json")):
            text = region.fencepost_says(*words)
            said.append(text)
            assert secret not in text, words
            assert "Traceback" not in text, text
        assert re.search(r"refuses|accept|can't be", "".join(said)), said
